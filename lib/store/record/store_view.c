/*
 * store_view.c - see store_view.h.
 *
 * Each question takes a reader, bounds its time and gives it back; nothing is kept between them. Where a text is looked
 * for and the index of texts helps (store_search.h), the index names the runs that may have it and each is then looked
 * at by itself; else all rows of the span are looked at, newest first.
 */
#include "store_view.h"

#include <string.h>

#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "lib/store/blob/store_search.h"
#include "lib/store/db/store_txn.h"

#define SHARED_MAX 20

static int take_reader(struct store *store, struct store_reader *ret, struct err *err)
{
	int result = store_reader_take(store, ret, err);

	if (result == 0)
		store_conn_limit(ret->conn, STORE_VIEW_US);
	return result;
}

/* As store_read, within the time of a view. */
static struct query view_read(struct store *store, enum store_sql which, struct err *err)
{
	struct query q = store_read(store, which, err);

	if (q.conn != NULL)
		store_conn_limit(q.conn, STORE_VIEW_US);
	return q;
}

/* The least id that is made at this time: its first 48 bits are milliseconds. */
static void id_at(int64_t us, char ret[ID_SIZE])
{
	const uint64_t ms = us > 0 ? (uint64_t)us / 1000 : 0;

	snprintf(ret, ID_SIZE, "%08llx-%04llx", (unsigned long long)(ms >> 16) & 0xffffffff,
		 (unsigned long long)ms & 0xffff);
}

#define ROW struct store_view_run
static const struct column run_columns[] = {STORE_VIEW_RUN_COLUMNS(COLUMN_PLACE, COLUMN_PLACE, COLUMN_NONE)};
#undef ROW

static void read_run(struct query *query, struct store_view_run *ret)
{
	size_t length;

	*ret = (struct store_view_run){0};
	query_read(query, run_columns, ARRAY_SIZE(run_columns), ret);
	const char *code = query_bytes(query, VIEW_RUN_CODE, &length);

	length = code ? utf8_cut(code, length, sizeof(ret->code) - 1) : 0;
	for (size_t i = 0; i < length; i++)
		ret->code[i] = code[i] ? code[i] : ' ';
}

struct listing {
	struct store_conn *conn;
	const struct store_view_filter *filter;
	void (*each)(void *arg, const struct store_view_run *run);
	void *arg;
	int64_t left; /* rows */
};

/* Those of ids from `from` to below `before`. */
static int list_runs(struct listing *listing, const char *from, const char *before, struct err *err)
{
	const struct store_view_filter *filter = listing->filter;
	struct store_view_run run;
	int found;
	static const enum store_sql ordered[] = {
		[STORE_VIEW_SLOWEST] = SQL_VIEW_RUNS_SLOWEST, [STORE_VIEW_LARGEST] = SQL_VIEW_RUNS_LARGEST};
	const enum store_sql newest = filter->owner ? SQL_VIEW_RUNS_OF : SQL_VIEW_RUNS;
	auto_query struct query q = query_begin(listing->conn, filter->order ? ordered[filter->order] : newest);

	if (filter->owner || filter->order)
		query_bind_text(&q, ":owner", filter->owner);
	query_bind_text(&q, ":tool", filter->tool);
	query_bind_text(&q, ":request", filter->request);
	query_bind_text(&q, ":client", filter->client);
	query_bind_text(&q, ":file", filter->file);
	query_bind_text(&q, ":same", filter->same);
	query_bind_int(&q, ":denied", filter->denied);
	query_bind_int(&q, ":secrets", filter->secrets);
	query_bind_text(&q, ":before", before);
	query_bind_text(&q, ":from", from);
	query_bind_text(&q, ":token", filter->token);
	query_bind_text(&q, ":conversation", filter->conversation);
	query_bind_text(&q, ":language", filter->language);
	query_bind_text(&q, ":verdict", filter->verdict);
	query_bind_text(&q, ":text", filter->text);
	query_bind_int(&q, ":running", filter->running);
	query_bind_int(&q, ":limit", listing->left);
	while ((found = query_next(&q, err)) > 0) {
		read_run(&q, &run);
		listing->left--;
		listing->each(listing->arg, &run);
	}
	return found;
}

