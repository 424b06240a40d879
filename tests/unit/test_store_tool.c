/* test_store_tool.c - long arguments and results of calls of tools: contents like output, stored once, that stay as
 * long as a call names them, go with it, travel in bundles, and are found where they were altered. */
#include "lib/audit/audit_verify.h"
#include "lib/store/db/store_txn.h"
#include "lib/store/record/store_baseline.h"
#include "lib/store/record/store_tool.h"
#include "lib/store/retention/store_erase.h"
#include "lib/store/retention/store_gc.h"
#include "lib/store/transfer/store_bundle.h"
#include "store_fixture.h"

#define LONG    (3 << 20)
#define LATE_US (2 * STORE_BLOB_GRACE_US)

static char result_text[LONG + 1], arguments_text[200000 + 1];

static int group_setup(void **state)
{
	(void)state;
	memset(result_text, 'r', LONG);
	memset(arguments_text, 'a', sizeof(arguments_text) - 1);
	arguments_text[0] = arguments_text[sizeof(arguments_text) - 2] = '"';
	return 0;
}

struct adding {
	const char *id;
	struct store_tools *tools;
};

static int add_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct adding *adding = arg;

	return store_txn_tools_add(txn, adding->id, adding->tools, err);
}

static struct store_tool_call call_of(int64_t seq, const char *arguments, const char *result)
{
	return (struct store_tool_call){.seq = seq,
					.connection = 1,
					.server = unconst("files"),
					.tool = unconst("read"),
					.arguments = unconst(arguments),
					.arguments_hash = "h",
					.state = "done",
					.kind = "result",
					.result = unconst(result),
					.result_length = strlen(result),
					.attempts = 1};
}

/* A run of two equal calls with long texts, and a short one between them. */
static void run_with_calls(struct fixture *f, char ret_id[ID_SIZE])
{
	struct store_tool_call calls[] = {call_of(1, arguments_text, result_text), call_of(2, "{}", "short"),
					  call_of(3, arguments_text, result_text)};
	struct store_tool_server server = {.name = unconst("files"),
					   .alias = unconst("files"),
					   .description = unconst(""),
					   .definitions = unconst("[]")};
	struct store_tools tools = {.servers = &server, .n_servers = 1, .calls = calls, .n_calls = 3};
	struct store_execution run = sample("ann");
	struct err err = ERR_INIT;

	sha256_hex("[]", 2, server.list);
	begin(f->store, &run);
	finish(f->store, &run, NULL, 0);
	assert_false(store_tools_inline(&tools));
	fails(store_commit(f->store, add_work, &(struct adding){run.id, &tools}, &err), ERR_INTERNAL);
	ok(store_tools_keep(f->store, &tools, &err));
	ok(store_commit(f->store, add_work, &(struct adding){run.id, &tools}, &err));
	snprintf(ret_id, ID_SIZE, "%s", run.id);
}

static void assert_calls(struct fixture *f, const char *id)
{
	struct store_tools tools = {0};
	struct err err = ERR_INIT;

	ok(store_tools_load(f->store, id, &tools, &err));
	assert_int_equal(tools.n_calls, 3);
	assert_string_equal(tools.calls[1].arguments, "{}");
	assert_string_equal(tools.calls[1].result, "short");
	for (int i = 0; i < 3; i += 2) {
		assert_string_equal(tools.calls[i].arguments, arguments_text);
		assert_int_equal(tools.calls[i].result_length, LONG);
		assert_string_equal(tools.calls[i].result, result_text);
	}
	store_tools_clear(&tools);
}

static int files_of(const struct fixture *f)
{
	auto_free char *command = xasprintf("exit $(find %s/blobs -type f -path '*/blobs/*/*' | wc -l)", f->data);

	return WEXITSTATUS(system(command));
}

static void collect_late(struct fixture *f)
{
	struct store_collected collected = {0};
	struct err err = ERR_INIT;

	ok(store_gc(f->store, &(struct store_gc){.now_us = clock_now_us() + LATE_US}, &collected, &err));
	assert_sound(f);
}

static void forget_output(struct fixture *f, const char *id)
{
	struct store_erased erased = {0};
	struct err err = ERR_INIT;

	ok(store_forget(
		f->store,
		&(struct store_erase){.id = id, .what = STORE_ERASE_OUTPUT, .before_us = INT64_MAX, .why = "request"},
		&erased, &err));
	assert_int_equal(erased.executions, 1);
}

