/*
 * store_baseline.c - see store_baseline.h.
 *
 * A generation has the columns of an execution's outcome that a replay compares, under the same names, so that reading
 * one is filling in the same struct once more. It is one transaction: blobs of the streams, the row, its files, and the
 * entry of the audit log.
 */
#include "store_baseline.h"

#include <string.h>

#include "lib/base/util.h"
#include "lib/store/audit/store_audit.h"
#include "lib/store/blob/store_text.h"
#include "lib/store/db/store_txn.h"
#include "store_execution.h"
#include "store_record_internal.h"

#define ROW struct store_execution
static const struct column expected_columns[] = {STORE_EXPECTED_COLUMNS(COLUMN_PLACE, COLUMN_PLACE, COLUMN_NONE)};
#undef ROW
#define ROW struct store_baseline
static const struct column baseline_columns[] = {STORE_BASELINE_COLUMNS(COLUMN_PLACE, COLUMN_PLACE, COLUMN_NONE)};
#undef ROW

/* -------- reading ------------------------------------------------------------------------------------- */

static void read_text(struct query *query, int column, int bytes, struct store_text *ret)
{
	size_t length;
	const void *data = query_bytes(query, column, &length);

	free(ret->data);
	ret->data = data != NULL ? xmemdup(data, length) : NULL;
	ret->length = data != NULL ? length : (size_t)query_int(query, bytes);
}

int store_baseline_apply(struct store *store, struct store_execution *execution, struct err *err)
{
	if (execution->generation <= 1)
		return 0;
	auto_read struct query q = store_read(store, SQL_BASELINE_EXPECTED, err);

	query_bind_text(&q, ":execution", execution->id);
	query_bind_int(&q, ":generation", execution->generation);
	int result = query_next(&q, err);

	if (result <= 0)
		return result < 0 ? result
				  : err_set(err, ERR_CORRUPT, "execution %s has no generation %lld", execution->id,
					    (long long)execution->generation);
	query_read(&q, expected_columns, ARRAY_SIZE(expected_columns), execution);
	read_text(&q, EXPECTED_STDOUT, EXPECTED_STDOUT_BYTES, &execution->stdout_text);
	read_text(&q, EXPECTED_STDERR, EXPECTED_STDERR_BYTES, &execution->stderr_text);
	execution->stdout_truncated = execution->stderr_truncated = false;
	execution->state = STORE_FINISHED;
	return 0;
}

int store_baseline_files(struct store *store, const struct store_execution *execution,
			 int (*each)(void *arg, const struct store_execution_file *file), void *arg, struct err *err)
{
	int found;

	if (execution->generation <= 1)
		return store_execution_files(store, execution->id, STORE_AFTER, each, arg, err);
	auto_read struct query q = store_read(store, SQL_BASELINE_FILES, err);

	query_bind_text(&q, ":execution", execution->id);
	query_bind_int(&q, ":generation", execution->generation);
	while ((found = query_next(&q, err)) > 0) {
		struct store_execution_file file = {.phase = STORE_AFTER};

		store_file_read(&q, &file.file);
		query_copy(&q, CHANGE_CHANGE, file.change, sizeof(file.change));
		query_copy(&q, CHANGE_REASON, file.reason, sizeof(file.reason));
		if (each(arg, &file) != 0)
			return 0;
	}
	return found;
}

int store_baseline_list(struct store *store, const char *execution,
			int (*each)(void *arg, const struct store_baseline *baseline), void *arg, struct err *err)
{
	auto_read struct query q = store_read(store, SQL_BASELINE_LIST, err);
	int found;

	query_bind_text(&q, ":execution", execution);
	while ((found = query_next(&q, err)) > 0) {
		struct store_baseline baseline = {0};

		query_read(&q, baseline_columns, ARRAY_SIZE(baseline_columns), &baseline);
		if (each(arg, &baseline) != 0)
			return 0;
	}
	return found;
}

