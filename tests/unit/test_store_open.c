/* test_store_open.c - opening: modes, folders and their modes, the key, files that are not ours, folders that cannot be
 * written. */
#include "store_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>

#include "lib/store/db/store_schema.h"
#include "lib/store/db/store_txn.h"
#include "lib/store/retention/store_expire.h"

#define NOBODY 65534

static mode_t mode_of(const struct fixture *f, const char *name)
{
	auto_free char *path = xasprintf("%s/%s", f->data, name);
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode & 07777;
}

static void write_file(const struct fixture *f, const char *name, const char *content, size_t length)
{
	auto_free char *path = xasprintf("%s/%s", f->data, name);
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write_all(fd, content, length), 0);
}

static void close_it(struct fixture *f)
{
	store_close(f->store);
	f->store = NULL;
}

static void folders_and_modes(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(mode_of(f, "."), 0750);
	assert_int_equal(mode_of(f, "blobs"), 0750);
	assert_int_equal(mode_of(f, "running"), 0700);
	assert_int_equal(mode_of(f, "instances"), 0700);
	assert_int_equal(mode_of(f, "secret.key"), 0600);
	assert_int_equal(mode_of(f, "sallyport.db"), 0600);
	assert_answer(f, "PRAGMA journal_mode", "wal");
	assert_answer(f, "SELECT count(*) || kind FROM instance", "1gateway");
	/* All of it whatever the umask is, and a group's setgid bit is passed on to the folders that nginx reads. */
	close_it(f);
	auto_free char *blobs = xasprintf("%s/blobs", f->data);

	assert_int_equal(rmdir(blobs), 0);
	assert_int_equal(chmod(f->data, 02750), 0);
	mode_t before = umask(077);
	struct err err = ERR_INIT;
	char sha256[SHA256_HEX_SIZE], path[SHA256_HEX_SIZE + 1];

	ok(store_open(f->data, STORE_SERVE, &f->store, &err));
	ok(store_blob_put(f->store, "x", 1, sha256, &err));
	umask(before);
	store_blob_path(sha256, path);
	auto_free char *blob = xasprintf("blobs/%s", path);

	assert_int_equal(mode_of(f, "blobs"), 02750);
	assert_int_equal(mode_of(f, blob), 0640);
	blob[strlen("blobs/ab")] = '\0';
	assert_int_equal(mode_of(f, blob), 02750);
}

static void schema_agrees_with_the_program(void **state)
{
	struct fixture *f = *state;
	char application[16], version[16];

	snprintf(application, sizeof(application), "%d", STORE_APPLICATION_ID);
	snprintf(version, sizeof(version), "%d", store_schema_newest);
	assert_answer(f, "PRAGMA application_id", application);
	assert_answer(f, "PRAGMA user_version", version);
	assert_answer(f, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE '%STRICT%' AND "
			 "name NOT LIKE 'search%'", /* FTS5's */
		      "0");
	/* The views work. */
	put_file(f->store, "ann", "talk", "a.txt", "x");
	struct store_execution run = sample("ann");

	begin(f->store, &run);
	finish(f->store, &run, NULL, 0);
	assert_answer(f, "SELECT language || verdict || code_begins FROM recent", "pythonOKprint(1)\n");
	assert_answer(f, "SELECT owner || conversation || name || mode || length(stored) FROM files",
		      "anntalka.txt064471");
	assert_answer(f, "SELECT owner || conversations || files || runs || (bytes > 2048) FROM owners", "ann1111");
}

