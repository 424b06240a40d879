/* test_store_search.c - texts in code and output: with and without the index the same runs are found; what is erased
 * leaves every page of it. */
#include "lib/store/blob/store_search.h"

#include <fcntl.h>
#include <pthread.h>

#include "lib/base/utf8.h"
#include "lib/store/retention/store_erase.h"
#include "lib/store/retention/store_gc.h"
#include "store_fixture.h"

/* Three characters that nobody else writes: one trigram, which stands in a page of the index as it is. */
#define RARE "\xf0\x90\x8c\xb0\xf0\x90\x8c\xb1\xf0\x90\x8c\xb2"

static struct store_text text_of(const char *data, size_t length)
{
	return (struct store_text){unconst(data), length, ""};
}

static struct store_execution run_of(struct fixture *f, const char *owner, const char *code, const char *out,
				     const char *error)
{
	struct store_execution run = sample(owner);

	run.code = text_of(code, strlen(code));
	run.stdout_text = text_of(out, strlen(out));
	run.stderr_text = text_of(error, strlen(error));
	begin(f->store, &run);
	finish(f->store, &run, NULL, 0);
	return run;
}

static struct store_text blob_text(struct fixture *f, const char *data, size_t length)
{
	struct err err = ERR_INIT;
	struct store_text text = {.length = length};

	ok(store_blob_put(f->store, data, length, text.blob, &err));
	return text;
}

static void fill(struct fixture *f)
{
	struct err err = ERR_INIT;

	ok(store_search_fill(f->store, &err));
	assert_answer(f, "SELECT through = (SELECT max(recorded) FROM execution) FROM searched", "1");
}

struct ids {
	char text[8][ID_SIZE];
	size_t count;
};

static int add_id(void *arg, const struct store_execution *execution)
{
	struct ids *ids = arg;

	assert_in_range(ids->count, 0, ARRAY_SIZE(ids->text) - 1);
	memcpy(ids->text[ids->count++], execution->id, ID_SIZE);
	return 0;
}

static size_t found(struct fixture *f, struct store_filter filter)
{
	struct ids ids = {0};
	struct err err = ERR_INIT;

	ok(store_execution_list(f->store, &filter, add_id, &ids, &err));
	for (size_t i = 1; i < ids.count; i++) /* in the order that was asked for */
		assert_true(filter.newest_first == (strcmp(ids.text[i - 1], ids.text[i]) > 0));
	return ids.count;
}

static size_t hits(struct fixture *f, const char *text)
{
	return found(f, (struct store_filter){.text_in_code = text, .text_in_output = true, .newest_first = true});
}

#define NEEDLE "n\xc3\xa9" "edle(\"x"

static void everywhere(struct fixture *f)
{
	assert_int_equal(hits(f, "import needle"), 1);
	assert_int_equal(hits(f, NEEDLE), 2);
	assert_int_equal(hits(f, "in the error"), 1);
	assert_int_equal(hits(f, "Needle"), 0); /* case counts */
	assert_int_equal(hits(f, "needle hay"), 0);
	assert_int_equal(hits(f, "hay"), 3);
	assert_int_equal(hits(f, "ay"), 3); /* too short for the index */
	assert_int_equal(hits(f, "deep in the code"), 1);
	assert_int_equal(hits(f, "early in the output"), 1);
	assert_int_equal(hits(f, "late in the output"), 0); /* behind STORE_SEARCH_HEAD */
	assert_int_equal(hits(f, "behind NUL"), 1);
	assert_int_equal(hits(f, "an invalid"), 1);
	assert_int_equal(hits(f, "an invalid \xff"), 1);
	assert_int_equal(hits(f, "% _ \" AND NOT"), 0);
	assert_int_equal(hits(f, "import needle\nhay needle hay needle hay needle hay needle"), 0);
	assert_int_equal(found(f, (struct store_filter){.text_in_code = "early in the output"}), 0); /* only code */
	assert_int_equal(found(f, (struct store_filter){.text_in_code = "hay"}), 1);
	assert_int_equal(
		found(f, (struct store_filter){.text_in_code = "hay", .text_in_output = true, .owner = "bob"}), 2);
	assert_int_equal(
		found(f, (struct store_filter){.text_in_code = "hay", .text_in_output = true, .limit = 2}), 2);
}

