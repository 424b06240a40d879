/*
 * test_jail_once.c - jail_once: what a grader needs of it. Standard input and output by descriptor, files opened when
 * they are needed, limits, no collection, and two programs that talk to each other over pipes. In a real private
 * jailer.
 */
#include "jail_try.h"

static struct jail_client *client;

static int set_up(void **state)
{
	(void)state;
	client = try_client(NULL);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	jail_client_free(client);
	return 0;
}

static int code_of(const char *text)
{
	int fd = memfd_with("code", text, strlen(text));

	assert_true(fd >= 0);
	return fd;
}

static void expect_output(const struct jail_once *once, const char *expected)
{
	auto_free char *text = NULL, *error = NULL;
	size_t length;

	assert_int_equal(jail_once_output(once, 1, 4096, &text, &length, NULL), 0);
	assert_int_equal(jail_once_output(once, 2, 4096, &error, &length, NULL), 0);
	if (!streq(text, expected))
		fail_msg("\"%s\" instead of \"%s\"; stderr: %s", text, expected, error);
}

static void by_descriptor(void **state)
{
	auto_close int code = code_of("import sys; print(sys.stdin.read().upper()); print('e', file=sys.stderr)");
	auto_close int input = memfd_with("input", "abc", 3);
	auto_close int output = memfd_create("output", MFD_CLOEXEC);
	auto_once struct jail_once once = {
		.spec = {.runner = "python", .limits = {.wall_us = 60000000, .memory_bytes = 128 << 20}},
		.program = {.code_fd = code, .stdin_fd = input, .stdout_fd = output, .stderr_fd = -1},
	};
	struct err err = ERR_INIT;

	(void)state;
	if (jail_once(client, &once, &err) < 0)
		fail_msg("%s", err.text);
	auto_free char *text = try_read(output);
	assert_int_equal(once.result.verdict, JAIL_OK);
	assert_string_equal(text, "ABC\n");
	assert_true(once.done && once.over);
}

/* More files than fit into a batch; every descriptor is closed again. */
#define MANY (2 * JAIL_BATCH_FILES + 5)
struct opened {
	size_t count;
	char name[16];
	size_t collected;
};

static int open_file(void *arg, size_t index, struct jail_file *ret, struct err *err)
{
	static char names[MANY][16];
	struct opened *opened = arg;

	assert_int_equal(index, opened->count++);
	if (index == MANY)
		return err_set(err, ERR_CORRUPT, "too many");
	snprintf(names[index], sizeof(names[index]), "%03zu", index);
	*ret = (struct jail_file){.name = names[index], .mode = 0644, .fd = memfd_with("file", names[index], 3)};
	return 0;
}

static void count_file(void *arg, const struct jail_change *change)
{
	struct opened *opened = arg;

	opened->collected++;
	snprintf(opened->name, sizeof(opened->name), "%s", change->name);
	if (change->fd >= 0)
		close(change->fd);
}

static void many_files(void **state)
{
	auto_close int code = code_of("import os; names = sorted(os.listdir('.')); print(len(names), names[-1],"
				      " all(open(n).read() == n for n in names)); open('new', 'w').close()");
	struct opened opened = {0};
	auto_once struct jail_once once = {
		.spec = {.runner = "python"},
		.program = {.code_fd = code, .stdin_fd = -1},
		.capture = true,
		.open_file = open_file,
		.n_files = MANY,
		.file = count_file,
		.arg = &opened,
	};
	struct err err = ERR_INIT;
	int before = dup(0);

	(void)state;
	close(before);
	if (jail_once(client, &once, &err) < 0)
		fail_msg("%s", err.text);
	expect_output(&once, "133 132 True\n");
	assert_int_equal(opened.collected, 1);
	assert_string_equal(opened.name, "new");
	jail_once_clear(&once);
	int after = dup(0);
	close(after);
	assert_int_equal(after, before);
}

static int refuse_file(void *arg, size_t index, struct jail_file *ret, struct err *err)
{
	(void)arg;
	*ret = (struct jail_file){.name = "a", .fd = memfd_with("file", "", 0)};
	if (index == 0)
		return 0;
	close(ret->fd);
	return err_set(err, ERR_CORRUPT, "no such blob");
}