static void stored_once_and_forgotten(void **state)
{
	struct fixture *f = *state;
	char id[ID_SIZE], other[ID_SIZE];

	run_with_calls(f, id);
	assert_sound(f);
	assert_answer(f, "SELECT count(*) FROM blob", "2");
	assert_answer(f, "SELECT max(length(result) + length(arguments)) FROM tool_call", "7");
	assert_answer(f, "SELECT sum(size) FROM holding WHERE owner = 'ann'", "3345728");
	collect_late(f); /* they are named */
	assert_int_equal(files_of(f), 2);
	assert_calls(f, id);
	run_with_calls(f, other);
	forget_output(f, id);
	assert_answer(f,
		      "SELECT count(arguments_blob) + count(result_blob) FROM tool_call WHERE execution = (SELECT "
		      "min(execution) FROM tool_call)",
		      "0");
	collect_late(f); /* another run of the owner names them */
	assert_int_equal(files_of(f), 2);
	assert_calls(f, other);
	forget_output(f, other);
	collect_late(f);
	assert_answer(f, "SELECT count(*) FROM blob", "0");
	assert_answer(f, "SELECT count(*) FROM holding", "0");
	assert_int_equal(files_of(f), 0);
}

static void export_to(struct fixture *f, const char *id, const char *path)
{
	struct store_bundle *bundle = NULL;
	struct err err = ERR_INIT;

	ok(store_bundle_new(path, &bundle, &err));
	ok(store_bundle_add(bundle, f->store, id, &err));
	ok(store_bundle_finish(bundle, f->store, &err));
	store_bundle_close(bundle);
}

static void refused(const char *path, const char *change, const char *text)
{
	auto_free char *copy = xasprintf("%s.copy", path), *command = xasprintf("cp %s %s.copy", path, path);
	struct store_bundle *bundle = NULL;
	struct err err = ERR_INIT;
	sqlite3 *db;
	char *wrong = NULL;

	assert_int_equal(system(command), 0);
	assert_int_equal(sqlite3_open(copy, &db), SQLITE_OK);
	if (sqlite3_exec(db, change, NULL, NULL, &wrong) != SQLITE_OK)
		fail_msg("%s", wrong);
	sqlite3_close(db);
	assert_true(store_bundle_open(copy, &bundle, &err) < 0);
	if (!strstr(err.text, text))
		fail_msg("%s: %s", change, err.text);
}

static void carried(void **state)
{
	struct fixture *f = *state;
	struct fixture other = {.data = xasprintf("%s/other", f->base)};
	auto_free char *path = xasprintf("%s/runs.bundle", f->base);
	struct store_bundle *bundle = NULL;
	struct store_carried done = {0};
	struct err err = ERR_INIT;
	char id[ID_SIZE];

	run_with_calls(f, id);
	export_to(f, id, path);
	refused(path, "DELETE FROM blob WHERE length(data) = 3145728", "a content is missing");
	refused(path, "UPDATE blob SET data = x'78' WHERE length(data) = 3145728", "a content does not have its hash");
	refused(path, "UPDATE tool_call SET execution = 'x' WHERE seq = 1", "a call of a tool is not as it must be");
	refused(path, "UPDATE tool_call SET result = 'x' WHERE seq = 1", "a call of a tool is not as it must be");
	refused(path, "UPDATE tool_call SET arguments = '{}' WHERE arguments_blob IS NOT NULL",
		"a call of a tool is not as it must be");
	refused(path, "UPDATE tool_call SET arguments = 'null', arguments_blob = result_blob",
		"a text of a call of a tool is not as it must be");
	refused(path, "ALTER TABLE tool_call DROP COLUMN result_blob", "its tables are not those");
	ok(store_open(other.data, STORE_SERVE, &other.store, &err));
	ok(store_bundle_open(path, &bundle, &err));
	ok(store_bundle_import(bundle, other.store, &done, &err));
	store_bundle_close(bundle);
	assert_int_equal(done.added, 1);
	assert_answer(&other, "SELECT count(*) FROM blob", "2");
	assert_sound(&other);
	collect_late(&other);
	assert_calls(&other, id);
	store_close(other.store);
	free(other.data);
}

static void altered(void **state)
{
	struct fixture *f = *state;
	struct store_tools tools = {0};
	struct err err = ERR_INIT;
	char id[ID_SIZE];

	run_with_calls(f, id);
	auto_free char *command =
		xasprintf("for file in $(find %s/blobs -type f -path '*/blobs/*/*'); do truncate -s 10 "
			  "$file; done",
			  f->data);

	assert_int_equal(system(command), 0);
	fails(store_tools_load(f->store, id, &tools, &err), ERR_CORRUPT);
}

