/*
 * store_audit_read.c - see store_audit_read.h.
 *
 * A reader holds one transaction from its opening to its end. Lookups of single rows are the statements of
 * store_sql_audit.h; what goes over whole tables is here, because no gateway ever runs it. The database may have been
 * altered by anybody: a column may have any type and any length, so nothing that is read is believed before it was
 * compared.
 */
#include "store_audit_read.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "lib/store/db/store_schema.h"
#include "lib/store/db/store_txn.h"
#include "store_audit_row.h"
#include "store_audit_scan.h"

static int begin(struct store_conn *conn, struct err *err)
{
	sqlite3_set_authorizer(conn->db, NULL, NULL); /* which lets no BEGIN through; query_only stays */
	int result = sqlite3_exec(conn->db, "PRAGMA cache_size = -4096; BEGIN; SELECT count(*) FROM sqlite_schema",
				  NULL, NULL, NULL);

	return result == SQLITE_OK ? 0 : store_conn_error(conn, result, err);
}

int store_audit_reader_open(const char *path, struct store_audit_reader **ret, struct err *err)
{
	struct stat st;
	int version, result;

	if (stat(path, &st) < 0 && errno == ENOENT)
		return err_set(err, ERR_NOT_FOUND, "there is no %s", path);
	if (stat(path, &st) < 0)
		return err_errno(err, "opening %s", path);
	auto_free char *file = S_ISDIR(st.st_mode) ? xasprintf("%s/sallyport.db", path) : xstrdup(path);
	struct store_audit_reader *reader = xcalloc(1, sizeof(*reader));

	result = store_conn_open(file, STORE_CONN_READER, &reader->conn, &version, err);
	if (result == 0 && version != store_schema_newest)
		result = store_schema_refuse(version, err);
	if (result == 0)
		result = begin(reader->conn, err);
	if (result < 0) {
		store_audit_reader_close(reader);
		return err_wrap(err, "%s", file);
	}
	*ret = reader;
	return 0;
}

void store_audit_reader_close(struct store_audit_reader *reader)
{
	if (reader == NULL)
		return;
	store_conn_close(reader->conn);
	for (size_t i = 0; i < STORE_AUDIT_PRINCIPALS; i++)
		free(reader->principals[i].owner);
	store_audit_rows_free(reader->rows);
	free(reader);
}

int store_audit_scan(struct store_audit_reader *reader, const char *sql, sqlite3_stmt **ret, struct err *err)
{
	int result = sqlite3_prepare_v2(reader->conn->db, sql, -1, ret, NULL);

	return result == SQLITE_OK ? 0 : store_conn_error(reader->conn, result, err);
}

int store_audit_scan_next(struct store_audit_reader *reader, sqlite3_stmt *scan, struct err *err)
{
	int result = sqlite3_step(scan);

	if (result == SQLITE_ROW)
		return 1;
	return result == SQLITE_DONE ? 0 : store_conn_error(reader->conn, result, err);
}

void store_audit_scan_end(sqlite3_stmt **scan)
{
	sqlite3_finalize(*scan);
}

const char *store_audit_scan_text(sqlite3_stmt *scan, int column)
{
	const unsigned char *text = sqlite3_column_text(scan, column);

	return text != NULL ? (const char *)text : "";
}

int store_audit_scan_number(struct store_audit_reader *reader, const char *sql, int64_t *ret, struct err *err)
{
	auto_scan sqlite3_stmt *scan = NULL;
	int result = store_audit_scan(reader, sql, &scan, err);

	if (result == 0 && (result = store_audit_scan_next(reader, scan, err)) > 0)
		*ret = sqlite3_column_int64(scan, 0);
	return MIN(result, 0);
}

int store_audit_count(struct store_audit_reader *reader, int64_t *ret, struct err *err)
{
	return store_audit_scan_number(reader, "SELECT count(*) FROM audit", ret, err);
}

/* Entries and details are read side by side, both in the order of n: a join would look each detail up. */
struct both {
	struct store_audit_reader *reader;
	sqlite3_stmt *entries, *details;
	int more_details; /* 1: there is a row of details */
};

