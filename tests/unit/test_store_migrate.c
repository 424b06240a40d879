/* test_store_migrate.c - upgrades of a database, by a made-up step to today's schema: every row is found again, the
 * schema is this release's, one copy is kept; kills, two at once and a small disk leave the old database whole. What no
 * step upgrades is refused. */
#include "store_fixture.h"
#include "store_old.h"

#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "lib/store/record/store_token.h"

#define COPY "sallyport.db.version-" STORE_OLD ".*Z"
#define PART "sallyport.db.copy-part"

#define RUNS 40

/* A data folder with rows of several tables, in the made-up older version. */
static void make_old(struct fixture *f)
{
	struct err err = ERR_INIT;
	struct store_token token;
	char text[STORE_TOKEN_TEXT];

	assert_int_equal(store_old_steps[1].from, store_schema_newest);
	ok(store_token_add(f->store, "ann", "laptop", text, &token, &err));
	put_file(f->store, "ann", "talk", "a.txt", "hello");
	for (int i = 0; i < RUNS; i++) {
		struct store_execution run = sample("ann");
		struct store_execution_file made;

		begin(f->store, &run);
		change(f, &made, "out.txt", "created", "made");
		finish(f->store, &run, &made, 1);
	}
	store_close(f->store);
	f->store = NULL;
	sql(f, "INSERT INTO tool_call (execution, seq, connection, server, tool, is_read, arguments, arguments_hash, "
	       "occurrence, state, kind, is_error, result, attempts, approval_us, queued_us, started_us, finished_us) "
	       "SELECT id, 1, 1, 'files', 'read', 0, '{}', 'h', 0, 'done', 'result', 0, 'text', 1, 0, 0, 0, 0 FROM "
	       "execution");
	sql(f, store_old_sql);
	sql(f, "PRAGMA wal_checkpoint(TRUNCATE)");
}

/* The older database as it was, whatever became of it. */
static void again(struct fixture *f)
{
	auto_free char *copy = xasprintf("rm -rf '%s' && cp -a '%s/old' '%s'", f->data, f->base, f->data);

	assert_int_equal(system(copy), 0); // NOLINT(cert-env33-c): the test's own folders
}

static int setup_old(void **state)
{
	assert_int_equal(setup(state), 0);
	struct fixture *f = *state;
	auto_free char *old = xasprintf("%s/old", f->base);

	make_old(f);
	assert_int_equal(rename(f->data, old), 0);
	again(f);
	return 0;
}

