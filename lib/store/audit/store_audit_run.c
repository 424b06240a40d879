/*
 * store_audit_run.c - what entries say of a run, a token, a conversation and a file; see store_audit_row.h.
 *
 * An entry is made from the row as it is in the database, read back in the transaction that has just written it: what
 * the log commits to is what the database holds, through whichever function it came there. A verifier calls the same
 * functions on the row that it finds and compares facts and details as texts. That is why facts of a run are columns
 * that survive an erasure of its content, and why everything else is in the details.
 *
 * Sums of texts (code, standard input and output) are those of their bytes, whether they are in the row or in a blob,
 * so that somebody who has such a text can compare it by himself. All other columns share one sum. The conversation's
 * row id is in neither: it goes with the conversation, whose name stays.
 */
#include <endian.h>
#include <sqlite3.h>
#include <string.h>

#include "lib/base/util.h"
#include "lib/store/db/store_txn.h"
#include "store_audit_internal.h"
#include "store_audit_row.h"

#define ROW_USUAL 1024 /* bytes of a run's columns */

/* The type, and the number: an integer, or a length. */
static void add_head(struct buf *out, char type, uint64_t number)
{
	char head[1 + sizeof(number)] = {type};
	const uint64_t big_endian = htobe64(number);

	memcpy(head + 1, &big_endian, sizeof(big_endian));
	buf_add(out, head, sizeof(head));
}

static void add_column(struct buf *out, struct query *query, int column)
{
	sqlite3_value *value = sqlite3_column_value(query->statement, column); /* looked up once: a run has 60 */
	const int type = sqlite3_value_type(value);
	const void *bytes;
	size_t length;

	switch (type) {
	case SQLITE_NULL:
		buf_putc(out, 'n');
		return;
	case SQLITE_INTEGER:
		add_head(out, 'i', (uint64_t)sqlite3_value_int64(value));
		return;
	case SQLITE_BLOB:
		bytes = sqlite3_value_blob(value);
		length = (size_t)sqlite3_value_bytes(value);
		add_head(out, 'b', length);
		break;
	default: /* as text */
		bytes = sqlite3_value_text(value);
		length = (size_t)sqlite3_value_bytes(value);
		add_head(out, type == SQLITE_FLOAT ? 'f' : 't', length);
	}
	buf_add(out, bytes, length);
}

static void add_row(struct buf *out, struct query *query, int first, int end)
{
	for (int i = first; i < end; i++)
		add_column(out, query, i);
}

static void sum_columns(struct query *query, int first, int end, char ret[SHA256_HEX_SIZE])
{
	auto_buf struct buf bytes = {0};

	buf_init(&bytes, SIZE_MAX / 2);
	buf_reserve(&bytes, ROW_USUAL);
	add_row(&bytes, query, first, end);
	sha256_hex(bytes.data, bytes.length, ret);
}

void store_audit_sum_row(struct query *query, int first, char ret[SHA256_HEX_SIZE])
{
	sum_columns(query, first, sqlite3_column_count(query->statement), ret);
}

int store_audit_sum_rows(struct query *query, char ret[SHA256_HEX_SIZE], int64_t *ret_count, struct err *err)
{
	auto_buf struct buf bytes = {0};
	int found;

	buf_init(&bytes, SIZE_MAX / 2);
	*ret_count = 0;
	while ((found = query_next(query, err)) > 0) {
		add_row(&bytes, query, 0, sqlite3_column_count(query->statement));
		++*ret_count;
	}
	if (*ret_count > 0)
		sha256_hex(bytes.data, bytes.length, ret);
	return found;
}

/* A text that stands in the row or in a blob: the SHA-256 of its bytes either way. */
static void add_text(struct store_audit *entry, const char *name, struct query *row, int column)
{
	size_t length;
	const char *blob = query_text(row, column + 1), *text = query_bytes(row, column, &length);

	if (blob[0] != '\0')
		store_audit_text(entry, name, blob, strlen(blob));
	else
		store_audit_sum(entry, name, text != NULL ? text : "", length);
}

