/*
 * store_oauth_client.c - see store_oauth_client.h.
 *
 * Strangers write these rows, so their number is bounded, and who needs room takes it from clients that nobody has used
 * yet: a flood of registrations keeps new clients out, and never one that somebody approved. The operator's own entries
 * are no part of the bound.
 */
#include "store_oauth_client.h"

#include <string.h>

#include "lib/base/text.h"
#include "lib/base/util.h"
#include "lib/store/db/store_txn.h"
#include "store_record_internal.h"

#define ID_BYTES     16 /* random, of one that registers itself */
#define MANUAL_BYTES 8
#define SECRET_BYTES 32

#define ROW struct store_oauth_client
static const struct column columns[] = {STORE_OAUTH_CLIENT_COLUMNS(COLUMN_PLACE, COLUMN_PLACE, COLUMN_NONE)};
#undef ROW

void store_oauth_client_clear(struct store_oauth_client *client)
{
	free(client->redirects);
	client->redirects = NULL;
}

static void read_row(struct query *query, struct store_oauth_client *ret)
{
	*ret = (struct store_oauth_client){0};
	query_read(query, columns, ARRAY_SIZE(columns), ret);
}

int store_oauth_client_find(struct store *store, const char *id, struct store_oauth_client *ret, struct err *err)
{
	auto_read struct query q = store_read(store, SQL_OAUTH_CLIENT_FIND, err);

	query_bind_text(&q, ":id", id);
	int found = query_next(&q, err);

	if (found == 0)
		return err_set(err, ERR_NOT_FOUND, "there is no such client");
	if (found > 0)
		read_row(&q, ret);
	return MIN(found, 0);
}

int store_oauth_client_list(struct store *store, int (*each)(void *arg, const struct store_oauth_client *client),
			    void *arg, struct err *err)
{
	auto_read struct query q = store_read(store, SQL_OAUTH_CLIENT_LIST, err);
	int found;

	while ((found = query_next(&q, err)) > 0) {
		auto_oauth_client struct store_oauth_client client = {0};

		read_row(&q, &client);
		if (each(arg, &client) != 0)
			return 0;
	}
	return found;
}

static int put(struct store_txn *txn, const struct store_oauth_client *client, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_OAUTH_CLIENT_PUT);

	query_bind_text(&q, ":id", client->id);
	query_bind_text(&q, ":kind", client->kind);
	query_bind_text(&q, ":name", client->name);
	query_bind_text(&q, ":redirects", client->redirects);
	query_bind_text(&q, ":secret", client->secret_hash);
	query_bind_int(&q, ":refreshes", client->refreshes);
	query_bind_int(&q, ":now", client->created_us);
	query_bind_int(&q, ":fetched", client->fetched_us);
	query_bind_int(&q, ":fresh", client->fresh_us);
	return query_run(&q, NULL, err);
}

/* So that one more fits: the oldest that nobody used goes. ERR_BUSY: there is none. */
static int make_room(struct store_txn *txn, const char *kind, int64_t most, struct err *err)
{
	int64_t changes = 0, there;

	{
		auto_query struct query q = query_begin(txn->conn, SQL_OAUTH_CLIENT_COUNT);

		query_bind_text(&q, ":kind", kind);
		int found = query_next(&q, err);

		if (found < 0)
			return found;
		there = query_int(&q, 0);
	}
	if (there < most)
		return 0;
	auto_query struct query q = query_begin(txn->conn, SQL_OAUTH_CLIENT_MAKE_ROOM);

	query_bind_text(&q, ":kind", kind);
	int result = query_run(&q, &changes, err);

	if (result == 0 && changes == 0)
		return err_set(err, ERR_BUSY, "%lld clients are known already, and all are in use", (long long)there);
	return result;
}

static int put_work(struct store_txn *txn, void *arg, struct err *err)
{
	const struct store_oauth_client *client = arg;
	bool known = false;

	{
		auto_query struct query q = query_begin(txn->conn, SQL_OAUTH_CLIENT_FIND);

		query_bind_text(&q, ":id", client->id);
		int found = query_next(&q, err);

		if (found < 0)
			return found;
		known = found > 0;
	}
	int result = known ? 0 : make_room(txn, client->kind, STORE_OAUTH_DOCUMENTS_MAX, err);

	return result < 0 ? result : put(txn, client, err);
}

