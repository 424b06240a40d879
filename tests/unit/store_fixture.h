/*
 * store_fixture.h - what the tests of the store share: a data folder of their own that is removed afterwards, and short
 * ways to write and read through the store. Every helper fails the test where the store fails.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "lib/store/blob/store_blob.h"
#include "lib/store/blob/store_pack.h"
#include "lib/store/record/store_execution.h"
#include "lib/store/record/store_space.h"

#define UNUSED            __attribute__((unused))
#define ok(call)          ok_at((call), &err, #call, __FILE__, __LINE__)
#define fails(call, code) fails_at((call), (code), &err, #call, __FILE__, __LINE__)

struct fixture {
	char base[64]; /* mkdtemp */
	char *data;    /* base/data, where the store opens */
	struct store *store;
};

UNUSED static void ok_at(int result, struct err *err, const char *call, const char *file, int line)
{
	if (result != 0) {
		print_error("%s: %d: %s\n", call, result, err->text);
		_fail(file, line);
	}
}

UNUSED static void fails_at(int result, enum err_code code, struct err *err, const char *call, const char *file,
			    int line)
{
	if (result != -(int)code || err->code != code || err->text[0] == '\0') {
		print_error("%s: result %d, wanted %d; text '%s'\n", call, result, -(int)code, err->text);
		_fail(file, line);
	}
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st, (void)walk;
	return type == FTW_DP ? rmdir(path) : unlink(path);
}

UNUSED static void retain(struct store *store, int64_t owner_bytes, int64_t conversation_ttl_us)
{
	store_set_retention(store, &(struct store_retention){.owner_bytes = owner_bytes,
							     .conversation_ttl_us = conversation_ttl_us});
}

/* A store that serves, in a folder of its own. */
UNUSED static int setup(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));
	struct err err = ERR_INIT;

	snprintf(f->base, sizeof(f->base), "/tmp/sallyport-test-XXXXXX");
	assert_non_null(mkdtemp(f->base));
	f->data = xasprintf("%s/data", f->base);
	ok(store_open(f->data, STORE_SERVE, &f->store, &err));
	*state = f;
	return 0;
}

UNUSED static int teardown(void **state)
{
	struct fixture *f = *state;

	store_close(f->store);
	nftw(f->base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(f->data);
	free(f);
	return 0;
}

UNUSED static void reopen(struct fixture *f, enum store_mode mode)
{
	struct err err = ERR_INIT;

	store_close(f->store);
	f->store = NULL;
	ok(store_open(f->data, mode, &f->store, &err));
}

/* First column of the first row, by a connection of the test's own; the caller frees. */
UNUSED static char *ask(const struct fixture *f, const char *sql)
{
	auto_free char *path = xasprintf("%s/sallyport.db", f->data);
	sqlite3 *db;
	sqlite3_stmt *statement;
	char *answer = NULL;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_busy_timeout(db, 10000);
	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	int result = sqlite3_step(statement);

	if (result == SQLITE_ROW)
		answer = xstrdup(sqlite3_column_type(statement, 0) == SQLITE_NULL
					 ? "NULL"
					 : (const char *)sqlite3_column_text(statement, 0));
	else if (result != SQLITE_DONE)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	sqlite3_finalize(statement);
	sqlite3_close(db);
	return answer;
}

#define assert_answer(f, sql, wanted)                                                                                  \
	do {                                                                                                           \
		auto_free char *answer_ = ask(f, sql);                                                                 \
		assert_non_null(answer_);                                                                              \
		assert_string_equal(answer_, wanted);                                                                  \
	} while (0)

/* Nothing is damaged, no reference dangles, and the sums that triggers keep are true. */
/* What an owner is charged is what the rows say, and every content that a row names is held. */
static void assert_counted(const struct fixture *f)
{
	assert_answer(
		f,
		"SELECT count(*) FROM (SELECT owner, sum(bytes) AS bytes FROM (SELECT owner, size AS bytes FROM "
		"holding UNION ALL SELECT owner, bytes FROM execution UNION ALL SELECT owner, 1024 FROM conversation "
		"UNION ALL SELECT owner, 256 + length(CAST(arguments AS BLOB)) + length(CAST(tool_call.result AS "
		"BLOB)) "
		"FROM tool_call JOIN execution ON execution.id = tool_call.execution "
		"UNION ALL SELECT owner, 512 + length(CAST(description || schema || servers || code AS BLOB)) FROM "
		"snippet WHERE owner <> '' UNION ALL SELECT owner, 128 FROM file JOIN conversation ON conversation.id "
		"= conversation) GROUP BY owner) AS is_ FULL JOIN usage USING (owner) WHERE coalesce(is_.bytes, 0) <> "
		"coalesce(usage.bytes, 0)",
		"0");
	assert_null(ask(
		f,
		"SELECT owner || ' ' || blob FROM (SELECT owner, file.blob AS blob FROM file JOIN conversation "
		"ON conversation.id = conversation UNION SELECT owner, execution_file.blob FROM execution_file "
		"JOIN execution ON id = execution UNION SELECT owner, code_blob FROM execution UNION SELECT owner, "
		"stdin_blob FROM execution UNION SELECT owner, stdout_blob FROM execution UNION SELECT owner, "
		"stderr_blob FROM execution UNION SELECT owner, arguments_blob FROM tool_call JOIN execution ON id = "
		"execution UNION SELECT owner, result_blob FROM tool_call JOIN execution ON id = execution) WHERE blob "
		"IS NOT NULL EXCEPT SELECT owner || ' ' || blob FROM holding"));
	assert_answer(
		f,
		"SELECT count(*) FROM execution WHERE bytes <> 1024 + iif(code IS NULL, 0, code_bytes) + "
		"iif(stdin IS NULL, 0, stdin_bytes) + iif(stdout IS NULL, 0, stdout_bytes) + "
		"iif(stderr IS NULL, 0, stderr_bytes) + length(CAST(args AS BLOB)) + "
		"coalesce(length(env), 0) + coalesce(length(CAST(result AS BLOB)), 0) + (SELECT coalesce(sum(128 + "
		"length(CAST(name AS BLOB))), 0) FROM execution_file WHERE execution = id)",
		"0");
}

UNUSED static void assert_sound(const struct fixture *f)
{
	assert_answer(f, "PRAGMA integrity_check", "ok");
	assert_null(ask(f, "PRAGMA foreign_key_check"));
	assert_answer(f,
		      "SELECT count(*) FROM conversation AS c WHERE bytes <> (SELECT coalesce(sum(size), 0) FROM file "
		      "WHERE conversation = c.id)",
		      "0");
	assert_counted(f);
}

/* One file with its content into a conversation, which is made. */
struct put_file {
	const char *owner, *conversation, *name;
	size_t name_length; /* 0: strlen */
	const char *content;
	struct store_file file;
	struct store_conversation made;
};

UNUSED static int put_file_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct put_file *put = arg;
	int failed = store_txn_conversation(txn, put->owner, put->conversation, &put->made, err);

	return failed != 0 ? failed : store_txn_file_put(txn, put->made.row, &put->file, err);
}

