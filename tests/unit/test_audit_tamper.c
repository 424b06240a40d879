/*
 * test_audit_tamper.c - what an attacker does to the record, and by which verdict it is found: the table of
 * docs/security.md.
 *
 * Each act works on a copy of one record with SQLite alone, as somebody with the gateway's rights can: triggers are
 * dropped, foreign keys are off. One row of `acts` is one row of the table; every column of each audited table is
 * altered in its turn.
 */
#include <fcntl.h>

#include "audit_altered.h"
#include "store_fixture.h"

#include "lib/audit/audit_signer.h"
#include "lib/audit/audit_verify.h"
#include "lib/store/audit/store_audit.h"
#include "lib/store/record/store_token.h"
#include "lib/store/record/store_tool.h"
#include "lib/store/retention/store_erase.h"
#include "lib/store/retention/store_expire.h"

#define TREE      (1 << AUDIT_PART_TREE)
#define ANCHORS   (1 << AUDIT_ANCHORS)
#define COVERAGE  (1 << AUDIT_COVERAGE)
#define CONTENT   (1 << AUDIT_CONTENT)
#define EITHER    (COVERAGE | CONTENT)
#define SIGNATURE (1 << AUDIT_SIGNATURES)

struct record {
	struct fixture *f;
	char *signer, *anchor, *copy, *old;
	char run[ID_SIZE], token[ID_SIZE];
};

static void run_sql(const char *folder, const char *sql)
{
	auto_free char *path = xasprintf("%s/sallyport.db", folder);
	char *said = NULL;
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_exec(db, "DROP TRIGGER audit_kept; DROP TRIGGER audit_fixed", NULL, NULL, NULL);
	if (sqlite3_exec(db, sql, NULL, NULL, &said) != SQLITE_OK)
		fail_msg("%s: %s", sql, said);
	sqlite3_close(db);
}

static void shell(const char *format, const char *a, const char *b)
{
	auto_free char *command = xasprintf("%s '%s' '%s'", format, a, b);

	assert_int_equal(system(command), 0);
}

static void copy_of(const struct record *r, const char *from)
{
	shell("rm -rf", r->copy, r->copy);
	shell("cp -r", from, r->copy);
}

static int quiet(void *arg, const char *what, int64_t done, int64_t total)
{
	(void)arg, (void)what, (void)done, (void)total;
	return 0;
}

static void verify(const struct record *r, const char *path, struct audit_report *ret)
{
	const char *const anchors[] = {r->anchor};
	auto_free char *blobs = xasprintf("%s/blobs", path);
	const struct audit_request request = {.path = path,
					      .signer = r->signer,
					      .anchors = anchors,
					      .n_anchors = r->anchor != NULL,
					      .blobs = blobs,
					      .progress = quiet};
	struct err err = ERR_INIT;

	ok(audit_verify(&request, ret, &err));
}

static unsigned broken(const struct audit_report *report)
{
	unsigned parts = 0;

	for (int i = 0; i < AUDIT_PARTS; i++)
		parts |= report->parts[i].state == AUDIT_BROKEN ? 1u << i : 0;
	return parts;
}

static void sign(const struct record *r, const char *data)
{
	auto_buf struct buf note = {0};
	struct audit_signer signer;
	struct err err = ERR_INIT;

	buf_init(&note, AUDIT_NOTE_MAX);
	ok(audit_signer_open(r->signer, NULL, &signer, &err));
	assert_int_equal(audit_signer_sign(&signer, data, &note, &err), 1);
	audit_signer_close(&signer);
}

struct logged {
	int64_t conversation;
	const char *name;
};

static int log_file(struct store_txn *txn, void *arg, struct err *err)
{
	const struct logged *file = arg;

	return store_txn_audit_file(txn, file->conversation, file->name, strlen(file->name), NULL, err);
}

/* As an upload does. */
static struct store_conversation upload(struct fixture *f, const char *name, const char *text)
{
	struct store_conversation conversation = put_file(f->store, "ann", "talk", name, text);
	struct logged file = {conversation.row, name};
	struct err err = ERR_INIT;

