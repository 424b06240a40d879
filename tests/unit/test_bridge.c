/* test_bridge.c - the bridge and a program that is hostile, or only unlucky: wrong frames, ids twice, ten thousand
 * calls at once, answers that nobody reads, connections without end, calls that are under way when all is over. All of
 * it on a thread of the bridge's own and on that of upstream servers. */
#include "bridge_try.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/bridge/bridge_frame.h"

static struct bridge_try with;
static struct config config; /* of `with`'s upstream */

struct guest {
	struct bridge_run *run;
	char folder[32];
	struct sockaddr_un address;
};

/* In the place of init. */
static void begin(struct guest *guest, const struct bridge_caps *caps)
{
	*guest = (struct guest){.folder = "/tmp/bridge.XXXXXX", .address = {.sun_family = AF_UNIX}};
	guest->run = bridge_try_open(&with, caps);
	assert_non_null(mkdtemp(guest->folder));
	snprintf(guest->address.sun_path, sizeof(guest->address.sun_path), "%s/s", guest->folder);
	assert_int_equal(
		bind(bridge_run_socket(guest->run), (struct sockaddr *)&guest->address, sizeof(guest->address)), 0);
	assert_int_equal(listen(bridge_run_socket(guest->run), 16), 0);
}

static void end(struct guest *guest, struct bridge_report *report)
{
	bridge_close(guest->run, report);
	unlink(guest->address.sun_path);
	rmdir(guest->folder);
}

static int dial(const struct guest *guest)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (const struct sockaddr *)&guest->address, sizeof(guest->address)), 0);
	return fd;
}

static void say_bytes(int fd, const void *bytes, size_t length)
{
	assert_int_equal(send(fd, bytes, length, MSG_NOSIGNAL), length);
}

static void say(int fd, const char *json)
{
	auto_buf struct buf frame = {0};

	buf_init(&frame, 64 << 20);
	bridge_frame_begin(&frame);
	buf_puts(&frame, json);
	bridge_frame_end(&frame);
	say_bytes(fd, frame.data, frame.length);
}

/* The next frame, the caller's; NULL: the connection ended. */
static char *hear(int fd)
{
	unsigned char head[BRIDGE_HEAD];

	if (recv(fd, head, sizeof(head), MSG_WAITALL) != sizeof(head))
		return NULL;
	size_t length = bridge_frame_length(head);
	char *text = xmalloc(length + 1);
	assert_int_equal(recv(fd, text, length, MSG_WAITALL), length);
	text[length] = '\0';
	return text;
}

static void hears(int fd, const char *part)
{
	auto_free char *text = hear(fd);

	if (!text || !strstr(text, part))
		fail_msg("heard %s, not %s", text ? text : "the end", part);
}

static void hears_end(int fd)
{
	auto_free char *text = hear(fd);

	if (text)
		fail_msg("heard %s, not the end", text);
}

#define READ(id)                                                                                                       \
	"{\"id\":" #id ",\"op\":\"call\",\"server\":\"fs-1\",\"tool\":\"read_file\",\"arguments\":{\"path\":\"a\"}}"

static void a_wrong_frame_ends_its_connection(void **state)
{
	static const struct {
		const char *bytes;
		size_t length;
		const char *says;
	} frames[] = {
		{"\0\0\0\0", 4, "the frame is empty"},
		{"\xff\xff\xff\xff", 4, "the frame is larger than the limit"},
		{"\0\x20\0\0", 4, "the frame is larger than the limit"},
		{"\0\0\0\4null", 8, "\"protocol\""},
		{"\0\0\0\3{]}", 7, "\"protocol\""},
		{"\0\0\0\2[]", 6, "\"protocol\""},
		{"\0\0\0\x0d{\"op\":\"call\"}", 17, "\"protocol\""},
		{"\0\0\0\x16{\"id\":-1,\"op\":\"search\"}", 27, "\"protocol\""},
		{"\0\0\0\4\xff\xfe\0\0", 8, "\"protocol\""},
	};
	struct guest guest;

	(void)state;
	begin(&guest, &bridge_try_caps);
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		auto_close int fd = dial(&guest);

		say_bytes(fd, frames[i].bytes, frames[i].length);
		hears(fd, frames[i].says);
		hears_end(fd);
	}
	auto_close int good = dial(&guest); /* nobody else suffers */
	say(good, READ(1));
	hears(good, "content of a");
	end(&guest, NULL);
}