static void write_runs(struct fixture *f)
{
	const size_t size = 2 * STORE_SEARCH_HEAD;
	auto_free char *large = xmalloc(size);
	struct store_execution run = sample("carol");

	run_of(f, "alice", "import needle\nhay", NEEDLE, "");
	run_of(f, "bob", "print()", "hay hay", "in the error\n" NEEDLE);
	run_of(f, "bob", "print()", "nothing", "hay");
	memset(large, '.', size);
	memcpy(large + 100, "early in the output", 19);
	memcpy(large + size - 100, "late in the output", 18);
	run.stdout_text = blob_text(f, large, size);
	memcpy(large + size - 100, "deep in the code  ", 18);
	run.code = blob_text(f, large + 200, size - 200);
	run.stderr_text = text_of("a\0behind NUL, an invalid \xff", 26);
	begin(f->store, &run);
	finish(f->store, &run, NULL, 0);
}

/* Without the index, with it, with some of it, one that runs. */
static void the_same_with_and_without(void **state)
{
	struct fixture *f = *state;
	struct store_execution running = sample("alice");

	write_runs(f);
	assert_answer(f, "SELECT through FROM searched", "0");
	everywhere(f);
	fill(f);
	assert_answer(f, "SELECT count(*) > 0 FROM search_idx", "1");
	everywhere(f);
	reopen(f, STORE_READ); /* its authorizer lets the index through */
	everywhere(f);
	reopen(f, STORE_SERVE);
	run_of(f, "alice", "behind the index", "", "");
	assert_int_equal(hits(f, "behind the index"), 1);
	everywhere(f);
	running.code = text_of("one that runs", 13);
	begin(f->store, &running);
	assert_int_equal(found(f, (struct store_filter){.text_in_code = "one that runs", .running_too = true}), 1);
	assert_int_equal(hits(f, "one that runs"), 0);
	assert_sound(f);
}

/* Does any page of the index have the trigram? */
static bool in_pages(struct fixture *f)
{
	auto_free char *answer =
		ask(f, "SELECT count(*) FROM search_data WHERE instr(block, CAST('" RARE "' AS BLOB)) > 0");

	return !streq(answer, "0");
}

/* In the database's file, once its log was folded in. */
static bool in_file(struct fixture *f)
{
	struct err err = ERR_INIT;
	auto_free char *path = xasprintf("%s/sallyport.db", f->data), *bytes = NULL;
	size_t length;
	bool emptied = false;

	ok(store_empty_log(f->store, &emptied, &err));
	assert_true(emptied);
	ok(read_file_at(AT_FDCWD, path, 1 << 28, &bytes, &length, &err));
	return memmem(bytes, length, RARE, strlen(RARE)) != NULL;
}

static void forget(struct fixture *f, const char *id, enum store_erase_what what)
{
	struct err err = ERR_INIT;
	struct store_erased erased = {0};
	struct store_erase erase = {.what = what, .id = id, .before_us = INT64_MAX, .why = "request"};

	ok(store_forget(f->store, &erase, &erased, &err));
	assert_int_equal(erased.executions, 1);
	assert_answer(f, "SELECT stale FROM searched", "0");
	assert_sound(f);
}

/* Words among others, in an index of many segments, of which the erased ones are the oldest. */
static void erased_words_leave_the_index(void **state)
{
	struct fixture *f = *state;
	struct store_execution out = run_of(f, "alice", "print()", "it was " RARE " then", "kept");
	struct store_execution code = run_of(f, "alice", "print('" RARE "')", "nothing", "");

	for (int i = 0; i < 20; i++) {
		char text[64];

		fill(f); /* a transaction, so a segment of its own */
		snprintf(text, sizeof(text), "run number %d of the others", i * 7919);
		run_of(f, "bob", text, text, "");
	}
	fill(f);
	assert_int_equal(hits(f, RARE), 2);
	assert_true(in_pages(f));
	assert_true(in_file(f));
	forget(f, out.id, STORE_ERASE_OUTPUT);
	assert_int_equal(hits(f, RARE), 1);
	assert_true(in_pages(f)); /* the other run's */
	forget(f, code.id, STORE_ERASE_CONTENT);
	assert_int_equal(hits(f, RARE), 0);
	assert_int_equal(hits(f, "kept"), 0); /* an output, too */
	assert_false(in_pages(f));
	assert_false(in_file(f));
	assert_int_equal(hits(f, "number 7919 of the others"), 1);
}

