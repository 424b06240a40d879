/*
 * store_oauth_token.c - see store_oauth_token.h.
 *
 * Every step of a refresh is in one transaction, on the store's one writer: two requests with the same token come one
 * after the other, and each finds what the other left. That an access token was used first is noted behind the request,
 * once: it makes the token that it came from ripe for the minute of grace.
 */
#include "store_oauth_token.h"

#include <string.h>

#include "lib/base/text.h"
#include "lib/base/util.h"
#include "lib/store/db/store_txn.h"
#include "store_record_internal.h"

#define SECRET_BYTES 24
#define ACCESS       "access"
#define REFRESH      "refresh"

struct row {
	char kind[8], grant[ID_SIZE], parent[SHA256_HEX_SIZE];
	int64_t expires_us, replaced_us, proved_us; /* of the token */
	int64_t revoked_us, ends_us;                /* of its grant */
	char owner[STORE_OWNER_MAX + 1], client[513];
	bool offline;
	unsigned scopes; /* that were approved */
};
#define ROW struct row
static const struct column columns[] = {STORE_OAUTH_TOKEN_COLUMNS(COLUMN_PLACE, COLUMN_PLACE, COLUMN_NONE)};
#undef ROW

/* 1: it is there. */
static int find(struct store_txn *txn, const char *hash, struct row *ret, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_OAUTH_TOKEN_FIND);

	query_bind_text(&q, ":hash", hash);
	int found = query_next(&q, err);

	if (found > 0) {
		query_read(&q, columns, ARRAY_SIZE(columns), ret);
		store_scopes_parse(query_text(&q, OAUTH_TOKEN_SCOPES), &ret->scopes, NULL);
	}
	return found;
}

/* -------- making them --------------------------------------------------------------------------------- */

struct fresh {
	const char *kind, *prefix, *parent;
	unsigned scopes;
	int64_t expires_us;
};

static int add(struct store_txn *txn, const struct store_oauth_issued *issued, const struct fresh *fresh,
	       char ret_text[STORE_TOKEN_TEXT], struct err *err)
{
	uint8_t secret[SECRET_BYTES];
	char hex[2 * SECRET_BYTES + 1], hash[SHA256_HEX_SIZE], scopes[STORE_SCOPES_TEXT];
	auto_query struct query q = query_begin(txn->conn, SQL_OAUTH_TOKEN_ADD);

	random_bytes(secret, sizeof(secret));
	hex_encode(secret, sizeof(secret), hex);
	snprintf(ret_text, STORE_TOKEN_TEXT, "%s_%s_%s", fresh->prefix, issued->owner, hex);
	sha256_hex(ret_text, strlen(ret_text), hash);
	store_scopes_print(fresh->scopes, scopes);
	query_bind_text(&q, ":hash", hash);
	query_bind_text(&q, ":token", issued->grant);
	query_bind_text(&q, ":kind", fresh->kind);
	query_bind_text(&q, ":scopes", scopes);
	query_bind_text(&q, ":parent", fresh->parent);
	query_bind_int(&q, ":now", store_txn_now(txn));
	query_bind_int(&q, ":expires", fresh->expires_us);
	return query_run(&q, NULL, err);
}

/* Successors that nobody uses do not pile up. */
static int drop_surplus(struct store_txn *txn, const char *parent, const char *kind, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_OAUTH_TOKEN_SURPLUS);

	query_bind_text(&q, ":parent", parent);
	query_bind_text(&q, ":kind", kind);
	query_bind_int(&q, ":most", STORE_OAUTH_SUCCESSORS);
	return query_run(&q, NULL, err);
}

int store_txn_oauth_issue(struct store_txn *txn, const struct store_oauth_issue *issue,
			  struct store_oauth_issued *issued, struct err *err)
{
	const int64_t now = store_txn_now(txn);
	const struct fresh access = {ACCESS, "spa", issue->parent, issued->scopes,
				     MIN(now + issue->terms->access_us, issue->ends_us)};
	const struct fresh refresh = {REFRESH, "spr", issue->parent, issue->granted,
				      MIN(now + issue->terms->refresh_us, issue->ends_us)};
	int result = add(txn, issued, &access, issued->access, err);