/* -------- writing ------------------------------------------------------------------------------------- */

int store_baseline_text(struct store *store, int fd, struct store_text *ret, struct err *err)
{
	return store_text_keep(store, fd, ret, err);
}

struct adding {
	const struct store_blessing *blessing;
	int64_t generation;
};

static int add_row(struct store_txn *txn, struct adding *adding, struct err *err)
{
	const struct store_blessing *blessing = adding->blessing;
	const struct store_execution *e = blessing->outcome;
	auto_query struct query q = query_begin(txn->conn, SQL_BASELINE_ADD);

	query_bind_text(&q, ":execution", e->id);
	query_bind_int(&q, ":created", e->created_us);
	query_bind_int(&q, ":finished", e->finished_us);
	store_execution_bind_outcome(&q, e);
	query_bind_int(&q, ":user", e->run.cpu_user_us);
	query_bind_int(&q, ":system", e->run.cpu_system_us);
	query_bind_int(&q, ":memory", e->run.memory_peak_bytes);
	query_bind_int(&q, ":deterministic", e->deterministic);
	query_bind_int(&q, ":blessed", store_txn_now(txn));
	query_bind_text(&q, ":author", blessing->author);
	query_bind_text(&q, ":reason", blessing->reason);
	int result = query_next(&q, err);

	if (result < 0)
		return result;
	adding->generation = query_int(&q, 0);
	return query_run(&q, NULL, err);
}

static int add_file(struct store_txn *txn, const struct adding *adding, const struct store_execution_file *file,
		    struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_BASELINE_FILE_ADD);

	query_bind_text(&q, ":execution", adding->blessing->outcome->id);
	query_bind_int(&q, ":generation", adding->generation);
	query_bind_bytes(&q, ":name", file->file.name, file->file.name_length);
	query_bind_text(&q, ":change", file->change);
	query_bind_some(&q, ":reason", file->reason);
	query_bind_some(&q, ":blob", file->file.blob);
	query_bind_some(&q, ":media_type", file->file.media_type);
	query_bind_int(&q, ":mode", file->file.mode);
	query_bind_int(&q, ":size", file->file.size);
	query_bind_int(&q, ":mtime", file->file.mtime_us);
	return query_run(&q, NULL, err);
}

static int add(struct store_txn *txn, void *arg, struct err *err)
{
	struct adding *adding = arg;
	const struct store_blessing *blessing = adding->blessing;
	struct store_audit entry;
	int result = store_txn_text(txn, &blessing->outcome->stdout_text, "standard output", err);

	if (result == 0)
		result = store_txn_text(txn, &blessing->outcome->stderr_text, "standard error", err);
	if (result == 0)
		result = add_row(txn, adding, err);
	for (size_t i = 0; result == 0 && i < blessing->n_files; i++)
		result = add_file(txn, adding, &blessing->files[i], err);
	if (result == 0 && blessing->tools)
		result = store_txn_tools_expect(txn, blessing->outcome->id, adding->generation, blessing->tools, err);
	if (result < 0)
		return result;
	store_audit_init(&entry, STORE_AUDIT_BLESS, "execution", blessing->outcome->id);
	store_audit_int(&entry, "generation", adding->generation);
	store_audit_text(&entry, "author", blessing->author, strlen(blessing->author));
	store_audit_text(&entry, "reason", blessing->reason, strlen(blessing->reason));
	if (blessing->tools)
		store_audit_int(&entry, "calls", (int64_t)blessing->tools->n_calls);
	return store_txn_audit(txn, &entry, err);
}

int store_baseline_add(struct store *store, const struct store_blessing *blessing, int64_t *ret_generation,
		       struct err *err)
{
	struct adding adding = {.blessing = blessing};
	int result = store_commit(store, add, &adding, err);

	if (result == 0)
		*ret_generation = adding.generation;
	return result;
}