	ok(store_commit(f->store, log_file, &file, &err));
	return conversation;
}

/* A call that the run's program made of another server. */
static int log_call(struct store_txn *txn, void *arg, struct err *err)
{
	struct store_tool_call call = {.seq = 1,
				       .connection = 1,
				       .server = unconst("files"),
				       .tool = unconst("read"),
				       .arguments = unconst("{}"),
				       .decision = unconst("allow"),
				       .rule = unconst("*"),
				       .state = "done",
				       .kind = "result",
				       .result = unconst("{}"),
				       .attempts = 1};
	const struct store_tools tools = {.calls = &call, .n_calls = 1};

	return store_txn_tools_add(txn, arg, &tools, err);
}

static void run_once(struct fixture *f, char ret_id[ID_SIZE])
{
	struct store_execution run = sample("ann");
	struct store_execution_file change = {
		.file = {.name = "out.csv", .name_length = 7, .mode = 0644, .mtime_us = 5}, .change = "created"};
	struct err err = ERR_INIT;

	ok(store_blob_put(f->store, "1,2", 3, change.file.blob, &err));
	change.file.size = 3;
	snprintf(change.file.media_type, sizeof(change.file.media_type), "text/csv");
	struct store_conversation conversation = upload(f, "later.txt", "more");

	run.conversation_row = conversation.row;
	begin(f->store, &run);
	finish(f->store, &run, &change, 1);
	ok(store_commit(f->store, log_call, run.id, &err));
	snprintf(ret_id, ID_SIZE, "%s", run.id);
}

/* A record with two checkpoints, the first of which is at an anchor; `old` is the record at the first. */
static int set_up(void **state)
{
	struct record *r = xcalloc(1, sizeof(*r));
	struct err err = ERR_INIT;
	auto_buf struct buf vkey = {0};
	struct store_token token;
	char text[STORE_TOKEN_TEXT], other[ID_SIZE];
	void *fixture;

	setup(&fixture);
	r->f = fixture;
	r->signer = xasprintf("%s/signer", r->f->base);
	r->copy = xasprintf("%s/copy", r->f->base);
	r->old = xasprintf("%s/old", r->f->base);
	buf_init(&vkey, 1024);
	ok(audit_signer_init(r->signer, "test.example/audit", &vkey, &err));
	ok(store_token_add(r->f->store, "ann", "laptop", text, &token, &err));
	snprintf(r->token, sizeof(r->token), "%s", token.id);
	upload(r->f, "a.txt", "hello");
	run_once(r->f, r->run);
	sign(r, r->f->data);
	shell("cp -r", r->f->data, r->old);
	r->anchor = xasprintf("%s/anchor", r->f->base);
	auto_free char *log = xasprintf("%s/checkpoints.log", r->signer);

	shell("cp", log, r->anchor);
	run_once(r->f, other);
	ok(store_token_add(r->f->store, "bob", "phone", text, &token, &err));
	ok(store_token_revoke(r->f->store, token.id, NULL, &err));
	store_close(r->f->store);
	r->f->store = NULL;
	sign(r, r->f->data); /* the stop, too */
	*state = r;
	return 0;
}

static int tear_down(void **state)
{
	struct record *r = *state;
	void *fixture = r->f;

	free(r->signer);
	free(r->anchor);
	free(r->copy);
	free(r->old);
	free(r);
	return teardown(&fixture);
}

/* Untouched, everything holds. */
static void untouched(void **state)
{
	struct record *r = *state;
	struct audit_report report;

	verify(r, r->f->data, &report);
	for (int i = 0; i < AUDIT_PARTS; i++)
		if (report.parts[i].state != AUDIT_HOLDS)
			fail_msg("%s: %s", audit_part_names[i], report.parts[i].text);
	assert_int_equal(report.entries, report.covered);
}

