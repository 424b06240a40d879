/*
 * store_list.c - executions, on their way out of the record.
 *
 * One row becomes one struct store_execution, always whole: the texts that stand in the row are copied, those in blobs
 * are named and read on demand (store_text_read, which checks the sum). The environment is unsealed on the way; a row
 * whose environment does not open is an error and not a run without an environment, since replaying that would mislead.
 *
 * A listing holds a read transaction of its own connection while its callback runs: it sees one state of the database,
 * and the callback may use the store as it likes. Filters are parameters that are NULL where they do not count. Only
 * code that is a blob cannot be searched by the statement and is looked through here, which is why the limit is counted
 * here as well.
 */
#include "store_blob.h"
#include "store_execution.h"
#include "store_txn.h"

#include <unistd.h>

#include "lib/base/util.h"

static const char *const states[] = {
	[STORE_RUNNING] = "running", [STORE_FINISHED] = "finished", [STORE_INTERRUPTED] = "interrupted"};
static const char *const phases[] = {[STORE_BEFORE] = "before", [STORE_AFTER] = "after"};

void store_execution_clear(struct store_execution *execution)
{
	char **texts[] = {&execution->code.data,        &execution->stdin_text.data, &execution->stdout_text.data,
			  &execution->stderr_text.data, &execution->args_json,       &execution->env_json,
			  &execution->limits_json,      &execution->result_json,     &execution->entry};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		free(*texts[i]);
		*texts[i] = NULL;
	}
}

static char *copy_bytes(const void *data, size_t length)
{
	char *copy = xmalloc(length + 1);

	memcpy(copy, data, length);
	copy[length] = '\0';
	return copy;
}

static char *copy_text(struct query *query, int column)
{
	return query_is_null(query, column) ? NULL : xstrdup(query_text(query, column));
}

/* Three columns: the text, its blob, its length. */
static void read_text(struct query *query, int column, struct store_text *ret)
{
	size_t length;
	const void *data = query_bytes(query, column, &length);

	if (data != NULL)
		ret->data = copy_bytes(data, length);
	query_copy(query, column + 1, ret->blob, sizeof(ret->blob));
	/* What stands here is as long as it is, whatever a row that was altered says of it. */
	ret->length = data != NULL ? length : (size_t)query_int(query, column + 2);
}

static int read_env(struct store *store, struct query *query, int column, struct store_execution *ret, struct err *err)
{
	size_t length;
	const void *sealed = query_bytes(query, column, &length);
	auto_buf struct buf env;

	buf_init(&env, SIZE_MAX);
	if (sealed == NULL)
		buf_puts(&env, "{}");
	else if (unseal(store->env_key, ret->id, sealed, length, &env, err) != 0)
		return err_wrap(err, "environment of execution %s (is %s/secret.key the one of this database?)",
				ret->id, store->path);
	ret->env_json = buf_steal(&env, NULL);
	return 0;
}

static void read_usage(struct query *query, int column, struct store_usage *ret)
{
	*ret = (struct store_usage){query_int(query, column), query_int(query, column + 1),
				    query_int(query, column + 2), query_int(query, column + 3)};
}

/* The columns of STORE_SQL_EXECUTION, in their order. */
static int read_row(struct store *store, struct query *q, struct store_execution *ret, struct err *err)
{
	struct store_execution e = {0};

	query_copy(q, 0, e.id, sizeof(e.id));
	for (size_t i = 0; i < ARRAY_SIZE(states); i++)
		if (streq(states[i], query_text(q, 1)))
			e.state = (enum store_state)i;
	query_copy(q, 2, e.owner, sizeof(e.owner));
	query_copy(q, 3, e.token_id, sizeof(e.token_id));
	query_copy(q, 4, e.session_id, sizeof(e.session_id));
	e.conversation_row = query_int(q, 5);
	query_copy(q, 6, e.conversation, sizeof(e.conversation));
	e.created_us = query_int(q, 7);
	e.finished_us = query_int(q, 8);
	query_copy(q, 9, e.language, sizeof(e.language));
	query_copy(q, 10, e.fingerprint, sizeof(e.fingerprint));
	e.network = query_int(q, 11) != 0;
	query_copy(q, 15, e.verdict, sizeof(e.verdict));
	query_copy(q, 16, e.message, sizeof(e.message));
	e.exit_code = query_is_null(q, 17) ? -1 : (int)query_int(q, 17);
	e.signal = (int)query_int(q, 18);
	e.stdout_truncated = query_int(q, 19) != 0;
	e.stderr_truncated = query_int(q, 20) != 0;
	read_usage(q, 21, &e.run);
	read_usage(q, 25, &e.compile);
	e.setup_us = query_int(q, 29);
	e.warm = query_int(q, 30) != 0;
	int failed = read_env(store, q, 14, &e, err);

	if (failed != 0)
		return failed;
	e.args_json = copy_text(q, 12);
	e.limits_json = copy_text(q, 13);
	e.result_json = copy_text(q, 31);
	read_text(q, 32, &e.code);
	read_text(q, 35, &e.stdin_text);
	read_text(q, 38, &e.stdout_text);
	read_text(q, 41, &e.stderr_text);
	e.entry = copy_text(q, 44);
	query_copy(q, 45, e.sandbox_id, sizeof(e.sandbox_id));
	e.sandbox_seq = query_int(q, 46);
	query_copy(q, 47, e.task_id, sizeof(e.task_id));
	query_copy(q, 48, e.task_state, sizeof(e.task_state));
	*ret = e;
	return 0;
}