static void erased_before_it_was_indexed(void **state)
{
	struct fixture *f = *state;
	struct store_execution run = run_of(f, "alice", RARE, RARE, "");

	forget(f, run.id, STORE_ERASE_CONTENT);
	fill(f);
	assert_false(in_pages(f));
	assert_false(in_file(f));
}

/* A run whose output is in a file, which is lost after the index has it. */
static struct store_execution run_of_lost(struct fixture *f)
{
	auto_free char *large = xmalloc(STORE_SEARCH_HEAD + 100);
	struct store_execution run = sample("alice");
	char path[SHA256_HEX_SIZE + 1];

	memset(large, '.', STORE_SEARCH_HEAD + 100);
	memcpy(large, RARE, strlen(RARE));
	run.stdout_text = blob_text(f, large, STORE_SEARCH_HEAD + 100);
	begin(f->store, &run);
	finish(f->store, &run, NULL, 0);
	fill(f);
	assert_true(in_pages(f));
	store_blob_path(run.stdout_text.blob, path);
	auto_free char *file = xasprintf("%s/blobs/%s", f->data, path);

	assert_int_equal(unlink(file), 0);
	return run;
}

/* Where a text cannot be read again, what was made of it cannot be taken out: the index is made anew. */
static void a_lost_content(void **state)
{
	struct fixture *f = *state;

	run_of(f, "bob", "import other", "", "");
	const struct store_execution run = run_of_lost(f);

	forget(f, run.id, STORE_ERASE_OUTPUT);
	assert_answer(f, "SELECT through || ' ' || debt FROM searched", "0 0");
	assert_false(in_pages(f));
	assert_int_equal(hits(f, "import other"), 1);
	fill(f);
	assert_int_equal(hits(f, "import other"), 1);
	assert_false(in_pages(f));
	assert_false(in_file(f));
}

/* The record of a process that was killed when most of the index was gone. */
static void nearly_emptied(struct fixture *f)
{
	fill(f);
	sql(f, "UPDATE searched SET through = 0, stale = 1, debt = 1 << 60;"
	       "DELETE FROM search_data WHERE id > 10 AND id < (SELECT max(id) FROM search_data)");
	assert_answer(f, "SELECT count(*) FROM search_data", "3");
}

static void kept_of_every(struct fixture *f, size_t runs)
{
	assert_answer(f, "SELECT debt FROM searched", "0");
	assert_int_equal(hits(f, "of the others"), runs);
	fill(f);
	assert_int_equal(hits(f, "of the others"), runs);
	assert_sound(f);
}

/* While it is being emptied texts are found without the index, and nobody asks or alters it; the process that needs it
 * next goes on. */
static void killed_while_it_was_emptied(void **state)
{
	enum { RUNS = 6 };
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_execution rare = run_of(f, "alice", "print('" RARE "')", "", "");

	for (unsigned i = 0; i < RUNS; i++) {
		char text[3000];

		for (unsigned at = 0; at < sizeof(text) - 1; at++)
			text[at] = (char)('0' + (i * 31 + at * at * 7919 / 64) % 75);
		memcpy(text + sizeof(text) - 20, " of the others     \0", 20);
		run_of(f, "bob", text, "", "");
		fill(f); /* segments of their own */
	}
	nearly_emptied(f);
	assert_int_equal(hits(f, "of the others"), RUNS);
	assert_int_equal(hits(f, RARE), 1);
	sql(f, "VACUUM"); /* the statements have to be prepared again */
	forget(f, rare.id, STORE_ERASE_CONTENT);
	assert_int_equal(hits(f, RARE), 0);
	assert_false(in_pages(f));
	assert_false(in_file(f));
	kept_of_every(f, RUNS);
	nearly_emptied(f);
	ok(store_search_fill(f->store, &err));
	kept_of_every(f, RUNS);
	nearly_emptied(f);
	ok(store_gc(f->store, &(struct store_gc){.now_us = clock_now_us()}, &(struct store_collected){0}, &err));
	kept_of_every(f, RUNS);
}

