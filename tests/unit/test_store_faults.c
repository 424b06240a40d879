/*
 * test_store_faults.c - what writes a folder or a record ends complete or leaves it untouched: killed at any call that
 * changes a file, with a disk that is full from any such call on, and twice at once. It never says that it did what it
 * did not do, and the next one gets through.
 *
 * Each row of `works` is a command's function (the commands add options and words). It works on folders of its own,
 * which are made anew for each fault. The calls are taken from the first to the one behind the last, in growing steps;
 * with FAULTS=all (`make stress`) each of them.
 */
#include "faults.h"
#include "store_fixture.h"
#include "store_old.h"

#include <fcntl.h>
#include <string.h>

#include "lib/audit/audit_bundle.h"
#include "lib/audit/audit_verify.h"
#include "lib/base/log.h"
#include "lib/store/record/store_drain.h"
#include "lib/store/record/store_token.h"
#include "lib/store/retention/store_erase.h"
#include "lib/store/retention/store_gc.h"
#include "lib/store/transfer/store_backup.h"
#include "lib/store/transfer/store_bundle.h"

#define RUNS        3 /* of the record that is carried */
#define RUNS_BEFORE 2 /* of it when the older backup and the older export were made */
#define ROUNDS      3 /* of two at once */

enum { EXIT_FAILED = 1, EXIT_WRONG = 3 };

/* The folder of the test: `data` is the record, `empty` one without runs, `old` is `data` in an older schema. `save`
 * and `bundle` are a backup and an export of `data`, `save.before` and `bundle.before` of when it had fewer runs;
 * `moving` is an export that moves ann. What the works write is `out`. */
static char base[64];

static char *at(const char *name)
{
	return xasprintf("%s/%s", base, name);
}

static void shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void shell(const char *format, ...)
{
	char words[1024], command[1200];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(words, sizeof(words), format, arguments);
	va_end(arguments);
	snprintf(command, sizeof(command), "cd '%s' && %s", base, words);
	if (system(command) != 0)
		fail_msg("%s", command);
}

static int quiet(void *arg, const char *what, int64_t done, int64_t total)
{
	(void)arg, (void)what, (void)done, (void)total;
	return 0;
}

static void quietly(void *arg, const char *what, int64_t done, int64_t total)
{
	quiet(arg, what, done, total);
}

/* -------- the works ------------------------------------------------------------------------------------ */

static int back_up(const char *to, struct err *err)
{
	auto_free char *data = at("data"), *dir = at(to);
	const struct store_backup backup = {.dir = dir, .key = true, .progress = quietly};
	struct store_backup_made made;
	struct store *store;
	int result = store_open(data, STORE_WRITE, &store, err);

	if (result < 0)
		return result;
	result = store_backup(store, &backup, &made, err);
	store_close(store);
	return result;
}

static int work_backup(struct err *err)
{
	return back_up("out", err);
}

static int restore_to(const char *name, const char *to, struct err *err)
{
	auto_free char *dir = at(name), *data = at(to);
	const struct store_restore restore = {.dir = dir, .data_dir = data, .progress = quietly};
	struct store_backup_made made;

	return store_restore(&restore, &made, err);
}

static int work_restore(struct err *err)
{
	return restore_to("save", "out", err);
}

static int add(void *bundle, const struct store_execution *execution)
{
	struct {
		struct store_bundle *bundle;
		struct store *store;
		struct err *err;
		int result;
	} *to = bundle;

	return to->result = store_bundle_add(to->bundle, to->store, execution->id, to->err);
}

/* `owner`: who moves; NULL: nobody. */
static int export_to(const char *from, const char *name, const char *owner, struct err *err)
{
	auto_free char *data = at(from), *path = at(name);
	struct {
		struct store_bundle *bundle;
		struct store *store;
		struct err *err;
		int result;
	} to = {.err = err};
	struct store_carried carried = {0};
	const struct store_filter filter = {0};
	int result = store_open(data, STORE_WRITE, &to.store, err);

	if (result < 0)
		return result;
	result = store_bundle_new(path, &to.bundle, err);
	if (result == 0)
		result = store_execution_list(to.store, &filter, add, &to, err);
	if (result == 0)
		result = to.result;
	if (result == 0 && owner)
		result = store_bundle_owner_add(to.bundle, to.store, owner, &carried, err);
	if (result == 0)
		result = store_bundle_audit_add(to.bundle, to.store, err);
	if (result == 0)
		result = audit_bundle_prove(to.bundle, data, NULL, err);
	if (result == 0)
		result = store_bundle_finish(to.bundle, to.store, err);
	store_bundle_close(to.bundle);
	store_close(to.store);
	return result;
}

static int work_export(struct err *err)
{
	return export_to("data", "out", NULL, err);
}

