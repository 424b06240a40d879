/* test_store_execution.c - runs: begun, finished, found again, filtered; texts in rows and in blobs; the sealed
 * environment. */
#include "lib/store/blob/store_blob.h"
#include "lib/store/record/store_execution.h"
#include "lib/store/record/store_token.h"
#include "store_fixture.h"

#include <fcntl.h>

static int no_more(void *arg, const struct store_execution *execution)
{
	(void)arg, (void)execution;
	return 1;
}

static int count(void *arg, const struct store_execution *execution)
{
	(void)execution;
	++*(int *)arg;
	return 0;
}

static int listed(struct store *store, struct store_filter filter)
{
	struct err err = ERR_INIT;
	int n = 0;

	ok(store_execution_list(store, &filter, count, &n, &err));
	return n;
}

static void round_trip(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_execution wanted = sample("ann"), found;

	wanted.network = true;
	snprintf(wanted.request_id, sizeof(wanted.request_id), "4bf92f3577b34da6a3ce929d0e0e4736");
	snprintf(wanted.trace, sizeof(wanted.trace), "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
	begin(f->store, &wanted);
	ok(store_execution_find(f->store, wanted.id, &found, &err));
	assert_int_equal(found.state, STORE_RUNNING);
	assert_int_equal(found.finished_us, 0);
	assert_string_equal(found.verdict, "");
	store_execution_clear(&found);
	finish(f->store, &wanted, NULL, 0);
	ok(store_execution_find(f->store, wanted.id, &found, &err));
	assert_int_equal(found.state, STORE_FINISHED);
	assert_string_equal(found.owner, "ann");
	assert_string_equal(found.token_id, "");
	assert_string_equal(found.language, "python");
	assert_string_equal(found.fingerprint, "Python 3.11.2");
	assert_true(found.network);
	assert_true(found.warm);
	assert_string_equal(found.request_id, wanted.request_id);
	assert_string_equal(found.trace, wanted.trace);
	assert_string_equal(found.code.data, "print(1)\n");
	assert_int_equal(found.code.length, 9);
	assert_null(found.stdin_text.data);
	assert_string_equal(found.args_json, "[\"a\"]");
	assert_string_equal(found.env_json, "{\"HOME\":\"/data\"}");
	assert_string_equal(found.limits_json, "{\"wall_us\":1}");
	assert_string_equal(found.result_json, "{\"limit\":\"\"}");
	assert_string_equal(found.verdict, "OK");
	assert_string_equal(found.message, "exit status 0");
	assert_int_equal(found.exit_code, 0);
	assert_string_equal(found.stdout_text.data, "1\n");
	assert_null(found.stderr_text.data);
	assert_memory_equal(&found.run, &wanted.run, sizeof(found.run));
	assert_memory_equal(&found.compile, &wanted.compile, sizeof(found.compile));
	assert_int_equal(found.setup_us, 9);
	assert_true(found.created_us > 0 && found.finished_us > found.created_us);
	store_execution_clear(&found);
	assert_null(found.code.data);
	assert_sound(f);
}

static void finish_only_once(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_execution run = sample("ann");
	struct run work = {&run, NULL, 0};

	fails(store_commit(f->store, finish_work, &work, &err), ERR_CONFLICT);
	begin(f->store, &run);
	fails(store_commit(f->store, begin_work, &work, &err), ERR_CONFLICT);
	finish(f->store, &run, NULL, 0);
	snprintf(run.verdict, sizeof(run.verdict), "RE");
	fails(store_commit(f->store, finish_work, &work, &err), ERR_CONFLICT);
	assert_answer(f, "SELECT verdict FROM execution", "OK");
}

static void refuses_nonsense(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_execution run = sample("ann");
	struct run work = {&run, NULL, 0};

	snprintf(run.token_id, sizeof(run.token_id), "01a1fd4c-5b94-7f6b-9ee6-a245b035fcd4"); /* no such token */
	fails(store_commit(f->store, begin_work, &work, &err), ERR_CONFLICT);
	run.token_id[0] = '\0';
	run.id[3] = 'X';
	fails(store_commit(f->store, begin_work, &work, &err), ERR_INTERNAL);
	run = sample("ann");
	run.code.length = STORE_INLINE_MAX + 1; /* not looked at: refused first */
	fails(store_commit(f->store, begin_work, &work, &err), ERR_INTERNAL);
	run = sample("ann");
	sha256_hex("nowhere", 7, run.code.blob);
	fails(store_commit(f->store, begin_work, &work, &err), ERR_NOT_FOUND);
	run = sample("ann");
	begin(f->store, &run);
	snprintf(run.verdict, sizeof(run.verdict), "??");
	fails(store_commit(f->store, finish_work, &work, &err), ERR_CONFLICT);
	assert_answer(f, "SELECT count(*) || state FROM execution", "1running");
}

static void texts_in_rows_and_blobs(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_execution run = sample("ann"), found;
	auto_free char *big = xmalloc(STORE_INLINE_MAX + 2);
	auto_free char *read = NULL;
	char raw[] = "\xff\0x";
	size_t length;

	memset(big, 'b', STORE_INLINE_MAX + 1);
	memcpy(big + STORE_INLINE_MAX - 10, "needle", 6);
	big[STORE_INLINE_MAX + 1] = '\0';
	run.code = (struct store_text){NULL, STORE_INLINE_MAX + 1, ""};
	ok(store_blob_put(f->store, big, run.code.length, run.code.blob, &err));
	run.stdin_text = (struct store_text){big, STORE_INLINE_MAX, ""};
	begin(f->store, &run);
	run.stdout_text = (struct store_text){raw, 3, ""};
	run.stderr_text = (struct store_text){raw, 0, ""};
	finish(f->store, &run, NULL, 0);
	ok(store_execution_find(f->store, run.id, &found, &err));
	assert_null(found.code.data);
	assert_int_equal(found.code.length, STORE_INLINE_MAX + 1);
	ok(store_text_read(f->store, &found.code, &read, &length, &err));
	assert_int_equal(length, STORE_INLINE_MAX + 1);
	assert_memory_equal(read, big, length);
	assert_int_equal(found.stdin_text.length, STORE_INLINE_MAX);
	assert_memory_equal(found.stdin_text.data, big, STORE_INLINE_MAX);
	assert_int_equal(found.stdout_text.length, 3);
	assert_memory_equal(found.stdout_text.data, raw, 4);
	assert_int_equal(found.stderr_text.length, 0);
	assert_non_null(found.stderr_text.data);
	store_execution_clear(&found);
	assert_answer(f, "SELECT typeof(stdout) || typeof(stdin) || typeof(code) FROM execution", "blobtextnull");
	assert_int_equal(listed(f->store, (struct store_filter){.text_in_code = "needle"}), 1);
	assert_int_equal(listed(f->store, (struct store_filter){.text_in_code = "noodle"}), 0);

	/* A blob whose bytes are not those of its name is found out, whatever its size. */
	char sub[SHA256_HEX_SIZE + 1];

	store_blob_path(run.code.blob, sub);
	auto_free char *path = xasprintf("%s/blobs/%s", f->data, sub);
	auto_close int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_int_equal(pwrite(fd, "B", 1, 0), 1);
	fails(store_text_read(f->store, &run.code, &read, &length, &err), ERR_CORRUPT);
	assert_int_equal(ftruncate(fd, 5), 0);
	fails(store_text_read(f->store, &run.code, &read, &length, &err), ERR_CORRUPT);
	assert_int_equal(unlink(path), 0);
	fails(store_text_read(f->store, &run.code, &read, &length, &err), ERR_CORRUPT);
}

static int has_bytes(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	auto_free char *bytes = NULL;
	size_t length;

	(void)st, (void)walk;
	if (type != FTW_F)
		return 0;
	assert_int_equal(read_file_at(AT_FDCWD, path, 64 * 1024 * 1024, &bytes, &length, NULL), 0);
	return memmem(bytes, length, "hush-hush", 9) != NULL;
}

static void environment_is_sealed(void **state)
{
	static char env[] = "{\"PASSWORD\":\"hush-hush\",\"TOKEN\":null}", empty[] = "{}";
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_execution run = sample("ann"), other = sample("ann"), none = sample("ann"), found;

	run.env_json = env;
	none.env_json = empty;
	begin(f->store, &run);
	begin(f->store, &other);
	begin(f->store, &none);
	ok(store_execution_find(f->store, run.id, &found, &err));
	assert_string_equal(found.env_json, env);
	store_execution_clear(&found);
	ok(store_execution_find(f->store, none.id, &found, &err));
	assert_string_equal(found.env_json, "{}");
	store_execution_clear(&found);
	assert_answer(f, "SELECT count(*) FROM execution WHERE env IS NULL", "1");
	assert_int_equal(nftw(f->data, has_bytes, 16, FTW_PHYS), 0); /* nowhere, the log included */

	/* It opens in no other row. */
	auto_free char *move =
		xasprintf("UPDATE execution SET env = (SELECT env FROM execution WHERE id = '%s') WHERE id = '%s'",
			  run.id, other.id);
	assert_null(ask(f, move));
	fails(store_execution_find(f->store, other.id, &found, &err), ERR_CORRUPT);
	assert_non_null(strstr(err.text, other.id));
}

/* -------- files of runs ------------------------------------------------------------------------------- */

struct seen_files {
	char text[512];
};

static int collect(void *arg, const struct store_execution_file *file)
{
	struct seen_files *seen = arg;
	size_t length = strlen(seen->text);

	snprintf(seen->text + length, sizeof(seen->text) - length, "%s%.*s:%s:%lld ",
		 file->phase == STORE_BEFORE ? "<" : ">", (int)file->file.name_length, file->file.name, file->change,
		 (long long)file->file.size);
	return 0;
}

static void files_before_and_after(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_execution run = sample("ann"), found;
	struct store_execution_file changes[4];
	struct seen_files seen = {""};
	struct store_file file;

	put_file(f->store, "ann", "talk", "gone.txt", "12");
	put_file(f->store, "ann", "talk", "same.txt", "123");
	run.conversation_row = put_file(f->store, "ann", "talk", "new.txt", "1234").row;
	begin(f->store, &run);
	change(f, &changes[0], "gone.txt", "deleted", NULL);
	change(f, &changes[1], "made.csv", "created", "12345");
	change(f, &changes[2], "new.txt", "changed", "123456");
	change(f, &changes[3], "link", "lost", NULL);
	snprintf(changes[3].reason, sizeof(changes[3].reason), "a link");
	finish(f->store, &run, changes, 4);
	ok(store_execution_files(f->store, run.id, STORE_BEFORE, collect, &seen, &err));
	ok(store_execution_files(f->store, run.id, STORE_AFTER, collect, &seen, &err));
	assert_string_equal(
		seen.text, "<gone.txt::2 <new.txt::4 <same.txt::3 >gone.txt:deleted:0 >link:lost:0 >made.csv:created:5 "
			   ">new.txt:changed:6 ");
	assert_answer(f, "SELECT group_concat(name || size) FROM file", "made.csv5,new.txt6,same.txt3");
	assert_answer(f, "SELECT reason FROM execution_file WHERE change = 'lost'", "a link");
	ok(store_file_find(f->store, run.conversation_row, "made.csv", 8, &file, &err));
	assert_string_equal(file.media_type, "text/csv");
	assert_int_equal(file.mode, 0600);
	ok(store_execution_find(f->store, run.id, &found, &err));
	assert_string_equal(found.conversation, "talk");
	assert_int_equal(found.conversation_row, run.conversation_row);
	store_execution_clear(&found);
	assert_sound(f);
}

static void files_without_conversation(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_execution run = sample("ann");
	struct store_execution_file made;
	struct seen_files seen = {""};

	begin(f->store, &run);
	change(f, &made, "a", "created", "12");
	finish(f->store, &run, &made, 1);
	ok(store_execution_files(f->store, run.id, STORE_AFTER, collect, &seen, &err));
	assert_string_equal(seen.text, ">a:created:2 ");
	assert_answer(f, "SELECT count(*) FROM file", "0");
}

/* Two changes, room for one after the deletion: the outcome is recorded, what does not fit is lost and says why. */
static void files_over_the_cap(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_execution run = sample("ann");
	struct store_execution_file changes[3];
	struct seen_files seen = {""};
	char large[6001] = "";

	run.conversation_row = put_file(f->store, "ann", "talk", "z-old", "1234567890").row;
	begin(f->store, &run);
	/* What it was before is kept for a replay, so it counts on: room for one of the two, and for the rows. */
	auto_free char *used = ask(f, "SELECT bytes FROM usage");

	retain(f->store, strtoll(used, NULL, 10) + 7000, 0);
	memset(large, 'x', sizeof(large) - 1);
	change(f, &changes[0], "a", "created", large);
	change(f, &changes[1], "b", "created", large + 1000);
	change(f, &changes[2], "z-old", "deleted", NULL);
	finish(f->store, &run, changes, 3);
	ok(store_execution_files(f->store, run.id, STORE_AFTER, collect, &seen, &err));
	assert_string_equal(seen.text, ">a:created:6000 >b:lost:5000 >z-old:deleted:0 ");
	assert_string_equal(changes[1].change, "lost"); /* told to the caller as well */
	assert_answer(f, "SELECT state FROM execution", "finished");
	assert_answer(f, "SELECT bytes FROM conversation", "6000");
	assert_sound(f);
}

/* -------- lists --------------------------------------------------------------------------------------- */

static void filters(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_execution one = sample("ann"), two = sample("bob"), three = sample("bob");
	char text[STORE_TOKEN_TEXT], javascript[] = "console.log(2)", prefix[9];
	struct store_token token;
	struct store *s = f->store;

	ok(store_token_add(s, "bob", "x", text, &token, &err));
	snprintf(two.token_id, sizeof(two.token_id), "%s", token.id);
	snprintf(two.language, sizeof(two.language), "javascript");
	snprintf(two.verdict, sizeof(two.verdict), "RE");
	two.code = (struct store_text){javascript, strlen(javascript), ""};
	two.conversation_row = put_file(s, "bob", "talk", "a", "x").row;
	one.created_us = 1000;
	two.created_us = 2000;
	begin(s, &one);
	begin(s, &two);
	begin(s, &three);
	finish(s, &two, NULL, 0);
	finish(s, &one, NULL, 0); /* ends after a later one */
	assert_int_equal(listed(s, (struct store_filter){0}), 2);
	assert_int_equal(listed(s, (struct store_filter){.running_too = true}), 3);
	assert_int_equal(listed(s, (struct store_filter){.running_too = true, .limit = 2}), 2);
	assert_int_equal(listed(s, (struct store_filter){.owner = "bob"}), 1);
	assert_int_equal(listed(s, (struct store_filter){.token_id = token.id}), 1);
	assert_int_equal(listed(s, (struct store_filter){.conversation = "talk"}), 1);
	assert_int_equal(listed(s, (struct store_filter){.conversation = "talk", .owner = "ann"}), 0);
	assert_int_equal(listed(s, (struct store_filter){.language = "javascript"}), 1);
	assert_int_equal(listed(s, (struct store_filter){.verdict = "RE"}), 1);
	assert_int_equal(listed(s, (struct store_filter){.verdict = "RE,ML"}), 1);
	assert_int_equal(listed(s, (struct store_filter){.verdict = "RE,OK"}),
			 listed(s, (struct store_filter){.verdict = "RE"}) +
				 listed(s, (struct store_filter){.verdict = "OK"}));
	assert_int_equal(listed(s, (struct store_filter){.text_in_code = "log(2"}), 1);
	assert_int_equal(listed(s, (struct store_filter){.text_in_code = "%"}), 0);
	assert_int_equal(listed(s, (struct store_filter){.since_us = 2000}), 1);
	assert_int_equal(listed(s, (struct store_filter){.until_us = 2000}), 1);
	assert_int_equal(listed(s, (struct store_filter){.since_us = 1, .until_us = 2}), 0);
	assert_int_equal(listed(s, (struct store_filter){.after = one.id}), 1);
	assert_int_equal(listed(s, (struct store_filter){.id = two.id}), 1);
	snprintf(prefix, sizeof(prefix), "%.8s", two.id);
	assert_true(listed(s, (struct store_filter){.id = prefix}) >= 1);
	assert_int_equal(listed(s, (struct store_filter){.id = "x' OR 1 = 1 --"}), 0);
	assert_int_equal(listed(s, (struct store_filter){.owner = "' OR ''='"}), 0);
	static const char *const both[] = {"bob", "ann"}, *const others[] = {"bo", "nn,", ""};
	assert_int_equal(listed(s, (struct store_filter){.owners = both, .n_owners = 1}), 1);
	assert_int_equal(listed(s, (struct store_filter){.owners = both, .n_owners = 2}), 2);
	assert_int_equal(listed(s, (struct store_filter){.owners = others, .n_owners = 3}), 0);
	fails(store_execution_list(s, &(struct store_filter){.id = ""}, no_more, NULL, &err), ERR_INVALID);
}

struct commit_order {
	char text[4 * ID_SIZE];
	int64_t recorded;
	bool only_one;
};

static int in_order(void *arg, const struct store_execution *execution)
{
	struct commit_order *order = arg;
	size_t length = strlen(order->text);

	snprintf(order->text + length, sizeof(order->text) - length, "%s", execution->owner);
	order->recorded = execution->recorded;
	return order->only_one;
}

static void orders(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_execution a = sample("a"), b = sample("b"), c = sample("c");
	struct commit_order up = {0}, down = {0}, one = {.only_one = true}, followed = {0}, nothing = {0};

	begin(f->store, &a);
	begin(f->store, &b);
	begin(f->store, &c);
	finish(f->store, &c, NULL, 0);
	finish(f->store, &a, NULL, 0);
	finish(f->store, &b, NULL, 0);
	ok(store_execution_list(f->store, &(struct store_filter){0}, in_order, &up, &err));
	assert_string_equal(up.text, "abc");
	ok(store_execution_list(f->store, &(struct store_filter){.newest_first = true}, in_order, &down, &err));
	assert_string_equal(down.text, "cba");
	ok(store_execution_list(f->store, &(struct store_filter){.newest_first = true}, in_order, &one, &err));
	assert_string_equal(one.text, "c");
	ok(store_execution_list(f->store, &(struct store_filter){.follow = true, .recorded_after = one.recorded},
				in_order, &followed, &err));
	assert_string_equal(followed.text, "ab"); /* in the order of their ends: none is missed */
	ok(store_execution_list(f->store, &(struct store_filter){.follow = true, .recorded_after = followed.recorded},
				in_order, &nothing, &err));
	assert_string_equal(nothing.text, "");
}

static void find_by_prefix(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_execution one = sample("ann"), two = sample("ann"), found;
	char prefix[ID_SIZE];

	begin(f->store, &one);
	begin(f->store, &two);
	snprintf(prefix, sizeof(prefix), "%.6s", one.id);
	fails(store_execution_find(f->store, prefix, &found, &err), ERR_CONFLICT);
	assert_non_null(strstr(err.text, prefix));
	fails(store_execution_find(f->store, "ffff", &found, &err), ERR_NOT_FOUND);
	fails(store_execution_find(f->store, "0'--", &found, &err), ERR_NOT_FOUND);
	fails(store_execution_find(f->store, "", &found, &err), ERR_INVALID);
	fails(store_execution_find(f->store, "0123456789012345678901234567890123456789", &found, &err), ERR_INVALID);
	snprintf(prefix, sizeof(prefix), "%.35s", two.id);
	ok(store_execution_find(f->store, prefix, &found, &err));
	assert_string_equal(found.id, two.id);
	store_execution_clear(&found);
}

/* A callback may use the store: every listing has a connection of its own. */
static int ask_again(void *arg, const struct store_execution *execution)
{
	struct store_execution again;
	struct err err = ERR_INIT;
	int n = 0;

	ok(store_execution_find(arg, execution->id, &again, &err));
	store_execution_clear(&again);
	ok(store_execution_list(arg, &(struct store_filter){.running_too = true}, count, &n, &err));
	assert_int_equal(n, 2);
	put_file(arg, "ann", "talk", execution->id, "written while listing");
	return 0;
}

static void nested(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_execution one = sample("ann"), two = sample("ann");

	begin(f->store, &one);
	begin(f->store, &two);
	ok(store_execution_list(f->store, &(struct store_filter){.running_too = true}, ask_again, f->store, &err));
	assert_answer(f, "SELECT count(*) FROM file", "2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(round_trip, setup, teardown),
		cmocka_unit_test_setup_teardown(finish_only_once, setup, teardown),
		cmocka_unit_test_setup_teardown(refuses_nonsense, setup, teardown),
		cmocka_unit_test_setup_teardown(texts_in_rows_and_blobs, setup, teardown),
		cmocka_unit_test_setup_teardown(environment_is_sealed, setup, teardown),
		cmocka_unit_test_setup_teardown(files_before_and_after, setup, teardown),
		cmocka_unit_test_setup_teardown(files_without_conversation, setup, teardown),
		cmocka_unit_test_setup_teardown(files_over_the_cap, setup, teardown),
		cmocka_unit_test_setup_teardown(filters, setup, teardown),
		cmocka_unit_test_setup_teardown(orders, setup, teardown),
		cmocka_unit_test_setup_teardown(find_by_prefix, setup, teardown),
		cmocka_unit_test_setup_teardown(nested, setup, teardown),
	};

	return cmocka_run_group_tests_name("store_execution", tests, NULL, NULL);
}
