/* test_store_erase.c - content that goes while the fact stays: by hand, by the rules of retention, killed half-way, and
 * the garbage collection behind it. */
#include "lib/store/audit/store_audit.h"
#include "lib/store/retention/store_erase.h"
#include "lib/store/retention/store_expire.h"
#include "lib/store/retention/store_gc.h"
#include "store_fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>

#define DAY_US  (24 * 3600 * 1000000ll)
#define LATE_US (2 * STORE_BLOB_GRACE_US)
#define MANY    650 /* files: more than three transactions */

static char big[70000];

static void blob_of(struct store *store, const char *text, size_t length, struct store_text *ret)
{
	struct err err = ERR_INIT;

	*ret = (struct store_text){.length = length};
	ok(store_blob_put(store, text, length, ret->blob, &err));
}

/* A run with everything: in a conversation, its output a blob of `letter`, a file of its own. */
static struct store_execution run_whole(struct fixture *f, const char *owner, char letter)
{
	static char arguments[] = "[\"secret argument\"]", environment[] = "{\"KEY\":\"secret value\"}";
	struct store_execution run = sample(owner);
	struct store_execution_file changes[1];
	char content[2] = {letter, '\0'};

	run.args_json = arguments;
	run.env_json = environment;
	run.conversation_row = put_file(f->store, owner, "talk", "input", "what it reads").row;
	begin(f->store, &run);
	memset(big, letter, sizeof(big));
	blob_of(f->store, big, sizeof(big), &run.stdout_text);
	change(f, &changes[0], "made", "created", content);
	finish(f->store, &run, changes, 1);
	return run;
}

static struct store_erased forget(struct fixture *f, struct store_erase erase)
{
	struct err err = ERR_INIT;
	struct store_erased erased = {0};

	erase.before_us = erase.before_us != 0 ? erase.before_us : INT64_MAX;
	erase.why = erase.why != NULL ? erase.why : "request";
	ok(store_forget(f->store, &erase, &erased, &err));
	assert_sound(f);
	return erased;
}

static struct store_collected collect(struct fixture *f, int64_t now_us, bool dry)
{
	struct err err = ERR_INIT;
	struct store_collected collected = {0};

	ok(store_gc(f->store, &(struct store_gc){.now_us = now_us, .dry = dry, .vacuum = true}, &collected, &err));
	return collected;
}

static bool on_disk(const struct fixture *f, const char *sha256)
{
	char path[SHA256_HEX_SIZE + 1];

	store_blob_path(sha256, path);
	auto_free char *file = xasprintf("%s/blobs/%s", f->data, path);

	return access(file, F_OK) == 0;
}

#define CONTENT                                                                                                        \
	"SELECT count(code) + count(code_blob) + count(stdin) + count(env) + count(entry) + count(stdout) + "          \
	"count(stdout_blob) + count(stderr) + count(stderr_blob) + count(result) + sum(args <> '[]') FROM execution"

/* Five calls of a tool. */
static void call_tools(const struct fixture *f, const char *id)
{
	auto_free char *path = xasprintf("%s/sallyport.db", f->data);
	auto_free char *insert = xasprintf(
		"WITH n (seq) AS (SELECT 1 UNION ALL SELECT seq + 1 FROM n WHERE seq < 5) INSERT INTO tool_call "
		"(execution, seq, connection, server, tool, is_read, arguments, arguments_hash, occurrence, state, "
		"kind, "
		"is_error, result, attempts, approval_us, queued_us, started_us, finished_us) SELECT '%s', seq, 1, "
		"'mail', "
		"'send', 0, '\"secret argument\"', 'h', 0, 'done', 'result', 0, 'secret answer', 1, 0, 0, 0, 0 FROM n",
		id);
	sqlite3 *db;
	char *wrong = NULL;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, insert, NULL, NULL, &wrong) != SQLITE_OK)
		fail_msg("%s", wrong);
	sqlite3_close(db);
}