/* The index names runs that may have the text, newest first; each is looked at by itself. */
static int list_found(struct listing *listing, const char *match, const char *from, const char *before, struct err *err)
{
	auto_query struct query q = query_begin(listing->conn, SQL_SEARCH_NEWEST);
	int result = 0, found;

	query_bind_text(&q, ":match", match);
	while (result == 0 && listing->left > 0 && (found = query_next(&q, err)) != 0) {
		char id[ID_SIZE], behind[ID_SIZE + sizeof(STORE_ID_ABOVE)];

		if (found < 0)
			return found;
		query_copy(&q, 0, id, sizeof(id));
		if (strcmp(id, from) < 0)
			break;
		snprintf(behind, sizeof(behind), "%s" STORE_ID_ABOVE, id);
		if (strcmp(id, before) < 0)
			result = list_runs(listing, id, behind, err);
	}
	return result;
}

int store_view_runs(struct store *store, const struct store_view_filter *filter,
		    void (*each)(void *arg, const struct store_view_run *run), void *arg, struct err *err)
{
	struct listing listing = {
		.filter = filter, .each = each, .arg = arg, .left = MIN(filter->limit, STORE_VIEW_PAGE_MAX)};
	const char *before = filter->before ? filter->before : STORE_ID_ABOVE;
	auto_reader struct store_reader reader = {0};
	auto_buf struct buf match = {0};
	char from[ID_SIZE] = "", until[ID_SIZE] = STORE_ID_ABOVE;
	int result = take_reader(store, &reader, err);

	if (result < 0)
		return result;
	if (filter->since_us)
		id_at(filter->since_us, from);
	if (filter->until_us)
		id_at(filter->until_us, until);
	before = strcmp(until, before) < 0 ? until : before;
	listing.conn = reader.conn;
	buf_init(&match, SIZE_MAX);
	if (filter->text && !filter->order && store_search_query(filter->text, &match))
		return list_found(&listing, match.data, from, before, err);
	return list_runs(&listing, from, before, err);
}

static int find_neighbour(struct store_conn *conn, enum store_sql which, const char *id, char ret[ID_SIZE],
			  struct err *err)
{
	auto_query struct query q = query_begin(conn, which);

	query_bind_text(&q, ":id", id);
	int found = query_next(&q, err);

	if (found < 0)
		return found;
	query_copy(&q, 0, ret, ID_SIZE);
	return 0;
}

int store_view_neighbours(struct store *store, const char *id, struct store_view_next *ret, struct err *err)
{
	auto_reader struct store_reader reader = {0};
	struct store_view_next next = {0};
	int result = take_reader(store, &reader, err);

	if (result == 0)
		result = find_neighbour(reader.conn, SQL_VIEW_BEFORE, id, next.before, err);
	if (result == 0)
		result = find_neighbour(reader.conn, SQL_VIEW_AFTER, id, next.after, err);
	if (result == 0)
		*ret = next;
	return result;
}

#define ROW struct store_view_count
static const struct column count_columns[] = {STORE_VIEW_COUNT_COLUMNS(COLUMN_PLACE, COLUMN_PLACE, COLUMN_NONE)};
#undef ROW

int store_view_verdicts(struct store *store, int64_t since_us,
			void (*each)(void *arg, const struct store_view_count *count), void *arg, struct err *err)
{
	struct store_view_count count;
	char from[ID_SIZE];
	auto_read struct query q = view_read(store, SQL_VIEW_VERDICTS, err);
	int found;

	id_at(since_us, from);
	query_bind_text(&q, ":from", from);
	while ((found = query_next(&q, err)) > 0) {
		query_read(&q, count_columns, ARRAY_SIZE(count_columns), &count);
		each(arg, &count);
	}
	return found;
}

