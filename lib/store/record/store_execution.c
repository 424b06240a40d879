/*
 * store_execution.c - executions, on their way into the record; store_list.c reads them back.
 *
 * A run is two transactions: begin (what was asked, and what /data holds before it), finish (what came of it, its
 * files, and the conversation's new state). Between the two only running/ID.out and ID.err grow, outside the database.
 * A run that changed very many files has them recorded in parts between the two, so that no transaction is long. They
 * count when the row is finished: nobody is shown files 'after' of a run that is `running`, and what interrupts it
 * removes them (store_instance.c).
 */
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "lib/store/audit/store_audit_internal.h"
#include "lib/store/blob/store_blob.h"
#include "lib/store/blob/store_blob_internal.h"
#include "lib/store/db/store_txn.h"
#include "store_execution.h"
#include "store_record_internal.h"

static int add_row(struct store_txn *txn, const struct store_execution *e, struct err *err)
{
	auto_buf struct buf sealed;
	auto_query struct query q = query_begin(txn->conn, SQL_EXECUTION_ADD);

	buf_init(&sealed, SIZE_MAX);
	if (e->env_json != NULL && !streq(e->env_json, "{}"))
		seal(txn->store->env_key, e->id, e->env_json, strlen(e->env_json), &sealed);
	query_bind_text(&q, ":id", e->id);
	query_bind_text(&q, ":instance", txn->store->instance);
	query_bind_text(&q, ":owner", e->owner);
	query_bind_some(&q, ":token", e->token_id);
	query_bind_some(&q, ":session", e->session_id);
	query_bind_int_if(&q, ":conversation", e->conversation_row != 0, e->conversation_row);
	query_bind_int(&q, ":created", e->created_us != 0 ? e->created_us : store_txn_now(txn));
	query_bind_text(&q, ":language", e->language);
	query_bind_text(&q, ":fingerprint", e->fingerprint);
	query_bind_int(&q, ":network", e->network);
	query_bind_int(&q, ":display", e->display);
	query_bind_text(&q, ":args", e->args_json != NULL ? e->args_json : "[]");
	query_bind_text(&q, ":limits", e->limits_json != NULL ? e->limits_json : "{}");
	query_bind_blob(&q, ":env", sealed.length > 0 ? sealed.data : NULL, sealed.length);
	store_text_bind(&q, ":code", &e->code);
	store_text_bind(&q, ":stdin", &e->stdin_text);
	query_bind_some(&q, ":entry", e->entry);
	query_bind_some(&q, ":sandbox", e->sandbox_id);
	query_bind_some(&q, ":task", e->task_id);
	query_bind_some(&q, ":request", e->request_id);
	query_bind_some(&q, ":trace", e->trace);
	query_bind_some(&q, ":client_address", e->client_address);
	query_bind_some(&q, ":client", e->client);
	query_bind_int(&q, ":secrets", e->secrets);
	query_bind_some(&q, ":door", e->door);
	query_bind_some(&q, ":caller", e->caller);
	query_bind_int_if(&q, ":grading", e->grading, 1);
	query_bind_int_if(&q, ":sandbox_seq", *e->sandbox_id != '\0', e->sandbox_seq);
	return query_run(&q, NULL, err);
}

int store_txn_count_files(struct store_txn *txn, const char *id, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_EXECUTION_COUNT_FILES);

	query_bind_text(&q, ":id", id);
	return query_run(&q, NULL, err);
}

int store_txn_execution_begin(struct store_txn *txn, const struct store_execution *execution, struct err *err)
{
	const struct store_more more = {.owner = execution->owner,
					.bytes = STORE_RUN_BYTES + (int64_t)execution->code.length +
						 (int64_t)execution->stdin_text.length};
	int failed = id_valid(execution->id) ? 0 : err_set(err, ERR_INTERNAL, "an execution needs an id");

	if (failed == 0)
		failed = store_txn_room(txn, &more, err);
	if (failed == 0)
		failed = store_txn_text(txn, &execution->code, "code", err);
	if (failed == 0)
		failed = store_txn_text(txn, &execution->stdin_text, "standard input", err);
	if (failed == 0)
		failed = add_row(txn, execution, err);
	if (failed == 0 && execution->conversation_row != 0) { /* what it holds now, and what its rows count for */
		auto_query struct query before = query_begin(txn->conn, SQL_EXECUTION_BEFORE);
		int64_t rows = 0;

		query_bind_text(&before, ":id", execution->id);
		query_bind_int(&before, ":conversation", execution->conversation_row);
		failed = query_run(&before, &rows, err);
		if (failed == 0 && rows > 0)
			failed = store_txn_count_files(txn, execution->id, err);
	}
	return failed < 0 ? failed : store_txn_audit_begin(txn, execution->id, err);
}