static void content_goes_the_fact_stays(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_execution run = run_whole(f, "ann", 'a'), found;
	const char *output = run.stdout_text.blob;

	call_tools(f, run.id);
	assert_sound(f);
	assert_int_equal(
		forget(f, (struct store_erase){.id = run.id, .what = STORE_ERASE_CONTENT, .ticket = "no 7"}).executions,
		1);
	assert_answer(f, CONTENT, "0");
	assert_answer(f, "SELECT count(*) FROM execution_file", "0");
	assert_answer(f,
		      "SELECT code_bytes > 0 AND stdout_bytes = 70000 AND verdict = 'OK' AND owner = 'ann' AND bytes < "
		      "1100 FROM execution",
		      "1");
	assert_answer(f, "SELECT count(*) FROM tool_call WHERE tool = 'send' AND arguments || result = 'null'", "5");
	assert_answer(f, "SELECT count(*) FROM file", "2"); /* the conversation keeps its files */
	/* The log has entries more, of the erasure and of the file that the run left and that stays, and the details of
	 * the run's own are gone, salts and all. */
	assert_answer(f,
		      "SELECT group_concat(kind || (entry LIKE '%request%'), ' ') FROM (SELECT * FROM audit WHERE n > "
		      "(SELECT max(n) FROM audit WHERE kind = 'run.end') ORDER BY n)",
		      "content.erase1 file.put0");
	assert_answer(
		f,
		"SELECT count(*) FROM audit_detail JOIN audit USING (n) WHERE object LIKE 'execution:%' AND kind <> "
		"'content.erase'",
		"0");
	ok(store_execution_find(f->store, run.id, &found, &err));
	fails(store_execution_whole(&found, &err), ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "the content of run"));
	assert_non_null(strstr(err.text, "(request)"));
	store_execution_clear(&found);
	assert_int_equal(forget(f, (struct store_erase){.id = run.id, .what = STORE_ERASE_CONTENT}).executions, 0);
	/* Young contents wait, and count until they go. */
	assert_true(on_disk(f, output));
	assert_true(collect(f, clock_now_us(), false).young_bytes >= 70000);
	assert_true(on_disk(f, output));
	assert_answer(f, "SELECT bytes > 70000 FROM usage", "1");
	const struct store_collected dry = collect(f, clock_now_us() + LATE_US, true);

	assert_true(on_disk(f, output));
	const struct store_collected collected = collect(f, clock_now_us() + LATE_US, false);

	assert_int_equal(dry.bytes, collected.bytes);
	assert_int_equal(dry.contents, collected.contents);
	assert_int_equal(collected.bytes, 70000); /* the conversation has the file */
	assert_false(on_disk(f, output));
	assert_answer(f, "SELECT bytes < 5000 FROM usage", "1");
	assert_sound(f);
}

static void output_first(void **state)
{
	struct fixture *f = *state;
	struct store_execution run = run_whole(f, "ann", 'a');

	assert_int_equal(forget(f, (struct store_erase){.id = run.id, .what = STORE_ERASE_OUTPUT}).executions, 1);
	assert_answer(f, "SELECT count(code) || count(stdout_blob) || count(result) || erased FROM execution",
		      "100output");
	assert_answer(f, "SELECT group_concat(phase) FROM execution_file", "before");
	assert_answer(
		f, "SELECT group_concat(kind) FROM audit_detail JOIN audit USING (n) WHERE object LIKE 'execution:%'",
		"run.begin");
	assert_int_equal(forget(f, (struct store_erase){.id = run.id, .what = STORE_ERASE_OUTPUT}).executions, 0);
	assert_int_equal(forget(f, (struct store_erase){.id = run.id, .what = STORE_ERASE_CONTENT}).executions, 1);
	assert_answer(f, CONTENT, "0");
}