/* Killed between the erasure and the merge: the next garbage collection does it. */
static int forget_and_die(struct fixture *f)
{
	struct err err = ERR_INIT;
	struct store_erase erase = {
		.what = STORE_ERASE_CONTENT, .before_us = INT64_MAX, .owner = "alice", .why = "request"};

	if (store_open(f->data, STORE_WRITE, &f->store, &err) < 0)
		return 1;
	return store_erase_runs(f->store, &erase, &(struct store_erased){0}, &err) < 0 ? 2 : 0;
}

static void garbage_collection_merges(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;

	run_of(f, "alice", RARE, "", "");
	fill(f);
	run_of(f, "bob", "other", "", "");
	fill(f);
	assert_int_equal(in_child(f, forget_and_die), 0);
	ok(store_open(f->data, STORE_SERVE, &f->store, &err));
	assert_answer(f, "SELECT stale FROM searched", "1");
	assert_int_equal(hits(f, RARE), 0);
	run_of(f, "carol", "later", "", "");
	ok(store_gc(f->store, &(struct store_gc){.now_us = clock_now_us()}, &(struct store_collected){0}, &err));
	assert_answer(f, "SELECT stale || ' ' || through FROM searched", "0 3");
	assert_false(in_pages(f));
	assert_false(in_file(f));
}

/* What is looked for is found wherever the pieces of a text end; all of them go. */
static void pieces(void **state)
{
	struct fixture *f = *state;
	auto_free char *code = xmalloc(STORE_SEARCH_HEAD);
	const size_t end = STORE_SEARCH_PIECE;

	for (size_t i = 0; i < STORE_SEARCH_HEAD; i += 2)
		memcpy(code + i, "\xc3\xa9", 2); /* every piece could end within one of them */
	for (size_t i = 1; i <= 12; i++)
		memcpy(code + i * (end + 2) - 6, RARE, strlen(RARE)); /* before, across and behind the ends */
	code[STORE_SEARCH_HEAD - 1] = '\0';
	code[STORE_SEARCH_HEAD - 2] = '.';
	struct store_execution run = run_of(f, "alice", code, "of the output", "");

	fill(f);
	assert_answer(f, "SELECT count(*) FROM search WHERE search MATCH '\"\xc3\xa9\xc3\xa9\xc3\xa9\"'", "16");
	for (size_t from = end - 140; from < end + 20; from += 2) { /* 34 characters: all that is asked for */
		char text[69];

		snprintf(text, sizeof(text), "%.*s", 68, code + from);
		if (utf8_valid(text, 68))
			assert_int_equal(hits(f, text), 1);
	}
	forget(f, run.id, STORE_ERASE_OUTPUT);
	assert_int_equal(hits(f, "of the output"), 0);
	assert_int_equal(hits(f, RARE), 1);
	forget(f, run.id, STORE_ERASE_CONTENT);
	assert_false(in_pages(f));
	assert_answer(f, "SELECT count(*) FROM search WHERE search MATCH '\"\xc3\xa9\xc3\xa9\xc3\xa9\"'", "0");
}

static void queries(void **state)
{
	auto_buf struct buf query = {0};
	char longest[200];

	(void)state;
	buf_init(&query, SIZE_MAX);
	assert_false(store_search_query("ab", &query));
	assert_false(store_search_query("", &query));
	assert_false(store_search_query("abc\xff", &query));
	assert_true(store_search_query("a\"\xc3\xa9" "d", &query));
	assert_string_equal(query.data, "\"a\"\"\xc3\xa9\" AND \"\"\"\xc3\xa9" "d\"");
	buf_reset(&query);
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_true(store_search_query(longest, &query));
	assert_int_equal(query.length, 5 * STORE_SEARCH_TRIGRAMS + 5 * (STORE_SEARCH_TRIGRAMS - 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_same_with_and_without, setup, teardown),
		cmocka_unit_test_setup_teardown(erased_words_leave_the_index, setup, teardown),
		cmocka_unit_test_setup_teardown(erased_before_it_was_indexed, setup, teardown),
		cmocka_unit_test_setup_teardown(a_lost_content, setup, teardown),
		cmocka_unit_test_setup_teardown(killed_while_it_was_emptied, setup, teardown),
		cmocka_unit_test_setup_teardown(garbage_collection_merges, setup, teardown),
		cmocka_unit_test_setup_teardown(pieces, setup, teardown),
		cmocka_unit_test(queries),
	};

	return cmocka_run_group_tests_name("store_search", tests, NULL, NULL);
}
