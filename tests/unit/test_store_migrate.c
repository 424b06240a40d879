/* test_store_migrate.c - databases that older releases wrote: every row is found again, the schema is this release's, a
 * copy is kept; kills, two at once and a small disk leave the old database whole. */
#include "store_fixture.h"

#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "lib/store/db/store_migrate.h"
#include "lib/store/db/store_schema.h"
#include "lib/store/record/store_event.h"
#include "lib/store/record/store_request.h"
#include "lib/store/record/store_session.h"
#include "lib/store/record/store_task.h"
#include "lib/store/record/store_token.h"

/* Of tests/data/rows-1.sql. */
#define ANNS_TOKEN "sp_ann_254dd3dbeea2d2dd6f5a194d88c008df3ce4e4038890ef14"
#define SESSION    "01a203dc-3432-7691-9027-3a57dc3b0528"
#define STREAM     "01900000-0000-7000-8000-0000000000aa"
#define TASK       "01a203dc-343c-7faf-abbf-c426af358838"
#define HASH       "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
static const char *const runs[] = {"01a203dc-3436-78a0-988e-4515f2dea9b9", "01a203dc-3436-78a0-98ec-3e5f18d02e67",
				   "01a203dc-3436-78a0-99ac-1e3a59b106f5", "01a203dc-3436-78a0-9a83-ae23c20c1481"};

static void write_file(const char *folder, const char *name, const void *content, size_t length)
{
	auto_free char *path = xasprintf("%s/%s", folder, name);
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write_all(fd, content, length), 0);
}

static void run_file(sqlite3 *db, const char *path)
{
	auto_free char *sql = NULL;
	struct err err = ERR_INIT;
	size_t length;
	char *wrong = NULL;

	ok(read_file_at(AT_FDCWD, path, 1 << 20, &sql, &length, &err));
	if (sqlite3_exec(db, sql, NULL, NULL, &wrong) != SQLITE_OK)
		fail_msg("%s: %s", path, wrong);
}

/* The data folder as release 1 left it; what is there goes. Not closed, all of it stays in the log. */
static void write_version_1(struct fixture *f, bool closed)
{
	auto_free char *path = xasprintf("%s/sallyport.db", f->data);
	sqlite3 *db;

	nftw(f->data, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	assert_int_equal(mkdir(f->data, 0750), 0);
	write_file(f->data, "secret.key", "0123456789abcdef0123456789abcdef", 32);
	write_file(f->data, "sallyport.db", "", 0);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0", NULL, NULL, NULL),
			 SQLITE_OK);
	run_file(db, "tests/data/schema-1.sql");
	run_file(db, "tests/data/rows-1.sql");
	if (closed)
		sqlite3_close(db);
}

static void version_1(struct fixture *f)
{
	write_version_1(f, true);
}

static int setup_1(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));

	snprintf(f->base, sizeof(f->base), "/tmp/sallyport-test-XXXXXX");
	assert_non_null(mkdtemp(f->base));
	f->data = xasprintf("%s/data", f->base);
	version_1(f);
	*state = f;
	return 0;
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

#define COPY "sallyport.db.version-1.*Z"