/* What another owner's rows name stays, and what is in progress. */
static void others_stay(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_execution ann = run_whole(f, "ann", 'a'), running = sample("ann");
	struct store_erase erase = {.owner = "ann", .what = STORE_ERASE_CONTENT, .before_us = INT64_MAX};
	struct store_erased counted = {0};
	char output[SHA256_HEX_SIZE];

	run_whole(f, "bob", 'a');
	begin(f->store, &running);
	snprintf(output, sizeof(output), "%s", ann.stdout_text.blob);
	fails(store_forget(f->store, &(struct store_erase){.conversation = "talk", .before_us = INT64_MAX}, &counted,
			   &err),
	      ERR_INVALID);
	ok(store_forget_count(f->store, &erase, &counted, &err));
	const struct store_erased erased = forget(f, erase);

	assert_int_equal(counted.executions, 1);
	assert_int_equal(counted.conversations, 1);
	assert_int_equal(counted.running, 1);
	assert_memory_equal(&erased, &counted, sizeof(erased));
	collect(f, clock_now_us() + LATE_US, false);
	assert_true(on_disk(f, output));
	assert_answer(f, "SELECT group_concat(owner) FROM conversation", "bob");
	assert_answer(f, "SELECT count(*) FROM execution WHERE state = 'running' AND code IS NOT NULL", "1");
	assert_answer(f, "SELECT owner || (bytes > 70000) FROM usage ORDER BY owner DESC LIMIT 1", "bob1");
	assert_answer(f, "SELECT bytes < 5000 FROM usage WHERE owner = 'ann'", "1");
	finish(f->store, &running, NULL, 0); /* it is recorded as usual */
	assert_sound(f);
}

/* A run in a conversation of many files; its rows go in several transactions. */
static void run_with_many_files(struct fixture *f, struct store_execution *ret)
{
	*ret = sample("ann");
	if (ret->conversation_row == 0)
		ret->conversation_row = put_file(f->store, "ann", "many", "0", "x").row;
	begin(f->store, ret);
	finish(f->store, ret, NULL, 0);
}

static void many_files(struct fixture *f)
{
	for (int i = 0; i < MANY; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%d", i);
		put_file(f->store, "ann", "many", name, "x");
	}
}

static int forget_all(struct fixture *f)
{
	struct err err = ERR_INIT;
	struct store_erased erased = {0};
	const struct store_erase erase = {
		.owner = "ann", .what = STORE_ERASE_CONTENT, .before_us = INT64_MAX, .why = "x"};

	ok(store_open(f->data, STORE_WRITE, &f->store, &err));
	return store_forget(f->store, &erase, &erased, &err);
}

/* A kill at any moment leaves a sound record: each run whole, or marked as erased; the next garbage collection ends
 * what was begun.
 */
static void killed_half_way(void **state)
{
	enum { RUNS = 30 };
	struct fixture *f = *state;
	struct store_execution runs[RUNS];
	bool partial = false;

	many_files(f);
	for (int i = 0; i < RUNS; i++)
		run_with_many_files(f, &runs[i]);
	for (int i = 1; i < RUNS; i += 3) {
		auto_free char *wanted = xasprintf("%d", i);
		pid_t child = fork();

		assert_true(child >= 0);
		if (child == 0)
			_exit(forget_all(f) == 0 ? 0 : 1);
		for (bool reached = false; !reached;) {
			auto_free char *erased = ask(f, "SELECT count(*) FROM execution WHERE erased IS NOT NULL");

			reached = strtol(erased, NULL, 10) >= strtol(wanted, NULL, 10);
		}
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, NULL, 0), child);
		assert_answer(f, "SELECT count(*) FROM execution WHERE erased IS NULL AND code IS NULL", "0");
		assert_sound(f);
		auto_free char *left = ask(f, "SELECT count(*) FROM erasing");

		partial = partial || !streq(left, "0");
	}
	assert_true(partial); /* one was hit between two transactions */
	collect(f, clock_now_us(), false);
	assert_answer(f, "SELECT count(*) FROM erasing", "0");
	assert_answer(f,
		      "SELECT count(*) FROM execution_file JOIN execution ON id = execution WHERE erased IS NOT NULL",
		      "0");
	assert_sound(f);
	forget(f, (struct store_erase){.owner = "ann", .what = STORE_ERASE_CONTENT});
	assert_answer(f, "SELECT count(*) FROM execution_file", "0");
	assert_answer(f, "SELECT count(*) FROM file", "0");
}

