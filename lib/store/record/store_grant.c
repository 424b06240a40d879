/* store_grant.c - see store_grant.h. The row's hash is that of random bytes which are forgotten: it is nobody's token.
 */
#include "store_grant.h"

#include <string.h>

#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "lib/store/db/store_txn.h"
#include "store_record_internal.h"

static void bind(struct query *q, const struct store_grant *grant)
{
	query_bind_text(q, ":issuer", grant->issuer);
	query_bind_text(q, ":subject", grant->subject);
	query_bind_text(q, ":client", grant->client);
	query_bind_text(q, ":owner", grant->owner);
}

/* 1: it is there. */
static int find(struct query *q, const struct store_grant *grant, struct store_token *ret, struct err *err)
{
	bind(q, grant);
	int found = query_next(q, err);

	if (found > 0)
		store_token_read(q, ret);
	return found;
}

struct work {
	const struct store_grant *grant;
	struct store_token *token;
};

static int check_room(struct store_txn *txn, const struct store_grant *grant, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_GRANT_COUNT);

	query_bind_text(&q, ":issuer", grant->issuer);
	int found = query_next(&q, err);

	if (found > 0 && query_int(&q, 0) >= STORE_GRANTS_MAX)
		return err_set(err, ERR_LIMIT, "%s has named %d people already, no more are taken", grant->issuer,
			       STORE_GRANTS_MAX);
	return found < 0 ? found : 0;
}

static int find_again(struct store_txn *txn, const struct work *work, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_GRANT_FIND);

	return find(&q, work->grant, work->token, err);
}

/* Another request of the same may have come first. */
static int add_work(struct store_txn *txn, void *arg, struct err *err)
{
	const struct work *work = arg;
	const struct store_grant *grant = work->grant;
	struct store_token token = {.scopes = grant->scopes ? grant->scopes : STORE_SCOPE_RUN};
	uint8_t secret[SHA256_SIZE];
	char hash[SHA256_HEX_SIZE];
	int result = find_again(txn, work, err);

	if (result != 0)
		return MIN(result, 0);
	if ((result = check_room(txn, grant, err)) < 0)
		return result;
	id_new(token.id);
	random_bytes(secret, sizeof(secret));
	sha256_hex(secret, sizeof(secret), hash);
	snprintf(token.owner, sizeof(token.owner), "%s", grant->owner);
	snprintf(token.name, sizeof(token.name), "%.*s",
		 (int)utf8_cut(grant->subject, strlen(grant->subject), sizeof(token.name) - 1), grant->subject);
	if ((result = store_txn_token_add(txn, &token, hash, err)) < 0)
		return result;
	auto_query struct query q = query_begin(txn->conn, SQL_GRANT_ADD);

	bind(&q, grant);
	query_bind_text(&q, ":token", token.id);
	query_bind_null(&q, ":parent");
	query_bind_text(&q, ":host", "");
	query_bind_int(&q, ":offline", 0);
	if ((result = query_run(&q, NULL, err)) < 0)
		return result;
	return MIN(find_again(txn, work, err), 0);
}

int store_grant_enter(struct store *store, const struct store_grant *grant, struct store_token *ret, struct err *err)
{
	struct store_token token = {0};
	int result;

	{
		auto_read struct query q = store_read(store, SQL_GRANT_FIND, err);

		result = find(&q, grant, &token, err);
	}
	if (result == 0)
		result = store_commit(store, add_work, &(struct work){grant, &token}, err);
	if (result < 0)
		return result;
	if (token.revoked_us != 0)
		return err_set(err, ERR_NOT_FOUND, "this access was revoked here (sallyport token list)");
	store_seen(store, SQL_TOKEN_USED, token.id, token.used_us, STORE_NO_IDLE);
	token.scopes = grant->scopes;
	token.granted = true;
	*ret = token;
	return 0;
}

#define ROW struct store_grant_shown
static const struct column columns[] = {STORE_GRANT_COLUMNS(COLUMN_PLACE, COLUMN_PLACE, COLUMN_NONE)};
#undef ROW

int store_grant_show(struct store *store, const char *token, struct store_grant_shown *ret, struct err *err)
{
	auto_read struct query q = store_read(store, SQL_GRANT_SHOW, err);

	query_bind_text(&q, ":token", token);
	int found = query_next(&q, err);

	if (found == 0)
		return err_set(err, ERR_NOT_FOUND, "the token is not a grant");
	if (found > 0)
		query_read(&q, columns, ARRAY_SIZE(columns), ret);
	return MIN(found, 0);
}
