/* store_session.c - see store_session.h. */
#include "store_session.h"

#include "lib/base/util.h"
#include "lib/store/db/store_txn.h"
#include "store_record_internal.h"

#define ROW struct store_session
static const struct column columns[] = {STORE_SESSION_COLUMNS(COLUMN_PLACE, COLUMN_PLACE, COLUMN_NONE)};
#undef ROW

static int make_room(struct store_txn *txn, struct store_session *session, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_SESSION_MAKE_ROOM);

	query_bind_text(&q, ":owner", session->owner);
	query_bind_int(&q, ":most", STORE_SESSIONS_MAX);
	int found = query_next(&q, err);

	if (found > 0)
		query_copy(&q, 0, session->removed, sizeof(session->removed));
	return MIN(found, 0);
}

static int session_add_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct store_session *session = arg;
	int failed = make_room(txn, session, err);

	if (failed < 0)
		return failed;
	auto_query struct query q = query_begin(txn->conn, SQL_SESSION_ADD);

	session->created_us = session->seen_us = store_txn_now(txn);
	session->log_level = -1;
	query_bind_text(&q, ":id", session->id);
	query_bind_some(&q, ":token", session->token_id);
	query_bind_text(&q, ":owner", session->owner);
	query_bind_text(&q, ":protocol", session->protocol);
	query_bind_text(&q, ":client_name", session->client_name);
	query_bind_text(&q, ":client_version", session->client_version);
	query_bind_int(&q, ":client_offers", session->client_offers);
	query_bind_int(&q, ":now", session->created_us);
	store_uptime_bind(txn->store, &q);
	return query_run(&q, NULL, err);
}

int store_session_add(struct store *store, struct store_session *session, struct err *err)
{
	struct store_session made = *session;

	id_new(made.id);
	made.ended_us = 0;
	int failed = store_commit(store, session_add_work, &made, err);

	if (failed == 0)
		*session = made;
	return failed;
}

int store_session_find(struct store *store, const char *id, const char *owner, struct store_session *ret,
		       struct err *err)
{
	auto_read struct query q = store_read(store, SQL_SESSION_FIND, err);

	query_bind_text(&q, ":id", id);
	query_bind_text(&q, ":owner", owner);
	int found = query_next(&q, err);

	if (found <= 0)
		return found < 0 ? found : err_set(err, ERR_NOT_FOUND, "there is no such session");
	*ret = (struct store_session){0};
	query_read(&q, columns, ARRAY_SIZE(columns), ret);
	store_seen(store, SQL_SESSION_SEEN, ret->id, ret->seen_us, ret->idle_from_us);
	return 0;
}

struct session_level {
	const char *id;
	int level;
};

static int session_level_work(struct store_txn *txn, void *arg, struct err *err)
{
	const struct session_level *session = arg;
	auto_query struct query q = query_begin(txn->conn, SQL_SESSION_LOG_LEVEL);

	query_bind_text(&q, ":id", session->id);
	query_bind_int(&q, ":level", session->level);
	return query_run(&q, NULL, err);
}

int store_session_log_level(struct store *store, const char *id, int level, struct err *err)
{
	return store_commit(store, session_level_work, &(struct session_level){id, level}, err);
}

struct session_end {
	const char *id, *owner;
};

static int session_end_work(struct store_txn *txn, void *arg, struct err *err)
{
	const struct session_end *end = arg;
	auto_query struct query q = query_begin(txn->conn, SQL_SESSION_END);
	int64_t changes = 0;

	query_bind_text(&q, ":id", end->id);
	query_bind_text(&q, ":owner", end->owner);
	query_bind_int(&q, ":now", store_txn_now(txn));
	int failed = query_run(&q, &changes, err);

	return failed < 0 || changes > 0 ? failed : err_set(err, ERR_NOT_FOUND, "there is no such session");
}

int store_session_end(struct store *store, const char *id, const char *owner, struct err *err)
{
	return store_commit(store, session_end_work, &(struct session_end){id, owner}, err);
}
