/* log, show and token over a record that the store itself wrote: what is printed, byte by byte where it matters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/commands.h"
#include "lib/base/util.h"
#include "lib/store/blob/store_blob.h"
#include "lib/store/record/store_execution.h"
#include "lib/store/record/store_token.h"

#define OUTPUT_MAX (4 * 1024 * 1024)
#define EVIL "\033[31mred\033[0m\r\xc2\x9b" "1m\xe2\x80\xae\xff\n"
#define BIG (STORE_INLINE_MAX + 5)

static char folder[] = "/tmp/sallyport-cli-XXXXXX";
static char config_path[64];
static char ids[5][ID_SIZE]; /* OK, TO, running, large, interrupted */
static char token_id[ID_SIZE];

struct outcome {
	int code;
	char *out, *err;
	size_t out_length;
};

static void outcome_clear(struct outcome *outcome)
{
	free(outcome->out);
	free(outcome->err);
}
#define auto_outcome __attribute__((cleanup(outcome_clear)))

/* Puts a temporary file in place of a stream; *ret_saved is what was there. */
static FILE *redirect(int stream, int *ret_saved)
{
	FILE *file = tmpfile();

	*ret_saved = dup(stream);
	assert_int_equal(dup2(fileno(file), stream), stream);
	return file;
}

static char *restore(int stream, int saved, FILE *file, size_t *ret_length)
{
	char *text = NULL;

	dup2(saved, stream);
	close(saved);
	assert_int_equal(lseek(fileno(file), 0, SEEK_SET), 0);
	assert_int_equal(read_fd(fileno(file), OUTPUT_MAX, &text, ret_length, NULL), 0);
	fclose(file);
	return text;
}

/* Runs "sallyport LINE --config …" in this process. */
static struct outcome run(const char *line)
{
	struct outcome outcome = {0};
	auto_free char *copy = xasprintf("%s --config %s", line, config_path);
	char *argv[32], *rest = copy;
	int argc = 0, saved_out, saved_err;
	size_t length;

	while ((argv[argc] = strsep(&rest, " ")))
		argc++;
	fflush(NULL);
	FILE *out = redirect(STDOUT_FILENO, &saved_out), *err = redirect(STDERR_FILENO, &saved_err);

	outcome.code = cli_run(cli_command_find(argv[0]), argc, argv);
	fflush(NULL);
	outcome.err = restore(STDERR_FILENO, saved_err, err, &length);
	outcome.out = restore(STDOUT_FILENO, saved_out, out, &outcome.out_length);
	return outcome;
}

static void expect(const struct outcome *outcome, int code, const char *out, const char *err)
{
	if (outcome->code != code || !strstr(outcome->out, out) || !strstr(outcome->err, err))
		fail_msg("exit code %d, not %d\n%s\n%s", outcome->code, code, outcome->out, outcome->err);
}

static struct store_text text_of(const char *text, size_t length)
{
	return (struct store_text){.data = xstrndup(text, length), .length = length};
}

struct seed {
	struct store_execution execution;
	bool finish;
	struct store *store;
};

static int seed_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct seed *seed = arg;
	struct store_conversation conversation;
	struct store_execution_file change = {.phase = STORE_AFTER, .change = "created"};
	int result = store_txn_conversation(txn, seed->execution.owner, "talk", &conversation, err);

	if (result)
		return result;
	seed->execution.conversation_row = conversation.row;
	result = store_txn_execution_begin(txn, &seed->execution, err);
	if (result || !seed->finish)
		return result;
	change.file = (struct store_file){.name = "ch\033art.png", .name_length = 10, .mode = 0644, .size = 3};
	result = store_blob_put(seed->store, "abc", 3, change.file.blob, err);
	return result ? result : store_txn_execution_finish(txn, &seed->execution, &change, 1, err);
}