int store_oauth_client_put(struct store *store, const struct store_oauth_client *client, struct err *err)
{
	struct store_oauth_client copy = *client;

	snprintf(copy.kind, sizeof(copy.kind), "%s", STORE_OAUTH_DOCUMENT);
	copy.created_us = clock_now_us();
	return store_commit(store, put_work, &copy, err);
}

static int add_work(struct store_txn *txn, void *arg, struct err *err)
{
	return put(txn, arg, err);
}

static void make_id(struct store_oauth_client *client, const char *prefix, size_t n)
{
	uint8_t bytes[ID_BYTES];
	char hex[2 * ID_BYTES + 1];

	random_bytes(bytes, n);
	hex_encode(bytes, n, hex);
	snprintf(client->id, sizeof(client->id), "%s_%s", prefix, hex);
	client->created_us = clock_now_us();
}

int store_oauth_client_add(struct store *store, struct store_oauth_client *client, bool secret,
			   char ret_secret[STORE_OAUTH_SECRET_SIZE], struct err *err)
{
	uint8_t bytes[SECRET_BYTES];
	struct buf text;

	make_id(client, "spm", MANUAL_BYTES);
	snprintf(client->kind, sizeof(client->kind), "%s", STORE_OAUTH_MANUAL);
	ret_secret[0] = client->secret_hash[0] = '\0';
	if (secret) {
		random_bytes(bytes, sizeof(bytes));
		buf_init_room(&text, ret_secret, STORE_OAUTH_SECRET_SIZE);
		base64url_encode(&text, bytes, sizeof(bytes));
		sha256_hex(ret_secret, strlen(ret_secret), client->secret_hash);
	}
	return store_commit(store, add_work, client, err);
}

struct registration {
	struct store_oauth_client *client;
	int64_t most;
};

static int register_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct registration *registration = arg;
	struct store_oauth_client *client = registration->client;
	int found;

	{
		auto_query struct query q = query_begin(txn->conn, SQL_OAUTH_CLIENT_SAME);

		query_bind_text(&q, ":name", client->name);
		query_bind_text(&q, ":redirects", client->redirects);
		query_bind_int(&q, ":refreshes", client->refreshes);
		found = query_next(&q, err);
		if (found > 0) {
			query_copy(&q, OAUTH_CLIENT_ID, client->id, sizeof(client->id));
			client->created_us = query_int(&q, OAUTH_CLIENT_CREATED);
		}
	}
	if (found != 0)
		return MIN(found, 0);
	int result = make_room(txn, client->kind, registration->most, err);

	return result < 0 ? result : put(txn, client, err);
}

int store_oauth_client_register(struct store *store, struct store_oauth_client *client, int64_t most, struct err *err)
{
	make_id(client, "spd", ID_BYTES);
	snprintf(client->kind, sizeof(client->kind), "%s", STORE_OAUTH_REGISTERED);
	return store_commit(store, register_work, &(struct registration){client, most}, err);
}

struct end {
	const char *id;
	bool block;
};

static int end_work(struct store_txn *txn, void *arg, struct err *err)
{
	const struct end *end = arg;
	int64_t changes = 0;
	int result;

	{
		auto_query struct query q =
			query_begin(txn->conn, end->block ? SQL_OAUTH_CLIENT_BLOCK : SQL_OAUTH_CLIENT_REMOVE);

		query_bind_text(&q, ":id", end->id);
		if (end->block)
			query_bind_int(&q, ":now", store_txn_now(txn));
		result = query_run(&q, &changes, err);
	}
	if (result == 0 && changes == 0)
		return err_set(err, ERR_NOT_FOUND, "there is no such client: see sallyport client list");
	return result < 0 ? result : store_txn_token_revoke_all(txn, SQL_GRANT_OF_CLIENT, end->id, err);
}

int store_oauth_client_end(struct store *store, const char *id, bool block, struct err *err)
{
	return store_commit(store, end_work, &(struct end){id, block}, err);
}
