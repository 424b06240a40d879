/* fcgi_head.c - see fcgi_head.h. */
#include "fcgi_head.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <sys/socket.h>

#include "lib/base/util.h"

#define RECORD_VERSION 1
#define RECORD_PARAMS  4
#define RECORD_HEAD    8
#define AGAIN_MS       10 /* poll(2) knows no "more than before" */

enum head { HEAD_WHOLE, HEAD_PART, HEAD_WRONG };

static enum head look(const unsigned char *bytes, size_t length)
{
	size_t at = 0;

	while (length - at >= RECORD_HEAD) {
		const unsigned char *record = bytes + at;
		size_t content = (size_t)record[4] << 8 | record[5];

		if (record[0] != RECORD_VERSION)
			return HEAD_WRONG;
		if (record[1] == RECORD_PARAMS && content == 0)
			return HEAD_WHOLE;
		at += RECORD_HEAD + content + record[6];
		if (at > length)
			break;
	}
	return length == FCGI_HEAD_BYTES ? HEAD_WRONG : HEAD_PART;
}

bool fcgi_head_wait(int fd)
{
	auto_free unsigned char *bytes = xmalloc(FCGI_HEAD_BYTES);
	int64_t until_us = clock_monotonic_us() + FCGI_HEAD_SECONDS * INT64_C(1000000);

	for (;;) {
		ssize_t n = recv(fd, bytes, FCGI_HEAD_BYTES, MSG_PEEK | MSG_DONTWAIT);
		enum head head = n > 0 ? look(bytes, (size_t)n) : HEAD_PART;
		int64_t left_us = until_us - clock_monotonic_us();
		struct pollfd more = {.fd = fd, .events = n > 0 ? POLLRDHUP : POLLIN};

		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) || head == HEAD_WRONG)
			return false;
		if (head == HEAD_WHOLE || left_us <= 0)
			return head == HEAD_WHOLE;
		/* With a part there it is readable already; who has hung up sends no more. */
		if (poll(&more, 1, n > 0 ? AGAIN_MS : (int)(left_us / 1000) + 1) > 0 && n > 0)
			return false;
	}
}