/* Old rows that are not the same in the new database, in the columns that the old table had. */
static void same_rows(const struct fixture *f, const char *copy, const char *table, const char *where)
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

	assert_true(sqlite3_column_int(statement, 1) > 0); /* the fixture has rows of every table */
	sqlite3_finalize(statement);
	auto_free char *missing =
		xasprintf("SELECT count(*) FROM (SELECT %s FROM old.%s WHERE %s EXCEPT SELECT %s FROM main.%s)",
			  columns, table, where, columns, table);

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
	/* What changes at any start: the runs of a process that is gone are marked, and its instance has an end. */
	static const struct {
		const char *table, *where;
	} tables[] = {{"instance", "ended_us IS NOT NULL"},
		      {"token", "1"},
		      {"session", "1"},
		      {"event", "1"},
		      {"subscription", "1"},
		      {"conversation", "1"},
		      {"blob", "1"},
		      {"file", "1"},
		      {"sandbox", "1"},
		      {"execution", "state <> 'running'"},
		      {"execution_file", "1"},
		      {"request", "1"},
		      {"task", "1"}};
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	char version[16];

	ok(store_open(f->data, STORE_SERVE, &f->store, &err));
	auto_free char *copy = copy_of(f, COPY);

	assert_non_null(copy);
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		same_rows(f, copy, tables[i].table, tables[i].where);
	assert_sound(f);
	snprintf(version, sizeof(version), "%d", store_schema_newest);
	assert_answer(f, "PRAGMA user_version", version);
	assert_answer(f, "SELECT count(*) FROM execution WHERE state = 'interrupted'", "2");
	/* The order of recording is that of the ends, and goes on behind them. */
	assert_answer(f, "SELECT group_concat(recorded) FROM (SELECT recorded FROM execution ORDER BY id)",
		      "2,3,1,4,5");
	assert_answer(f,
		      "SELECT count(DISTINCT name) FROM pragma_table_info('conversation') WHERE name = 'idle_from_us'",
		      "1");
	/* The copy is a database of the old version, and nobody else may read it. */
	struct stat st;

	assert_int_equal(stat(copy, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	auto_free char *bare = xasprintf("%s/other", f->base);
	auto_free char *moved = xasprintf("%s/sallyport.db", bare);
	struct fixture old = {.data = bare};

	assert_int_equal(mkdir(bare, 0700), 0);
	assert_int_equal(rename(copy, moved), 0);
	assert_answer(&old, "PRAGMA user_version", "1");
	assert_answer(&old, "PRAGMA integrity_check", "ok");
	/* Once is enough. */
	reopen(f, STORE_SERVE);
	assert_null(copy_of(f, COPY));
}

static int count_one(void *count, const struct store_event *event)
{
	(void)event;
	++*(int *)count;
	return 0;
}

static int find_request(struct store_txn *txn, void *arg, struct err *err)
{
	struct store_request request = {"ann", "key-1", HASH, NULL};

	return store_txn_request_find(txn, &request, arg, err);
}

static int count_file(void *count, const struct store_execution_file *file)
{
	(void)file;
	++*(int *)count;
	return 0;
}

/* The program reads what the old release wrote, sealed values included. */
static void read_by_the_program(void **state)
{
	static char big[70000];
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_token token;
	struct store_session session;
	struct store_task task;
	struct store_execution run;
	auto_free char *output = NULL;
	size_t length;
	char sha256[SHA256_HEX_SIZE], execution[ID_SIZE];
	int events = 0, files = 0;

	ok(store_open(f->data, STORE_SERVE, &f->store, &err));
	ok(store_token_check(f->store, ANNS_TOKEN, &token, &err));
	assert_string_equal(token.name, "laptop");
	ok(store_session_find(f->store, SESSION, "ann", &session, &err));
	ok(store_event_list(f->store, &(struct store_event_filter){SESSION, STREAM, 0}, count_one, &events, &err));
	assert_int_equal(events, 2);
	ok(store_task_find(f->store, TASK, "ann", &task, &err));
	assert_int_equal(task.state, STORE_TASK_COMPLETED);
	store_task_clear(&task);
	ok(store_execution_find(f->store, runs[0], &run, &err));
	assert_string_equal(run.env_json, "{\"HOME\":\"/data\"}");
	assert_string_equal(run.conversation, "talk");
	assert_int_equal(run.recorded, 2);
	store_execution_clear(&run);
	ok(store_execution_files(f->store, runs[0], STORE_BEFORE, count_file, &files, &err));
	ok(store_execution_files(f->store, runs[0], STORE_AFTER, count_file, &files, &err));
	assert_int_equal(files, 5);
	memset(big, 'x', sizeof(big));
	ok(store_blob_put(f->store, big, sizeof(big), sha256, &err));
	ok(store_execution_find(f->store, runs[1], &run, &err));
	ok(store_text_read(f->store, &run.stdout_text, &output, &length, &err));
	assert_int_equal(length, sizeof(big));
	store_execution_clear(&run);
	ok(store_execution_find(f->store, runs[2], &run, &err));
	assert_string_equal(run.verdict, "RE");
	assert_int_equal(run.sandbox_seq, 1);
	store_execution_clear(&run);
	ok(store_execution_find(f->store, runs[3], &run, &err));
	assert_int_equal(run.state, STORE_INTERRUPTED);
	store_execution_clear(&run);
	if (store_commit(f->store, find_request, execution, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(execution, runs[0]);
	put_file(f->store, "ann", "talk", "later.txt", "more"); /* and it goes on */
	assert_sound(f);
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
	ok(store_open(f->data, STORE_SERVE, &f->store, &err));
	ok(store_open(fresh.data, STORE_SERVE, &fresh.store, &err));
	for (size_t i = 0; i < ARRAY_SIZE(questions); i++) {
		auto_free char *migrated = ask(f, questions[i]), *made = ask(&fresh, questions[i]);

		assert_string_equal(migrated, made);
	}
	store_close(fresh.store);
	free(fresh.data);
}

static void refused_until_then(void **state)
{
	static const enum store_mode modes[] = {STORE_WRITE, STORE_READ};
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store *store;
	int version = 0;

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		fails(store_open(f->data, modes[i], &store, &err), ERR_UNAVAILABLE);
		assert_non_null(strstr(err.text, "version 1"));
		assert_non_null(strstr(err.text, "start the gateway"));
	}
	ok(store_schema_version(f->data, &version, &err));
	assert_int_equal(version, 1);
	assert_null(copy_of(f, "sallyport.db.*"));
	ok(store_open(f->data, STORE_SERVE, &f->store, &err));
	ok(store_schema_version(f->data, &version, &err));
	assert_int_equal(version, store_schema_newest);
	reopen(f, STORE_READ);
}

/* -------- kills --------------------------------------------------------------------------------------- */

static rlim_t file_size_max;

/* The write that would make a file larger than this ends the process (SIGXFSZ), wherever it is. */
static int open_until_killed(struct fixture *f)
{
	struct err err = ERR_INIT;
	const struct rlimit limit = {file_size_max, file_size_max}, no_core = {0, 0};

	if (setrlimit(RLIMIT_CORE, &no_core) < 0 || setrlimit(RLIMIT_FSIZE, &limit) < 0)
		return 2;
	return store_open(f->data, STORE_SERVE, &f->store, &err) == 0 ? 0 : 1;
}

/* One kill. Afterwards the database is whole, and opens. Returns the version that it left; 0: nothing was killed. */
static int kill_at(struct fixture *f, rlim_t size)
{
	struct err err = ERR_INIT;
	int status;

	file_size_max = size;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(open_until_killed(f));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status == 0)
		return 0;
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
	assert_answer(f, "PRAGMA integrity_check", "ok");
	assert_answer(f, "SELECT count(*) FROM execution", "5");
	auto_free char *version = ask(f, "PRAGMA user_version");

	ok(store_open(f->data, STORE_SERVE, &f->store, &err));
	assert_answer(f, "SELECT count(*) FROM execution WHERE state IN ('finished', 'interrupted')", "5");
	assert_null(copy_of(f, "sallyport.db.copy-part*"));
	store_close(f->store);
	f->store = NULL;
	return version[0] - '0';
}

static void killed_while_copying(void **state)
{
	struct fixture *f = *state;
	int kills = 0;

	for (; kill_at(f, 4096 + (rlim_t)kills * 16384) == 1; kills++)
		version_1(f);
	assert_true(kills > 5);
}

static int leave_log(struct fixture *f)
{
	write_version_1(f, false);
	return 0;
}

/* The log is longer than the database at the start, so the first write that is too far is one of the transaction. */
static void killed_while_writing(void **state)
{
	struct fixture *f = *state;
	auto_free char *log = xasprintf("%s/sallyport.db-wal", f->data);
	struct stat st;
	int kills = 0, version = 1;

	for (; version == 1; kills++) {
		assert_int_equal(in_child(f, leave_log), 0);
		assert_int_equal(stat(log, &st), 0);
		version = kill_at(f, (rlim_t)st.st_size + (rlim_t)kills * 6000);
	}
	assert_true(kills > 4);
	assert_int_not_equal(version, 1); /* behind the commit it is the new one */
}

/* -------- two at once --------------------------------------------------------------------------------- */

static int migrate_here(struct fixture *f)
{
	auto_free char *path = xasprintf("%s/sallyport.db", f->data);
	struct store store = {.path = f->data, .uid = geteuid()};
	struct err err = ERR_INIT;
	struct store_conn *conn;
	int version;

	store.dir_fd = open(f->data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store.dir_fd < 0 || store_conn_open(path, STORE_CONN_WRITER, &conn, &version, &err) < 0)
		return 2;
	int result = store_migrate(&store, conn, store_schema_steps, &err);

	store_conn_close(conn);
	return result == 0 ? 0 : 1;
}

static void two_at_once(void **state)
{
	struct fixture *f = *state;
	pid_t pids[4];
	int status;

	for (int round = 0; round < 5; round++) {
		version_1(f);
		for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
			pids[i] = fork();
			assert_true(pids[i] >= 0);
			if (pids[i] == 0)
				_exit(migrate_here(f));
		}
		for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
			assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
			assert_int_equal(status, 0); /* one does it, the others wait and find it done */
		}
		auto_free char *copy = copy_of(f, COPY); /* exactly one */

		assert_non_null(copy);
		assert_answer(f, "SELECT max(recorded) FROM execution", "3");
	}
}