static void a_wrong_request_is_refused_with_its_member(void **state)
{
	static const struct {
		const char *json, *says;
	} requests[] = {
		{"{\"id\":1,\"op\":\"dance\"}", "op"},
		{"{\"id\":2,\"op\":\"call\",\"server\":\"fs-1\"}", "tool: is missing"},
		{"{\"id\":3,\"op\":\"call\",\"server\":\"fs-1\",\"tool\":\"read_file\",\"arguments\":[]}", "arguments"},
		{"{\"id\":4,\"op\":\"call\",\"server\":\"fs-1\",\"tool\":\"read_file\",\"more\":1}", "more"},
		{"{\"id\":5,\"op\":\"call\",\"server\":\"fs-1\",\"tool\":\"read_file\",\"timeout\":-1}", "timeout"},
		{"{\"id\":6,\"op\":\"call\",\"server\":\"other\",\"tool\":\"x\"}", "Server 'other' is not available"},
		{"{\"id\":7,\"op\":\"describe\",\"server\":\"fs-1\",\"tool\":\"x\"}", "has no tool \\\"x"},
		{"{\"id\":8,\"op\":\"cancel\",\"call\":77}", "\"ok\":true"},
		{"{\"id\":9,\"op\":\"search\",\"query\":\"\"}", "\"result\":[]"},
	};
	struct guest guest;

	(void)state;
	begin(&guest, &bridge_try_caps);
	auto_close int fd = dial(&guest);
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		say(fd, requests[i].json);
		hears(fd, requests[i].says);
	}
	say(fd, READ(10));
	hears(fd, "\"id\":10,\"ok\":true");
	say(fd, READ(10));
	hears(fd, "the id was used before");
	hears_end(fd);
	end(&guest, NULL);
}

/* Byte by byte, several in one piece, and one that never ends. */
static void frames_in_pieces_are_put_together(void **state)
{
	auto_buf struct buf two = {0};
	const char *request = READ(1);
	struct guest guest;

	(void)state;
	begin(&guest, &bridge_try_caps);
	auto_close int fd = dial(&guest);
	auto_close int half = dial(&guest);
	buf_init(&two, 4096);
	bridge_frame_begin(&two);
	buf_puts(&two, request);
	bridge_frame_end(&two);
	for (size_t i = 0; i < two.length; i++)
		say_bytes(fd, two.data + i, 1);
	hears(fd, "content of a");
	say_bytes(half, two.data, two.length - 1);
	auto_close int both = dial(&guest);
	auto_buf struct buf more = {0};
	buf_init(&more, 4096);
	buf_add(&more, two.data, two.length);
	more.data[4 + 6] = '2';
	say_bytes(both, two.data, two.length);
	say_bytes(both, more.data, more.length);
	hears(both, "\"id\":1,");
	hears(both, "\"id\":2,");
	end(&guest, NULL);
	hears_end(half);
}

static void calls_beyond_the_cap_are_refused(void **state)
{
	struct bridge_caps caps = bridge_try_caps;
	struct bridge_report report;
	size_t done = 0, refused = 0;
	struct guest guest;

	(void)state;
	begin(&guest, &caps);
	auto_close int fd = dial(&guest);
	pid_t writer = fork();
	if (writer == 0) {
		for (int i = 1; i <= 10000; i++) {
			auto_free char *json =
				xasprintf("{\"id\":%d,\"op\":\"call\",\"server\":\"fs-1\",\"tool\":\"fails\"}", i);

			say(fd, json);
		}
		_exit(0);
	}
	for (int i = 0; i < 10000; i++) {
		auto_free char *text = hear(fd);

		assert_non_null(text);
		done += strstr(text, "no such thing") != NULL;
		refused += strstr(text, "this run has made 200 calls, the limit") != NULL;
	}
	assert_int_equal(waitpid(writer, NULL, 0), writer);
	assert_int_equal(done, 200);
	assert_int_equal(refused, 9800);
	end(&guest, &report);
	assert_int_equal(report.calls, 10000);
	assert_int_equal(report.count, 200 + BRIDGE_REFUSED_KEPT);
	assert_string_equal(report.records[200].kind, "limit");
	bridge_report_clear(&report);
}