static void seed(struct store *store, int n, const char *language, const char *verdict, const char *code,
		 const struct store_text *out)
{
	struct seed seed = {.store = store, .finish = *verdict != '\0'};
	struct store_execution *e = &seed.execution;
	struct err err = ERR_INIT;

	if (!*ids[n])
		id_new(ids[n]);
	memcpy(e->id, ids[n], ID_SIZE);
	snprintf(e->owner, sizeof(e->owner), "alice");
	snprintf(e->token_id, sizeof(e->token_id), "%s", token_id);
	snprintf(e->language, sizeof(e->language), "%s", language);
	snprintf(e->verdict, sizeof(e->verdict), "%s", verdict);
	snprintf(e->message, sizeof(e->message), "the program ended");
	e->created_us = clock_now_us();
	e->code = text_of(code, strlen(code));
	e->stdin_text = text_of("", 0);
	e->args_json = xstrdup("[\"--title\"]");
	e->env_json = xstrdup("{\"LANG\":\"C\"}");
	e->limits_json = xstrdup("{\"wall_us\":30000000}");
	e->result_json = xstrdup("{\"denied\":[]}");
	e->stdout_text = *out;
	e->stderr_text = text_of(EVIL, strlen(EVIL));
	e->run = (struct store_usage){
		.wall_us = 1500000, .cpu_user_us = 20000, .cpu_system_us = 3000, .memory_peak_bytes = 9 << 20};
	if (store_commit(store, seed_work, &seed, &err))
		fail_msg("%s", err.text);
	store_execution_clear(e);
}