static char *first_row(const char *table)
{
	if (streq(table, "file"))
		return xstrdup("name = 'out.csv'");
	if (streq(table, "execution_file"))
		return xstrdup("name = 'out.csv' AND execution = (SELECT min(execution) FROM execution_file)");
	if (streq(table, "tool_call"))
		return xstrdup("execution = (SELECT min(execution) FROM tool_call)");
	if (streq(table, "blob"))
		return xstrdup("sha256 = (SELECT max(sha256) FROM blob)");
	return xasprintf("rowid = (SELECT min(rowid) FROM %s)", table);
}

/* Every column of every audited table, in the rows that are there. */
static void every_column(void **state)
{
	static const char *const tables[] = {"audit", "audit_detail", "execution", "execution_file",
					     "token", "conversation", "file",      "principal",
					     "blob",  "tool_call"};
	struct record *r = *state;
	int altered_columns = 0, missed = 0;

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		struct fixture original = {.data = r->f->data};
		auto_free char *ask_names =
			xasprintf("SELECT group_concat(name, ' ') FROM pragma_table_info('%s')", tables[i]);
		auto_free char *names = ask(&original, ask_names);
		char *rest = names, *column;

		while ((column = strsep(&rest, " ")) != NULL) {
			struct audit_report report;

			if (is_uncovered(tables[i], column))
				continue;
			copy_of(r, r->f->data);
			auto_free char *value = altered(tables[i], column), *row = first_row(tables[i]);
			auto_free char *whole = xasprintf("PRAGMA ignore_check_constraints = ON; UPDATE %s SET %s = %s "
							  "WHERE %s",
							  tables[i], column, value, row);

			run_sql(r->copy, whole);
			verify(r, r->copy, &report);
			altered_columns++;
			if (broken(&report) == 0) {
				print_error("%s.%s was altered unseen: %s\n", tables[i], column, whole);
				missed++;
			}
		}
	}
	assert_int_equal(missed, 0);
	assert_true(altered_columns > 80);
}