static void *collect_often(void *arg)
{
	struct store *store = arg;
	struct store_collected collected;
	long refused = 0;

	for (int i = 0; i < 40; i++) {
		struct err err = ERR_INIT;
		int result = store_gc(store, &(struct store_gc){.now_us = clock_now_us()}, &collected, &err);

		if (result != 0 && result != -ERR_CONFLICT)
			return (void *)-1l;
		refused += result != 0;
	}
	return (void *)refused;
}

static void two_at_once(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_collected collected;
	auto_free char *path = xasprintf("%s/gc.lock", f->data);
	pthread_t threads[2];
	void *result;

	auto_close int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_int_equal(flock(lock, LOCK_EX), 0);
	fails(store_gc(f->store, &(struct store_gc){.now_us = 1}, &collected, &err), ERR_CONFLICT);
	ok(store_expire(f->store, clock_now_us(), NULL, NULL, &err)); /* leaves it to the other */
	assert_int_equal(flock(lock, LOCK_UN), 0);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, collect_often, f->store), 0);
	for (int i = 0; i < 20; i++) {
		struct store_execution run = run_whole(f, "ann", (char)('a' + i));

		forget(f, (struct store_erase){.id = run.id, .what = STORE_ERASE_CONTENT});
	}
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
		assert_int_equal(pthread_join(threads[i], &result), 0);
		assert_true((long)result >= 0);
	}
	collect(f, clock_now_us() + LATE_US, false);
	assert_answer(f, "SELECT count(*) FROM blob", "2"); /* the conversation's two files */
	assert_sound(f);
}

/* -------- rules --------------------------------------------------------------------------------------- */

static void days(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	const int64_t now = clock_now_us();

	run_whole(f, "ann", 'a');
	store_set_retention(f->store,
			    &(struct store_retention){.execution_ttl_us = 30 * DAY_US, .output_ttl_us = 7 * DAY_US});
	ok(store_expire(f->store, now + 6 * DAY_US, NULL, NULL, &err));
	assert_answer(f, "SELECT count(*) FROM execution WHERE erased IS NULL", "1");
	ok(store_expire(f->store, now + 8 * DAY_US, NULL, NULL, &err));
	assert_answer(f, "SELECT erased || erased_why || (code IS NULL) FROM execution",
		      "outputretention.output_days0");
	ok(store_expire(f->store, now + 31 * DAY_US, NULL, NULL, &err));
	assert_answer(f, "SELECT erased || erased_why || (code IS NULL) FROM execution",
		      "contentretention.execution_days1");
	assert_answer(f, "SELECT kind || (entry LIKE '%retention%') FROM audit ORDER BY n DESC LIMIT 1",
		      "content.erase1");
	assert_sound(f);
}

static int64_t charged(const struct fixture *f)
{
	auto_free char *answer = ask(f, "SELECT coalesce(sum(bytes), 0) FROM usage");

	return strtoll(answer, NULL, 10);
}