#define ROW struct store_view_point
static const struct column point_columns[] = {STORE_VIEW_POINT_COLUMNS(COLUMN_PLACE, COLUMN_PLACE, COLUMN_NONE)};
#undef ROW

int store_view_points(struct store *store, int64_t since_us,
		      void (*each)(void *arg, const struct store_view_point *point), void *arg, struct err *err)
{
	struct store_view_point point;
	char from[ID_SIZE];
	auto_read struct query q = view_read(store, SQL_VIEW_POINTS, err);
	int found;

	id_at(since_us, from);
	query_bind_text(&q, ":from", from);
	while ((found = query_next(&q, err)) > 0) {
		query_read(&q, point_columns, ARRAY_SIZE(point_columns), &point);
		each(arg, &point);
	}
	return found;
}

#define ROW struct store_view_owner
static const struct column owner_columns[] = {STORE_VIEW_OWNER_COLUMNS(COLUMN_PLACE, COLUMN_PLACE, COLUMN_NONE)};
#undef ROW

int store_view_owners(struct store *store, int64_t since_us,
		      void (*each)(void *arg, const struct store_view_owner *owner), void *arg, struct err *err)
{
	struct store_view_owner owner;
	char from[ID_SIZE];
	auto_read struct query q = view_read(store, SQL_VIEW_OWNERS, err);
	int found;

	id_at(since_us, from);
	query_bind_text(&q, ":from", from);
	query_bind_int(&q, ":limit", STORE_VIEW_PAGE_MAX);
	while ((found = query_next(&q, err)) > 0) {
		query_read(&q, owner_columns, ARRAY_SIZE(owner_columns), &owner);
		each(arg, &owner);
	}
	return found;
}

int store_view_failures(struct store *store, int64_t since_us,
			void (*each)(void *arg, const struct store_view_failure *failure), void *arg, struct err *err)
{
	enum { VERDICT, MESSAGE, RESULT, ERROR, ID };
	char from[ID_SIZE];
	auto_read struct query q = view_read(store, SQL_VIEW_FAILURES, err);
	int found;

	id_at(since_us, from);
	query_bind_text(&q, ":from", from);
	while ((found = query_next(&q, err)) > 0) {
		struct store_view_failure failure = {.id = query_text(&q, ID)};

		failure.what.verdict = query_text(&q, VERDICT);
		failure.what.message = query_text(&q, MESSAGE);
		failure.what.result = query_text(&q, RESULT);
		failure.what.error = query_bytes(&q, ERROR, &failure.what.error_length);
		failure.what.status = true;
		each(arg, &failure);
	}
	return found;
}

int store_view_shared(struct store *store, int64_t since_us,
		      void (*each)(void *arg, const struct store_view_shared *shared), void *arg, struct err *err)
{
	enum { CODE, RUNS, OWNERS, ID };
	char from[ID_SIZE];
	auto_read struct query q = view_read(store, SQL_VIEW_SHARED, err);
	int found;

	id_at(since_us, from);
	query_bind_text(&q, ":from", from);
	query_bind_int(&q, ":limit", SHARED_MAX);
	while ((found = query_next(&q, err)) > 0) {
		const struct store_view_shared shared = {
			query_text(&q, CODE), query_text(&q, OWNERS), query_text(&q, ID), query_int(&q, RUNS)};

		each(arg, &shared);
	}
	return found;
}

static int each_name(struct store *store, enum store_sql which, void (*each)(void *arg, const char *name), void *arg,
		     struct err *err)
{
	auto_read struct query q = view_read(store, which, err);
	int found;

	while ((found = query_next(&q, err)) > 0)
		each(arg, query_text(&q, 0));
	return found;
}