static void acts(void **state)
{
	static const struct {
		const char *sql;
		unsigned parts; /* broken, among others */
		const char *text;
	} table[] = {
		{"DELETE FROM audit WHERE n = 4", TREE, "entry 4"},
		{"DELETE FROM audit WHERE n = 4; UPDATE audit SET n = n - 1 WHERE n = 5", TREE, "entry 4"},
		{"DELETE FROM audit WHERE n = (SELECT max(n) FROM audit)", TREE | COVERAGE, "older copy"},
		{"INSERT INTO audit SELECT max(n) + 1, at_us, kind, object, entry FROM audit", TREE, ""},
		{"UPDATE audit SET entry = (SELECT entry FROM audit AS o WHERE o.n = 11 - audit.n) WHERE n IN (5, 6)",
		 TREE, "entry 5"},
		{"DELETE FROM audit_detail WHERE n = 5", CONTENT, "entry 5"},
		{"DELETE FROM execution", COVERAGE, "its row is gone"},
		{"DELETE FROM token", COVERAGE, "its row is gone"},
		{"DELETE FROM principal", COVERAGE, "another owner"},
		{"DELETE FROM conversation", COVERAGE, "conversation"},
		{"DELETE FROM execution_file WHERE phase = 'after'", EITHER, ""},
		{"UPDATE token SET revoked_us = NULL", COVERAGE, "(token:"},
		{"CREATE TEMP TABLE t AS SELECT * FROM execution LIMIT 1; UPDATE t SET id = "
		 "'01932c00-0000-7000-8000-000000000000', recorded = 99; INSERT INTO execution SELECT * FROM t",
		 COVERAGE, "inserted past the log"},
		{"INSERT INTO execution_file SELECT '01932c00-0000-7000-8000-000000000000', phase, name, change, "
		 "reason, blob, media_type, mode, size, mtime_us FROM execution_file LIMIT 1",
		 COVERAGE, "have no run"},
		{"CREATE TEMP TABLE t AS SELECT * FROM tool_call LIMIT 1; UPDATE t SET seq = 2; INSERT INTO tool_call "
		 "SELECT * FROM t",
		 COVERAGE, "more calls"},
		{"INSERT INTO audit_detail VALUES (9999, zeroblob(32), '{}')", COVERAGE, "entry 9999"},
		{"INSERT INTO audit_detail VALUES (-1, zeroblob(32), '{}')", COVERAGE, "entry -1"},
		{"CREATE TEMP TABLE t AS SELECT * FROM audit WHERE kind = 'run.end' LIMIT 1; CREATE TEMP TABLE d AS "
		 "SELECT * FROM audit_detail WHERE n = (SELECT n FROM t); UPDATE t SET entry = replace(entry, "
		 "'\"n\":' || n, '\"n\":' || (SELECT max(n) + 1 FROM audit)); UPDATE t SET n = (SELECT max(n) + 1 FROM "
		 "audit); UPDATE d SET n = (SELECT n FROM t); INSERT INTO audit SELECT * FROM t; INSERT INTO "
		 "audit_detail SELECT * FROM d",
		 COVERAGE, "entry twice"},
		{"UPDATE execution SET created_us = 1 WHERE rowid = 1", EITHER, ""},
		{"UPDATE execution SET erased = 'content' WHERE rowid = 1", COVERAGE, "no entry says by whom"},
		{"INSERT INTO audit SELECT max(n) + 1, max(at_us), 'content.erase', (SELECT object FROM audit "
		 "WHERE kind = 'run.end'), '' FROM audit",
		 COVERAGE, "its row does not say so"},
		{"UPDATE file SET blob = (SELECT min(sha256) FROM blob), size = 99 WHERE name = 'a.txt'", CONTENT,
		 "a.txt"},
		{"INSERT INTO file SELECT conversation, 'new', blob, media_type, mode, size, mtime_us FROM file LIMIT "
		 "1",
		 CONTENT, "the file new"},
	};
	struct record *r = *state;
	struct audit_report report;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		bool named = false;

		copy_of(r, r->f->data);
		run_sql(r->copy, table[i].sql);
		verify(r, r->copy, &report);
		const unsigned parts = broken(&report);

		for (int part = 0; part < AUDIT_PARTS; part++)
			named = named || strstr(report.parts[part].text, table[i].text) != NULL;
		if ((parts & table[i].parts) == 0 || !named)
			fail_msg("%s: broken %x; %s; %s; %s", table[i].sql, parts, report.parts[0].text,
				 report.parts[3].text, report.parts[4].text);
	}
}

/* The output of a run is erased: the record holds, and what the erasure left is watched as before. */
static void output_erased(void **state)
{
	static const struct {
		const char *sql;
		unsigned part; /* 0: nothing is altered */
	} table[] = {
		{"SELECT 1", 0},
		{"DELETE FROM execution WHERE erased = 'output'", COVERAGE},
		{"DELETE FROM tool_call WHERE arguments_hash = ''", COVERAGE},
		{"DELETE FROM audit_detail WHERE n IN (SELECT n FROM audit JOIN execution ON object = 'execution:' || "
		 "id AND erased = 'output' WHERE kind = 'run.begin')",
		 CONTENT},
		{"DELETE FROM audit_detail WHERE n IN (SELECT n FROM audit WHERE kind = 'content.erase')", CONTENT},
	};
	struct record *r = *state;
	const struct store_erase erase = {.what = STORE_ERASE_OUTPUT,
					  .id = r->run,
					  .before_us = INT64_MAX,
					  .why = "request",
					  .ticket = "no 7"};
	struct store_erased erased = {0};
	struct audit_report report;
	struct store *store;
	struct err err = ERR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		copy_of(r, r->f->data);
		ok(store_open(r->copy, STORE_WRITE, &store, &err));
		ok(store_forget(store, &erase, &erased, &err));
		store_close(store);
		run_sql(r->copy, table[i].sql);
		verify(r, r->copy, &report);
		if ((broken(&report) & table[i].part) != table[i].part || (table[i].part == 0 && broken(&report) != 0))
			fail_msg("%s: broken %x; %s; %s", table[i].sql, broken(&report), report.parts[3].text,
				 report.parts[4].text);
	}
	assert_int_equal(erased.executions, ARRAY_SIZE(table));
}

