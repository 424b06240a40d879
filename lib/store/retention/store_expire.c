/*
 * store_expire.c - see store_expire.h: idle conversations, ended and idle sessions, sent events, keys, tasks, blobs
 * that nothing refers to.
 *
 * What may go is listed by a reader, and asked for again in the transaction that removes it, in small transactions: the
 * writer is never busy with this for long. Rows go first, and durably; files after them. A crash in between leaves a
 * file without a row, which the next garbage collection takes.
 */
#include "store_expire.h"

#include "lib/base/metrics.h"
#include "lib/base/util.h"
#include "lib/store/audit/store_refused.h"
#include "lib/store/blob/store_blob.h"
#include "lib/store/db/store_txn.h"
#include "lib/store/record/store_event.h"
#include "store_erase.h"
#include "store_gc.h"
#include "store_retention_internal.h"

#define ID_TEXT_SIZE SHA256_HEX_SIZE /* the longest key that is listed here */

/* Keys that a statement listed; or owners. */
struct keys {
	char (*items)[ID_TEXT_SIZE];
	size_t count, room;
};

static void keys_clear(struct keys *keys)
{
	free(keys->items);
}
#define auto_keys __attribute__((cleanup(keys_clear)))

static char *keys_add(struct keys *keys)
{
	if (keys->count == keys->room) {
		keys->room = 2 * keys->room + 16;
		keys->items = xrealloc(keys->items, keys->room, sizeof(*keys->items));
	}
	return keys->items[keys->count++];
}

/* owner: of a statement that asks for one, else NULL */
static int list(struct store *store, enum store_sql which, int64_t limit_us, const char *owner, struct keys *ret,
		struct err *err)
{
	auto_read struct query q = store_read(store, which, err);
	int found;

	if (owner)
		query_bind_text(&q, ":owner", owner);
	else
		query_bind_int(&q, ":limit", limit_us);
	while ((found = query_next(&q, err)) > 0)
		query_copy(&q, 0, keys_add(ret), ID_TEXT_SIZE);
	return found;
}

struct removal {
	enum store_sql which;
	const struct keys *keys;
	size_t done;
	int64_t limit_us;
	const char *owner;   /* whose; NULL: of all */
	struct keys *owners; /* of what went, where the statement returns them */
};

_Static_assert(STORE_OWNER_MAX < ID_TEXT_SIZE, "an owner fits a key");

static int remove_one(struct store_txn *txn, const struct removal *removal, const char *key, struct err *err)
{
	char hash[SHA256_HEX_SIZE] = "", owner[STORE_OWNER_MAX + 1] = "", place[SHA256_HEX_SIZE];
	struct store_audit entry;
	size_t known = 0;
	uint64_t row;
	int found;
	auto_query struct query q = query_begin(txn->conn, removal->which);

	if (parse_u64(key, 1, INT64_MAX, &row) == 0) {
		query_bind_int(&q, ":id", (int64_t)row);
		query_bind_int(&q, ":limit", removal->limit_us);
	}
	while ((found = query_next(&q, err)) > 0) {
		query_copy(&q, EXPIRED_OWNER, owner, sizeof(owner));
		query_copy(&q, EXPIRED_HASH, hash, sizeof(hash));
	}
	if (found < 0 || hash[0] == '\0')
		return found;
	while (known < removal->owners->count && !streq(removal->owners->items[known], owner))
		known++;
	if (known == removal->owners->count)
		snprintf(keys_add(removal->owners), ID_TEXT_SIZE, "%s", owner);
	metrics_add(METRIC_SWEPT, "conversations", NULL, 1);
	store_audit_place(hash, place);
	store_audit_init(&entry, STORE_AUDIT_CONVERSATION_EXPIRE, "conversation", place);
	entry.owner = owner;
	return store_txn_audit(txn, &entry, err);
}

static int removal_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct removal *removal = arg;
	const int64_t until = clock_monotonic_us() + STORE_BUDGET_US;
	int failed = 0;

	while (failed == 0 && removal->done < removal->keys->count && clock_monotonic_us() < until)
		failed = remove_one(txn, removal, removal->keys->items[removal->done++], err);
	return failed;
}

/* A statement that removes, or changes, at most :rows; again and again until it finds no more. */
struct slices {
	enum store_sql which;
	const int64_t *limit_us; /* :limit; NULL: it goes by the time that was served */
	int64_t row;             /* :id; 0: none */
	int64_t gone;
};

