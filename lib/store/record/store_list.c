/*
 * store_list.c - executions, on their way out of the record.
 *
 * One row becomes one struct store_execution, always whole: the texts that stand in the row are copied, those in blobs
 * are named and read on demand (store_text_read, which checks the sum). The environment is unsealed on the way; a row
 * whose environment does not open is an error and not a run without an environment, since replaying that would mislead.
 *
 * A listing holds a read transaction of its own connection while its callback runs: it sees one state of the database,
 * and the callback may use the store as it likes. Filters are parameters that are NULL where they do not count. A
 * text is looked for in two steps: the index, or where it cannot help the statement, finds candidates, which are looked
 * through here; so the limit is counted here as well.
 */
#include "lib/store/blob/store_blob.h"
#include "lib/store/blob/store_search.h"
#include "lib/store/db/store_txn.h"
#include "store_execution.h"

#include <unistd.h>

#include "lib/base/util.h"
#include "store_record_internal.h"

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

int store_execution_whole(const struct store_execution *execution, struct err *err)
{
	char at[CLOCK_TEXT_SIZE];

	if (execution->erased[0] == '\0')
		return 0;
	clock_text(execution->erased_us, at);
	return err_set(err, ERR_NOT_FOUND, "the %s of run %s was removed on %.10s (%s); that it ran is still recorded",
		       execution->erased, execution->id, at, execution->erased_why);
}

/* A text: `column` is its bytes (NULL where they are a blob) and `bytes` their number. */
static void read_text(struct query *query, int column, int bytes, struct store_text *ret)
{
	size_t length;
	const void *data = query_bytes(query, column, &length);

	if (data != NULL)
		ret->data = xmemdup(data, length);
	/* A text in the row has the length of its bytes, whatever an altered row says. */
	ret->length = data != NULL ? length : (size_t)query_int(query, bytes);
}