static void refusals_reach_the_caller(void **state)
{
	auto_close int code = code_of("print('never')");
	struct jail_once once = {
		.spec = {.runner = "python"},
		.program = {.code_fd = code, .stdin_fd = -1},
		.capture = true,
		.open_file = refuse_file,
		.n_files = 2,
	};
	struct err err = ERR_INIT;

	(void)state;
	assert_int_equal(jail_once(client, &once, &err), -ERR_CORRUPT);
	assert_string_equal(err.text, "no such blob");
	jail_once_clear(&once);

	once = (struct jail_once){.spec = {.runner = "no-such"}, .program = {.code_fd = code, .stdin_fd = -1}};
	assert_int_equal(jail_once(client, &once, &err), -ERR_INVALID);
	assert_false(once.done);
	assert_true(once.over);
	assert_int_equal(once.failure.code, ERR_INVALID);
	jail_once_clear(&once);
}

/* A live sandbox: begin again with another program. */
static void live_jail_takes_another_program(void **state)
{
	auto_close int first = code_of("open('kept', 'w').write('x'); print('a long first output')");
	auto_close int second = code_of("print(open('kept').read())");
	auto_once struct jail_once once = {
		.spec = {.runner = "python", .live = true},
		.program = {.code_fd = first, .stdin_fd = -1},
		.capture = true,
	};
	struct err err = ERR_INIT;
	auto_json struct json_object *info = NULL;

	(void)state;
	assert_int_equal(jail_client_info(client, &info, &err), 0);
	if (!json_object_get_boolean(json_get(info, "live", json_type_boolean)))
		skip();
	if (jail_once(client, &once, &err) < 0)
		fail_msg("%s", err.text);
	expect_output(&once, "a long first output\n");
	once.program.code_fd = second;
	if (jail_once(client, &once, &err) < 0)
		fail_msg("%s", err.text);
	expect_output(&once, "x\n");
}

/* The guesser's output is the judge's input and the other way round; neither passes through the jailer. */
static void two_that_talk(void **state)
{
	auto_close int guesser = code_of("low, high = 0, 1000\n"
					 "while True:\n"
					 "    middle = (low + high) // 2\n"
					 "    print(middle, flush=True)\n"
					 "    answer = input()\n"
					 "    if answer == 'right': break\n"
					 "    low, high = (middle + 1, high) if answer == 'more' else (low, middle)\n");
	auto_close int judge = code_of("import sys\n"
				       "n = 0\n"
				       "for line in sys.stdin:\n"
				       "    n += 1\n"
				       "    guess = int(line)\n"
				       "    print('right' if guess == 613 else 'more' if guess < 613 else 'less', "
				       "flush=True)\n"
				       "print('guesses:', n, file=sys.stderr)\n");
	int questions[2], answers[2];
	auto_close int verdict = memfd_create("verdict", MFD_CLOEXEC);
	struct err err = ERR_INIT;

	(void)state;
	assert_int_equal(pipe2(questions, O_CLOEXEC) | pipe2(answers, O_CLOEXEC), 0);
	auto_once struct jail_once one = {
		.spec = {.runner = "python"},
		.program = {.code_fd = guesser, .stdin_fd = answers[0], .stdout_fd = questions[1], .stderr_fd = -1},
	};
	auto_once struct jail_once other = {
		.spec = {.runner = "python"},
		.program = {.code_fd = judge,
			    .stdin_fd = questions[0],
			    .stdout_fd = answers[1],
			    .stderr_fd = verdict},
	};
	if (jail_once_begin(client, &one, &err) < 0 || jail_once_begin(client, &other, &err) < 0)
		fail_msg("%s", err.text);
	for (int i = 0; i < 2; i++) {
		close(questions[i]);
		close(answers[i]);
	}
	if (jail_once_end(client, &one, &err) < 0 || jail_once_end(client, &other, &err) < 0)
		fail_msg("%s", err.text);
	auto_free char *text = try_read(verdict);
	assert_int_equal(one.result.verdict, JAIL_OK);
	assert_int_equal(other.result.verdict, JAIL_OK);
	assert_string_equal(text, "guesses: 10\n");
	assert_int_equal(one.result.stdout_bytes, 0); /* not seen by the jailer */
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[] = {
		cmocka_unit_test(by_descriptor),
		cmocka_unit_test(many_files),
		cmocka_unit_test(refusals_reach_the_caller),
		cmocka_unit_test(live_jail_takes_another_program),
		cmocka_unit_test(two_that_talk),
	};

	return try_run(tests, argc, argv, set_up, tear_down);
}