static void count_files(struct query *row, int64_t count, struct store_audit *ret)
{
	const bool erased = sqlite3_column_type(row->statement, AUDIT_ROW_ERASED) != SQLITE_NULL;

	store_audit_int(ret, "files", erased ? query_int(row, AUDIT_ROW_ERASED) : count);
}

static int add_files(struct store_conn *conn, struct query *row, const char *phase, struct store_audit *ret,
		     struct err *err)
{
	auto_query struct query q = query_begin(conn, SQL_AUDIT_FILES);
	char sum[SHA256_HEX_SIZE];
	int64_t count;

	query_bind_text(&q, ":id", query_text(row, AUDIT_ROW_ID));
	query_bind_text(&q, ":phase", phase);
	int failed = store_audit_sum_rows(&q, sum, &count, err);

	if (failed < 0)
		return failed;
	count_files(row, count, ret);
	if (count > 0)
		store_audit_hex(ret, "files", sum);
	return failed;
}

/* Everything but its files. */
static void add_run_row(struct query *row, enum store_audit_kind kind, char ret_actor[STORE_AUDIT_ACTOR_SIZE],
			struct store_audit *ret)
{
	const bool begin = kind == STORE_AUDIT_RUN_BEGIN;
	int end = sqlite3_column_count(row->statement);
	char sum[SHA256_HEX_SIZE];

	store_audit_init(ret, kind, "execution", query_text(row, AUDIT_ROW_ID));
	if (query_text(row, AUDIT_ROW_TOKEN)[0] != '\0') {
		snprintf(ret_actor, STORE_AUDIT_ACTOR_SIZE, "token:%s", query_text(row, AUDIT_ROW_TOKEN));
		ret->actor = ret_actor;
	}
	ret->owner = query_text(row, AUDIT_ROW_OWNER);
	if (begin) {
		store_audit_word(ret, "language", query_text(row, AUDIT_BEGIN_LANGUAGE));
		store_audit_int(ret, "network", query_int(row, AUDIT_BEGIN_NETWORK));
		store_audit_int(ret, "code_bytes", query_int(row, AUDIT_BEGIN_CODE_BYTES));
		store_audit_int(ret, "stdin_bytes", query_int(row, AUDIT_BEGIN_STDIN_BYTES));
		add_text(ret, "code", row, AUDIT_BEGIN_TEXTS);
		add_text(ret, "stdin", row, AUDIT_BEGIN_TEXTS + 2);
	} else {
		store_audit_word(ret, "state", query_text(row, AUDIT_END_STATE));
		store_audit_word(ret, "verdict", query_text(row, AUDIT_END_VERDICT));
		store_audit_int(ret, "exit", query_int(row, AUDIT_END_EXIT));
		store_audit_int(ret, "signal", query_int(row, AUDIT_END_SIGNAL));
		store_audit_int(ret, "wall", query_int(row, AUDIT_END_WALL));
		store_audit_int(ret, "cpu", query_int(row, AUDIT_END_CPU));
		store_audit_int(ret, "memory", query_int(row, AUDIT_END_MEMORY));
		store_audit_int(ret, "stdout_bytes", query_int(row, AUDIT_END_STDOUT_BYTES));
		store_audit_int(ret, "stderr_bytes", query_int(row, AUDIT_END_STDERR_BYTES));
		add_text(ret, "stdout", row, AUDIT_END_TEXTS);
		add_text(ret, "stderr", row, AUDIT_END_TEXTS + 2);
	}
	/* Columns of a later release: entries of earlier ones know nothing of them, and nor do their rows. */
	for (int i = 0; begin && i < AUDIT_N_LATER && query_is_null(row, end - 1); i++)
		end--;
	sum_columns(row, (begin ? AUDIT_BEGIN_TEXTS : AUDIT_END_TEXTS) + AUDIT_N_TEXTS, end, sum);
	store_audit_hex(ret, "row", sum);
}

int store_audit_from_run(struct store_conn *conn, struct query *row, enum store_audit_kind kind,
			 char ret_actor[STORE_AUDIT_ACTOR_SIZE], struct store_audit *ret, struct err *err)
{
	add_run_row(row, kind, ret_actor, ret);
	return add_files(conn, row, kind == STORE_AUDIT_RUN_BEGIN ? "before" : "after", ret, err);
}