/* Every statement finds its rows by an index, but for these, which want all of a small table or run once in an hour. */
static void plans(void **state)
{
	static const char *const scans[] = {"SCAN instance",          "SCAN session",       "SCAN blob",
					    "SCAN token", "SCAN conversation",  "SCAN f" /* of verify */,
					    "SCAN pragma_",           "SCAN sqlite_master", "SCAN CONSTANT ROW",
					    "SCAN task" /* a figure of /metrics */, "SCAN 4 CONSTANT ROWS",
					    "SCAN (subquery-" /* a thousand rows */, "SCAN search", "SCAN drain",
					    "SCAN one USING INDEX" /* snippets, some hundred */,
					    "SCAN execution_tag" /* the list of tags */,
					    "SCAN oauth_client" /* the list: some hundred */, "SCAN c USING",
					    "SCAN audit" /* of erasures, for a restore */};
	struct fixture *f = *state;
	struct store_conn *conn = f->store->writer;
	int checked = 0, listed = 0;

	/* Two write tables of FTS5. */
	assert_int_equal(sqlite3_db_config(conn->db, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL), SQLITE_OK);
	for (size_t i = 0; i < ARRAY_SIZE(conn->statements); i++) {
		const char *sql = sqlite3_sql(conn->statements[i]);
		auto_free char *explain = xasprintf("EXPLAIN QUERY PLAN %s", sql);
		sqlite3_stmt *statement;

		assert_int_equal(sqlite3_prepare_v2(conn->db, explain, -1, &statement, NULL), SQLITE_OK);
		while (sqlite3_step(statement) == SQLITE_ROW) {
			const char *step = (const char *)sqlite3_column_text(statement, 3);
			bool wanted = !str_starts(step, "SCAN") && strstr(step, "TEMP B-TREE") == NULL;

			/* Once in the life of a database, when its log begins. */
			wanted = wanted || str_starts(sql, "SELECT (SELECT count(*) FROM execution)");
			/* `verify` looks at every row of these. */
			wanted = wanted || str_starts(sql, "SELECT id, owner, name, hash, created_us FROM conv") ||
				 str_starts(sql, "SELECT c.hash, c.owner, f.size, f.conversation, f.name, f.blob") ||
				 (strstr(sql, " FROM execution ORDER BY id") && str_starts(step, "SCAN execution")) ||
				 (strstr(sql, " GROUP BY execution ") && str_starts(step, "SCAN execution_file")) ||
				 str_starts(step, "SCAN call");
			/* Sorts what runs now, what the index of texts found, the verdicts of a day. */
			wanted = wanted || strstr(sql, "instr(id, :part)") != NULL || /* what a person typed */
				 strstr(sql, "ORDER BY coalesce(used_us, created_us)") || /* an owner's grants */
				 strstr(sql, "ORDER BY run_wall_us") || strstr(sql, "ORDER BY code_bytes +") ||
				 strstr(sql, "GROUP BY coalesce(code_blob, code)") || /* of a time, for a person */
				 str_starts(sql, "SELECT DISTINCT language FROM (SELECT") ||
				 str_starts(sql, "SELECT owner FROM usage") || /* all owners */
				 str_starts(sql, "SELECT coalesce(sum(code_bytes)") || /* all bytes, by kind */
				 str_starts(sql, "SELECT execution.id AS run, 0") ||
				 strstr(sql, "search MATCH") != NULL ||
				 str_starts(sql, "SELECT verdict, count(*)") ||
				 str_starts(sql, "SELECT name, (SELECT count(*) FROM token") || /* all owners */
				 str_starts(sql, "SELECT o.owner, coalesce(o.bytes"); /* all owners */
			for (size_t j = 0; j < ARRAY_SIZE(scans); j++)
				wanted = wanted || str_starts(step, scans[j]);
			if (!wanted)
				fail_msg("%s: %s", step, sql);
			listed += strstr(step, "execution_with_output") != NULL;
			checked++;
		}
		sqlite3_finalize(statement);
	}
	assert_true(checked > 30);
	assert_int_equal(listed, 1); /* a listing of outputs passes silent runs over, however many there are */
}

static void one_gateway(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store *second;

	fails(store_open(f->data, STORE_SERVE, &second, &err), ERR_CONFLICT);
	auto_free char *wanted = xasprintf("process %d", (int)getpid());

	assert_non_null(strstr(err.text, wanted));
	assert_answer(f, "SELECT count(*) FROM instance", "1"); /* the refused one left nothing */
	reopen(f, STORE_SERVE);
	assert_answer(f, "SELECT count(*) FROM instance", "1");
}