int store_text_read(struct store *store, const struct store_text *text, char **ret, size_t *ret_length, struct err *err)
{
	char sha256[SHA256_HEX_SIZE];
	auto_free char *data = NULL;
	auto_close int fd = -1;
	int64_t size;
	size_t length;

	if (text->blob[0] == '\0') {
		*ret = copy_bytes(text->data != NULL ? text->data : "", text->data != NULL ? text->length : 0);
		*ret_length = text->data != NULL ? text->length : 0;
		return 0;
	}
	int failed = store_blob_open(store, text->blob, &fd, &size, err);

	if (failed == 0)
		failed = read_fd(fd, (size_t)size, &data, &length, err);
	if (failed != 0)
		return failed;
	sha256_hex(data, length, sha256);
	if (!streq(sha256, text->blob))
		return err_set(err, ERR_CORRUPT,
			       "blob %s was altered: its bytes have the sum %s; restore it from a backup", text->blob,
			       sha256);
	*ret = steal(&data);
	*ret_length = length;
	return 0;
}

/* Where the code is a blob, the statement could not look for the text. */
static int code_has(struct store *store, const struct store_execution *execution, const char *text, bool *ret,
		    struct err *err)
{
	auto_free char *code = NULL;
	size_t length = 0;

	*ret = true;
	if (text == NULL || execution->code.blob[0] == '\0')
		return 0;
	int failed = store_text_read(store, &execution->code, &code, &length, err);

	if (failed == 0)
		*ret = code != NULL && memmem(code, length, text, strlen(text)) != NULL;
	return failed;
}

static void bind_filter(struct query *q, const struct store_filter *filter, const struct store_range *range)
{
	query_bind_text(q, ":after", filter->after != NULL ? filter->after : "");
	query_bind_text(q, ":from", range->from);
	query_bind_text(q, ":to", range->to);
	query_bind_text(q, ":owner", filter->owner);
	query_bind_text(q, ":token", filter->token_id);
	query_bind_text(q, ":conversation", filter->conversation);
	query_bind_text(q, ":language", filter->language);
	query_bind_text(q, ":verdict", filter->verdict);
	query_bind_int(q, ":since", filter->since_us);
	query_bind_int(q, ":until", filter->until_us);
	query_bind_int(q, ":running_too", filter->running_too);
	query_bind_text(q, ":text", filter->text_in_code);
	query_bind_text(q, ":task", filter->task);
}

int store_execution_list(struct store *store, const struct store_filter *filter,
			 int (*each)(void *arg, const struct store_execution *execution), void *arg, struct err *err)
{
	struct store_range range = {"", "g"}; /* encloses every id */
	enum store_sql which = filter->newest_first ? SQL_EXECUTION_LIST_NEWEST : SQL_EXECUTION_LIST;
	auto_reader struct store_reader reader = {0};
	int failed = filter->id != NULL ? store_range(filter->id, &range, err) : 0, found;
	bool stop = false;

	if (failed == 0)
		failed = store_reader_take(store, &reader, err);
	if (failed != 0)
		return failed;
	if (filter->finished_after_us > 0)
		which = SQL_EXECUTION_LIST_FINISHED;
	auto_query struct query q = query_begin(reader.conn, which);

	bind_filter(&q, filter, &range);
	if (which == SQL_EXECUTION_LIST_FINISHED)
		query_bind_int(&q, ":finished_after", filter->finished_after_us);
	for (int64_t n = 0; !stop && (filter->limit == 0 || n < filter->limit) && (found = query_next(&q, err)) != 0;) {
		struct store_execution execution;
		bool wanted;

		failed = found < 0 ? found : read_row(store, &q, &execution, err);
		if (failed != 0)
			return failed;
		failed = code_has(store, &execution, filter->text_in_code, &wanted, err);
		if (failed == 0 && wanted) {
			stop = each(arg, &execution) != 0;
			n++;
		}
		store_execution_clear(&execution);
		if (failed != 0)
			return failed;
	}
	return 0;
}

int store_execution_find(struct store *store, const char *id, struct store_execution *ret, struct err *err)
{
	struct store_range range;
	struct store_execution execution;
	auto_reader struct store_reader reader = {0};
	int failed = store_range(id, &range, err);

	if (failed == 0)
		failed = store_reader_take(store, &reader, err);
	if (failed != 0)
		return failed;
	auto_query struct query q = query_begin(reader.conn, SQL_EXECUTION_FIND);

	query_bind_text(&q, ":from", range.from);
	query_bind_text(&q, ":to", range.to);
	int found = query_next(&q, err);

	if (found == 0)
		return err_set(err, ERR_NOT_FOUND, "there is no execution '%s'", id);
	failed = found < 0 ? found : read_row(store, &q, &execution, err);
	if (failed != 0)
		return failed;
	found = query_next(&q, err);
	if (found == 0) {
		*ret = execution;
		return 0;
	}
	store_execution_clear(&execution);
	return found < 0 ? found
			 : err_set(err, ERR_CONFLICT, "several executions begin with '%s': give more of the id", id);
}

int store_execution_files(struct store *store, const char *execution_id, enum store_phase phase,
			  int (*each)(void *arg, const struct store_execution_file *file), void *arg, struct err *err)
{
	auto_reader struct store_reader reader = {0};
	int failed = store_reader_take(store, &reader, err), found;

	if (failed != 0)
		return failed;
	auto_query struct query q = query_begin(reader.conn, SQL_EXECUTION_FILE_LIST);

	query_bind_text(&q, ":id", execution_id);
	query_bind_text(&q, ":phase", phases[phase]);
	while ((found = query_next(&q, err)) > 0) {
		struct store_execution_file file = {.phase = phase};

		store_file_read(&q, &file.file);
		query_copy(&q, 6, file.change, sizeof(file.change));
		query_copy(&q, 7, file.reason, sizeof(file.reason));
		if (each(arg, &file) != 0)
			return 0;
	}
	return found;
}
