/*
 * fcgi_head.c - see fcgi.h.
 *
 * Facts: FastCGI specification 3.3 (records), 6.2 (the parameters end with an empty record of theirs).
 */
#include "fcgi.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/util.h"

#define RECORD_VERSION 1
#define RECORD_BEGIN   1
#define RECORD_PARAMS  4
#define RECORD_HEAD    8
#define AGAIN_MS       10 /* poll(2) knows no "more than before" */

enum head { HEAD_WHOLE, HEAD_PART, HEAD_WRONG };

/* The length at *at, of one byte or four; false: it is cut off. */
static bool take_length(const unsigned char *bytes, size_t length, size_t *at, size_t *ret)
{
	if (*at >= length)
		return false;
	*ret = bytes[(*at)++];
	if (*ret < 0x80)
		return true;
	if (length - *at < 3)
		return false;
	*ret = (*ret & 0x7f) << 24 | (size_t)bytes[*at] << 16 | (size_t)bytes[*at + 1] << 8 | bytes[*at + 2];
	*at += 3;
	return true;
}

/* Every name and value is there. libfcgi adds two lengths as ints before it looks, and aborts on overflow. */
static bool pairs_whole(const unsigned char *bytes, size_t length)
{
	for (size_t at = 0; at < length;) {
		size_t name, value;

		if (!take_length(bytes, length, &at, &name) || !take_length(bytes, length, &at, &value))
			return false;
		if (name > length - at || value > length - at - name)
			return false;
		at += name + value;
	}
	return true;
}

/*
 * One BEGIN_REQUEST, then parameters of the same request and nothing else: libfcgi passes over records of others and
 * would read on behind what was looked at here. `params` has room for FCGI_HEAD_BYTES.
 */
static enum head look(const unsigned char *bytes, size_t length, unsigned char *params)
{
	size_t at = 0, n_params = 0;

	while (length - at >= RECORD_HEAD) {
		const unsigned char *record = bytes + at;
		size_t content = (size_t)record[4] << 8 | record[5];

		if (record[0] != RECORD_VERSION || record[1] != (at == 0 ? RECORD_BEGIN : RECORD_PARAMS) ||
		    record[2] != bytes[2] || record[3] != bytes[3])
			return HEAD_WRONG;
		at += RECORD_HEAD + content + record[6];
		if (record[1] == RECORD_PARAMS && content == 0)
			return pairs_whole(params, n_params) ? HEAD_WHOLE : HEAD_WRONG;
		if (at > length)
			break;
		if (record[1] == RECORD_PARAMS) {
			memcpy(params + n_params, record + RECORD_HEAD, content);
			n_params += content;
		}
	}
	return length == FCGI_HEAD_BYTES ? HEAD_WRONG : HEAD_PART;
}

bool fcgi_head_wait(int fd)
{
	auto_free unsigned char *bytes = xmalloc(FCGI_HEAD_BYTES), *params = xmalloc(FCGI_HEAD_BYTES);
	int64_t until_us = clock_monotonic_us() + FCGI_HEAD_SECONDS * INT64_C(1000000);

	for (;;) {
		ssize_t n = recv(fd, bytes, FCGI_HEAD_BYTES, MSG_PEEK | MSG_DONTWAIT);
		enum head head = n > 0 ? look(bytes, (size_t)n, params) : HEAD_PART;
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