void store_audit_from_run_alone(struct query *row, enum store_audit_kind kind, char ret_actor[STORE_AUDIT_ACTOR_SIZE],
				struct store_audit *ret)
{
	add_run_row(row, kind, ret_actor, ret);
	count_files(row, 0, ret);
}

static int add_run(struct store_txn *txn, enum store_audit_kind kind, const char *id, struct err *err)
{
	auto_query struct query row =
		query_begin(txn->conn, kind == STORE_AUDIT_RUN_BEGIN ? SQL_AUDIT_BEGIN_ROW : SQL_AUDIT_END_ROW);
	char actor[STORE_AUDIT_ACTOR_SIZE];
	struct store_audit entry;

	query_bind_text(&row, ":id", id);
	int found = query_next(&row, err);

	if (found <= 0)
		return found < 0 ? found : err_set(err, ERR_INTERNAL, "execution %s has no row to be logged", id);
	int failed = store_audit_from_run(txn->conn, &row, kind, actor, &entry, err);

	if (failed == 0)
		return store_txn_audit(txn, &entry, err);
	store_audit_clear(&entry);
	return failed;
}

int store_txn_audit_begin(struct store_txn *txn, const char *id, struct err *err)
{
	return add_run(txn, STORE_AUDIT_RUN_BEGIN, id, err);
}

int store_txn_audit_end(struct store_txn *txn, const char *id, struct err *err)
{
	return add_run(txn, STORE_AUDIT_RUN_END, id, err);
}

/* The object of an entry: query columns stay valid until the next step, so the text is taken at once. */
void store_audit_from_token(struct query *row, enum store_audit_kind kind, struct store_audit *ret)
{
	char sum[SHA256_HEX_SIZE];

	store_audit_init(ret, kind, "token", query_text(row, AUDIT_TOKEN_ID));
	ret->owner = query_text(row, AUDIT_TOKEN_OWNER);
	store_audit_word(ret, "scopes", query_text(row, AUDIT_TOKEN_SCOPES));
	if (kind == STORE_AUDIT_TOKEN_REVOKE)
		store_audit_int(ret, "revoked_us", query_int(row, AUDIT_TOKEN_REVOKED));
	store_audit_sum_row(row, AUDIT_TOKEN_COLUMNS, sum);
	store_audit_hex(ret, "row", sum);
}

int store_txn_audit_token(struct store_txn *txn, enum store_audit_kind kind, const char *id, struct err *err)
{
	auto_query struct query row = query_begin(txn->conn, SQL_AUDIT_TOKEN_ROW);
	struct store_audit entry;

	query_bind_text(&row, ":id", id);
	int found = query_next(&row, err);

	if (found <= 0)
		return found < 0 ? found : err_set(err, ERR_INTERNAL, "token %s has no row to be logged", id);
	store_audit_from_token(&row, kind, &entry);
	return store_txn_audit(txn, &entry, err);
}

void store_audit_from_conversation(struct query *row, struct store_audit *ret)
{
	char place[SHA256_HEX_SIZE], sum[SHA256_HEX_SIZE];

	store_audit_place(query_text(row, AUDIT_CONVERSATION_HASH), place);
	store_audit_init(ret, STORE_AUDIT_CONVERSATION_NEW, "conversation", place);
	ret->owner = query_text(row, AUDIT_CONVERSATION_OWNER);
	store_audit_sum_row(row, 0, sum);
	store_audit_hex(ret, "row", sum);
}

void store_audit_from_file(struct query *row, struct store_audit *ret)
{
	char place[SHA256_HEX_SIZE], sum[SHA256_HEX_SIZE];

	store_audit_place(query_text(row, AUDIT_FILE_HASH), place);
	store_audit_init(ret, STORE_AUDIT_FILE_PUT, "conversation", place);
	ret->owner = query_text(row, AUDIT_FILE_OWNER);
	store_audit_int(ret, "bytes", query_int(row, AUDIT_FILE_SIZE));
	store_audit_sum_row(row, AUDIT_FILE_COLUMNS, sum);
	store_audit_hex(ret, "row", sum);
}

