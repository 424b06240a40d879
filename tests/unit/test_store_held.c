/*
 * test_store_held.c - erasing and collecting garbage hold the writer for a moment at a time: everybody else who records
 * waits so long.
 *
 * What is compared is processor time, which the store takes of each transaction: how long a disk or a busy machine
 * makes a transaction wait says nothing of what it does.
 */
#include "lib/store/retention/store_erase.h"
#include "lib/store/retention/store_expire.h"
#include "lib/store/retention/store_gc.h"
#include "store_fixture.h"

#include "lib/store/db/store_txn.h"

#define MOST_US 50000
#define RUNS    3000
#define BATCH   100
#define FILES   3000 /* of one run */
#define GARBAGE "20000" /* contents that nothing names */
#define TEXTS   150
#define LONG_TEXTS 2
#define LOST_TEXTS 60
#define PARTS   16
#define DAY_US  (24 * 3600 * INT64_C(1000000))

static const struct store_erase all_of_ann = {
	.owner = "ann", .what = STORE_ERASE_CONTENT, .before_us = INT64_MAX, .why = "request"};

/* Its code is too short for the index of texts. */
static struct store_execution one(int64_t conversation)
{
	static char code[] = "1";
	struct store_execution run = sample("ann");

	run.code = (struct store_text){.data = code, .length = 1};
	run.stdout_text = run.stderr_text = (struct store_text){.length = 0};
	run.conversation_row = conversation;
	return run;
}

static int record_batch(struct store_txn *txn, void *arg, struct err *err)
{
	const int64_t *conversation = arg;
	int failed = 0;

	for (int i = 0; failed == 0 && i < BATCH; i++) {
		struct store_execution run = one(*conversation);

		id_new(run.id);
		failed = store_txn_execution_begin(txn, &run, err);
		if (failed == 0)
			failed = store_txn_execution_finish(txn, &run, NULL, 0, err);
	}
	return failed;
}

/* Many runs, one with many files, many contents that nothing names. */
static void fill(struct fixture *f)
{
	const int64_t conversation = put_file(f->store, "ann", "talk", "a", "x").row;
	struct store_execution many = one(conversation);
	struct err err = ERR_INIT;

	for (int i = 0; i < RUNS / BATCH; i++)
		ok(store_commit(f->store, record_batch, unconst((const char *)&conversation), &err));
	begin(f->store, &many);
	finish(f->store, &many, NULL, 0);
	auto_free char *files = xasprintf(
		"WITH n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO execution_file "
		"(execution, phase, name, change, blob, media_type, mode, size, mtime_us) SELECT '%s', 'after', 'f' || "
		"i, 'created', (SELECT min(sha256) FROM blob), 'text/plain', 420, 1, 1 FROM n",
		FILES, many.id);

	sql(f, files);
	sql(f, "WITH n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < " GARBAGE ") INSERT INTO blob (sha256, "
	       "size, created_us) SELECT printf('%064x', i), 1, 1 FROM n");
}

static void held(const struct fixture *f, const char *what)
{
	if (store_longest_us(f->store) > MOST_US)
		fail_msg("%s held the writer for %lld us", what, (long long)store_longest_us(f->store));
	assert_true(store_longest_us(f->store) > 0);
	if (getenv("HELD") != NULL)
		print_message("%s: %lld us\n", what, (long long)store_longest_us(f->store));
}

static void forget_and_collect(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_erased erased = {0};
	struct store_collected collected = {0};

	fill(f);
	reopen(f, STORE_WRITE); /* what was recorded so far counts no more */
	ok(store_gc(f->store, &(struct store_gc){.now_us = DAY_US}, &collected, &err));
	held(f, "collecting where nothing is to go");
	reopen(f, STORE_WRITE);
	ok(store_forget(f->store, &all_of_ann, &erased, &err));
	assert_int_equal(erased.executions, RUNS + 1);
	held(f, "erasing");
	reopen(f, STORE_WRITE);
	ok(store_gc(f->store, &(struct store_gc){.now_us = clock_now_us() + DAY_US, .vacuum = true}, &collected, &err));
	assert_answer(f, "SELECT count(*) FROM blob", "0");
	assert_true(collected.pages_bytes > 100000);
	held(f, "collecting garbage");
}