static int next_details(struct both *both, struct err *err)
{
	both->more_details = store_audit_scan_next(both->reader, both->details, err);
	return MIN(both->more_details, 0);
}

/* Of entry n, or none. */
static int find_details(struct both *both, struct store_audit_found *found, struct err *err)
{
	enum { N, SALT, DETAIL };
	int result = 0;

	found->detail = "";
	while (result == 0 && both->more_details > 0 && sqlite3_column_int64(both->details, N) < found->n) {
		both->reader->lone_details = true;
		result = next_details(both, err);
	}
	if (result < 0 || both->more_details == 0 || sqlite3_column_int64(both->details, N) > found->n)
		return result;
	if (sqlite3_column_bytes(both->details, SALT) == SHA256_SIZE)
		found->salt = sqlite3_column_blob(both->details, SALT);
	found->detail = store_audit_scan_text(both->details, DETAIL);
	found->detail_length = (size_t)sqlite3_column_bytes(both->details, DETAIL);
	return 1;
}

static int each_entry(struct both *both, int (*each)(void *arg, const struct store_audit_found *found, struct err *err),
		      void *arg, struct err *err)
{
	enum { N, AT, KIND, OBJECT, ENTRY };
	sqlite3_stmt *scan = both->entries;
	struct store_audit_found found = {
		.n = sqlite3_column_int64(scan, N),
		.at_us = sqlite3_column_int64(scan, AT),
		.kind = store_audit_scan_text(scan, KIND),
		.object = store_audit_scan_text(scan, OBJECT),
		.entry = store_audit_scan_text(scan, ENTRY),
		.length = (size_t)sqlite3_column_bytes(scan, ENTRY),
	};
	const int has_details = find_details(both, &found, err);

	if (has_details < 0)
		return has_details;
	both->reader->erasures |= streq(found.kind, store_audit_kind(STORE_AUDIT_CONTENT_ERASE));
	const int result = each(arg, &found, err);

	return result < 0 || has_details == 0 ? result : next_details(both, err);
}

int store_audit_each(struct store_audit_reader *reader, int64_t from,
		     int (*each)(void *arg, const struct store_audit_found *found, struct err *err), void *arg,
		     struct err *err)
{
	auto_scan sqlite3_stmt *entries = NULL, *details = NULL;
	int result = store_audit_scan(
		reader, "SELECT n, at_us, kind, object, entry FROM audit WHERE n >= ?1 ORDER BY n", &entries, err);

	if (result == 0)
		result = store_audit_scan(reader, "SELECT n, salt, detail FROM audit_detail WHERE n >= ?1 ORDER BY n",
					  &details, err);
	if (result < 0)
		return result;
	sqlite3_bind_int64(entries, 1, from);
	sqlite3_bind_int64(details, 1, from);
	struct both both = {reader, entries, details, 0};

	result = next_details(&both, err);
	while (result >= 0 && (result = store_audit_scan_next(reader, entries, err)) > 0)
		result = each_entry(&both, each, arg, err);
	reader->lone_details |= both.more_details > 0;
	return MIN(result, 0);
}

/* Takes `text` off the front of *at. */
static int skip(const char **at, const char *end, const char *text)
{
	const size_t length = strlen(text);

	if ((size_t)(end - *at) < length || memcmp(*at, text, length) != 0)
		return -1;
	*at += length;
	return 0;
}

static int value(const char **at, const char *end, const char **ret, size_t *ret_length)
{
	const char *quote = memchr(*at, '"', (size_t)(end - *at));

	if (quote == NULL)
		return -1;
	*ret = *at;
	*ret_length = (size_t)(quote - *at);
	*at = quote;
	return 0;
}

/* What stands before the actor, and behind the principal. */
static int skip_head(const struct store_audit_found *found, const char **at, const char *end)
{
	char text[STORE_AUDIT_SIZE];
	struct buf head;

	buf_init_room(&head, text, sizeof(text));
	buf_puts(&head, "{\"v\":1,\"n\":");
	buf_int(&head, found->n);
	buf_puts(&head, ",\"t\":");
	buf_int(&head, found->at_us);
	buf_puts(&head, ",\"k\":\"");
	buf_puts(&head, found->kind);
	buf_puts(&head, "\",\"a\":\"");
	return head.overflow ? -1 : skip(at, end, text);
}