/* As the gateway does it before it opens the record, but with the made-up step. */
static int migrate(const struct fixture *f, struct err *err)
{
	auto_free char *path = xasprintf("%s/sallyport.db", f->data);
	struct store store = {.path = f->data, .uid = geteuid()};
	struct store_conn *conn;
	int version;
	auto_close int dir = open(f->data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int result = store_conn_open(path, STORE_CONN_WRITER, &conn, &version, err);

	if (result < 0)
		return result;
	store.dir_fd = dir;
	result = store_migrate(&store, conn, store_old_steps, err);
	store_conn_close(conn);
	return result;
}

/* Path of the one copy in the folder; NULL: there is none. The caller frees. */
static char *copy_of(const struct fixture *f, const char *pattern)
{
	auto_free char *wanted = xasprintf("%s/%s", f->data, pattern);
	glob_t found;
	char *path = NULL;

	if (glob(wanted, 0, NULL, &found) == 0) {
		assert_int_equal(found.gl_pathc, 1);
		path = xstrdup(found.gl_pathv[0]);
	}
	globfree(&found);
	return path;
}

/* Upgraded, and one copy is kept: that of the older version. */
static void assert_upgraded(struct fixture *f)
{
	auto_free char *copy = copy_of(f, COPY);
	auto_free char *part = copy_of(f, PART);
	struct err err = ERR_INIT;

	assert_non_null(copy);
	assert_null(part);
	ok(store_open(f->data, STORE_SERVE, &f->store, &err));
	assert_sound(f);
	assert_answer(f, "SELECT count(*) FROM execution", "40");
}

/* Old rows that are not the same in the new database, in the columns that the old table had. */
static void same_rows(const struct fixture *f, const char *copy, const char *table)
{
	auto_free char *attach = xasprintf("ATTACH '%s' AS old", copy);
	auto_free char *path = xasprintf("%s/sallyport.db", f->data);
	sqlite3 *db;
	sqlite3_stmt *statement;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, attach, NULL, NULL, NULL), SQLITE_OK);
	auto_free char *listing = xasprintf(
		"SELECT group_concat(name), (SELECT count(*) FROM old.%s) FROM pragma_table_info('%s', 'old')", table,
		table);

	assert_int_equal(sqlite3_prepare_v2(db, listing, -1, &statement, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	auto_free char *columns = xstrdup((const char *)sqlite3_column_text(statement, 0));

	assert_true(sqlite3_column_int(statement, 1) > 0);
	sqlite3_finalize(statement);
	auto_free char *missing =
		xasprintf("SELECT count(*) FROM (SELECT %s FROM old.%s EXCEPT SELECT %s FROM main.%s)", columns, table,
			  columns, table);

	if (sqlite3_prepare_v2(db, missing, -1, &statement, NULL) != SQLITE_OK)
		fail_msg("%s: %s", missing, sqlite3_errmsg(db));
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	if (sqlite3_column_int(statement, 0) != 0)
		fail_msg("%d rows of %s are not as they were", sqlite3_column_int(statement, 0), table);
	sqlite3_finalize(statement);
	sqlite3_close(db);
}

static void every_row(void **state)
{
	static const char *const tables[] = {"token", "conversation",   "blob",      "file",
					     "execution", "execution_file", "tool_call", "audit"};
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct stat st;

	ok(migrate(f, &err));
	auto_free char *copy = copy_of(f, COPY);

	assert_upgraded(f);
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		same_rows(f, copy, tables[i]);
	/* The copy is a database of the old version, and nobody else may read it. */
	assert_int_equal(stat(copy, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	auto_free char *bare = xasprintf("%s/other", f->base);
	auto_free char *moved = xasprintf("%s/sallyport.db", bare);
	struct fixture old = {.data = bare};

	assert_int_equal(mkdir(bare, 0700), 0);
	assert_int_equal(rename(copy, moved), 0);
	assert_answer(&old, "PRAGMA user_version", STORE_OLD);
	assert_answer(&old, "PRAGMA integrity_check", "ok");
	/* Once is enough. */
	reopen(f, STORE_SERVE);
	assert_null(copy_of(f, COPY));
}

/* A migrated database and a new one are the same to every statement: tables, columns, indexes, triggers, views. */
static void same_schema(void **state)
{
	static const char shape[] = "SELECT group_concat(line, char(10)) FROM (SELECT s.name || ' ' || c.name || ' ' "
				    "|| c.type || c.\"notnull\" || "
				    "coalesce(c.dflt_value, '') || c.pk AS line FROM sqlite_schema AS s JOIN "
				    "pragma_table_xinfo(s.name) AS c "
				    "WHERE s.type = 'table' ORDER BY s.name, c.cid)";
	static const char rest[] =
		"SELECT group_concat(line, char(10)) FROM (SELECT type || name || coalesce(sql, '') AS line "
		"FROM sqlite_schema WHERE type <> 'table' ORDER BY type, name)";
	static const char *const questions[] = {shape, rest};
	struct fixture *f = *state, fresh = {0};
	struct err err = ERR_INIT;

	fresh.data = xasprintf("%s/fresh", f->base);
	ok(migrate(f, &err));
	ok(store_open(f->data, STORE_SERVE, &f->store, &err));
	ok(store_open(fresh.data, STORE_SERVE, &fresh.store, &err));
	for (size_t i = 0; i < ARRAY_SIZE(questions); i++) {
		auto_free char *migrated = ask(f, questions[i]), *made = ask(&fresh, questions[i]);

		assert_string_equal(migrated, made);
	}
	store_close(fresh.store);
	free(fresh.data);
}

/* Versions from before the first release: nobody upgrades them, and nothing is written. */
static void older_ones_are_refused(void **state)
{
	static const enum store_mode modes[] = {STORE_SERVE, STORE_WRITE, STORE_READ};
	const int first = store_schema_steps[0].from;
	auto_free char *made = xasprintf("PRAGMA user_version = %d", first - 1);
	auto_free char *found = xasprintf("version %d, from before the first release", first - 1);
	auto_free char *oldest = xasprintf("upgrades version %d and newer: open it with the program", first);
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store *store;
	int version = 0;

	sql(f, made);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		fails(store_open(f->data, modes[i], &store, &err), ERR_UNAVAILABLE);
		assert_non_null(strstr(err.text, found));
		assert_non_null(strstr(err.text, oldest));
	}
	ok(store_schema_version(f->data, &version, &err));
	assert_int_equal(version, first - 1);
	assert_null(copy_of(f, "sallyport.db.*"));
}

/* A step that fails: the database is as it was, and no copy is left. */
static void a_step_that_fails(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;

	sql(f, "CREATE TABLE drain (in_the_way)");
	assert_int_equal(migrate(f, &err), -ERR_INTERNAL);
	assert_non_null(strstr(err.text, "left as it was"));
	assert_answer(f, "PRAGMA user_version", STORE_OLD);
	assert_null(copy_of(f, "sallyport.db.[cv]*"));
	sql(f, "DROP TABLE drain");
	ok(migrate(f, &err));
	assert_upgraded(f);
}

/* -------- kills --------------------------------------------------------------------------------------- */

static rlim_t file_size_max;

/* The write that would make a file larger than this ends the process (SIGXFSZ), wherever it is. */
static int migrate_until_killed(struct fixture *f)
{
	struct err err = ERR_INIT;
	const struct rlimit limit = {file_size_max, file_size_max}, no_core = {0, 0};

	if (setrlimit(RLIMIT_CORE, &no_core) < 0 || setrlimit(RLIMIT_FSIZE, &limit) < 0)
		return 2;
	return migrate(f, &err) == 0 ? 0 : 1;
}

/* One kill. Afterwards the database is whole, and opens; the copies of upgrades that were killed are gone. Returns
 * whether it was killed. */
static bool kill_at(struct fixture *f, rlim_t size)
{
	struct err err = ERR_INIT;
	int status;

	file_size_max = size;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(migrate_until_killed(f));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status == 0)
		return false;
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
	assert_null(copy_of(f, COPY)); /* none that could be taken for one of an upgrade that ended */
	assert_answer(f, "PRAGMA integrity_check", "ok");
	assert_answer(f, "SELECT count(*) FROM execution", "40");
	assert_answer(f, "PRAGMA user_version", STORE_OLD);
	ok(migrate(f, &err));
	assert_upgraded(f);
	store_close(f->store);
	f->store = NULL;
	return true;
}

static void killed_while_copying(void **state)
{
	struct fixture *f = *state;
	int kills = 0;

	for (; kill_at(f, 4096 + (rlim_t)kills * 32768); kills++)
		again(f);
	assert_true(kills > 5);
}

/* Leaves a log that is longer than the database: the writes that are too far are those of the transaction. */
static int leave_log(struct fixture *f)
{
	auto_free char *path = xasprintf("%s/sallyport.db", f->data);
	sqlite3 *db;

	return sqlite3_open(path, &db) == SQLITE_OK &&
			       sqlite3_exec(db, "PRAGMA wal_autocheckpoint = 0; VACUUM", NULL, NULL, NULL) == SQLITE_OK
		       ? 0
		       : 1;
}

static void killed_while_writing(void **state)
{
	struct fixture *f = *state;
	auto_free char *log = xasprintf("%s/sallyport.db-wal", f->data);
	struct stat st;
	int kills = 0;

	for (bool killed = true; killed; kills++) {
		again(f);
		assert_int_equal(in_child(f, leave_log), 0);
		assert_int_equal(stat(log, &st), 0);
		killed = kill_at(f, (rlim_t)st.st_size + (rlim_t)kills * 6000);
	}
	assert_true(kills > 4);
}

/* Killed between the commit and the copy's name: the next start names it. */
static void killed_behind_the_commit(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	auto_free char *part = xasprintf("%s/" PART, f->data);

	ok(migrate(f, &err));
	auto_free char *copy = copy_of(f, COPY);

	assert_int_equal(rename(copy, part), 0);
	ok(store_open(f->data, STORE_SERVE, &f->store, &err));
	store_close(f->store);
	f->store = NULL;
	assert_upgraded(f);
}

/* -------- two at once --------------------------------------------------------------------------------- */

static void two_at_once(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	pid_t pids[4];
	int status;

	for (int round = 0; round < 5; round++) {
		again(f);
		for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
			pids[i] = fork();
			assert_true(pids[i] >= 0);
			if (pids[i] == 0)
				_exit(migrate(f, &err) == 0 ? 0 : 1);
		}
		for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
			assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
			assert_int_equal(status, 0); /* one does it, the others wait and find it done */
		}
		assert_upgraded(f);
		store_close(f->store);
	f->store = NULL;
	}
}