static void nothing_there(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store *store;
	auto_free char *missing = xasprintf("%s/missing", f->base);
	auto_free char *deeper = xasprintf("%s/missing/deeper", f->base);

	fails(store_open(missing, STORE_WRITE, &store, &err), ERR_NOT_FOUND);
	fails(store_open(missing, STORE_READ, &store, &err), ERR_NOT_FOUND);
	assert_int_equal(access(missing, F_OK), -1); /* and nothing was made */
	fails(store_open(deeper, STORE_SERVE, &store, &err), ERR_SYSTEM);
	assert_non_null(strstr(err.text, deeper));
	assert_int_equal(mkdir(missing, 0700), 0);
	fails(store_open(missing, STORE_WRITE, &store, &err), ERR_NOT_FOUND);
	fails(store_open(missing, STORE_READ, &store, &err), ERR_NOT_FOUND);
	ok(store_open(missing, STORE_SERVE, &store, &err)); /* an empty folder is fine */
	store_close(store);
	ok(store_open(missing, STORE_READ, &store, NULL));
	store_close(store);
	store_close(NULL);
}

static void key_survives(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	char before[SHA256_HEX_SIZE], after[SHA256_HEX_SIZE];
	auto_free char *key = xasprintf("%s/secret.key", f->data);
	struct store *store;

	store_conversation_hash(f->store, "ann", "talk", before);
	reopen(f, STORE_READ);
	store_conversation_hash(f->store, "ann", "talk", after);
	assert_string_equal(before, after);
	close_it(f);
	write_file(f, "secret.key", "short", 5);
	fails(store_open(f->data, STORE_SERVE, &store, &err), ERR_CORRUPT);
	assert_int_equal(unlink(key), 0);
	fails(store_open(f->data, STORE_SERVE, &store, &err),
	      ERR_CORRUPT); /* a new one would lose addresses and environments */
	assert_non_null(strstr(err.text, "secret.key"));
	assert_int_equal(access(key, F_OK), -1);
}

/* Each of these files is refused by every mode, and left as it is. */
static void refused_in_all_modes(struct fixture *f, enum err_code code, const char *word)
{
	static const enum store_mode modes[] = {STORE_SERVE, STORE_WRITE, STORE_READ};
	auto_free char *path = xasprintf("%s/sallyport.db", f->data);
	auto_free char *before = NULL, *after = NULL;
	size_t length, length_after;
	struct err err = ERR_INIT;
	struct store *store;

	ok(read_file_at(AT_FDCWD, path, 1 << 24, &before, &length, &err));
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		fails(store_open(f->data, modes[i], &store, &err), code);
		if (strstr(err.text, word) == NULL)
			fail_msg("'%s' does not say '%s'", err.text, word);
		assert_non_null(strstr(err.text, path));
	}
	ok(read_file_at(AT_FDCWD, path, 1 << 24, &after, &length_after, &err));
	assert_int_equal(length, length_after);
	assert_memory_equal(before, after, length);
}

static void foreign_files(void **state)
{
	static char text[8192] = "This is a letter and no database.";
	struct fixture *f = *state;
	auto_free char *path = xasprintf("%s/sallyport.db", f->data);

	close_it(f);
	auto_free char *newer = xasprintf("PRAGMA user_version = %d", store_schema_newest + 1);

	assert_null(ask(f, newer));
	refused_in_all_modes(f, ERR_UNAVAILABLE, "install the newer release");
	assert_null(ask(f, "PRAGMA user_version = 0"));
	refused_in_all_modes(f, ERR_CORRUPT, "no valid version");
	assert_null(ask(f, "PRAGMA application_id = 7"));
	refused_in_all_modes(f, ERR_INVALID, "another program");
	assert_int_equal(unlink(path), 0);
	assert_null(ask(f, "CREATE TABLE theirs (x)"));
	refused_in_all_modes(f, ERR_INVALID, "another program");
	write_file(f, "sallyport.db", text, sizeof(text));
	refused_in_all_modes(f, ERR_INVALID, "not a database of Sallyport");
}

static void empty_file(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store *store;

	close_it(f);
	write_file(f, "sallyport.db", "", 0);
	fails(store_open(f->data, STORE_WRITE, &store, &err), ERR_NOT_FOUND);
	ok(store_open(f->data, STORE_SERVE, &f->store, &err)); /* a gateway that was killed while it made the file */
	assert_sound(f);
}