int store_txn_execution_is_large(struct store_txn *txn, const char *owner, const char *conversation, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_CONVERSATION_LARGE);

	query_bind_int(&q, ":most", STORE_FILES_AT_ONCE);
	query_bind_text(&q, ":owner", owner);
	query_bind_text(&q, ":name", conversation);
	int found = query_next(&q, err);

	return found < 0 ? found : (int)query_int(&q, 0);
}

static int not_running(const char *id, struct err *err)
{
	return err_set(err, ERR_CONFLICT,
		       "execution %s is not running here: it was recorded already, or belongs to another process", id);
}

void store_execution_bind_outcome(struct query *query, const struct store_execution *e)
{
	query_bind_text(query, ":fingerprint", e->fingerprint);
	query_bind_text(query, ":verdict", e->verdict);
	query_bind_text(query, ":message", e->message);
	query_bind_int_if(query, ":exit_code", e->exit_code >= 0, e->exit_code);
	query_bind_int(query, ":signal", e->signal);
	store_text_bind(query, ":stdout", &e->stdout_text);
	store_text_bind(query, ":stderr", &e->stderr_text);
}

/* *ret_conversation: the row's own, 0 if it has none. */
static int finish_row(struct store_txn *txn, const struct store_execution *e, int64_t file_bytes,
		      int64_t *ret_conversation, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_EXECUTION_FINISH);

	store_execution_bind_outcome(&q, e);
	query_bind_int(&q, ":run_wall", e->run.wall_us);
	query_bind_int(&q, ":run_user", e->run.cpu_user_us);
	query_bind_int(&q, ":run_system", e->run.cpu_system_us);
	query_bind_int(&q, ":run_memory", e->run.memory_peak_bytes);
	query_bind_int(&q, ":compile_wall", e->compile.wall_us);
	query_bind_int(&q, ":compile_user", e->compile.cpu_user_us);
	query_bind_int(&q, ":compile_system", e->compile.cpu_system_us);
	query_bind_int(&q, ":compile_memory", e->compile.memory_peak_bytes);
	query_bind_int(&q, ":setup", e->setup_us);
	query_bind_int(&q, ":warm", e->warm);
	query_bind_text(&q, ":result", e->result_json);
	query_bind_int(&q, ":stdout_truncated", e->stdout_truncated);
	query_bind_int(&q, ":stderr_truncated", e->stderr_truncated);
	query_bind_int(&q, ":file_bytes", file_bytes);
	query_bind_text(&q, ":id", e->id);
	query_bind_text(&q, ":instance", txn->store->instance);
	query_bind_int(&q, ":now", store_txn_now(txn));
	int found = query_next(&q, err);

	if (found < 0)
		return found;
	if (found == 0)
		return not_running(e->id, err);
	*ret_conversation = query_int(&q, 0);
	return query_run(&q, NULL, err);
}

/* With its content under the owner's cap? If not it is turned into "lost". */
static int check_change(struct store_txn *txn, const char *owner, struct store_execution_file *change, struct err *err)
{
	const struct store_more more = {
		.owner = owner, .blob = change->file.blob, .bytes = STORE_FILE_BYTES, .size = change->file.size};
	struct err cause = ERR_INIT;
	int failed = store_txn_room(txn, &more, &cause);

	if (failed == -ERR_LIMIT) {
		snprintf(change->change, sizeof(change->change), "lost");
		snprintf(change->reason, sizeof(change->reason),
			 "the owner's space is used up (retention.owner_mb)");
		return 0;
	}
	if (failed < 0 && err != NULL)
		*err = cause;
	return failed;
}

static bool is_kept(const struct store_execution_file *change)
{
	return !streq(change->change, "deleted") && !streq(change->change, "lost");
}