/* A run whose frames take more of the thread than its share rests; nothing of it is lost, and other runs do not rest.
 */
static void a_run_beyond_its_share_rests(void **state)
{
	struct bridge_caps caps = bridge_try_caps;
	struct bridge_report report, other_report;
	struct guest flood, other;

	(void)state;
	caps.work_us = 0;
	begin(&flood, &caps);
	begin(&other, &bridge_try_caps);
	auto_close int fd = dial(&flood), second = dial(&flood), calm = dial(&other);
	for (int i = 1; i <= 200; i++) {
		auto_free char *json = xasprintf("{\"id\":%d,\"op\":\"describe\",\"server\":\"fs-1\"}", i);
		auto_free char *part = xasprintf("\"id\":%d,", i);

		say(fd, json);
		say(second, json);
		if (i % 10 == 0) {
			say(calm, json);
			hears(calm, part);
		}
		hears(fd, part);
		hears(second, part);
	}
	end(&flood, &report);
	end(&other, &other_report);
	assert_true(report.rests > 100 &&
		    report.rests <= 400); /* a frame may be so quick that it takes no time at all */
	assert_int_equal(other_report.rests, 0);
	bridge_report_clear(&report);
	bridge_report_clear(&other_report);
}

/* A program that does not read has nothing more read of it, and the host keeps no more than it must. */
static void a_program_that_does_not_read_is_not_read(void **state)
{
	struct bridge_report report;
	struct guest guest;
	int sent = 0;

	(void)state;
	begin(&guest, &bridge_try_caps);
	auto_close int fd = dial(&guest);
	auto_free char *json =
		xasprintf("{\"id\":100000,\"op\":\"call\",\"server\":\"fs-1\",\"tool\":\"big\",\"arguments\":"
			  "{\"bytes\":1000000}}%*s",
			  60000, "");
	for (int i = 0; i < 190; i++, sent++) {
		auto_buf struct buf frame = {0};

		buf_init(&frame, 1 << 20);
		bridge_frame_begin(&frame);
		memcpy(json + 6,
		       (char[6]){'1', '0', '0', (char)('0' + i / 100), (char)('0' + i / 10 % 10), (char)('0' + i % 10)},
		       6);
		buf_puts(&frame, json);
		bridge_frame_end(&frame);
		struct pollfd writable = {.fd = fd, .events = POLLOUT};
		/* Once the bridge has stopped reading, the socket stays full. */
		if (poll(&writable, 1, 2000) == 0 ||
		    send(fd, frame.data, frame.length, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			break;
	}
	assert_true(sent < 100);
	end(&guest, &report);
	size_t done = 0;
	for (size_t i = 0; i < report.count; i++)
		done += streq(report.records[i].state, "done");
	assert_in_range(done, 1, 24);
	bridge_report_clear(&report);
}

static void arguments_and_results_beyond_a_limit_fail(void **state)
{
	struct bridge_caps caps = bridge_try_caps;
	struct guest guest;

	(void)state;
	caps.argument_bytes = 1000;
	caps.result_bytes = 2000;
	caps.total_bytes = 4000;
	begin(&guest, &caps);
	auto_close int fd = dial(&guest);
	auto_free char *large = xasprintf("{\"id\":1,\"op\":\"call\",\"server\":\"fs-1\",\"tool\":\"read_file\","
					  "\"arguments\":{\"path\":\"%01000d\"}}",
					  0);
	say(fd, large);
	hears(fd, "the arguments have 1011 bytes, the limit is 1000");
	say(fd, "{\"id\":2,\"op\":\"call\",\"server\":\"fs-1\",\"tool\":\"big\",\"arguments\":{\"bytes\":3000}}");
	hears(fd, "bytes, the limit is 2000");
	say(fd, "{\"id\":3,\"op\":\"call\",\"server\":\"fs-1\",\"tool\":\"big\",\"arguments\":{\"bytes\":1900}}");
	hears(fd, "\"ok\":true");
	say(fd, "{\"id\":4,\"op\":\"call\",\"server\":\"fs-1\",\"tool\":\"big\",\"arguments\":{\"bytes\":1900}}");
	hears(fd, "\"ok\":true");
	say(fd, "{\"id\":5,\"op\":\"call\",\"server\":\"fs-1\",\"tool\":\"big\",\"arguments\":{\"bytes\":1900}}");
	hears(fd, "the results of this run have more than 4000 bytes");
	end(&guest, NULL);
}

#define NEVER(id) "{\"id\":" #id ",\"op\":\"call\",\"server\":\"fs-1\",\"tool\":\"never\"}"

/* No more than caps.in_flight are with the provider; what is cancelled makes room. */
static void calls_beyond_in_flight_wait(void **state)
{
	struct bridge_caps caps = bridge_try_caps;
	struct bridge_report report;
	struct guest guest;

	(void)state;
	caps.in_flight = 2;
	with.cancels = with.most_later = with.released = 0;
	begin(&guest, &caps);
	auto_close int fd = dial(&guest);
	auto_close int other = dial(&guest);
	say(fd, NEVER(1));
	say(fd, NEVER(2));
	say(fd, NEVER(3));
	say(fd, READ(4));
	say(fd, "{\"id\":5,\"op\":\"cancel\",\"call\":1}");
	hears(fd, "\"id\":1,\"ok\":false,\"error\":{\"kind\":\"cancelled\"");
	hears(fd, "\"id\":5,\"ok\":true");
	say(fd, "{\"id\":6,\"op\":\"cancel\",\"call\":3}");
	hears(fd, "\"id\":3,");
	hears(fd, "\"id\":6,");
	hears(fd, "content of a"); /* the fourth: it had waited */
	assert_true(with.most_later <= 2);
	say(other, NEVER(1));
	say(other, "{\"id\":2,\"op\":\"servers\"}");
	hears(other, "fs-1");
	close(steal_fd(&other)); /* ends its call */
	say(fd, NEVER(7));
	say(fd, "{\"id\":8,\"op\":\"servers\"}");
	hears(fd, "fs-1");
	end(&guest, &report);
	hears_end(fd);
	assert_int_equal(report.count, 6);
	for (size_t i = 0; i < report.count; i++)
		assert_string_equal(report.records[i].state, i == 3 ? "done" : "cancelled");
	bridge_report_clear(&report);
}

/* The seventeenth waits until another one ends. */
static void a_connection_too_many_waits_for_another_to_end(void **state)
{
	int fds[BRIDGE_CONNECTIONS + 1];
	struct guest guest;

	(void)state;
	begin(&guest, &bridge_try_caps);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = dial(&guest);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		say(fds[i], READ(1));
	for (size_t i = 0; i < BRIDGE_CONNECTIONS; i++)
		hears(fds[i], "content of a");
	struct pollfd waits = {.fd = fds[BRIDGE_CONNECTIONS], .events = POLLIN};
	assert_int_equal(poll(&waits, 1, 0), 0);
	close(fds[0]);
	hears(fds[BRIDGE_CONNECTIONS], "content of a");
	for (size_t i = 1; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	end(&guest, NULL);
}

/* Frames as they come and go together: one write of a program, one read of it. */
static void frames_that_come_together_are_all_answered(void **state)
{
	enum { FRAMES = 100 };
	struct guest guest;
	auto_buf struct buf frames = {0};

	(void)state;
	begin(&guest, &bridge_try_caps);
	auto_close int fd = dial(&guest);

	buf_init(&frames, 1 << 20);
	for (int i = 0; i < FRAMES; i++) {
		struct buf frame;

		buf_init(&frame, 1 << 10);
		bridge_frame_begin(&frame);
		buf_printf(&frame,
			   "{\"id\":%d,\"op\":\"call\",\"server\":\"fs-1\",\"tool\":\"read_file\",\"arguments\":"
			   "{\"path\":\"%d\"}}",
			   i, i);
		bridge_frame_end(&frame);
		buf_add(&frames, frame.data, frame.length);
		buf_clear(&frame);
	}
	say_bytes(fd, frames.data, frames.length);
	for (int i = 0; i < FRAMES; i++) {
		auto_free char *id = xasprintf("\"id\":%d,", i), *text = xasprintf("content of %d\"", i),
			       *heard = hear(fd);

		if (!heard || !strstr(heard, id) || !strstr(heard, text))
			fail_msg("heard %s, not %s with %s", heard ? heard : "the end", text, id);
	}
	end(&guest, NULL);
}

static void note_thread(void *arg, struct upstream_list *list, const struct err *err)
{
	(void)err;
	assert_null(list);
	*(pthread_t *)arg = pthread_self();
}

/* A call wakes nobody else: who hears from upstream servers is who hears from programs. */
static void a_call_stays_on_upstreams_thread(void **state)
{
	struct guest guest;
	pthread_t upstreams = pthread_self();
	struct err err = ERR_INIT;
	struct upstream_list *list;
	size_t count;

	(void)state;
	begin(&guest, &bridge_try_caps);
	auto_close int fd = dial(&guest);
	say(fd, READ(1));
	hears(fd, "content of a");
	const struct upstream_key key = {upstream_servers(with.upstream, &count), "somebody", ""};
	const int64_t deadline = clock_monotonic_us() + INT64_C(60000000);

	upstream_list_begin(with.upstream, &key, deadline, note_thread, &upstreams);
	/* In the order of the work items: when this one is answered, that one was. */
	assert_int_equal(upstream_list(with.upstream, &key, deadline, &list, &err), -ERR_UNAVAILABLE);
	assert_true(pthread_equal(with.caller, upstreams));
	assert_false(pthread_equal(with.caller, pthread_self()));
	end(&guest, NULL);
}

static int start(void **state)
{
	(void)state;
	bridge_try_begin(&with, NULL);
	return 0;
}

/* With a server that cannot be reached. */
static int start_upstream(void **state)
{
	static const char servers[] = "{\"mcpServers\":{\"none\":{\"url\":\"http://127.0.0.1:9/mcp\"}}}";
	char path[] = "/tmp/bridge.XXXXXX";
	auto_close int fd = mkstemp(path);
	struct upstream *upstream = NULL;
	struct err err = ERR_INIT;

	(void)state;
	assert_int_equal(write(fd, servers, strlen(servers)), strlen(servers));
	setenv("SALLYPORT_UPSTREAM_FILE", path, 1);
	if (config_load(NULL, &config, &err) < 0 || upstream_open(&config, &upstream, &err) < 0)
		fail_msg("%s", err.text);
	unsetenv("SALLYPORT_UPSTREAM_FILE");
	unlink(path);
	bridge_try_begin(&with, upstream);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	bridge_try_end(&with);
	config_clear(&config);
	return 0;
}

#define ON_BOTH(test)                                                                                                  \
	cmocka_unit_test_setup_teardown(test, start, stop),                                                            \
	{                                                                                                              \
#test " on upstream's thread", test, start_upstream, stop, NULL                                        \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(a_wrong_frame_ends_its_connection),
		ON_BOTH(a_wrong_request_is_refused_with_its_member),
		ON_BOTH(frames_in_pieces_are_put_together),
		ON_BOTH(frames_that_come_together_are_all_answered),
		ON_BOTH(calls_beyond_the_cap_are_refused),
		ON_BOTH(a_program_that_does_not_read_is_not_read),
		ON_BOTH(arguments_and_results_beyond_a_limit_fail),
		ON_BOTH(calls_beyond_in_flight_wait),
		ON_BOTH(a_run_beyond_its_share_rests),
		ON_BOTH(a_connection_too_many_waits_for_another_to_end),
		{"a_call_stays_on_upstreams_thread", a_call_stays_on_upstreams_thread, start_upstream, stop, NULL},
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