/* With contents in blobs/ an empty or missing database is a loss: nothing may be removed because of it. */
static void empty_beside_contents(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store *store;
	auto_free char *path = xasprintf("%s/sallyport.db", f->data);
	char sha256[SHA256_HEX_SIZE], relative[SHA256_HEX_SIZE + 1];

	put_file(f->store, "ann", "talk", "a.txt", "hello");
	sha256_hex("hello", 5, sha256);
	store_blob_path(sha256, relative);
	auto_free char *blob = xasprintf("%s/blobs/%s", f->data, relative);

	close_it(f);
	for (int missing = 0; missing <= 1; missing++) {
		write_file(f, "sallyport.db", "", 0);
		if (missing)
			assert_int_equal(unlink(path), 0);
		fails(store_open(f->data, STORE_SERVE, &store, &err), ERR_CORRUPT);
		assert_non_null(strstr(err.text, "restore it from a backup"));
		assert_int_equal(access(blob, F_OK), 0);
	}
	/* The way that the text names. */
	auto_free char *blobs = xasprintf("%s/blobs", f->data), *away = xasprintf("%s/away", f->data);

	assert_int_equal(rename(blobs, away), 0);
	ok(store_open(f->data, STORE_SERVE, &f->store, &err));
}

static int look_at_synchronous(struct store_txn *txn, void *arg, struct err *err)
{
	sqlite3_stmt *statement;

	(void)err;
	if (sqlite3_prepare_v2(txn->conn->db, "PRAGMA synchronous", -1, &statement, NULL) == SQLITE_OK &&
	    sqlite3_step(statement) == SQLITE_ROW)
		*(int *)arg = sqlite3_column_int(statement, 0);
	sqlite3_finalize(statement);
	return 0;
}

/* FULL (2), in the transaction that the first commit after any kind of opening is. */
static void commits_are_synced(void **state)
{
	static const enum store_mode modes[] = {STORE_SERVE, STORE_WRITE};
	struct fixture *f = *state;
	struct err err = ERR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		int synchronous = -1;

		reopen(f, modes[i]);
		ok(store_commit(f->store, look_at_synchronous, &synchronous, &err));
		assert_int_equal(synchronous, 2);
	}
}

static void damaged_file(void **state)
{
	static char noise[4096];
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store *store;
	auto_free char *path = xasprintf("%s/sallyport.db", f->data);

	close_it(f);
	memset(noise, 0xa5, sizeof(noise));
	auto_close int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_int_equal(pwrite(fd, noise, sizeof(noise) - 200, 200), sizeof(noise) - 200); /* the header stays */
	fails(store_open(f->data, STORE_SERVE, &store, &err), ERR_CORRUPT);
	assert_non_null(strstr(err.text, "backup"));
}

/* -------- accounts ------------------------------------------------------------------------------------ */

static int as_nobody(struct fixture *f)
{
	struct err err = ERR_INIT;
	struct store *store;

	if (setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0)
		return 77;
	for (enum store_mode mode = STORE_SERVE; mode <= STORE_READ; mode++)
		if (store_open(f->data, mode, &store, &err) != -ERR_SYSTEM ||
		    strstr(err.text, "run this as the account") == NULL || strstr(err.text, f->data) == NULL) {
			print_error("mode %d: %s\n", (int)mode, err.text);
			return 1 + (int)mode;
		}
	return 0;
}

static void altered_schema(void **state)
{
	struct fixture *f = *state;

	close_it(f);
	auto_free char *path = xasprintf("%s/sallyport.db", f->data);
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "ALTER TABLE snippet RENAME COLUMN code TO text", NULL, NULL, NULL),
			 SQLITE_OK);
	sqlite3_close(db);
	refused_in_all_modes(f, ERR_CORRUPT, "schema is not as Sallyport made it (no such column: code): restore it");
}

static void skip_without_root(void)
{
	if (geteuid() == 0)
		return;
	print_message("skipped: changing accounts needs root\n");
	skip();
}