static int add_change(struct store_txn *txn, const char *id, const struct store_execution_file *change, struct err *err)
{
	const bool kept = is_kept(change);
	int failed = kept ? store_txn_blob(txn, change->file.blob, change->file.size, err) : 0;

	if (failed < 0)
		return failed;
	auto_query struct query q = query_begin(txn->conn, SQL_EXECUTION_FILE_ADD);

	query_bind_text(&q, ":id", id);
	query_bind_bytes(&q, ":name", change->file.name, change->file.name_length);
	query_bind_text(&q, ":change", change->change);
	query_bind_some(&q, ":reason", change->reason);
	query_bind_text(&q, ":blob", kept ? change->file.blob : NULL);
	query_bind_some(&q, ":media_type", change->file.media_type);
	query_bind_int(&q, ":mode", change->file.mode);
	query_bind_int(&q, ":size", change->file.size);
	query_bind_int(&q, ":mtime", change->file.mtime_us);
	return query_run(&q, NULL, err);
}

static int add_changes(struct store_txn *txn, const struct store_execution *execution,
		       struct store_execution_file *changes, size_t n_changes, struct err *err)
{
	int failed = 0;

	for (size_t i = 0; failed == 0 && i < n_changes; i++) {
		if (execution->conversation_row != 0 && is_kept(&changes[i]))
			failed = check_change(txn, execution->owner, &changes[i], err);
		if (failed == 0)
			failed = add_change(txn, execution->id, &changes[i], err);
	}
	return failed;
}

static int64_t bytes_of(const struct store_execution_file *changes, size_t n_changes)
{
	int64_t bytes = 0;

	for (size_t i = 0; i < n_changes; i++)
		bytes += STORE_FILE_BYTES + (int64_t)changes[i].file.name_length;
	return bytes;
}

int store_txn_execution_files(struct store_txn *txn, const struct store_execution *execution,
			      struct store_execution_file *changes, size_t n_changes, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_EXECUTION_COUNT_MORE);
	int64_t found = 0;

	query_bind_text(&q, ":id", execution->id);
	query_bind_text(&q, ":instance", txn->store->instance);
	query_bind_int(&q, ":bytes", bytes_of(changes, n_changes));
	int failed = query_run(&q, &found, err);

	if (failed == 0 && found == 0)
		return not_running(execution->id, err);
	return failed < 0 ? failed : add_changes(txn, execution, changes, n_changes, err);
}

/* Removals before additions: a file that takes the place of another one's folder must not depend on the order of the
 * names. One statement each: with one for each file SQLite's journal of savepoints makes thousands of them slow. */
static int apply_changes(struct store_txn *txn, const char *id, int64_t conversation, struct err *err)
{
	static const enum store_sql steps[] = {SQL_EXECUTION_REMOVE_FILES, SQL_EXECUTION_PUT_FILES};
	int failed = 0;

	for (size_t i = 0; failed == 0 && i < ARRAY_SIZE(steps); i++) {
		auto_query struct query q = query_begin(txn->conn, steps[i]);

		query_bind_text(&q, ":id", id);
		query_bind_int(&q, ":conversation", conversation);
		failed = query_run(&q, NULL, err);
	}
	if (failed < 0)
		return failed;
	auto_query struct query seen = query_begin(txn->conn, SQL_CONVERSATION_SEEN);

	query_bind_int(&seen, ":id", conversation);
	query_bind_int(&seen, ":now", store_txn_now(txn));
	store_uptime_bind(txn->store, &seen);
	return query_run(&seen, NULL, err);
}

int store_txn_execution_finish(struct store_txn *txn, const struct store_execution *execution,
			       struct store_execution_file *changes, size_t n_changes, struct err *err)
{
	int64_t conversation = 0;
	int failed = store_txn_text(txn, &execution->stdout_text, "standard output", err);

	if (failed == 0)
		failed = store_txn_text(txn, &execution->stderr_text, "standard error", err);
	if (failed == 0)
		failed = finish_row(txn, execution, bytes_of(changes, n_changes), &conversation, err);
	if (failed == 0)
		failed = add_changes(txn, execution, changes, n_changes, err);
	if (failed == 0 && conversation != 0)
		failed = apply_changes(txn, execution->id, conversation, err);
	return failed < 0 ? failed : store_txn_audit_end(txn, execution->id, err);
}