	issued->access_us = access.expires_us - now;
	if (result == 0 && issue->refreshes)
		result = add(txn, issued, &refresh, issued->refresh, err);
	if (result == 0 && issue->parent)
		result = drop_surplus(txn, issue->parent, ACCESS, err);
	if (result == 0 && issue->parent)
		result = drop_surplus(txn, issue->parent, REFRESH, err);
	return result;
}

/* -------- using them ---------------------------------------------------------------------------------- */

/* Something made from the refresh token of this hash was used: nobody waits for the note. */
struct proof {
	char hash[SHA256_HEX_SIZE];
};

static int mark(struct store_txn *txn, enum store_sql which, const char *hash, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, which);

	query_bind_text(&q, ":hash", hash);
	query_bind_int(&q, ":now", store_txn_now(txn));
	return query_run(&q, NULL, err);
}

static int prove_work(struct store_txn *txn, void *arg, struct err *err)
{
	const struct proof *proof = arg;

	return mark(txn, SQL_OAUTH_TOKEN_PROVE, proof->hash, err);
}

static void prove_done(void *arg, int result, const struct err *err)
{
	(void)result, (void)err; /* the next use tries again */
	free(arg);
}

int store_oauth_token_check(struct store *store, const char *text, struct store_token *ret, struct err *err)
{
	char hash[SHA256_HEX_SIZE], unproved[SHA256_HEX_SIZE] = "";
	struct store_token token = {0};
	const int64_t now = clock_now_us();
	int64_t expires_us = 0;
	int found;

	sha256_hex(text, strlen(text), hash);
	{
		auto_read struct query q = store_read(store, SQL_OAUTH_TOKEN_CHECK, err);

		query_bind_text(&q, ":hash", hash);
		found = query_next(&q, err);
		if (found > 0) {
			store_token_read(&q, &token);
			token.scopes = 0;
			store_scopes_parse(query_text(&q, OAUTH_CHECK_SCOPES), &token.scopes, NULL);
			expires_us = query_int(&q, OAUTH_CHECK_EXPIRES);
			query_copy(&q, OAUTH_CHECK_UNPROVED, unproved, sizeof(unproved));
		}
	}
	if (found < 0)
		return found;
	if (found == 0 || expires_us <= now || token.revoked_us != 0 ||
	    (token.expires_us != 0 && token.expires_us <= now))
		return err_set(err, ERR_DENIED, "the token is unknown, expired, or was revoked");
	store_seen(store, SQL_TOKEN_USED, token.id, token.used_us, STORE_NO_IDLE);
	if (unproved[0] && store->mode != STORE_READ) {
		struct proof *proof = xcalloc(1, sizeof(*proof));

		memcpy(proof->hash, unproved, sizeof(proof->hash));
		store_commit_async(store, prove_work, proof, prove_done);
	}
	token.granted = true;
	*ret = token;
	return 0;
}

struct refresh {
	const struct store_oauth_renewal *renewal;
	const struct store_oauth_terms *terms;
	struct store_oauth_issued *issued;
	bool stolen;
};

static int check(const struct row *row, int found, const struct store_oauth_renewal *renewal, int64_t now,
		 struct err *err)
{
	if (found == 0 || !streq(row->kind, REFRESH))
		return err_set(err, ERR_DENIED, "the refresh token is unknown");
	if (!streq(row->client, renewal->client))
		return err_set(err, ERR_DENIED, "the refresh token is another client's");
	if (row->revoked_us != 0)
		return err_set(err, ERR_DENIED, "the approval was revoked");
	if (row->expires_us <= now || row->ends_us <= now)
		return err_set(err, ERR_DENIED, "the refresh token has expired");
	if (renewal->wanted & ~row->scopes)
		return err_set(err, ERR_INVALID, "more scopes than were approved");
	return 0;
}