/* -------- a small disk -------------------------------------------------------------------------------- */

static int no_room(struct fixture *f)
{
	struct err err = ERR_INIT;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", f->base, "tmpfs", 0, "size=2m") < 0)
		return 77;
	version_1(f);
	if (store_open(f->data, STORE_SERVE, &f->store, &err) != -ERR_SYSTEM || strstr(err.text, "make room") == NULL) {
		print_error("%s\n", err.text);
		return 1;
	}
	assert_answer(f, "PRAGMA user_version", "1");
	assert_null(copy_of(f, "sallyport.db.*"));
	if (mount("tmpfs", f->base, "tmpfs", MS_REMOUNT, "size=32m") < 0)
		return 2;
	if (store_open(f->data, STORE_SERVE, &f->store, &err) != 0)
		return 3;
	store_close(f->store);
	return 0;
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
		cmocka_unit_test_setup_teardown(every_row, setup_1, teardown),
		cmocka_unit_test_setup_teardown(read_by_the_program, setup_1, teardown),
		cmocka_unit_test_setup_teardown(same_schema, setup_1, teardown),
		cmocka_unit_test_setup_teardown(refused_until_then, setup_1, teardown),
		cmocka_unit_test_setup_teardown(killed_while_copying, setup_1, teardown),
		cmocka_unit_test_setup_teardown(killed_while_writing, setup_1, teardown),
		cmocka_unit_test_setup_teardown(two_at_once, setup_1, teardown),
		cmocka_unit_test_setup_teardown(refused_without_room, setup_1, teardown),
	};

	return cmocka_run_group_tests_name("store_migrate", tests, NULL, NULL);
}
