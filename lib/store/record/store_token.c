/*
 * store_token.c - bearer tokens.
 *
 * A token's text is made here, handed out once and forgotten: the row has its SHA-256. A hash without salt or
 * stretching is enough because the secret is 192 random bits; a reader of the database cannot find the text, and
 * looking a token up is one index access. Revoking is a time in the row, so that it works at once and for every
 * process.
 *
 * "Last used" is kept to the minute, by an operation that nobody waits for: a request must not cost a commit of its
 * own.
 */
#include "store_token.h"

#include "lib/base/text.h"
#include "lib/base/util.h"
#include "lib/store/audit/store_audit_internal.h"
#include "lib/store/db/store_txn.h"
#include "store_record_internal.h"

#define SECRET_SIZE 24 /* bytes of a token's secret, written as hex */

bool store_owner_valid(const char *owner)
{
	size_t length = strlen(owner);

	return length > 0 && length <= STORE_OWNER_MAX && owner[0] != '-' &&
	       strspn(owner, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
}

#define ROW struct store_token
static const struct column columns[] = {STORE_TOKEN_COLUMNS(COLUMN_PLACE, COLUMN_PLACE, COLUMN_NONE)};
#undef ROW

void store_token_read(struct query *query, struct store_token *ret)
{
	*ret = (struct store_token){0};
	query_read(query, columns, ARRAY_SIZE(columns), ret);
	/* A scope of a newer release: none of ours. */
	store_scopes_parse(query_text(query, TOKEN_SCOPES), &ret->scopes, NULL);
}

struct token_work {
	struct store_token *token;
	const char *hash;
};

int store_txn_token_add(struct store_txn *txn, struct store_token *token, const char *hash, struct err *err)
{
	char scopes[STORE_SCOPES_TEXT];
	auto_query struct query q = query_begin(txn->conn, SQL_TOKEN_ADD);

	token->created_us = store_txn_now(txn);
	query_bind_text(&q, ":id", token->id);
	query_bind_text(&q, ":owner", token->owner);
	query_bind_text(&q, ":name", token->name);
	store_scopes_print(token->scopes, scopes);
	query_bind_text(&q, ":scopes", scopes);
	query_bind_text(&q, ":hash", hash);
	query_bind_int(&q, ":now", token->created_us);
	query_bind_int(&q, ":expires", token->expires_us);
	query_bind_text(&q, ":results", token->results);
	query_bind_text(&q, ":servers", token->servers);
	query_bind_int(&q, ":answer", token->text_kb);
	int failed = query_run(&q, NULL, err);

	return failed < 0 ? failed : store_txn_audit_token(txn, STORE_AUDIT_TOKEN_ADD, token->id, err);
}

static int add_work(struct store_txn *txn, void *arg, struct err *err)
{
	const struct token_work *work = arg;

	return store_txn_token_add(txn, work->token, work->hash, err);
}

int store_token_add_scoped(struct store *store, struct store_token *token, char ret_text[STORE_TOKEN_TEXT],
			   struct err *err)
{
	uint8_t secret[SECRET_SIZE];
	char hex[2 * SECRET_SIZE + 1], text[STORE_TOKEN_TEXT], hash[SHA256_HEX_SIZE];

	if (!store_owner_valid(token->owner))
		return err_member(err, "owner", STORE_OWNER_WANTED);
	if (token->scopes == 0)
		token->scopes = STORE_SCOPE_RUN | STORE_SCOPE_FILES;
	id_new(token->id);
	random_bytes(secret, sizeof(secret));
	hex_encode(secret, sizeof(secret), hex);
	snprintf(text, sizeof(text), "sp_%s_%s", token->owner, hex);
	sha256_hex(text, strlen(text), hash);
	int failed = store_commit(store, add_work, &(struct token_work){token, hash}, err);

	if (failed == 0)
		memcpy(ret_text, text, sizeof(text));
	return failed;
}

int store_token_add(struct store *store, const char *owner, const char *name, char ret_text[STORE_TOKEN_TEXT],
		    struct store_token *ret, struct err *err)
{
	struct store_token token = {0};

	/* What does not fit must not be cut into something that does. */
	if (strlen(owner) > STORE_OWNER_MAX)
		owner = "";
	if (strlen(name) >= sizeof(token.name))
		return err_member(err, "name", "at most %zu bytes were expected", sizeof(token.name) - 1);
	snprintf(token.owner, sizeof(token.owner), "%s", owner);
	snprintf(token.name, sizeof(token.name), "%s", name);
	int failed = store_token_add_scoped(store, &token, ret_text, err);

	if (failed == 0 && ret != NULL)
		*ret = token;
	return failed;
}

static const struct {
	const char *name;
	unsigned scope;
} scope_names[] = {{"run", STORE_SCOPE_RUN},
		   {"files", STORE_SCOPE_FILES},
		   {"network", STORE_SCOPE_NETWORK},
		   {"admin", STORE_SCOPE_ADMIN}};

int store_scopes_parse(const char *text, unsigned *ret, struct err *err)
{
	unsigned scopes = 0;

	for (const char *p = text; *(p += strspn(p, ", ")) != '\0';) {
		size_t length = strcspn(p, ", "), i = 0;

		while (i < ARRAY_SIZE(scope_names) &&
		       (strlen(scope_names[i].name) != length || strncmp(scope_names[i].name, p, length) != 0))
			i++;
		if (i == ARRAY_SIZE(scope_names))
			return err_set(err, ERR_INVALID, "scope '%.*s' is unknown; use run, files, network or admin",
				       (int)MIN(length, (size_t)40), p);
		scopes |= scope_names[i].scope;
		p += length;
	}
	if (scopes == 0)
		return err_set(err, ERR_INVALID, "no scope is given; use run, files, network or admin");
	*ret = scopes;
	return 0;
}

void store_scopes_print(unsigned scopes, char ret[STORE_SCOPES_TEXT])
{
	size_t length = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(scope_names); i++)
		if (scopes & scope_names[i].scope)
			length += (size_t)snprintf(ret + length, STORE_SCOPES_TEXT - length, "%s%s",
						   length > 0 ? " " : "", scope_names[i].name);
}