/* It was used: its parent has reached its client, and the parent's other children have not. */
static int step(struct store_txn *txn, const struct row *row, const char *hash, struct err *err)
{
	int result = row->parent[0] ? mark(txn, SQL_OAUTH_TOKEN_PROVE, row->parent, err) : 0;

	if (result == 0 && row->parent[0] && row->replaced_us == 0) {
		auto_query struct query q = query_begin(txn->conn, SQL_OAUTH_TOKEN_RETIRE);

		query_bind_text(&q, ":parent", row->parent);
		query_bind_text(&q, ":hash", hash);
		query_bind_int(&q, ":now", store_txn_now(txn));
		result = query_run(&q, NULL, err);
	}
	return result < 0 ? result : mark(txn, SQL_OAUTH_TOKEN_REPLACE, hash, err);
}

static int refresh_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct refresh *refresh = arg;
	struct store_oauth_issued *issued = refresh->issued;
	const int64_t now = store_txn_now(txn);
	char hash[SHA256_HEX_SIZE];
	struct row row = {0};

	sha256_hex(refresh->renewal->refresh, strlen(refresh->renewal->refresh), hash);
	int found = find(txn, hash, &row, err);
	int result = found < 0 ? found : check(&row, found, refresh->renewal, now, err);

	if (result < 0)
		return result;
	snprintf(issued->owner, sizeof(issued->owner), "%s", row.owner);
	snprintf(issued->grant, sizeof(issued->grant), "%s", row.grant);
	if (row.replaced_us != 0 && row.proved_us != 0 && now > row.proved_us + STORE_OAUTH_GRACE_US) {
		refresh->stolen = true;
		return store_txn_token_revoke(txn, row.grant, err);
	}
	if ((result = step(txn, &row, hash, err)) < 0)
		return result;
	issued->scopes = refresh->renewal->wanted ? refresh->renewal->wanted : row.scopes;
	issued->offline = row.offline;
	const struct store_oauth_issue issue = {.terms = refresh->terms,
						.parent = hash,
						.granted = row.scopes,
						.ends_us = row.ends_us,
						.refreshes = refresh->terms->refresh_us > 0};

	return store_txn_oauth_issue(txn, &issue, issued, err);
}

int store_oauth_token_refresh(struct store *store, const struct store_oauth_renewal *renewal,
			      const struct store_oauth_terms *terms, struct store_oauth_issued *ret, bool *ret_stolen,
			      struct err *err)
{
	struct store_oauth_issued issued = {0};
	struct refresh refresh = {renewal, terms, &issued, false};
	int result = store_commit(store, refresh_work, &refresh, err);

	*ret_stolen = result == 0 && refresh.stolen;
	if (*ret_stolen)
		result = err_set(err, ERR_DENIED, "the refresh token was used before: the approval has been revoked");
	if (result == 0 || *ret_stolen) /* then of the grant alone */
		*ret = issued;
	explicit_bzero(&issued, sizeof(issued));
	return result;
}

struct revocation {
	const char *hash, *client;
};

static int revoke_work(struct store_txn *txn, void *arg, struct err *err)
{
	const struct revocation *revocation = arg;
	struct row row = {0};
	int found = find(txn, revocation->hash, &row, err);

	if (found <= 0 || !streq(row.client, revocation->client))
		return MIN(found, 0);
	return streq(row.kind, REFRESH) ? store_txn_token_revoke(txn, row.grant, err)
					: mark(txn, SQL_OAUTH_TOKEN_END, revocation->hash, err);
}

int store_oauth_token_revoke(struct store *store, const char *text, const char *client, struct err *err)
{
	char hash[SHA256_HEX_SIZE];

	sha256_hex(text, strlen(text), hash);
	return store_commit(store, revoke_work, &(struct revocation){hash, client}, err);
}
