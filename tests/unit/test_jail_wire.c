/* test_jail_wire.c - the jailer's protocol without a jailer: packets with descriptors, messages that are refused,
 * results there and back.
 */
#include "jail_try.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "jail/client/wire.h"
#include "jail/client/wire_fd.h"

static void make_pair(int pair[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
}

static void packets_carry_strings_and_descriptors(void **state)
{
	int pair[2];
	struct wire_queue queue;
	struct err err = ERR_INIT;
	auto_message struct wire_message message = {.bytes = NULL};
	const char *strings[] = {"one", "", "\xff\n"};
	const int fds[] = {memfd_with("a", "A", 1), memfd_with("b", "B", 1)};
	char byte;

	(void)state;
	make_pair(pair);
	assert_int_equal(wire_receive(pair[1], &message, &err), -ERR_BUSY);
	wire_queue_init(&queue);
	assert_int_equal(
		wire_queue_add(&queue, wire_head_jail("verb", "x", 7), &(struct wire_parts){strings, 3, fds, 2}, &err),
		0);
	assert_int_equal(queue.n_fds, 2);
	assert_int_equal(wire_queue_flush(&queue, pair[0], &err), 0);
	assert_int_equal(queue.n_fds, 0);
	assert_int_equal(fcntl(fds[0], F_GETFD), -1); /* sent and closed */
	assert_int_equal(wire_receive(pair[1], &message, &err), 0);
	assert_int_equal(json_object_get_int64(json_get(message.head, "jail", json_type_int)), 7);
	assert_int_equal(message.n_strings, 3);
	for (size_t i = 0; i < 3; i++)
		assert_string_equal(message.strings[i], strings[i]);
	assert_int_equal(message.n_fds, 2);
	assert_int_equal(pread(message.fds[1], &byte, 1, 0), 1);
	assert_int_equal(byte, 'B');
	assert_int_equal(fcntl(message.fds[0], F_GETFD), FD_CLOEXEC);
	int kept = message.fds[0];
	wire_message_clear(&message);
	assert_int_equal(fcntl(kept, F_GETFD), -1);
	close(pair[0]);
	assert_int_equal(wire_receive(pair[1], &message, &err), -ERR_UNAVAILABLE);
	close(pair[1]);
}

/* A process that has no number left for a descriptor says so, and not that the other side is gone. */
static void no_descriptors(void **state)
{
	int pair[2];
	struct wire_queue queue;
	struct err err = ERR_INIT;
	struct rlimit limit, few;
	auto_message struct wire_message message = {.bytes = NULL};
	const int fds[] = {memfd_with("a", "A", 1), memfd_with("b", "B", 1)};

	(void)state;
	make_pair(pair);
	wire_queue_init(&queue);
	assert_int_equal(wire_queue_add(&queue, wire_head("verb", "x"), &(struct wire_parts){NULL, 0, fds, 2}, &err),
			 0);
	assert_int_equal(wire_queue_flush(&queue, pair[0], &err), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = (struct rlimit){.rlim_cur = (rlim_t)fds[0], .rlim_max = limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	int result = wire_receive(pair[1], &message, &err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(result, -ERR_SYSTEM);
	assert_non_null(strstr(err.text, "Too many open files (see ulimit -n"));
	close(pair[0]);
	close(pair[1]);
}

/* What is too large is refused when it is queued, and its descriptors are closed. */
static void too_large(void **state)
{
	struct wire_queue queue;
	struct err err = ERR_INIT;
	auto_free char *text = xcalloc(1, JAIL_WIRE_MAX);
	const char *strings[] = {text};
	const int fd = memfd_with("a", "A", 1);

	(void)state;
	memset(text, 'x', JAIL_WIRE_MAX - 1);
	wire_queue_init(&queue);
	assert_int_equal(wire_queue_add(&queue, wire_head("verb", "x"), &(struct wire_parts){strings, 1, &fd, 1}, &err),
			 -ERR_LIMIT);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_null(queue.first);
}

/* A reader that does not read: the queue keeps everything, in order, and loses nothing. */
static void back_pressure(void **state)
{
	int pair[2];
	struct wire_queue queue;
	struct err err = ERR_INIT;
	int64_t sent = 0, got = 0;

	(void)state;
	make_pair(pair);
	wire_queue_init(&queue);
	while (wire_queue_flush(&queue, pair[0], &err) == 0)
		assert_int_equal(wire_queue_add(&queue, wire_head_jail("verb", "x", sent++), NULL, &err), 0);
	for (int i = 0; i < 10; i++)
		assert_int_equal(wire_queue_add(&queue, wire_head_jail("verb", "x", sent++), NULL, &err), 0);
	while (got < sent) {
		auto_message struct wire_message message = {.bytes = NULL};

		assert_int_equal(wire_receive(pair[1], &message, &err), 0);
		assert_int_equal(json_object_get_int64(json_get(message.head, "jail", json_type_int)), got++);
		wire_queue_flush(&queue, pair[0], &err);
	}
	close(pair[0]);
	close(pair[1]);
}

static int parse(const char *text, size_t n_strings, size_t n_fds, struct err *err)
{
	struct wire_message message = {.n_strings = n_strings, .n_fds = n_fds};
	struct wire_request request;

	assert_int_equal(json_parse(text, strlen(text), &message.head, err), 0);
	int result = wire_request_parse(&message, &request, err);
	if (!result)
		wire_request_clear(&request);
	json_object_put(message.head);
	return result;
}

/* The client's head of each verb is the request of that verb; what is none is refused with the list of all. */
static void verbs_are_all_known(void **state)
{
	(void)state;
	for (enum wire_verb verb = WIRE_OPEN; verb < WIRE_VERBS; verb++) {
		bool about_jail = verb != WIRE_INFO && verb != WIRE_RUNNERS;
		struct wire_message message = {.head = wire_head_verb(verb, about_jail ? 7 : -1)};
		struct wire_request request = {.verb = WIRE_VERBS};
		struct err err = ERR_INIT;
		int result = wire_request_parse(&message, &request, &err);

		if (result < 0) /* it lacks what the verb needs: the verb itself was taken */
			assert_string_not_equal(err.member, "verb");
		else
			assert_int_equal(request.verb, verb);
		if (result == 0)
			assert_int_equal(request.jail, about_jail ? 7 : -1);
		assert_int_equal(wire_verb_needs_jail(verb), about_jail && verb != WIRE_OPEN);
		json_object_put(message.head);
	}
	struct err err = ERR_INIT;
	assert_int_equal(parse("{\"v\":1,\"verb\":\"kill\",\"jail\":1}", 0, 0, &err), -ERR_INVALID);
	assert_string_equal(err.text,
			    "verb: must be open, fill, remove, run, wait, cancel, collect, close, info or runners");
}

#define NO_STREAMS "\"stdin\":false,\"stdout\":false,\"stderr\":false"

static void malformed_requests_name_the_member(void **state)
{
	static const struct {
		const char *text;
		size_t strings, fds;
		const char *member; /* NULL: accepted */
	} cases[] = {
		{"{\"v\":1,\"verb\":\"info\"}", 0, 0, NULL},
		{"{\"v\":1,\"verb\":\"close\",\"jail\":0}", 0, 0, NULL},
		{"{\"v\":1,\"verb\":\"close\",\"jail\":2147483648}", 0, 0, "jail"},
		{"{\"v\":1,\"verb\":\"close\",\"jail\":\"1\"}", 0, 0, "jail"},
		{"{\"v\":1,\"verb\":\"close\"}", 0, 0, "jail"},
		{"{\"v\":1,\"verb\":\"close\",\"jail\":1}", 1, 0, ""},
		{"{\"v\":1,\"verb\":\"close\",\"jail\":1}", 0, 1, ""},
		{"{\"verb\":\"close\",\"jail\":1}", 0, 0, "v"},
		{"{\"v\":1,\"jail\":1}", 0, 0, "verb"},
		{"{\"v\":1,\"verb\":5,\"jail\":1}", 0, 0, "verb"},
		{"{\"v\":1,\"verb\":\"open\",\"jail\":1,\"runner\":\"c\",\"network\":true,\"live\":true,\"limits\":{}}",
		 0, 0, NULL},
		{"{\"v\":1,\"verb\":\"open\",\"jail\":1,\"runner\":\"c\",\"limits\":{\"walls\":1}}", 0, 0,
		 "limits.walls"},
		{"{\"v\":1,\"verb\":\"open\",\"jail\":1,\"runner\":\"c\",\"limits\":{\"cpu_percent\":-1}}", 0, 0, NULL},
		{"{\"v\":1,\"verb\":\"open\",\"jail\":1,\"runner\":\"c\",\"limits\":{\"cpu_percent\":-2}}", 0, 0,
		 "limits.cpu_percent"},
		{"{\"v\":1,\"verb\":\"open\",\"jail\":1,\"runner\":\"\"}", 0, 0, "runner"},
		{"{\"v\":1,\"verb\":\"fill\",\"jail\":1,\"files\":[{\"mode\":511,\"mtime_us\":-1}]}", 1, 1, NULL},
		{"{\"v\":1,\"verb\":\"fill\",\"jail\":1,\"files\":[{\"mode\":512,\"mtime_us\":0}]}", 1, 1,
		 "files[0].mode"},
		{"{\"v\":1,\"verb\":\"fill\",\"jail\":1,\"files\":[]}", 0, 0, "files"},
		{"{\"v\":1,\"verb\":\"remove\",\"jail\":1,\"names\":2}", 2, 0, NULL},
		{"{\"v\":1,\"verb\":\"remove\",\"jail\":1,\"names\":2}", 2, 2, ""},
		{"{\"v\":1,\"verb\":\"remove\",\"jail\":1,\"names\":1}", 2, 0, ""},
		{"{\"v\":1,\"verb\":\"remove\",\"jail\":1,\"names\":0}", 0, 0, "names"},
		{"{\"v\":1,\"verb\":\"remove\",\"jail\":1,\"names\":65}", 65, 0, "names"},
		{"{\"v\":1,\"verb\":\"run\",\"jail\":1,\"args\":2,\"env\":1,\"stdin\":true,\"stdout\":false,\"stderr\":"
		 "false}",
		 3, 2, NULL},
		{"{\"v\":1,\"verb\":\"run\",\"jail\":1,\"args\":2,\"env\":1,\"stdin\":true,\"stdout\":false,\"stderr\":"
		 "false}",
		 3, 1, ""},
		{"{\"v\":1,\"verb\":\"run\",\"jail\":1,\"args\":0,\"env\":0,\"entry\":\"src/a.js\"," NO_STREAMS "}", 0,
		 1, NULL},
		{"{\"v\":1,\"verb\":\"run\",\"jail\":1,\"args\":0,\"env\":0,\"entry\":\"\"," NO_STREAMS "}", 0, 1,
		 "entry"},
		{"{\"v\":1,\"verb\":\"run\",\"jail\":1,\"args\":32769,\"env\":0,\"stdin\":true,\"stdout\":false,"
		 "\"stderr\":false}",
		 3, 1, "args"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err err = ERR_INIT;
		int result = parse(cases[i].text, cases[i].strings, cases[i].fds, &err);

		if ((result == 0) != (cases[i].member == NULL) ||
		    (cases[i].member && !streq(err.member, cases[i].member)))
			fail_msg("%s: %s (%s)", cases[i].text, err.text, err.member);
	}
}

/* Every member of a result survives the way over the wire. */
static void results_survive_the_wire(void **state)
{
	struct jail_result before = {
		.verdict = JAIL_TO,
		.message = "stopped",
		.limit = "wall",
		.step = "mount /proc",
		.step_errno = EPERM,
		.compiled = true,
		.exit_code = -1,
		.signal = 9,
		.oom_killed = true,
		.pids_limit_hit = true,
		.stdout_bytes = INT64_C(1) << 40,
		.stderr_bytes = 2,
		.stdout_truncated = true,
		.stderr_truncated = true,
		.compile = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
		.run = {11, 12, 13, 14, 15, 16, 17, 18, 19, 20},
		.setup_us = 15,
		.warm = true,
		.ended = true,
		.runner = "python",
		.fingerprint = "Python 3",
	};
	struct jail_result after;
	struct err err = ERR_INIT;

	(void)state;
	before.denied = json_object_new_array();
	struct json_object *call = json_object_new_object();
	json_add_string(call, "name", "mount");
	json_add_int(call, "number", 165);
	json_object_array_add(before.denied, call);
	auto_json struct json_object *object = jail_result_print(&before);
	assert_int_equal(jail_result_parse(object, &after, &err), 0);
	assert_int_equal(json_object_array_length(after.denied), 1);
	struct json_object *denied[] = {before.denied, after.denied};
	before.denied = after.denied = NULL;
	auto_json struct json_object *again = jail_result_print(&after);
	auto_json struct json_object *first = jail_result_print(&before);
	assert_string_equal(json_object_to_json_string(first), json_object_to_json_string(again));
	json_object_put(denied[0]);
	json_object_put(denied[1]);
	json_object_object_add(object, "denied", json_object_new_string("mount"));
	assert_int_equal(jail_result_parse(object, &after, &err), -ERR_INVALID);
	struct json_object *wrong = json_object_new_array();
	json_object_array_add(wrong, json_object_new_string("mount"));
	json_object_object_add(object, "denied", wrong);
	assert_int_equal(jail_result_parse(object, &after, &err), -ERR_INVALID);
	json_object_object_add(object, "denied", NULL);
	json_object_object_add(object, "verdict", json_object_new_string("??"));
	assert_int_equal(jail_result_parse(object, &after, &err), -ERR_INVALID);
	for (int verdict = 0; verdict < JAIL_VERDICTS; verdict++) {
		enum jail_verdict parsed;

		assert_int_equal(jail_verdict_parse(jail_verdict_text((enum jail_verdict)verdict), &parsed), 0);
		assert_int_equal(parsed, verdict);
	}
	enum jail_verdict none = JAIL_CX;
	assert_int_equal(jail_verdict_parse("ok", &none), -1);
	assert_int_equal(none, JAIL_CX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_carry_strings_and_descriptors),
		cmocka_unit_test(no_descriptors),
		cmocka_unit_test(too_large),
		cmocka_unit_test(back_pressure),
		cmocka_unit_test(verbs_are_all_known),
		cmocka_unit_test(malformed_requests_name_the_member),
		cmocka_unit_test(results_survive_the_wire),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