/* An update of "last used" that nobody waits for. */
struct seen {
	enum store_sql statement;
	bool idles;
	char id[ID_SIZE];
};

static int seen_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct seen *seen = arg;
	auto_query struct query q = query_begin(txn->conn, seen->statement);

	query_bind_text(&q, ":id", seen->id);
	query_bind_int(&q, ":now", store_txn_now(txn));
	if (seen->idles)
		store_uptime_bind(txn->store, &q);
	return query_run(&q, NULL, err);
}

static void seen_done(void *arg, int result, const struct err *err)
{
	(void)result, (void)err; /* a full disk is reported to those who need it */
	free(arg);
}

void store_seen(struct store *store, enum store_sql statement, const char *id, int64_t last_us, int64_t idle_from_us)
{
	int64_t served = 0;
	bool idles = idle_from_us != STORE_NO_IDLE && store_uptime(store, &served, NULL) == 0 &&
		     served - idle_from_us >= STORE_SEEN_US;

	if (store->mode == STORE_READ || (!idles && clock_now_us() - last_us < STORE_SEEN_US))
		return;
	struct seen *seen = xcalloc(1, sizeof(*seen));

	seen->statement = statement;
	seen->idles = idle_from_us != STORE_NO_IDLE;
	snprintf(seen->id, sizeof(seen->id), "%s", id);
	store_commit_async(store, seen_work, seen, seen_done);
}

/* The index finds the row by the hash of what was presented: its timing reveals nothing of the secret. The comparison
 * in constant time is for the author who replaces the lookup. */
int store_token_check(struct store *store, const char *text, struct store_token *ret, struct err *err)
{
	char hash[SHA256_HEX_SIZE];
	struct store_token token = {0};
	auto_read struct query q = store_read(store, SQL_TOKEN_CHECK, err);

	sha256_hex(text, strlen(text), hash);
	query_bind_text(&q, ":hash", hash);
	int found = query_next(&q, err);

	if (found < 0)
		return found;
	bool known = found > 0 && equal_constant_time(query_text(&q, TOKEN_HASH), hash, SHA256_HEX_SIZE);

	if (known)
		store_token_read(&q, &token);
	if (!known || token.revoked_us != 0 || (token.expires_us != 0 && token.expires_us <= clock_now_us()))
		return err_set(err, ERR_DENIED, "the token is unknown, expired, or was revoked");
	store_seen(store, SQL_TOKEN_USED, token.id, token.used_us, STORE_NO_IDLE);
	*ret = token;
	return 0;
}