static int skip_object(const struct store_audit_found *found, const char **at, const char *end)
{
	int result = skip(at, end, "\",\"o\":\"");

	if (result == 0)
		result = skip(at, end, found->object);
	return result == 0 ? skip(at, end, "\",\"f\":{") : result;
}

int store_audit_split(const struct store_audit_found *found, struct store_audit_parts *ret)
{
	static const char behind[] = "},\"d\":\"";
	const char *at = found->entry, *end = at + found->length;

	if (skip_head(found, &at, end) < 0 || value(&at, end, &ret->actor, &ret->actor_length) < 0 ||
	    skip(&at, end, "\",\"p\":\"") < 0 || value(&at, end, &ret->principal, &ret->principal_length) < 0 ||
	    skip_object(found, &at, end) < 0)
		return -1;
	ret->facts = at;
	at = memmem(at, (size_t)(end - at), behind, sizeof(behind) - 1);
	if (at == NULL)
		return -1;
	ret->facts_length = (size_t)(at - ret->facts);
	if (skip(&at, end, behind) < 0 || value(&at, end, &ret->commitment, &ret->commitment_length) < 0 ||
	    (ret->commitment_length != 0 && ret->commitment_length != SHA256_HEX_SIZE - 1) || skip(&at, end, "\"}") < 0)
		return -1;
	return at == end ? 0 : -1;
}

int store_audit_principal_of(struct store_audit_reader *reader, const char *owner, char ret[ID_SIZE], struct err *err)
{
	size_t at = 0;

	for (const char *c = owner; *c != '\0'; c++)
		at = at * 31 + (unsigned char)*c;
	at %= STORE_AUDIT_PRINCIPALS;
	if (reader->principals[at].owner != NULL && streq(reader->principals[at].owner, owner)) {
		memcpy(ret, reader->principals[at].id, ID_SIZE);
		return 0;
	}
	auto_query struct query q = query_begin(reader->conn, SQL_PRINCIPAL_FIND);

	query_bind_text(&q, ":owner", owner);
	int found = query_next(&q, err);

	/* A forgotten owner's rows have the id in the place of the name. */
	snprintf(ret, ID_SIZE, "%s", id_valid(owner) ? owner : "");
	if (found > 0)
		query_copy(&q, 0, ret, ID_SIZE);
	if (found >= 0) {
		free(reader->principals[at].owner);
		reader->principals[at].owner = xstrdup(owner);
		memcpy(reader->principals[at].id, ret, ID_SIZE);
	}
	return MIN(found, 0);
}

/* The call's number stands first in the facts; 0, which no row has: it does not. */
static int64_t call_number(const struct store_audit_found *found)
{
	static const char before[] = "\"f\":{\"seq\":";
	const char *at = strstr(found->entry, before);

	return at != NULL ? strtoll(at + sizeof(before) - 1, NULL, 10) : 0;
}

static const struct {
	const char *kind;
	enum store_audit_kind number;
	enum store_sql row;
} expected[] = {{"run.begin", STORE_AUDIT_RUN_BEGIN, SQL_AUDIT_BEGIN_ROW},
		{"run.end", STORE_AUDIT_RUN_END, SQL_AUDIT_END_ROW},
		{"call", STORE_AUDIT_CALL, SQL_AUDIT_CALL_ROW},
		{"token.add", STORE_AUDIT_TOKEN_ADD, SQL_AUDIT_TOKEN_ROW},
		{"token.revoke", STORE_AUDIT_TOKEN_REVOKE, SQL_AUDIT_TOKEN_ROW}};

static size_t find_expected(const char *kind)
{
	size_t which = 0;

	while (which < ARRAY_SIZE(expected) && !streq(expected[which].kind, kind))
		which++;
	return which;
}