/* The oldest runs give way, as many as it takes; files of the conversation never do. */
static void the_oldest_give_way(void **state)
{
	enum { RUNS = 40 };
	struct fixture *f = *state;
	struct err err = ERR_INIT;

	for (int i = 0; i < RUNS; i++)
		run_whole(f, "ann", (char)('0' + i));
	const int64_t cap = charged(f) / 2;

	store_set_retention(f->store, &(struct store_retention){.owner_bytes = cap, .oldest = true});
	ok(store_retain(f->store, clock_now_us(), &err));
	assert_sound(f);
	auto_free char *erased = ask(f, "SELECT count(*) FROM execution WHERE erased = 'content'");
	const int64_t count = strtoll(erased, NULL, 10);

	assert_true(count >= RUNS / 2 && count < RUNS * 9 / 10);
	assert_answer(
		f,
		"SELECT max(erased IS NOT NULL AND id > (SELECT min(id) FROM execution WHERE erased IS NULL)) FROM "
		"execution",
		"0");
	assert_answer(f, "SELECT erased_why FROM execution ORDER BY id LIMIT 1", "retention.owner_mb");
	assert_answer(f, "SELECT count(*) FROM file", "2");
	/* What was freed counts until it leaves the disk. */
	assert_true(charged(f) > cap);
	collect(f, clock_now_us() + LATE_US, false);
	assert_true(charged(f) <= cap / 10 * 9);
	assert_sound(f);
}

/* Above the cap calls go on while room is made, by the gateway's own thread; files alone fill it: refused. */
static void full_with_oldest(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;

	for (int i = 0; i < 4; i++)
		run_whole(f, "ann", (char)('0' + i));
	store_set_retention(f->store, &(struct store_retention){.owner_bytes = charged(f), .oldest = true});
	run_whole(f, "ann", 'x');
	for (bool erased = false; !erased;) {
		auto_free char *count = ask(f, "SELECT count(*) FROM execution WHERE erased = 'content'");

		erased = strtol(count, NULL, 10) > 0;
	}
	reopen(f, STORE_SERVE); /* the thread ends with the store */
	store_set_retention(f->store, &(struct store_retention){.owner_bytes = 1, .oldest = true});
	struct put_file put = {.owner = "ann", .conversation = "talk", .name = "c", .content = "12345"};

	auto_free char *large = xcalloc(1, (65 << 20) + 1);

	ok(try_put_file(f->store, &put, &err));
	put.name = "d";
	put.content = memset(large, 'x', 65 << 20);
	fails(try_put_file(f->store, &put, &err), ERR_LIMIT);
	assert_non_null(strstr(err.text, "the oldest runs give way, but not files"));
	assert_sound(f);
}

/* -------- the file ------------------------------------------------------------------------------------ */

/* What is erased is in no file of the data folder any more, and the database gives its pages back. */
static void nothing_is_left(void **state)
{
	static const char secret[] = "a text that is found nowhere else 4711";
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	bool emptied = false;
	char code[6000] = "";

	for (size_t i = 0; i + sizeof(secret) < sizeof(code); i += sizeof(secret) - 1)
		snprintf(code + i, sizeof(code) - i, "%s", secret);
	for (int i = 0; i < 200; i++) {
		struct store_execution run = sample("ann");

		run.code = (struct store_text){.data = code, .length = strlen(code)};
		begin(f->store, &run);
		finish(f->store, &run, NULL, 0);
	}
	auto_free char *command = xasprintf("grep -rqF '%s' %s", secret, f->data);

	assert_int_equal(system(command), 0);
	forget(f, (struct store_erase){.owner = "ann", .what = STORE_ERASE_CONTENT});
	const struct store_collected collected = collect(f, clock_now_us(), false);

	assert_true(collected.pages_bytes > 200 * 4096);
	ok(store_empty_log(f->store, &emptied, &err));
	assert_true(emptied);
	assert_int_not_equal(system(command), 0);
	assert_sound(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(content_goes_the_fact_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(output_first, setup, teardown),
		cmocka_unit_test_setup_teardown(others_stay, setup, teardown),
		cmocka_unit_test_setup_teardown(killed_half_way, setup, teardown),
		cmocka_unit_test_setup_teardown(two_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(days, setup, teardown),
		cmocka_unit_test_setup_teardown(the_oldest_give_way, setup, teardown),
		cmocka_unit_test_setup_teardown(full_with_oldest, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_is_left, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