static int import_from(const char *name, struct err *err)
{
	auto_free char *data = at("out"), *path = at(name);
	struct store_bundle *bundle = NULL;
	struct store *store = NULL;
	struct store_carried carried = {0};
	int version = 0, result = store_bundle_open(path, &bundle, err);

	if (result == 0) /* the database is made where there is none */
		result = store_open(data,
				    store_schema_version(data, &version, NULL) == 0 && version > 0 ? STORE_WRITE
												    : STORE_SERVE,
				    &store, err);
	if (result == 0)
		result = store_bundle_import(bundle, store, &carried, err);
	store_close(store);
	store_bundle_close(bundle);
	return result;
}

static int work_import(struct err *err)
{
	return import_from("bundle", err);
}

static int work_move_in(struct err *err)
{
	return import_from("moving", err);
}

static int work_upgrade(struct err *err)
{
	auto_free char *data = at("out"), *database = at("out/sallyport.db");
	auto_close int dir = open(data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct store bare = {.path = data, .dir_fd = dir, .uid = geteuid()}, *store;
	struct store_conn *conn;
	int version, result = store_conn_open(database, STORE_CONN_WRITER, &conn, &version, err);

	if (result < 0)
		return result;
	result = store_migrate(&bare, conn, store_old_steps, err); /* as store_open does with those of releases */
	store_conn_close(conn);
	if (result == 0)
		result = store_open(data, STORE_SERVE, &store, err);
	if (result == 0)
		store_close(store);
	return result;
}

static int work_forget(struct err *err)
{
	auto_free char *data = at("out");
	const struct store_erase erase = {
		.what = STORE_ERASE_CONTENT, .owner = "ann", .before_us = INT64_MAX, .why = "request"};
	const struct store_gc gc = {.now_us = clock_now_us() + 2 * STORE_BLOB_GRACE_US, .vacuum = true};
	struct store_erased erased = {0};
	struct store_collected collected;
	struct store *store;
	int result = store_open(data, STORE_WRITE, &store, err);

	if (result < 0)
		return result;
	result = store_forget(store, &erase, &erased, err);
	if (result == 0)
		result = store_gc(store, &gc, &collected, err);
	store_close(store);
	return result;
}

/* -------- what they leave ------------------------------------------------------------------------------ */

/* Does every verdict hold, contents included? */
static bool holds(const char *path, char *ret_why, size_t size)
{
	auto_free char *blobs = xasprintf("%s/blobs", path);
	const struct audit_request request = {
		.path = path, .blobs = access(blobs, F_OK) == 0 ? blobs : NULL, .progress = quiet};
	struct audit_report report;
	struct err err = ERR_INIT;

	snprintf(ret_why, size, "%s", "");
	if (audit_verify(&request, &report, &err) < 0) {
		snprintf(ret_why, size, "%s", err.text);
		return false;
	}
	for (int i = 0; i < AUDIT_PARTS; i++)
		if (report.parts[i].state == AUDIT_BROKEN)
			snprintf(ret_why, size, "%s", report.parts[i].text);
	return ret_why[0] == '\0';
}

static int64_t count(const char *database, const char *sql)
{
	sqlite3 *db;
	sqlite3_stmt *statement = NULL;
	int64_t found = -1;

	if (sqlite3_open_v2(database, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
	    sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
		found = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	sqlite3_close(db);
	return found;
}

/* How many runs a record has; -1: there is none. It must be whole, and a gateway must open it. */
static int64_t runs_of(const char *path)
{
	auto_free char *database = xasprintf("%s/sallyport.db", path);
	struct store *store;
	struct err err = ERR_INIT;
	char why[512];

	if (access(database, F_OK) < 0)
		return -1;
	ok(store_open(path, STORE_SERVE, &store, &err));
	store_close(store);
	if (!holds(path, why, sizeof(why)))
		fail_msg("%s: %s", path, why);
	assert_int_equal(count(database, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
	assert_int_equal(count(database, "SELECT quick_check = 'ok' FROM pragma_quick_check"), 1);
	return count(database, "SELECT count(*) FROM execution");
}

/* A backup can be restored at any time. */
static int64_t left_by_backup(void)
{
	auto_free char *manifest = at("out/manifest.json"), *back = at("back"), *key = at("out/secret.key");
	struct err err = ERR_INIT;
	struct stat st;

	if (access(manifest, F_OK) < 0)
		return -1;
	ok(stat(key, &st));
	assert_int_equal(st.st_size, SHA256_SIZE);
	shell("rm -rf back");
	ok(restore_to("out", "back", &err));
	return runs_of(back);
}

/* Nothing that was not put in its place passes for a record, and a restore can be repeated. */
static int64_t left_by_restore(void)
{
	auto_free char *out = at("out"), *mark = at("out/restoring"), *database = at("out/sallyport.db");
	struct store *store;
	struct err err = ERR_INIT;

	if (access(database, F_OK) == 0 && access(mark, F_OK) < 0)
		return runs_of(out);
	if (access(database, F_OK) < 0 && access(mark, F_OK) == 0)
		fails(store_open(out, STORE_SERVE, &store, &err), ERR_CORRUPT);
	ok(work_restore(&err));
	assert_int_equal(runs_of(out), RUNS);
	return -1;
}

static int64_t left_by_export(void)
{
	auto_free char *out = at("out");
	struct store_bundle *bundle;
	struct err err = ERR_INIT;
	char why[512];

	if (access(out, F_OK) < 0)
		return -1;
	ok(store_bundle_open(out, &bundle, &err));
	store_bundle_close(bundle);
	if (!holds(out, why, sizeof(why)))
		fail_msg("%s", why);
	return count(out, "SELECT count(*) FROM execution");
}

static int64_t left_by_upgrade(void)
{
	auto_free char *out = at("out"), *database = at("out/sallyport.db");
	struct err err = ERR_INIT;

	ok(work_upgrade(&err));
	assert_int_equal(count(database, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
	assert_int_equal(count(database, "SELECT quick_check = 'ok' FROM pragma_quick_check"), 1);
	return count(database, "SELECT count(*) FROM execution");
}

static int64_t left_in_record(void)
{
	auto_free char *out = at("out"), *database = at("out/sallyport.db");

	/* one that was killed before it made its tables is none */
	return access(database, F_OK) == 0 && count(database, "PRAGMA user_version") > 0 ? runs_of(out) : -1;
}

/* Runs that ann still has. */
static int64_t left_by_forget(void)
{
	auto_free char *out = at("out"), *database = at("out/sallyport.db");
	const struct fixture f = {.data = out};

	runs_of(out);
	assert_counted(&f);
	return count(database, "SELECT count(*) FROM execution WHERE owner = 'ann' AND erased IS NULL");
}

/* -------- the table ------------------------------------------------------------------------------------ */

static const struct work {
	const char *name;
	const char *prepare;      /* shell, in `base`: makes `out` what it is before */
	int (*work)(struct err *err);
	int64_t (*left)(void);    /* how many runs there are now, -1: nothing */
	int64_t before, after;    /* of what it returns; -1: there was nothing */
	bool partly;              /* any number between the two is fine */
	enum err_code refused;    /* what the second of two at once may end with */
} works[] = {
	{"backup", "rm -rf out", work_backup, left_by_backup, -1, RUNS, false, ERR_BUSY},
	{"backup into an older one", "rm -rf out && cp -r save.before out", work_backup, left_by_backup, RUNS_BEFORE,
	 RUNS, false, ERR_BUSY},
	{"restore", "rm -rf out", work_restore, left_by_restore, -1, RUNS, false, ERR_BUSY},
	{"export", "rm -rf out*", work_export, left_by_export, -1, RUNS, false, ERR_NONE},
	{"export over an older one", "rm -rf out* && cp bundle.before out", work_export, left_by_export, RUNS_BEFORE,
	 RUNS, false, ERR_NONE},
	{"import", "rm -rf out && cp -r empty out", work_import, left_in_record, 0, RUNS, false, ERR_NONE},
	{"import where there is nothing", "rm -rf out", work_import, left_in_record, -1, RUNS, true, ERR_CONFLICT},
	{"import of an owner", "rm -rf out && cp -r empty out", work_move_in, left_in_record, 0, RUNS, false,
	 ERR_CONFLICT},
	{"upgrade", "rm -rf out && cp -r old out", work_upgrade, left_by_upgrade, RUNS, RUNS, false,
	 ERR_CONFLICT},
	{"forget and gc", "rm -rf out && cp -r data out", work_forget, left_by_forget, RUNS, 0, true, ERR_CONFLICT},
};

/* -------- the record ----------------------------------------------------------------------------------- */

static int log_input(struct store_txn *txn, void *arg, struct err *err)
{
	return store_txn_audit_file(txn, *(int64_t *)arg, "input", strlen("input"), NULL, err);
}

static void run_one(struct fixture *f, int n)
{
	struct store_execution run = sample("ann");
	struct store_execution_file made;
	struct err err = ERR_INIT;
	auto_free char *big = xmalloc(70000), *name = xasprintf("made-%d", n);

	memset(big, 'a' + n, 70000);
	run.conversation_row = put_file(f->store, "ann", "talk", "input", "what it reads").row;
	ok(store_commit(f->store, log_input, &run.conversation_row, &err));
	begin(f->store, &run);
	run.stdout_text = (struct store_text){.length = 70000};
	ok(store_blob_put(f->store, big, 70000, run.stdout_text.blob, &err));
	change(f, &made, name, "created", name);
	finish(f->store, &run, &made, 1);
}

static void make_old(void)
{
	struct fixture f = {.data = at("old")};

	shell("cp -r data old");
	sql(&f, store_old_sql);
	free(f.data);
}

static int make_all(void **state)
{
	struct fixture f = {0};
	struct err err = ERR_INIT;
	struct store_token token;
	char text[STORE_TOKEN_TEXT];

	(void)state;
	log_open("test", LOG_ERROR + 1);
	snprintf(base, sizeof(base), "%s/sallyport-faults-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(base));
	f.data = at("empty");
	ok(store_open(f.data, STORE_SERVE, &f.store, &err));
	store_close(f.store);
	free(f.data);
	f.data = at("data");
	ok(store_open(f.data, STORE_SERVE, &f.store, &err));
	ok(store_token_add(f.store, "ann", "laptop", text, &token, &err));
	for (int n = 0; n < RUNS; n++) {
		if (n == RUNS_BEFORE) {
			ok(back_up("save.before", &err));
			ok(export_to("data", "bundle.before", NULL, &err));
		}
		run_one(&f, n);
	}
	store_close(f.store);
	ok(back_up("save", &err));
	ok(export_to("data", "bundle", NULL, &err));
	ok(export_to("data", "moving", "ann", &err));
	free(f.data);
	make_old();
	return 0;
}

static int remove_all(void **state)
{
	(void)state;
	nftw(base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}

/* -------- faults --------------------------------------------------------------------------------------- */

/* In a child. Its exit code: 0 done, EXIT_FAILED as it must, EXIT_WRONG. */
static int play(const struct work *work, enum fault kind, long n)
{
	struct err err = ERR_INIT;

	fault_kind = kind;
	fault_left = n;
	int result = work->work(&err);

	fault_left = 0;
	if (result == 0)
		return 0;
	if (kind == FAULT_FULL && (result != -ERR_SYSTEM || strstr(err.text, "space") == NULL)) {
		print_error("%s, full at %ld: %d: %s\n", work->name, n, result, err.text);
		return EXIT_WRONG;
	}
	return EXIT_FAILED;
}

static int wait_for(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static pid_t start(const struct work *work, enum fault kind, long n)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(play(work, kind, n));
	return pid;
}

/* Fails the test unless what is there is what it was, or what it was to be. */
static void check(const struct work *work, const char *fault, long n, bool done)
{
	const int64_t left = work->left();
	const bool whole = left == work->after || (!done && left == work->before) ||
			   (!done && work->partly && left >= MIN(work->before, work->after) &&
			    left <= MAX(work->before, work->after));

	if (!whole)
		fail_msg("%s, %s at %ld%s: there are %lld", work->name, fault, n, done ? ", said to be done" : "",
			 (long long)left);
}

static void every_call(enum fault kind, const char *name)
{
	const bool all = getenv("FAULTS") && streq(getenv("FAULTS"), "all");

	for (size_t i = 0; i < ARRAY_SIZE(works); i++) {
		const struct work *work = &works[i];
		struct err err = ERR_INIT;
		int code = EXIT_FAILED, faults = 0;

		for (long n = 1; code != 0; n += all ? 1 : 1 + n / 2, faults++) {
			shell("%s", work->prepare);
			code = wait_for(start(work, kind, n));
			if (code != 0 && code != (kind == FAULT_KILL ? 128 + SIGKILL : EXIT_FAILED))
				fail_msg("%s, %s at %ld: it ended with %d", work->name, name, n, code);
			check(work, name, n, code == 0);
			if (code == 0)
				break;
			/* Where it got through and was killed behind that, it may be refused. */
			const int again = work->work(&err);

			if (again < 0 && again != -ERR_CONFLICT)
				fail_msg("%s, %s at %ld, again: %s", work->name, name, n, err.text);
			check(work, name, n, true);
		}
		print_message("%s: %s %d times\n", work->name, name, faults);
		assert_true(faults > 3);
	}
}

static void killed(void **state)
{
	(void)state;
	every_call(FAULT_KILL, "killed");
}

static void full(void **state)
{
	(void)state;
	every_call(FAULT_FULL, "full");
}

/* Two at once: one gets through, the other too or is refused, and what they leave is whole. */
static void twice(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(works); i++)
		for (int round = 0; round < ROUNDS; round++) {
			const struct work *work = &works[i];

			shell("%s", work->prepare);
			pid_t one = start(work, FAULT_KILL, 0), two = start(work, FAULT_KILL, 0);
			const int first = wait_for(one), second = wait_for(two);

			if ((first != 0 && second != 0) || MAX(first, second) > EXIT_FAILED ||
			    (work->refused == ERR_NONE && first + second != 0))
				fail_msg("%s twice: %d and %d", work->name, first, second);
			check(work, "twice", round, true);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(killed), cmocka_unit_test(full), cmocka_unit_test(twice)};

	return cmocka_run_group_tests(tests, make_all, remove_all);
}