/* Contents: altered, cut, gone. */
static void contents(void **state)
{
	struct record *r = *state;
	struct audit_report report;

	for (size_t i = 0; i < 2; i++) {
		copy_of(r, r->f->data);
		auto_free char *command =
			i == 0 ? xasprintf("f=$(find '%s/blobs' -mindepth 2 -type f | head -1); printf x >> \"$f\"",
					   r->copy)
			       : xasprintf("rm \"$(find '%s/blobs' -mindepth 2 -type f | head -1)\"", r->copy);

		assert_int_equal(system(command), 0);
		verify(r, r->copy, &report);
		assert_int_equal(broken(&report), CONTENT);
	}
}

/* An older copy in the place of the record, with and without the signer's folder. */
static void rolled_back(void **state)
{
	struct record *r = *state;
	struct audit_report report;
	struct audit_signer signer;
	struct err err = ERR_INIT;
	auto_buf struct buf note = {0};

	verify(r, r->old, &report);
	assert_int_equal(broken(&report), TREE);
	assert_non_null(strstr(report.parts[AUDIT_PART_TREE].text, "older copy"));
	/* The signer notices by itself, and signs nothing. */
	buf_init(&note, AUDIT_NOTE_MAX);
	ok(audit_signer_open(r->signer, NULL, &signer, &err));
	fails(audit_signer_sign(&signer, r->old, &note, &err), ERR_CORRUPT);
	assert_non_null(strstr(err.text, "went back"));
	assert_int_equal(note.length, 0);
	audit_signer_close(&signer);
}

/* Everything that the gateway's account can write is written anew: the log is consistent in itself, and its tree has
 * other leaves. Found by the signer, by verify with its folder, and by verify with an anchor and a key alone. */
static void rewritten(void **state)
{
	struct record *r = *state, alone;
	struct audit_report report;
	struct audit_signer signer;
	struct err err = ERR_INIT;
	auto_buf struct buf note = {0};
	auto_free char *other = xasprintf("%s/other", r->f->base);
	struct fixture forger = {.data = other};

	ok(store_open(other, STORE_SERVE, &forger.store, &err));
	char ids[8][ID_SIZE];

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		run_once(&forger, ids[i]);
	store_close(forger.store);
	buf_init(&note, AUDIT_NOTE_MAX);
	ok(audit_signer_open(r->signer, NULL, &signer, &err));
	fails(audit_signer_sign(&signer, other, &note, &err), ERR_CORRUPT);
	assert_non_null(strstr(err.text, "rewritten: entry 0"));
	audit_signer_close(&signer);
	verify(r, other, &report);
	assert_int_equal(broken(&report) & (TREE | ANCHORS), TREE | ANCHORS);
	assert_int_equal(report.parts[AUDIT_PART_TREE].first, 0);
	/* Without the signer's folder: by the anchor. */
	alone = *r;
	alone.signer = NULL;
	verify(&alone, other, &report);
	assert_int_equal(broken(&report) & (TREE | ANCHORS), ANCHORS);
	/* Without anything from elsewhere it is a log like another: this is what anchors are for. */
	alone.anchor = NULL;
	verify(&alone, other, &report);
	assert_int_equal(broken(&report) & (TREE | ANCHORS | COVERAGE), 0);
	/* A checkpoint that was made up with another key is no checkpoint. */
	auto_free char *log = xasprintf("%s/checkpoints.log", r->signer), *saved = xasprintf("%s.saved", log);

	shell("cp", log, saved);
	auto_free char *forged = xasprintf("sed -i '2s/.*/9999/' '%s'", log);

	assert_int_equal(system(forged), 0);
	verify(r, r->f->data, &report);
	assert_int_equal(broken(&report) & (SIGNATURE | TREE), SIGNATURE | TREE);
	shell("mv", saved, log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(untouched), cmocka_unit_test(every_column), cmocka_unit_test(acts),
		cmocka_unit_test(output_erased), cmocka_unit_test(contents), cmocka_unit_test(rolled_back),
		cmocka_unit_test(rewritten),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