/* What real servers answered later, for a generation. */
static void expected(void **state)
{
	struct fixture *f = *state;
	struct store_tool_call call = call_of(1, "{}", result_text + 1);
	struct store_tool_server server = {.name = unconst("files"),
					   .alias = unconst("files"),
					   .description = unconst(""),
					   .definitions = unconst("[]")};
	struct store_tools tools = {.servers = &server, .n_servers = 1, .calls = &call, .n_calls = 1}, found = {0};
	struct store_execution run = sample("ann");
	const struct store_blessing blessing = {.outcome = &run, .author = "a", .reason = "r", .tools = &tools};
	struct err err = ERR_INIT;
	int64_t generation = 0;

	sha256_hex("[]", 2, server.list);
	begin(f->store, &run);
	finish(f->store, &run, NULL, 0);
	ok(store_tools_keep(f->store, &tools, &err));
	ok(store_baseline_add(f->store, &blessing, &generation, &err));
	assert_int_equal(generation, 2);
	assert_answer(f, "SELECT length(result) FROM baseline_call", "0");
	collect_late(f);
	assert_int_equal(files_of(f), 1);
	ok(store_tools_expected(f->store, run.id, 2, &found, &err));
	assert_string_equal(found.calls[0].result, result_text + 1);
	store_tools_clear(&found);
}

/* A suite has the texts of calls, too, and a second run may be added to it. */
static void a_suite(void **state)
{
	struct fixture *f = *state;
	auto_free char *path = xasprintf("%s/cases.suite", f->base);
	struct store_bundle *suite = NULL;
	struct err err = ERR_INIT;
	char id[ID_SIZE];
	sqlite3 *db;

	for (int i = 0; i < 2; i++) {
		run_with_calls(f, id);
		for (int again = 0; again < 2; again++) {
			ok(store_bundle_change(path, &suite, &err));
			assert_int_equal(
				store_bundle_case_add(suite, f->store, &(struct store_bundle_case){.id = id}, &err),
				again == 0);
			ok(store_bundle_finish(suite, f->store, &err));
			store_bundle_close(suite);
		}
	}
	ok(store_bundle_open(path, &suite, &err));
	store_bundle_close(suite);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_stmt *count = NULL;

	assert_int_equal(sqlite3_prepare_v2(db,
					    "SELECT count(*) FROM tool_call WHERE coalesce(arguments_blob, "
					    "result_blob) IS NOT NULL",
					    -1, &count, NULL),
			 SQLITE_OK);
	assert_int_equal(sqlite3_step(count), SQLITE_ROW);
	assert_int_equal(sqlite3_column_int64(count, 0), 4); /* two of each run */
	sqlite3_finalize(count);
	sqlite3_close(db);
}

static int quiet(void *arg, const char *what, int64_t done, int64_t total)
{
	(void)arg, (void)what, (void)done, (void)total;
	return 0;
}

/* Other texts in the place of those that are contents, in every way that leaves a row. */
static void verified(void **state)
{
	static const char *const changes[] = {
		"seq = seq",
		"arguments = 'x'",
		"result = 'x'",
		"arguments_blob = NULL",
		"result_blob = NULL",
		"arguments_blob = result_blob",
		"result_blob = arguments_blob",
		"arguments = 'null' || arguments_blob, arguments_blob = NULL",
		"result = result_blob, result_blob = NULL",
	};
	struct fixture *f = *state;
	struct fixture copy = {.data = xasprintf("%s/copy", f->base)};
	auto_free char *blobs = xasprintf("%s/blobs", copy.data);
	const struct audit_request request = {.path = copy.data, .blobs = blobs, .progress = quiet};
	char id[ID_SIZE];

	run_with_calls(f, id);
	store_close(f->store);
	f->store = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		auto_free char *take = xasprintf("rm -rf %s && cp -r %s %s", copy.data, f->data, copy.data);
		auto_free char *change =
			xasprintf("PRAGMA ignore_check_constraints = ON; UPDATE tool_call SET %s WHERE "
				  "seq = 1",
				  changes[i]);
		struct audit_report report;
		struct err err = ERR_INIT;

		assert_int_equal(system(take), 0);
		sql(&copy, change);
		ok(audit_verify(&request, &report, &err));
		const bool whole = report.parts[AUDIT_CONTENT].state == AUDIT_HOLDS;

		if (whole != (i == 0))
			fail_msg("%s: %s", changes[i], report.parts[AUDIT_CONTENT].text);
	}
	free(copy.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(stored_once_and_forgotten, setup, teardown),
		cmocka_unit_test_setup_teardown(carried, setup, teardown),
		cmocka_unit_test_setup_teardown(altered, setup, teardown),
		cmocka_unit_test_setup_teardown(expected, setup, teardown),
		cmocka_unit_test_setup_teardown(a_suite, setup, teardown),
		cmocka_unit_test_setup_teardown(verified, setup, teardown),
	};

	return cmocka_run_group_tests(tests, group_setup, NULL);
}