int store_view_languages(struct store *store, void (*each)(void *arg, const char *language), void *arg, struct err *err)
{
	return each_name(store, SQL_VIEW_LANGUAGES, each, arg, err);
}

int store_view_names(struct store *store, void (*each)(void *arg, const char *owner), void *arg, struct err *err)
{
	return each_name(store, SQL_VIEW_NAMES, each, arg, err);
}

int store_view_sandboxes(struct store *store, int64_t *ret, struct err *err)
{
	auto_read struct query q = view_read(store, SQL_VIEW_SANDBOXES, err);

	query_bind_text(&q, ":instance", store->instance);
	int found = query_next(&q, err);

	if (found < 0)
		return found;
	*ret = query_int(&q, 0);
	return 0;
}

int store_view_kinds(struct store *store, void (*each)(void *arg, const char *kind, int64_t bytes), void *arg,
		     struct err *err)
{
	static const char *const kinds[] = {"code", "input", "output", "files", "calls", "index"};
	auto_read struct query q = view_read(store, SQL_VIEW_KINDS, err);
	const int found = query_next(&q, err);

	for (int i = 0; found > 0 && i < (int)ARRAY_SIZE(kinds); i++)
		each(arg, kinds[i], query_int(&q, i));
	return MIN(found, 0);
}

int store_view_tasks(struct store *store, void (*each)(void *arg, const char *state, int64_t count), void *arg,
		     struct err *err)
{
	auto_read struct query q = view_read(store, SQL_VIEW_TASKS, err);
	int found;

	while ((found = query_next(&q, err)) > 0)
		each(arg, query_text(&q, VIEW_TASKS_STATE), query_int(&q, VIEW_TASKS_COUNT));
	return found;
}

int store_view_sizes(struct store *store, struct store_view_sizes *ret, struct err *err)
{
	auto_reader struct store_reader reader = {0};
	int found = take_reader(store, &reader, err);

	if (found < 0)
		return found;
	auto_query struct query blobs = query_begin(reader.conn, SQL_VIEW_BLOBS);
	auto_query struct query audit = query_begin(reader.conn, SQL_VIEW_AUDIT);

	found = query_next(&audit, err);
	if (found > 0)
		found = query_next(&blobs, err);
	if (found < 0)
		return found;
	ret->blobs_bytes = query_int(&blobs, 0);
	ret->audit_entries = query_int(&audit, VIEW_AUDIT_ENTRIES);
	ret->backup_us = query_int(&audit, VIEW_AUDIT_BACKUP);
	return 0;
}

#define ROW struct store_view_entry
static const struct column entry_columns[] = {STORE_VIEW_ENTRY_COLUMNS(COLUMN_PLACE, COLUMN_PLACE, COLUMN_NONE)};
#undef ROW

int store_view_entries(struct store *store, const struct store_view_log *log,
		       void (*each)(void *arg, const struct store_view_entry *entry), void *arg, struct err *err)
{
	struct store_view_entry entry = {0};
	auto_read struct query q = view_read(store, log->object ? SQL_VIEW_ENTRIES_OF : SQL_VIEW_ENTRIES, err);
	int found;

	if (log->object)
		query_bind_text(&q, ":object", log->object);
	query_bind_int(&q, ":before", log->before ? log->before : INT64_MAX);
	query_bind_text(&q, ":kind", log->kind);
	query_bind_int(&q, ":limit", MIN(log->limit, STORE_VIEW_PAGE_MAX));
	while ((found = query_next(&q, err)) > 0) {
		query_read(&q, entry_columns, ARRAY_SIZE(entry_columns), &entry);
		entry.kind = query_text(&q, VIEW_ENTRY_KIND);
		entry.object = query_text(&q, VIEW_ENTRY_OBJECT);
		entry.entry = query_text(&q, VIEW_ENTRY_TEXT);
		each(arg, &entry);
	}
	return found;
}
