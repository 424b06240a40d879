/* store_event.c - see store_event.h. */
#include "store_event.h"

#include "lib/base/util.h"
#include "lib/store/db/store_txn.h"

#define ROW struct store_event
static const struct column columns[] = {STORE_EVENT_COLUMNS(COLUMN_PLACE, COLUMN_PLACE, COLUMN_NONE)};
#undef ROW

struct event_add {
	const char *session;
	const struct store_event *event;
};

static int add_work(struct store_txn *txn, void *arg, struct err *err)
{
	const struct event_add *add = arg;
	auto_query struct query q = query_begin(txn->conn, SQL_EVENT_ADD);

	query_bind_text(&q, ":stream", add->event->stream);
	query_bind_int(&q, ":number", add->event->number);
	query_bind_text(&q, ":session", add->session);
	query_bind_int(&q, ":last", add->event->last);
	query_bind_int(&q, ":now", store_txn_now(txn));
	store_uptime_bind(txn->store, &q);
	query_bind_bytes(&q, ":message", add->event->message, add->event->length);
	return query_run(&q, NULL, err);
}

int store_event_add(struct store *store, const char *session, const struct store_event *event, struct err *err)
{
	return store_commit(store, add_work, &(struct event_add){session, event}, err);
}

int store_event_list(struct store *store, const struct store_event_filter *filter,
		     int (*each)(void *arg, const struct store_event *event), void *arg, struct err *err)
{
	auto_read struct query q = store_read(store, SQL_EVENT_LIST, err);
	int found;

	query_bind_text(&q, ":stream", filter->stream);
	query_bind_text(&q, ":session", filter->session);
	query_bind_int(&q, ":from", filter->from);
	while ((found = query_next(&q, err)) > 0) {
		struct store_event event = {0};

		query_read(&q, columns, ARRAY_SIZE(columns), &event);
		snprintf(event.stream, sizeof(event.stream), "%s", filter->stream);
		event.message = query_bytes(&q, EVENT_MESSAGE, &event.length);
		if (each(arg, &event) != 0)
			return 0;
	}
	return found;
}