UNUSED static int try_put_file(struct store *store, struct put_file *put, struct err *err)
{
	put->file = (struct store_file){
		.name = put->name, .mode = 0644, .mtime_us = 1000000, .size = (int64_t)strlen(put->content)};
	put->file.name_length = put->name_length != 0 ? put->name_length : strlen(put->name);
	int failed = store_blob_put(store, put->content, strlen(put->content), put->file.blob, err);

	return failed != 0 ? failed : store_commit(store, put_file_work, put, err);
}

UNUSED static struct store_conversation put_file(struct store *store, const char *owner, const char *conversation,
						 const char *name, const char *content)
{
	struct err err = ERR_INIT;
	struct put_file put = {.owner = owner, .conversation = conversation, .name = name, .content = content};

	ok(try_put_file(store, &put, &err));
	return put.made;
}

/* A run of `print(1)` with everything set; pointers into constants, so it is not to be cleared. */
static char default_code[] = "print(1)\n", default_args[] = "[\"a\"]", default_env[] = "{\"HOME\":\"/data\"}",
	    default_limits[] = "{\"wall_us\":1}", default_result[] = "{\"limit\":\"\"}", default_out[] = "1\n";

UNUSED static struct store_execution sample(const char *owner)
{
	struct store_execution e = {.language = "python",
				    .fingerprint = "Python 3.11.2",
				    .code = {default_code, sizeof(default_code) - 1, ""},
				    .args_json = default_args,
				    .env_json = default_env,
				    .limits_json = default_limits,
				    .verdict = "OK",
				    .message = "exit status 0",
				    .stdout_text = {default_out, sizeof(default_out) - 1, ""},
				    .run = {1000, 200, 300, 4096},
				    .compile = {5, 6, 7, 8},
				    .setup_us = 9,
				    .warm = true,
				    .result_json = default_result};

	id_new(e.id);
	snprintf(e.owner, sizeof(e.owner), "%s", owner);
	return e;
}

struct run {
	struct store_execution *execution;
	struct store_execution_file *changes;
	size_t n_changes;
};

UNUSED static int begin_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct run *run = arg;

	return store_txn_execution_begin(txn, run->execution, err);
}

UNUSED static int finish_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct run *run = arg;

	return store_txn_execution_finish(txn, run->execution, run->changes, run->n_changes, err);
}

UNUSED static void begin(struct store *store, struct store_execution *execution)
{
	struct err err = ERR_INIT;

	ok(store_commit(store, begin_work, &(struct run){execution, NULL, 0}, &err));
}

UNUSED static void finish(struct store *store, struct store_execution *execution, struct store_execution_file *changes,
			  size_t n)
{
	struct err err = ERR_INIT;

	ok(store_commit(store, finish_work, &(struct run){execution, changes, n}, &err));
}

/* By SQLite alone, as somebody else would. */
UNUSED static void sql(const struct fixture *f, const char *text)
{
	auto_free char *path = xasprintf("%s/sallyport.db", f->data);
	sqlite3 *db;
	char *wrong = NULL;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_busy_timeout(db, 60000);
	if (sqlite3_exec(db, text, NULL, NULL, &wrong) != SQLITE_OK)
		fail_msg("%s", wrong);
	sqlite3_close(db);
}

/* In a child of its own, with the store closed (SQLite must not be open across a fork). Returns its exit status:
 * cmocka's asserts do not work there, so the work says by number what went wrong. */
UNUSED static int in_child(struct fixture *f, int (*work)(struct fixture *f))
{
	int status;

	store_close(f->store);
	f->store = NULL;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(work(f));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

UNUSED static void change(struct fixture *f, struct store_execution_file *ret, const char *name, const char *kind,
			  const char *content)
{
	struct err err = ERR_INIT;

	*ret = (struct store_execution_file){.phase = STORE_AFTER,
					     .file = {.name = name, .name_length = strlen(name), .mode = 0600}};
	snprintf(ret->change, sizeof(ret->change), "%s", kind);
	if (content == NULL)
		return;
	ret->file.size = (int64_t)strlen(content);
	ok(store_blob_put(f->store, content, strlen(content), ret->file.blob, &err));
	store_media_type(name, strlen(name), (const unsigned char *)content, strlen(content), ret->file.media_type);
}