bool store_audit_has_row(const char *kind)
{
	return find_expected(kind) < ARRAY_SIZE(expected);
}

int store_audit_expected(struct store_audit_reader *reader, const struct store_audit_found *found,
			 struct store_audit *ret, char ret_actor[STORE_AUDIT_OBJECT_SIZE], char ret_principal[ID_SIZE],
			 struct err *err)
{
	const char *id = strchr(found->object, ':');
	const size_t which = find_expected(found->kind);

	if (which == ARRAY_SIZE(expected) || id == NULL)
		return err_set(err, ERR_INTERNAL, "no row is expected for %s", found->kind);
	auto_query struct query row = query_begin(reader->conn, expected[which].row);

	query_bind_text(&row, ":id", id + 1);
	if (expected[which].row == SQL_AUDIT_CALL_ROW)
		query_bind_int(&row, ":seq", call_number(found));
	int there = query_next(&row, err);

	if (there <= 0)
		return there;
	ret_actor[0] = '\0';
	if (expected[which].row == SQL_AUDIT_CALL_ROW)
		store_audit_from_call(&row, ret);
	else if (expected[which].row == SQL_AUDIT_TOKEN_ROW)
		store_audit_from_token(&row, expected[which].number, ret);
	else
		there = store_audit_from_run(reader->conn, &row, expected[which].number, ret_actor, ret, err);
	if (there >= 0)
		there = store_audit_principal_of(reader, ret->owner, ret_principal, err);
	store_audit_close_details(&ret->details);
	ret->owner = ret->actor = NULL; /* they point into the row */
	if (there < 0)
		store_audit_clear(ret);
	return there < 0 ? there : 1;
}

static int has(struct store_audit_reader *reader, enum store_sql statement, const char *object, const char *kind,
	       int64_t behind, struct err *err)
{
	auto_query struct query q = query_begin(reader->conn, statement);

	query_bind_text(&q, ":object", object);
	query_bind_text(&q, ":kind", kind);
	query_bind_int(&q, ":behind", behind);
	return query_next(&q, err);
}

int store_audit_has(struct store_audit_reader *reader, const char *object, const char *kind, int64_t behind,
		    struct err *err)
{
	return has(reader, SQL_AUDIT_HAS, object, kind, behind, err);
}

int store_audit_erased(struct store_audit_reader *reader, const char *object, const char *kind, int64_t behind,
		       struct err *err)
{
	return has(reader, SQL_AUDIT_ERASED, object, kind, behind, err);
}

int store_audit_left(struct store_audit_reader *reader, const struct store_audit_gone *gone, struct err *err)
{
	static const char sql[] =
		"SELECT EXISTS (SELECT 1 FROM audit JOIN audit_detail USING (n) WHERE object = ?1 AND n < ?2 AND kind "
		"<> 'content.erase' AND (?3 <> 'output' OR kind = 'run.end')) OR EXISTS (SELECT 1 FROM execution WHERE "
		"?1 = 'execution:' || id AND id = substr(?1, 11) AND (coalesce(stdout, stdout_blob, stderr, "
		"stderr_blob) IS NOT NULL OR (?3 <> 'output' AND coalesce(code, code_blob, stdin, stdin_blob, "
		"client_address, client) IS NOT NULL))) OR EXISTS (SELECT 1 FROM execution_file WHERE ?1 = "
		"'execution:' || execution AND execution = substr(?1, 11) AND (?3 <> 'output' OR phase = 'after'))";
	auto_scan sqlite3_stmt *scan = NULL;
	int result = store_audit_scan(reader, sql, &scan, err);

	if (result < 0 || streq(gone->what, "file")) /* of which the conversation may have another one since */
		return result;
	sqlite3_bind_text(scan, 1, gone->object, -1, SQLITE_STATIC);
	sqlite3_bind_int64(scan, 2, gone->n);
	sqlite3_bind_text(scan, 3, gone->what, -1, SQLITE_STATIC);
	result = store_audit_scan_next(reader, scan, err);
	return result > 0 ? sqlite3_column_int(scan, 0) : result;
}