static void folder_of_another_account(void **state)
{
	struct fixture *f = *state;

	skip_without_root();
	assert_int_equal(chmod(f->base, 0755), 0);
	assert_int_equal(chmod(f->data, 0755), 0);
	assert_int_equal(in_child(f, as_nobody), 0);
}

#define OTHER_GROUP 65500

static int put_as_nobody(struct fixture *f)
{
	struct err err = ERR_INIT;
	struct store *store = NULL;
	char sha256[SHA256_HEX_SIZE];

	if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0)
		return 77;
	umask(027);
	if (store_open(f->data, STORE_SERVE, &store, &err) < 0 || store_blob_put(store, "x", 1, sha256, &err) < 0)
		return print_error("%s\n", err.text), 1;
	store_close(store);
	return 0;
}

static int for_the_group(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)walk;
	if (strstr(path, "/blobs") == NULL || (st->st_gid == OTHER_GROUP && (type != FTW_D || st->st_mode & S_ISGID)))
		return 0;
	print_error("%s: group %u, mode %o\n", path, st->st_gid, st->st_mode);
	return 1;
}

/* As docs/operator.md installs it: data_dir has nginx's group by its setgid bit, and the gateway is no member. */
static void group_of_the_web_server(void **state)
{
	struct fixture *f = *state;

	skip_without_root();
	close_it(f);
	nftw(f->data, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	assert_int_equal(chmod(f->base, 0755), 0);
	assert_int_equal(mkdir(f->data, 0750), 0);
	assert_int_equal(chown(f->data, NOBODY, OTHER_GROUP), 0);
	assert_int_equal(chmod(f->data, 02750), 0);
	assert_int_equal(in_child(f, put_as_nobody), 0);
	assert_int_equal(nftw(f->data, for_the_group, 16, FTW_PHYS), 0);
}

static int not_nobodys(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)type, (void)walk;
	if (st->st_uid == NOBODY && st->st_gid == NOBODY)
		return 0;
	print_error("%s belongs to %u:%u\n", path, st->st_uid, st->st_gid);
	return 1;
}

/* What root does to a gateway's data leaves nothing behind that the gateway could not read or write. */
static void root_gives_what_it_makes(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_execution run = sample("ann");
	int fd;

	skip_without_root();
	close_it(f);
	nftw(f->data, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	assert_int_equal(mkdir(f->data, 0750), 0);
	assert_int_equal(chown(f->data, NOBODY, NOBODY), 0);
	ok(store_open(f->data, STORE_SERVE, &f->store, &err));
	put_file(f->store, "ann", "talk", "a", "x");
	begin(f->store, &run);
	ok(store_running_open(f->store, run.id, "out", &fd, &err));
	close(fd);
	ok(store_expire(f->store, clock_now_us(), NULL, NULL, &err));
	assert_int_equal(nftw(f->data, not_nobodys, 16, FTW_PHYS), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(folders_and_modes, setup, teardown),
		cmocka_unit_test_setup_teardown(schema_agrees_with_the_program, setup, teardown),
		cmocka_unit_test_setup_teardown(plans, setup, teardown),
		cmocka_unit_test_setup_teardown(one_gateway, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_there, setup, teardown),
		cmocka_unit_test_setup_teardown(key_survives, setup, teardown),
		cmocka_unit_test_setup_teardown(foreign_files, setup, teardown),
		cmocka_unit_test_setup_teardown(empty_file, setup, teardown),
		cmocka_unit_test_setup_teardown(empty_beside_contents, setup, teardown),
		cmocka_unit_test_setup_teardown(commits_are_synced, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged_file, setup, teardown),
		cmocka_unit_test_setup_teardown(altered_schema, setup, teardown),
		cmocka_unit_test_setup_teardown(folder_of_another_account, setup, teardown),
		cmocka_unit_test_setup_teardown(group_of_the_web_server, setup, teardown),
		cmocka_unit_test_setup_teardown(root_gives_what_it_makes, setup, teardown),
	};

	return cmocka_run_group_tests_name("store_open", tests, NULL, NULL);
}
