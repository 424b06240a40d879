/* What a FastCGI client can make the gateway read and keep: heads without end, false lengths. */
#include <signal.h>

#include "fcgi_try.h"

/* Parameters without end are not taken in: the connection is closed, with most of them unsent. */
static void endless_head(void **state)
{
	static const unsigned char begin[8] = {0, 1};
	auto_buf struct buf out = {0};
	auto_free char *value = xcalloc(1, 60001);
	size_t sent = 0;

	(void)state;
	memset(value, 'x', 60000);
	buf_init(&out, 1 << 20);
	fcgi_record(&out, BEGIN_REQUEST, begin, sizeof(begin));
	auto_close int fd = fcgi_dial();
	while (send(fd, out.data, out.length, MSG_NOSIGNAL) == (ssize_t)out.length) {
		sent += out.length;
		assert_true(sent < 64 << 20);
		out.length = 0;
		fcgi_record(&out, PARAMS, value, 60000);
	}
	assert_true(sent < 8 << 20);
	assert_true(fcgi_get("/healthz", "Status: 200 "));
}

static void send_records(const struct buf *params, unsigned char id)
{
	static const unsigned char begin[8] = {0, 1};
	auto_close int fd = fcgi_dial();
	auto_buf struct buf out = {0}, reply = {0};

	buf_init(&out, 1 << 16);
	buf_init(&reply, 1 << 16);
	fcgi_record(&out, BEGIN_REQUEST, begin, sizeof(begin));
	fcgi_record(&out, PARAMS, NULL, 0);
	out.data[out.length - 5] = (char)id; /* the end of another request's parameters */
	if (id == 1)
		out.length -= 8;
	fcgi_record(&out, PARAMS, params->data, params->length);
	fcgi_record(&out, PARAMS, NULL, 0);
	fcgi_record(&out, STDIN, NULL, 0);
	assert_int_equal(write_all(fd, out.data, out.length), 0);
	fcgi_receive(fd, &reply);
	assert_int_equal(reply.length, 0);
}

/* Lengths that promise more than there is, two whose sum is no int, cut off ones: libfcgi, which aborts, never sees
 * them; nor behind records of another request, which it passes over. */
static void false_lengths(void **state)
{
#define BYTES(text) {text, sizeof(text) - 1}
	static const struct {
		const char *bytes;
		size_t length;
	} cases[] = {BYTES("\377\377\377\377\377\377\377\377"), BYTES("\377\377\377\360\200\0\0\20ab"),
		     BYTES("\1\2ab"), BYTES("\1\1ab\200\0"), BYTES("\1\1ab\1"), BYTES("\1\1ab\1\377\377\377\377x")};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (unsigned char id = 1; id < 3; id++) {
			auto_buf struct buf params = {0};

			buf_init(&params, 1 << 10);
			fcgi_pair(&params, "REQUEST_METHOD", "GET");
			buf_add(&params, cases[i].bytes, cases[i].length);
			send_records(&params, id);
			assert_true(fcgi_get("/healthz", "Status: 200 "));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(endless_head),
		cmocka_unit_test(false_lengths),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, fcgi_start, fcgi_stop);
}