static int read_env(struct store *store, struct query *query, struct store_execution *ret, struct err *err)
{
	size_t length;
	const void *sealed = query_bytes(query, EXECUTION_ENV, &length);
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

#define ROW struct store_execution
static const struct column columns[] = {STORE_EXECUTION_COLUMNS(COLUMN_PLACE, COLUMN_PLACE, COLUMN_NONE)};
#undef ROW

static int read_row(struct store *store, struct query *q, struct store_execution *ret, struct err *err)
{
	struct store_execution e = {0};

	query_read(q, columns, ARRAY_SIZE(columns), &e);
	for (size_t i = 0; i < ARRAY_SIZE(states); i++)
		if (streq(states[i], query_text(q, EXECUTION_STATE)))
			e.state = (enum store_state)i;
	read_text(q, EXECUTION_CODE, EXECUTION_CODE_BYTES, &e.code);
	read_text(q, EXECUTION_STDIN, EXECUTION_STDIN_BYTES, &e.stdin_text);
	read_text(q, EXECUTION_STDOUT, EXECUTION_STDOUT_BYTES, &e.stdout_text);
	read_text(q, EXECUTION_STDERR, EXECUTION_STDERR_BYTES, &e.stderr_text);
	int failed = read_env(store, q, &e, err);

	if (failed < 0)
		store_execution_clear(&e);
	else
		*ret = e;
	return failed;
}

struct listing {
	struct store *store;
	const struct store_filter *filter;
	const char *owners; /* ",ann,bob,"; NULL: any */
	int (*each)(void *arg, const struct store_execution *execution);
	void *arg;
	const char *after; /* id: only later ones */
	int64_t count;
	bool stop;
};

/* What a statement could not look for in blobs, and whether the index was right, is decided here. */
static int list_row(struct listing *listing, struct query *q, struct err *err)
{
	const struct store_filter *filter = listing->filter;
	struct store_execution execution;
	bool wanted = true;
	int failed = read_row(listing->store, q, &execution, err);

	if (failed < 0)
		return failed;
	if (filter->text_in_code != NULL)
		failed = store_search_has(listing->store, &execution, filter->text_in_code, filter->text_in_output,
					  &wanted, err);
	if (failed == 0 && wanted) {
		listing->stop = listing->each(listing->arg, &execution) != 0;
		listing->count++;
		listing->stop = listing->stop || listing->count == filter->limit;
	}
	store_execution_clear(&execution);
	return failed;
}

static int list_rows(struct listing *listing, struct store_conn *conn, enum store_sql which,
		     const struct store_range *range, struct err *err)
{
	auto_query struct query q = query_begin(conn, which);
	const struct store_filter *filter = listing->filter;
	int failed = 0, found;

	query_bind_text(&q, ":from", range->from);
	query_bind_text(&q, ":to", range->to);
	query_bind_text(&q, ":owner", filter->owner);
	query_bind_text(&q, ":token", filter->token_id);
	query_bind_text(&q, ":conversation", filter->conversation);
	query_bind_text(&q, ":language", filter->language);
	query_bind_some(&q, ":verdict", filter->verdict);
	query_bind_int(&q, ":since", filter->since_us);
	query_bind_int(&q, ":until", filter->until_us);
	query_bind_int(&q, ":running_too", filter->running_too);
	query_bind_text(&q, ":text", filter->text_in_code);
	query_bind_int(&q, ":output_too", filter->text_in_output);
	query_bind_text(&q, ":task", filter->task);
	query_bind_text(&q, ":tool", filter->tool);
	query_bind_text(&q, ":tag", filter->tag);
	query_bind_text(&q, ":request", filter->request);
	query_bind_text(&q, ":client", filter->client);
	query_bind_text(&q, ":door", filter->door);
	query_bind_text(&q, ":file", filter->file);
	query_bind_text(&q, ":same", filter->same);
	query_bind_int(&q, ":denied", filter->denied);
	query_bind_int(&q, ":secrets", filter->secrets);
	query_bind_text(&q, ":owners", listing->owners);
	query_bind_text(&q, ":after", listing->after);
	if (which == SQL_EXECUTION_LIST_RECORDED)
		query_bind_int(&q, ":recorded_after", filter->recorded_after);
	while (failed == 0 && !listing->stop && (found = query_next(&q, err)) != 0)
		failed = found < 0 ? found : list_row(listing, &q, err);
	return failed;
}

/* Those that the index finds, one by one. */
static int list_candidates(struct listing *listing, struct store_conn *conn, const char *match,
			   const struct store_range *range, struct err *err)
{
	auto_query struct query q =
		query_begin(conn, listing->filter->newest_first ? SQL_SEARCH_NEWEST : SQL_SEARCH_OLDEST);
	int failed = 0, found;

	query_bind_text(&q, ":match", match);
	const char *after = listing->after;
	char near[ID_SIZE - 1]; /* all but the last character: the statement begins there */

	listing->after = near;
	while (failed == 0 && !listing->stop && (found = query_next(&q, err)) != 0) {
		const char *id = query_text(&q, 0);
		struct store_range one;

		if (found < 0)
			return found;
		snprintf(near, sizeof(near), "%s", id);
		failed = store_range(id, &one, err);
		if (failed == 0 && strcmp(id, after) > 0 && strcmp(id, range->from) >= 0 && strcmp(id, range->to) < 0)
			failed = list_rows(listing, conn, SQL_EXECUTION_LIST, &one, err);
	}
	return failed;
}

int store_execution_list(struct store *store, const struct store_filter *filter,
			 int (*each)(void *arg, const struct store_execution *execution), void *arg, struct err *err)
{
	struct listing listing = {.store = store,
				  .filter = filter,
				  .each = each,
				  .arg = arg,
				  .after = filter->after != NULL ? filter->after : ""};
	struct store_range range = {"", STORE_ID_ABOVE}; /* encloses every id */
	enum store_sql which = filter->newest_first ? SQL_EXECUTION_LIST_NEWEST : SQL_EXECUTION_LIST;
	auto_reader struct store_reader reader = {0};
	auto_buf struct buf match = {0}, owners = {0};
	int failed = filter->id != NULL ? store_range(filter->id, &range, err) : 0;

	if (failed == 0)
		failed = store_reader_take(store, &reader, err);
	if (failed < 0)
		return failed;
	buf_init(&match, SIZE_MAX);
	buf_init(&owners, SIZE_MAX);
	for (size_t i = 0; i < filter->n_owners; i++)
		buf_printf(&owners, i > 0 ? "%s," : ",%s,", filter->owners[i]);
	listing.owners = owners.length > 0 ? owners.data : NULL;
	if (filter->follow)
		which = SQL_EXECUTION_LIST_RECORDED;
	else if (filter->text_in_code != NULL && store_search_query(filter->text_in_code, &match))
		return list_candidates(&listing, reader.conn, match.data, &range, err);
	return list_rows(&listing, reader.conn, which, &range, err);
}

int store_execution_recorded(struct store *store, int64_t *ret, struct err *err)
{
	auto_read struct query q = store_read(store, SQL_EXECUTION_LAST_RECORD, err);

	int result = query_next(&q, err);

	if (result < 0)
		return result;
	*ret = query_int(&q, 0);
	return 0;
}

/* The one row of a query that gives two at most: 1 and *ret, or 0; ERR_CONFLICT. Ends the query. */
static int only_row(struct store *store, struct query *q, const char *id, struct store_execution *ret, struct err *err)
{
	auto_read struct query query = *q;
	struct store_execution execution;
	int found = query_next(&query, err);
	int failed = found > 0 ? read_row(store, &query, &execution, err) : found;

	if (failed < 0 || found == 0)
		return failed;
	found = query_next(&query, err);
	if (found == 0) {
		*ret = execution;
		return 1;
	}
	store_execution_clear(&execution);
	return found < 0 ? found
			 : err_set(err, ERR_CONFLICT, "several executions have '%s' in their id: give more of it", id);
}

int store_execution_find(struct store *store, const char *id, struct store_execution *ret, struct err *err)
{
	static const enum store_sql others[] = {SQL_EXECUTION_FIND_PART, SQL_EXECUTION_FIND_REQUEST};
	struct store_range range;
	int found = store_range(id, &range, err);

	if (found < 0)
		return found;
	struct query first = store_read(store, SQL_EXECUTION_FIND, err);

	query_bind_text(&first, ":from", range.from);
	query_bind_text(&first, ":to", range.to);
	found = only_row(store, &first, id, ret, err);
	for (size_t i = 0; found == 0 && i < ARRAY_SIZE(others) && strlen(id) >= STORE_ID_PART; i++) {
		struct query other = store_read(store, others[i], err);

		query_bind_text(&other, ":part", id);
		found = only_row(store, &other, id, ret, err);
	}
	if (found == 0)
		return err_set(err, ERR_NOT_FOUND, "there is no execution '%s'", id);
	return MIN(found, 0);
}

#define ROW struct store_execution_file
static const struct column change_columns[] = {STORE_CHANGE_COLUMNS(COLUMN_PLACE, COLUMN_PLACE, COLUMN_NONE)};
#undef ROW

int store_execution_files(struct store *store, const char *execution_id, enum store_phase phase,
			  int (*each)(void *arg, const struct store_execution_file *file), void *arg, struct err *err)
{
	auto_read struct query q = store_read(store, SQL_EXECUTION_FILE_LIST, err);
	int found;

	query_bind_text(&q, ":id", execution_id);
	query_bind_text(&q, ":phase", phases[phase]);
	while ((found = query_next(&q, err)) > 0) {
		struct store_execution_file file = {.phase = phase};

		store_file_read(&q, &file.file);
		query_read(&q, change_columns, ARRAY_SIZE(change_columns), &file);
		if (each(arg, &file) != 0)
			return 0;
	}
	return found;
}
