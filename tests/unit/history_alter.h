/*
 * history_alter.h - random alterations of a record behind the program's back, with SQLite and in the files; each must
 * be found by `verify` with the signer's folder; see history.h.
 *
 * An alteration works on a copy. It says what it did, or that this record has nothing that it could alter.
 */
#pragma once

#include "audit_altered.h"
#include "history.h"

struct alteration {
	struct history *h;
	struct host copy;
	char what[1024];
};

/* Triggers and foreign keys guard against a slip, not against somebody with a file in his hand. */
static void alter_sql(struct alteration *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void alter_sql(struct alteration *a, const char *format, ...)
{
	static const char loose[] = "PRAGMA ignore_check_constraints = ON; DROP TRIGGER IF EXISTS audit_kept; DROP "
				    "TRIGGER IF EXISTS audit_fixed;";
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(a->what, sizeof(a->what), format, arguments);
	va_end(arguments);
	auto_free char *all = xasprintf("%s %s", loose, a->what);

	sql(&a->copy.f, all);
}

/* -------- rows ----------------------------------------------------------------------------------------- */

/* Rows that the log says something of: of what was erased only the facts are left, and what was there before the log
 * has no entries. */
#define ALTER_TOKENS "id IN (SELECT substr(object, 7) FROM audit WHERE kind = 'token.add')"
#define ALTER_WHOLE  "(SELECT id FROM execution WHERE erased IS NULL AND state <> 'running')"
static const struct {
	const char *table, *where;
} altered_tables[] = {
	{"audit", "1"},
	{"audit_detail", "1"},
	{"execution", "id IN " ALTER_WHOLE},
	/* one phase alone: a name has at most one row of each */
	{"execution_file",
	 "execution IN " ALTER_WHOLE " AND NOT EXISTS (SELECT 1 FROM execution_file AS other WHERE other.execution = "
	 "execution_file.execution AND other.name = execution_file.name AND other.phase <> execution_file.phase)"},
	{"tool_call", "execution IN " ALTER_WHOLE},
	{"token", ALTER_TOKENS},
	{"conversation", "1"},
	{"file", "1"},
	{"principal", "owner IN (SELECT owner FROM execution UNION SELECT owner FROM token WHERE " ALTER_TOKENS ")"},
	{"blob", "1"},
};

/* A condition that one row of those fulfils; "": there is none. */
static char *alter_row(struct alteration *a, const char *table, const char *where)
{
	auto_free char *ask_key =
		xasprintf("SELECT group_concat(printf('''%%s = '' || quote(%%s)', name, name), ' || '' AND '' || ') "
			  "FROM pragma_table_info('%s') WHERE pk > 0",
			  table);
	auto_free char *key = host_ask(&a->copy, ask_key);
	auto_free char *select = xasprintf("SELECT %s FROM %s WHERE %s", key, table, where);

	return pick_row(a->h, &a->copy, select);
}

static bool alter_column(struct alteration *a)
{
	const size_t i = (size_t)pick(a->h, ARRAY_SIZE(altered_tables));
	const char *table = altered_tables[i].table;
	auto_free char *columns = xasprintf("SELECT name FROM pragma_table_info('%s') WHERE name NOT LIKE 'erased_%%'",
					    table);
	auto_free char *column = pick_row(a->h, &a->copy, columns), *value = altered(table, column);
	auto_free char *where = xasprintf("%s AND %s IS NOT %s", altered_tables[i].where, column, value);
	auto_free char *row = alter_row(a, table, where);

	if (!*row || is_uncovered(table, column))
		return false;
	alter_sql(a, "UPDATE %s SET %s = %s WHERE %s", table, column, value, row);
	return true;
}

/* The facts of a run stay when its content goes, and so does the row. */
static bool alter_fact(struct alteration *a)
{
	static const char *const facts[] = {"owner",     "language",    "code_bytes",   "stdin_bytes", "verdict",
					    "exit_code", "run_wall_us", "stdout_bytes", "state",       "network"};
	const char *column = ONE_OF(a->h, facts);
	auto_free char *value = altered("execution", column);
	auto_free char *where = xasprintf("state <> 'running' AND %s IS NOT %s", column, value);
	auto_free char *row = alter_row(a, "execution", where);

	if (!*row)
		return false;
	alter_sql(a, "UPDATE execution SET %s = %s WHERE %s", column, value, row);
	return true;
}

static bool alter_delete(struct alteration *a)
{
	static const struct {
		const char *table, *where;
	} tables[] = {
		{"audit", "1"},
		{"audit_detail", "1"},
		{"execution", "1"},
		{"execution_file", "execution IN " ALTER_WHOLE},
		{"tool_call", "1"},
		{"token", ALTER_TOKENS},
		{"conversation", "1"},
		{"blob", "sha256 IN (SELECT stdout_blob FROM execution UNION SELECT stdin_blob FROM execution UNION "
			 "SELECT blob FROM execution_file UNION SELECT blob FROM file)"},
	};
	const size_t i = (size_t)pick(a->h, ARRAY_SIZE(tables));
	auto_free char *row = alter_row(a, tables[i].table, tables[i].where);

	if (!*row)
		return false;
	alter_sql(a, "DELETE FROM %s WHERE %s", tables[i].table, row);
	return true;
}

static bool alter_insert(struct alteration *a)
{
	static const char other[] = "'01932c00-0000-7000-8000-000000000000'";
	static const struct {
		const char *table, *where, *set; /* %s: another id */
	} tables[] = {
		{"execution", "1", "id = %s, recorded = 9999999, sandbox = NULL, sandbox_seq = NULL"},
		{"execution_file", "execution IN " ALTER_WHOLE, "name = name || %s"},
		{"execution_file", "1", "execution = %s"},
		{"tool_call", "1", "seq = seq + 1 + (%s < '')"},
		{"token", ALTER_TOKENS, "id = %s, hash = substr(hash, 2) || 'g'"},
		{"file", "1", "name = name || %s"},
		{"audit", "1", "n = (SELECT max(n) + 1 FROM audit) + (%s < '')"},
		{"audit_detail", "1", "n = (SELECT max(n) + 1 FROM audit) + (%s < '')"},
	};
	const size_t i = (size_t)pick(a->h, ARRAY_SIZE(tables));
	auto_free char *row = alter_row(a, tables[i].table, tables[i].where), *before = xstrdup(tables[i].set);
	char *behind = strstr(before, "%s");

	if (!*row)
		return false;
	*behind = '\0';
	alter_sql(a,
		  "CREATE TEMP TABLE t AS SELECT * FROM %s WHERE %s; UPDATE t SET %s%s%s; INSERT INTO %s SELECT * FROM "
		  "t",
		  tables[i].table, row, before, other, behind + 2, tables[i].table);
	return true;
}

/* -------- the log -------------------------------------------------------------------------------------- */

static bool alter_swap(struct alteration *a)
{
	const int n = (int)ask_number(&a->copy, "SELECT count(*) FROM audit"), one = pick(a->h, n),
		  two = (one + 1 + pick(a->h, n - 1)) % n;

	if (chance(a->h, 50))
		alter_sql(a,
			  "UPDATE audit SET entry = (SELECT entry FROM audit AS o WHERE o.n = %d + %d - audit.n) WHERE "
			  "n IN (%d, %d)",
			  one, two, one, two);
	else
		alter_sql(a,
			  "UPDATE audit SET n = n + 1000000 WHERE n IN (%d, %d); UPDATE audit SET n = %d + %d + 1000000 "
			  "- n WHERE n >= 1000000",
			  one, two, one, two);
	return true;
}

static bool alter_truncate(struct alteration *a)
{
	const int left = 1 + pick(a->h, (int)ask_number(&a->copy, "SELECT count(*) FROM audit") - 1);

	alter_sql(a, "DELETE FROM audit_detail WHERE n >= %d; DELETE FROM audit WHERE n >= %d", left, left);
	return true;
}

/* -------- contents ------------------------------------------------------------------------------------- */

static char *alter_blob_path(struct alteration *a)
{
	auto_free char *sum = pick_row(a->h, &a->copy, "SELECT sha256 FROM blob WHERE size > 0");
	char path[SHA256_HEX_SIZE + 1];

	if (!*sum)
		return xstrdup("");
	store_blob_path(sum, path);
	return xasprintf("%s/blobs/%s", a->copy.f.data, path);
}

static bool alter_content(struct alteration *a)
{
	auto_free char *path = alter_blob_path(a), *other = alter_blob_path(a);
	const int which = pick(a->h, 4);
	struct stat st;
	char byte;

	if (!*path || stat(path, &st) < 0 || st.st_size == 0 || (which == 3 && streq(path, other)))
		return false;
	snprintf(a->what, sizeof(a->what), "content %s, %d", path, which);
	auto_close int fd = open(path, O_RDWR | O_CLOEXEC);
	const off_t at = pick(a->h, (int)st.st_size);

	if (which == 0)
		return pread(fd, &byte, 1, at) == 1 && (byte ^= 1, pwrite(fd, &byte, 1, at) == 1);
	if (which == 1)
		return ftruncate(fd, at) == 0;
	if (which == 2)
		return unlink(path) == 0;
	return renameat2(AT_FDCWD, path, AT_FDCWD, other, RENAME_EXCHANGE) == 0;
}

/* -------- all ------------------------------------------------------------------------------------------ */

/* False: the record has nothing of the kind that was chosen. */
static bool alter_once(struct history *h, const struct host *host)
{
	static bool (*const kinds[])(struct alteration *a) = {alter_column,   alter_column, alter_fact,
							      alter_delete,   alter_insert, alter_swap,
							      alter_truncate, alter_content};
	struct alteration a = {.h = h};
	auto_free char *data = xasprintf("%s/copy", h->base);
	auto_free char *copy = xasprintf("rm -rf '%s' && cp -r '%s' '%s'", data, host->f.data, data);
	struct audit_report report;

	if (system(copy) != 0)
		history_fail(h, "%s", copy);
	a.copy.f.data = data;
	const bool is_altered = ONE_OF(h, kinds)(&a);

	sqlite3_close(a.copy.asking);
	if (!is_altered)
		return false;
	verdicts(h, data, host->signer, &report);
	if (broken_part(&report) < 0)
		history_fail(h, "not found: %s", a.what);
	return true;
}

static void alter(struct history *h, const struct host *host)
{
	while (!alter_once(h, host))
		;
}