static int slice_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct slices *slices = arg;
	auto_query struct query q = query_begin(txn->conn, slices->which);

	query_bind_int(&q, ":rows", STORE_SLICE_ROWS);
	if (slices->row > 0)
		query_bind_int(&q, ":id", slices->row);
	else if (slices->limit_us != NULL)
		query_bind_int(&q, ":limit", *slices->limit_us);
	else
		store_uptime_bind(txn->store, &q);
	return query_run(&q, &slices->gone, err);
}

static int slices_run(struct store *store, struct slices slices, struct err *err)
{
	int failed;

	do {
		failed = store_commit_gently(store, slice_work, &slices, err);
	} while (failed == 0 && slices.gone == STORE_SLICE_ROWS);
	return failed;
}

int store_conversation_detach(struct store *store, int64_t row, struct err *err)
{
	return slices_run(store, (struct slices){.which = SQL_CONVERSATION_DETACH, .row = row}, err);
}

static int remove_each(struct store *store, enum store_sql listing, struct removal removal, struct err *err)
{
	auto_keys struct keys keys = {0};
	int failed = list(store, listing, removal.limit_us, removal.owner, &keys, err);

	removal.keys = &keys;
	for (size_t i = 0; failed == 0 && i < keys.count; i++) { /* one that is used again has lost nothing */
		uint64_t row;

		if (parse_u64(keys.items[i], 1, INT64_MAX, &row) == 0)
			failed = store_conversation_detach(store, (int64_t)row, err);
	}
	while (failed == 0 && removal.done < keys.count)
		failed = store_commit_gently(store, removal_work, &removal, err);
	return failed;
}

/* Rows first. */
static int expire_rows(struct store *store, struct keys *owners, struct err *err)
{
	const int64_t ttl = store->retention.conversation_ttl_us;
	/* Without a time to live nothing idles too long; sessions that ended go anyhow. */
	int64_t idle_limit = INT64_MIN, event_limit, served = 0, now = clock_now_us();
	int failed = store_uptime_save(store, err);

	store_refused_write(store);
	if (failed == 0)
		failed = store_uptime(store, &served, err);
	if (ttl > 0)
		idle_limit = served - ttl;
	event_limit = served - STORE_EVENT_TTL_US;
	const struct removal conversations = {
		.which = SQL_CONVERSATION_EXPIRE, .limit_us = idle_limit, .owners = owners};

	if (failed == 0)
		failed = remove_each(store, SQL_CONVERSATION_IDLE, conversations, err);
	const struct slices all[] = {{.which = SQL_SESSION_EXPIRE_EVENTS, .limit_us = &idle_limit},
				     {.which = SQL_SESSION_EXPIRE, .limit_us = &idle_limit},
				     {.which = SQL_EVENT_EXPIRE, .limit_us = &event_limit},
				     {.which = SQL_REQUEST_EXPIRE},
				     {.which = SQL_TASK_EXPIRE},
				     {.which = SQL_OAUTH_CODE_EXPIRE, .limit_us = &now},
				     {.which = SQL_OAUTH_LOGIN_EXPIRE, .limit_us = &now},
				     {.which = SQL_OAUTH_TOKEN_EXPIRE, .limit_us = &now},
				     {.which = SQL_OAUTH_CLIENT_EXPIRE, .limit_us = &now}};

	for (size_t i = 0; failed == 0 && i < ARRAY_SIZE(all); i++)
		failed = slices_run(store, all[i], err);
	return failed;
}

int store_expire_owner(struct store *store, const char *owner, struct err *err)
{
	auto_keys struct keys owners = {0};
	struct removal conversations = {
		.which = SQL_CONVERSATION_EXPIRE, .limit_us = INT64_MAX, .owner = owner, .owners = &owners};

	return remove_each(store, SQL_MOVE_CONVERSATION_IDS, conversations, err);
}

int store_expire(struct store *store, int64_t now_us, void (*lost)(void *arg, const char *owner), void *arg,
		 struct err *err)
{
	const struct store_gc gc = {.now_us = now_us};
	struct store_collected collected;
	auto_keys struct keys owners = {0};
	int failed = store->mode == STORE_READ ? err_set(err, ERR_DENIED, "the record is open for reading only")
					       : expire_rows(store, &owners, err);

	if (failed == 0)
		failed = store_retain(store, now_us, err);
	if (failed == 0)
		failed = store_gc(store, &gc, &collected, err);
	if (failed == -ERR_CONFLICT) /* somebody else does it */
		failed = 0;
	for (size_t i = 0; lost && i < owners.count; i++)
		lost(arg, owners.items[i]);
	return failed < 0 ? err_wrap(err, "removing what has expired") : 0;
}