/* A gateway that is gone, in a process of its own, with one run under way. */
static void die_running(const char *data)
{
	struct store_text none = text_of("", 0);
	int status;

	id_new(ids[4]); /* here, so that both know it */
	pid_t child = fork();

	if (child == 0) {
		struct store *store = NULL;

		if (store_open(data, STORE_SERVE, &store, NULL))
			_exit(1);
		seed(store, 4, "bash", "", "echo interrupted", &none);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	free(none.data);
}

static int set_up(void **state)
{
	struct store *store = NULL;
	struct store_token token;
	char token_text[STORE_TOKEN_TEXT];
	struct err err = ERR_INIT;
	auto_free char *large = xmalloc(BIG);
	struct store_text evil = text_of(EVIL, strlen(EVIL)), evil2 = text_of(EVIL, strlen(EVIL));
	struct store_text none = text_of("", 0), big = {.length = BIG};

	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(config_path, sizeof(config_path), "%s/config.json", folder);
	auto_free char *config = xasprintf("{\"data_dir\": \"%s/data\"}", folder), *data = xasprintf("%s/data", folder);
	auto_close int fd = open(config_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_int_equal(write_all(fd, config, strlen(config)), 0);
	die_running(data);
	if (store_open(data, STORE_SERVE, &store, &err))
		fail_msg("%s", err.text);
	assert_int_equal(store_token_add(store, "alice", "laptop", token_text, &token, NULL), 0);
	snprintf(token_id, sizeof(token_id), "%s", token.id);
	memset(large, 'x', BIG);
	assert_int_equal(store_blob_put(store, large, BIG, big.blob, NULL), 0);
	seed(store, 0, "python", "OK", "\nprint('\033[2J')\nprint(2)\n", &evil);
	seed(store, 1, "bash", "TO", "while :; do :; done", &evil2);
	seed(store, 3, "python", "OK", "print('x' * 65541)", &big);
	seed(store, 2, "go", "", "package main", &none);
	/* left open: this process is the instance of the running row, so nobody may call it interrupted */
	*state = store;
	return 0;
}

static int tear_down(void **state)
{
	auto_free char *command = xasprintf("rm -rf %s", folder);

	store_close(*state);
	return system(command);
}

static void test_log_table(void **state)
{
	auto_outcome struct outcome all = run("log"), one = run("log --limit 1"), none = run("log --owner bob");

	(void)state;
	expect(&all, 0, "TIME ", "");
	assert_non_null(strstr(all.out, "python"));
	assert_non_null(strstr(all.out, "running"));
	assert_non_null(strstr(all.out, "interrupted"));
	assert_non_null(strstr(all.out, "print('\\x1b[2J')\n")); /* the first line that is not empty, made printable */
	assert_null(strchr(all.out, '\033'));
	assert_true(strstr(all.out, "running") < strstr(all.out, "while :")); /* newest first */
	assert_non_null(strstr(all.out, "1.50 s    23 ms    9.0 MiB"));
	expect(&one, 0, "package main", "");
	assert_null(strstr(one.out, "print"));
	expect(&none, 0, "TIME ", "");
	assert_null(strstr(none.out, "python"));
}

static size_t lines_of(const char *line)
{
	auto_outcome struct outcome outcome = run(line);
	size_t lines = 0;

	if (outcome.code)
		fail_msg("%s: %s", line, outcome.err);
	for (const char *p = outcome.out; *p; p++)
		lines += *p == '\n';
	return lines;
}

static void test_log_filters(void **state)
{
	auto_free char *token = xasprintf("log --json --token %s", token_id);

	(void)state;
	assert_int_equal(lines_of("log --json"), 5);
	assert_int_equal(lines_of("log --json -n 2"), 2);
	assert_int_equal(lines_of("log --json --verdict TO"), 1);
	assert_int_equal(lines_of("log --json --verdict CE"), 0);
	assert_int_equal(lines_of("log --json --language python"), 2);
	assert_int_equal(lines_of("log --json -l python --verdict OK --text 65541"), 1);
	assert_int_equal(lines_of("log --json --owner alice"), 5);
	assert_int_equal(lines_of(token), 4);
	assert_int_equal(lines_of("log --json --conversation talk"), 5);
	assert_int_equal(lines_of("log --json --conversation other"), 0);
	assert_int_equal(lines_of("log --json --since 1h"), 5);
	assert_int_equal(lines_of("log --json --until 1h"), 0);
	assert_int_equal(lines_of("log --json --since 2030-01-01"), 0);
}

static void test_log_json(void **state)
{
	auto_outcome struct outcome outcome = run("log --json --verdict TO");
	auto_json struct json_object *row = NULL;

	(void)state;
	assert_int_equal(json_parse(outcome.out, outcome.out_length, &row, NULL), 0);
	assert_string_equal(json_get_string(row, "id"), ids[1]);
	assert_string_equal(json_get_string(row, "state"), "finished");
	assert_string_equal(json_get_string(row, "verdict"), "TO");
	assert_string_equal(json_get_string(row, "first_line"), "while :; do :; done");
	assert_string_equal(json_get_string(row, "conversation"), "talk");
	assert_string_equal(json_get_string(row, "token"), token_id);
	assert_int_equal(
		json_object_get_int64(json_get(json_get(row, "run", json_type_object), "wall_us", json_type_int)),
		1500000);
	assert_string_equal(json_get_string(json_get(row, "environment", json_type_object), "LANG"), "C");
}

static void test_show(void **state)
{
	auto_free char *line = xasprintf("show %s", ids[0]), *large_line = xasprintf("show %s", ids[3]);
	auto_free char *running_line = xasprintf("show %s", ids[2]);
	auto_outcome struct outcome outcome = run(line), large = run(large_line), running = run(running_line);

	(void)state;
	expect(&outcome, 0, ids[0], "");
	assert_null(strchr(outcome.out, '\033'));
	assert_null(strchr(outcome.out, '\r'));
	assert_non_null(strstr(outcome.out, "\\x1b[31mred\\x1b[0m\\x0d\\xc2\\x9b1m\\xe2\\x80\\xae\\xff\n"));
	assert_non_null(strstr(outcome.out, "created  0644     3  ba7816bf"));
	assert_non_null(strstr(outcome.out, "ch\\x1bart.png"));
	assert_non_null(strstr(outcome.out, "verdict       OK  the program ended"));
	expect(&large, 0, "65541 bytes in all: sallyport show --stdout", "");
	expect(&running, 0, "running", "");
	assert_null(strstr(running.out, "verdict"));
}

static void test_show_raw(void **state)
{
	auto_free char *code = xasprintf("show --code %s", ids[0]), *out = xasprintf("show --stdout %s", ids[0]);
	auto_free char *error = xasprintf("show --stderr %s", ids[1]), *large = xasprintf("show --stdout %s", ids[3]);
	auto_free char *files = xasprintf("show --files %s", ids[0]);
	auto_outcome struct outcome a = run(code), b = run(out), c = run(error), d = run(large), e = run(files);

	(void)state;
	assert_string_equal(a.out, "\nprint('\033[2J')\nprint(2)\n");
	assert_int_equal(b.out_length, strlen(EVIL));
	assert_memory_equal(b.out, EVIL, strlen(EVIL)); /* exact bytes, it is not a terminal */
	assert_memory_equal(c.out, EVIL, strlen(EVIL));
	assert_int_equal(d.out_length, BIG);
	assert_true(strspn(d.out, "x") == BIG);
	expect(&e, 0, "created", "");
	assert_null(strstr(e.out, "verdict"));
}

static void test_show_json(void **state)
{
	auto_free char *line = xasprintf("show --json %s", ids[0]);
	auto_outcome struct outcome outcome = run(line);
	auto_json struct json_object *object = NULL;

	(void)state;
	assert_int_equal(json_parse(outcome.out, outcome.out_length, &object, NULL), 0);
	assert_string_equal(json_get_string(object, "code_text"), "\nprint('\033[2J')\nprint(2)\n");
	assert_non_null(strstr(json_get_string(object, "stdout_text"), "\\xff"));
	assert_int_equal(json_object_array_length(json_get(object, "files", json_type_array)), 1);
}

static void test_show_interrupted(void **state)
{
	auto_free char *line = xasprintf("show %s", ids[4]), *json_line = xasprintf("show --json %s", ids[4]);
	auto_outcome struct outcome outcome = run(line), json = run(json_line);
	auto_json struct json_object *object = NULL;

	(void)state;
	expect(&outcome, 0, "state         interrupted", "");
	expect(&outcome, 0, "message  ", "");
	assert_int_equal(json_parse(json.out, json.out_length, &object, NULL), 0);
	assert_string_equal(json_get_string(object, "state"), "interrupted");
	assert_string_equal(json_get_string(object, "verdict"), "XX");
}

static void test_show_refusals(void **state)
{
	auto_outcome struct outcome ambiguous = run("show 0"), unknown = run("show ffff");
	auto_outcome struct outcome both = run("show --code --stdout 0"), none = run("show");

	(void)state;
	expect(&ambiguous, 5, "", "sallyport: ");
	expect(&unknown, 3, "", "sallyport: ");
	expect(&both, 2, "", "only one of --code");
	expect(&none, 2, "", "give either the ID of a run or --conversation");
}

static void test_tokens(void **state)
{
	auto_outcome struct outcome added = run("token add --owner bob --name ci"),
				    json = run("token add --owner bob --json");
	auto_outcome struct outcome list = run("token list"), lines = run("token list --json");
	auto_json struct json_object *object = NULL;
	struct store_token token;

	expect(&added, 0, "sp_bob_", "");
	added.out[strcspn(added.out, "\n")] = '\0';
	assert_int_equal(store_token_check(*state, added.out, &token, NULL), 0);
	assert_string_equal(token.owner, "bob");
	assert_string_equal(token.name, "ci");
	assert_int_equal(json_parse(json.out, json.out_length, &object, NULL), 0);
	assert_int_equal(store_token_check(*state, json_get_string(object, "token"), &token, NULL), 0);
	expect(&list, 0, "laptop", "");
	assert_null(strstr(list.out, added.out)); /* the text is not stored */
	assert_non_null(strstr(lines.out, "\"owner\":\"bob\""));

	auto_free char *line = xasprintf("token revoke %s", token.id);
	auto_outcome struct outcome revoked = run(line), listed = run("token list");

	expect(&revoked, 0, "revoked", "");
	assert_int_equal(store_token_check(*state, json_get_string(object, "token"), &token, NULL), -ERR_DENIED);
	expect(&listed, 0, "revoked", "");
}

static void test_token_refusals(void **state)
{
	static const struct {
		const char *line;
		int code;
		const char *says;
	} cases[] = {
		{"token", 2, "token wants"},
		{"token frob", 2, "there are add, list and revoke"},
		{"token add", 2, "--owner OWNER"},
		{"token add --owner Al/ice", 2, "sallyport: "},
		{"token add --owner alice --name a\033b", 2, "control characters"},
		{"token add --owner alice --name 0123456789012345678901234567890123456789012345678901234567890123", 2,
		 "at most 63"},
		{"token add extra --owner alice", 2, "one argument too many"},
		{"token list --owner alice", 2, "belong to token add"},
		{"token revoke", 2, "one ID"},
		{"token revoke ffff", 3, "sallyport: "},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		auto_outcome struct outcome outcome = run(cases[i].line);

		if (outcome.code != cases[i].code || !strstr(outcome.err, cases[i].says))
			fail_msg("%s: %d, %s", cases[i].line, outcome.code, outcome.err);
		assert_null(strchr(outcome.err, '\033'));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_log_table),
		cmocka_unit_test(test_log_filters),
		cmocka_unit_test(test_log_json),
		cmocka_unit_test(test_show),
		cmocka_unit_test(test_show_raw),
		cmocka_unit_test(test_show_json),
		cmocka_unit_test(test_show_interrupted),
		cmocka_unit_test(test_show_refusals),
		cmocka_unit_test(test_tokens),
		cmocka_unit_test(test_token_refusals),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