/* -------- a small disk -------------------------------------------------------------------------------- */

static int no_room(struct fixture *f)
{
	struct err err = ERR_INIT;
	auto_free char *fill = xasprintf("cp -a '%s/old/.' '%s'", f->base, f->data);

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", f->data, "tmpfs", 0, "size=12m" /* and 8 are the reserve's */) < 0)
		return 77;
	if (system(fill) != 0) // NOLINT(cert-env33-c): the test's own folders
		return 2;
	if (migrate(f, &err) != -ERR_SYSTEM || strstr(err.text, "make room") == NULL) {
		print_error("%s\n", err.text);
		return 1;
	}
	assert_answer(f, "PRAGMA user_version", STORE_OLD);
	assert_null(copy_of(f, "sallyport.db.*"));
	if (mount("tmpfs", f->data, "tmpfs", MS_REMOUNT, "size=40m") < 0)
		return 2;
	return migrate(f, &err) == 0 ? 0 : 3;
}

static void refused_without_room(void **state)
{
	int status = in_child(*state, no_room);

	if (status == 77) {
		print_message("skipped: mounting needs root\n");
		skip();
	}
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_row, setup_old, teardown),
		cmocka_unit_test_setup_teardown(same_schema, setup_old, teardown),
		cmocka_unit_test_setup_teardown(older_ones_are_refused, setup_old, teardown),
		cmocka_unit_test_setup_teardown(a_step_that_fails, setup_old, teardown),
		cmocka_unit_test_setup_teardown(killed_while_copying, setup_old, teardown),
		cmocka_unit_test_setup_teardown(killed_while_writing, setup_old, teardown),
		cmocka_unit_test_setup_teardown(killed_behind_the_commit, setup_old, teardown),
		cmocka_unit_test_setup_teardown(two_at_once, setup_old, teardown),
		cmocka_unit_test_setup_teardown(refused_without_room, setup_old, teardown),
	};

	return cmocka_run_group_tests_name("store_migrate", tests, NULL, NULL);
}