int store_token_list(struct store *store, int (*each)(void *arg, const struct store_token *token), void *arg,
		     struct err *err)
{
	struct store_token token;
	auto_read struct query q = store_read(store, SQL_TOKEN_LIST, err);
	int found;

	while ((found = query_next(&q, err)) > 0) {
		store_token_read(&q, &token);
		if (each(arg, &token) != 0)
			return 0;
	}
	return found;
}

/* Reads the one token of that id or prefix. */
static int find_token(struct store_conn *conn, const struct store_range *range, struct store_token *ret,
		      struct err *err)
{
	struct store_token token;
	auto_query struct query q = query_begin(conn, SQL_TOKEN_FIND);

	query_bind_text(&q, ":from", range->from);
	query_bind_text(&q, ":to", range->to);
	int found = query_next(&q, err);

	if (found == 0)
		return err_set(err, ERR_NOT_FOUND, "there is no token '%s'", range->from);
	if (found > 0) {
		store_token_read(&q, &token);
		found = query_next(&q, err);
	}
	if (found > 0)
		return err_set(err, ERR_CONFLICT, "several tokens begin with '%s': give more of the id", range->from);
	if (found == 0)
		*ret = token;
	return found;
}

int store_token_find(struct store *store, const char *id, struct store_token *ret, struct err *err)
{
	auto_reader struct store_reader reader = {0};
	struct store_range range;
	int result = store_range(id, &range, err);

	if (result == 0)
		result = store_reader_take(store, &reader, err);
	return result < 0 ? result : find_token(reader.conn, &range, ret, err);
}

/* 1: it was good. */
static int revoke_one(struct store_txn *txn, const char *id, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_TOKEN_REVOKE);
	int64_t changes = 0;

	query_bind_text(&q, ":id", id);
	query_bind_int(&q, ":now", store_txn_now(txn));
	int failed = query_run(&q, &changes, err);

	if (failed == 0 && changes > 0)
		failed = store_txn_audit_token(txn, STORE_AUDIT_TOKEN_REVOKE, id, err);
	return failed < 0 ? failed : changes > 0;
}

/* A grant approves nothing itself, so this goes no deeper. */
int store_txn_token_revoke_all(struct store_txn *txn, enum store_sql which, const char *id, struct err *err)
{
	char grant[ID_SIZE];

	for (int found = 1; found > 0;) {
		{
			auto_query struct query q = query_begin(txn->conn, which);

			query_bind_text(&q, ":id", id);
			found = query_next(&q, err);
			if (found > 0)
				query_copy(&q, 0, grant, sizeof(grant));
		}
		if (found > 0)
			found = revoke_one(txn, grant, err);
		if (found < 0)
			return found;
	}
	return 0;
}

int store_txn_token_revoke(struct store_txn *txn, const char *id, struct err *err)
{
	int result = revoke_one(txn, id, err);

	return result < 0 ? result : store_txn_token_revoke_all(txn, SQL_GRANT_OF_PARENT, id, err);
}

struct revoke {
	struct store_range range;
	struct store_token token;
};

static int revoke_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct revoke *revoke = arg;
	int failed = find_token(txn->conn, &revoke->range, &revoke->token, err);

	if (failed == 0) /* it keeps the time of the first revocation */
		failed = store_txn_token_revoke(txn, revoke->token.id, err);
	return failed < 0 ? failed : find_token(txn->conn, &revoke->range, &revoke->token, err);
}

int store_token_revoke(struct store *store, const char *id, struct store_token *ret, struct err *err)
{
	struct revoke revoke;
	int failed = store_range(id, &revoke.range, err);

	if (failed == 0)
		failed = store_commit(store, revoke_work, &revoke, err);
	if (failed == 0 && ret != NULL)
		*ret = revoke.token;
	return failed;
}