#define UNNAMED (-1)

/* A name is a detail of its own: by it people find again what the object is a hash of. What a verifier makes of the row
 * comes first (AUDIT_HAS_DETAIL). */
static void add_name(struct store_audit *entry, struct query *row, int column)
{
	size_t length = 0;
	const char *name = column == UNNAMED ? NULL : query_bytes(row, column, &length);

	if (name != NULL)
		store_audit_text(entry, "name", name, length);
}

static int audit_row(struct store_txn *txn, struct query *row, void (*from)(struct query *row, struct store_audit *ret),
		     int name, const struct store_caller *caller, struct err *err)
{
	char actor[STORE_AUDIT_ACTOR_SIZE];
	struct store_audit entry;
	int found = query_next(row, err);

	if (found <= 0)
		return found < 0 ? found : err_set(err, ERR_INTERNAL, "there is no row to be logged");
	from(row, &entry);
	add_name(&entry, row, name);
	if (caller != NULL && caller->token != NULL && caller->token[0] != '\0') {
		snprintf(actor, sizeof(actor), "token:%s", caller->token);
		entry.actor = actor;
	}
	store_audit_client(&entry, caller != NULL ? caller->client : NULL);
	return store_txn_audit(txn, &entry, err);
}

void store_audit_from_call(struct query *row, struct store_audit *ret)
{
	char sum[SHA256_HEX_SIZE];

	store_audit_init(ret, STORE_AUDIT_CALL, "execution", query_text(row, AUDIT_CALL_EXECUTION));
	ret->owner = query_text(row, AUDIT_CALL_OWNER);
	store_audit_int(ret, "seq", query_int(row, AUDIT_CALL_SEQ)); /* first: by it the row is found again */
	store_audit_word(ret, "state", query_text(row, AUDIT_CALL_STATE));
	store_audit_int(ret, "is_error", query_int(row, AUDIT_CALL_IS_ERROR));
	store_audit_sum_row(row, AUDIT_CALL_COLUMNS, sum);
	store_audit_hex(ret, "row", sum);
}

int store_txn_audit_call(struct store_txn *txn, const char *execution, int64_t seq, struct err *err)
{
	auto_query struct query row = query_begin(txn->conn, SQL_AUDIT_CALL_ROW);

	query_bind_text(&row, ":id", execution);
	query_bind_int(&row, ":seq", seq);
	return audit_row(txn, &row, store_audit_from_call, UNNAMED, NULL, err);
}

int store_txn_audit_conversation(struct store_txn *txn, int64_t id, struct err *err)
{
	auto_query struct query row = query_begin(txn->conn, SQL_AUDIT_CONVERSATION_ROW);

	query_bind_int(&row, ":id", id);
	return audit_row(txn, &row, store_audit_from_conversation, AUDIT_CONVERSATION_NAME, NULL, err);
}

int store_txn_audit_file(struct store_txn *txn, int64_t conversation, const char *name, size_t length,
			 const struct store_caller *caller, struct err *err)
{
	auto_query struct query row = query_begin(txn->conn, SQL_AUDIT_FILE_ROW);

	query_bind_int(&row, ":conversation", conversation);
	query_bind_bytes(&row, ":name", name, length);
	return audit_row(txn, &row, store_audit_from_file, AUDIT_FILE_NAME, caller, err);
}

int store_txn_audit_kept(struct store_txn *txn, const char *id, const char *what, int64_t limit, struct err *err)
{
	auto_query struct query row = query_begin(txn->conn, SQL_ERASE_FILES_KEPT);
	struct store_audit entry;
	int failed = 0, found = 1;

	query_bind_text(&row, ":id", id);
	query_bind_text(&row, ":what", what);
	query_bind_int(&row, ":limit", limit);
	while (failed == 0 && (found = query_next(&row, err)) > 0) {
		store_audit_from_file(&row, &entry);
		add_name(&entry, &row, AUDIT_FILE_NAME);
		failed = store_txn_audit(txn, &entry, err);
	}
	return failed < 0 ? failed : MIN(found, 0);
}