/* As base64 of anything: nearly every trigram is a new one, which is what costs the index of texts most. */
static struct store_text random_text(size_t length)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	static uint64_t state = 1;
	char *data = xmalloc(length);

	for (size_t i = 0; i < length; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		data[i] = digits[state >> 58];
	}
	return (struct store_text){.data = data, .length = length};
}

static void run_with_texts(struct fixture *f, size_t code, size_t out)
{
	struct store_execution run = sample("ann");

	run.code = random_text(code);
	run.stdout_text = random_text(out);
	run.stderr_text = random_text(out);
	begin(f->store, &run);
	finish(f->store, &run, NULL, 0);
	free(run.code.data);
	free(run.stdout_text.data);
	free(run.stderr_text.data);
}

/* A transaction is a small part of the whole; on a machine with nothing else to do the longest takes 20 to 25 ms. */
static void in_parts(const struct fixture *f, const char *what, int parts)
{
	const long long longest = store_longest_us(f->store), all = store_used_us(f->store);

	if (longest > all / parts)
		fail_msg("%s held the writer for %lld us of %lld us", what, longest, all);
	if (getenv("HELD") != NULL)
		print_message("%s: %lld us of %lld us\n", what, longest, all);
}

/* What goes is all of the index, so its merges read and write nothing: as many pages as there are, were it not for
 * the bound. */
static void texts(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_erased erased = {0};
	struct store_collected collected = {0};

	for (int i = 0; i < LONG_TEXTS; i++)
		run_with_texts(f, STORE_INLINE_MAX, STORE_INLINE_MAX);
	for (int i = 0; i < TEXTS; i++)
		run_with_texts(f, 4000, 10);
	reopen(f, STORE_WRITE);
	ok(store_gc(f->store, &(struct store_gc){.now_us = DAY_US}, &collected, &err));
	assert_answer(f, "SELECT through = (SELECT max(recorded) FROM execution) FROM searched", "1");
	assert_answer(f, "SELECT sum(length(block)) > 2000000 FROM search_data", "1");
	in_parts(f, "putting texts into the index", PARTS);
	reopen(f, STORE_WRITE);
	ok(store_forget(f->store, &all_of_ann, &erased, &err));
	assert_int_equal(erased.executions, TEXTS + LONG_TEXTS);
	assert_answer(f, "SELECT sum(length(block)) < 1000 FROM search_data", "1");
	in_parts(f, "taking them out", PARTS);
}

/* A content is lost, so all of the index goes: a quick thing, in fewer parts. */
static void texts_of_a_lost_content(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_erased erased = {0};
	struct store_collected collected = {0};
	struct store_execution run = sample("bob");
	const struct store_erase erase = {
		.id = run.id, .what = STORE_ERASE_CONTENT, .before_us = INT64_MAX, .why = "request"};
	struct store_text lost = random_text(STORE_INLINE_MAX + 1);

	ok(store_blob_put(f->store, lost.data, lost.length, run.stdout_text.blob, &err));
	run.stdout_text.data = NULL;
	run.stdout_text.length = lost.length;
	free(lost.data);
	begin(f->store, &run);
	finish(f->store, &run, NULL, 0);
	for (int i = 0; i < LOST_TEXTS; i++)
		run_with_texts(f, STORE_INLINE_MAX, STORE_INLINE_MAX);
	ok(store_gc(f->store, &(struct store_gc){.now_us = DAY_US}, &collected, &err));
	assert_answer(f, "SELECT through = (SELECT max(recorded) FROM execution) FROM searched", "1");
	/* How far it was merged on the way depends on how quick the machine was. */
	assert_answer(f, "SELECT sum(length(block)) > 10000000 FROM search_data", "1");
	auto_free char *remove = xasprintf("find '%s/blobs' -type f -delete", f->data);

	assert_int_equal(system(remove), 0);
	reopen(f, STORE_WRITE);
	ok(store_forget(f->store, &erase, &erased, &err));
	assert_int_equal(erased.executions, 1);
	assert_answer(f, "SELECT sum(length(block)) < 1000 FROM search_data", "1");
	in_parts(f, "emptying the index", PARTS / 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(forget_and_collect, setup, teardown),
		cmocka_unit_test_setup_teardown(texts, setup, teardown),
		cmocka_unit_test_setup_teardown(texts_of_a_lost_content, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
