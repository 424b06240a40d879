/*
 * store_oauth_code.c - see store_oauth_code.h.
 *
 * A code is checked against everything that its request must bring before it is used up, so a wrong request costs its
 * client nothing. A code that comes again, with all else right, was seen by somebody else: what it became is revoked in
 * the same transaction. With something wrong it is only refused, or a stranger who has seen a code could end what its
 * client has.
 *
 * Facts: OAuth 2.1, section 4.1.3 and "Reuse of Authorization Codes"; RFC 8628, section 6.1 (codes that people type
 * have no vowels, so that they say nothing).
 */
#include "store_oauth_code.h"

#include <string.h>

#include "lib/base/text.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "lib/store/db/store_txn.h"
#include "store_record_internal.h"

#define SECOND       INT64_C(1000000)
#define LOGIN_GROUPS 3
#define LOGIN_GROUP  4
#define LOGIN_LENGTH (LOGIN_GROUPS * LOGIN_GROUP)
#define CODE_BYTES   32

/* -------- login codes --------------------------------------------------------------------------------- */

static const char letters[] = "BCDFGHJKLMNPQRSTVWXZ"; /* 20: 12 of them are 51 bits */

/* "bcdf ghjk-lmnp" -> "BCDFGHJKLMNP"; false: it cannot be a code. */
static bool login_plain(const char *typed, char ret[LOGIN_LENGTH + 1])
{
	size_t length = 0;

	for (const char *p = typed; *p; p++) {
		const char upper = *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p;

		if (strchr(" -\t", *p))
			continue;
		if (!strchr(letters, upper) || length == LOGIN_LENGTH)
			return false;
		ret[length++] = upper;
	}
	ret[length] = '\0';
	return length == LOGIN_LENGTH;
}

struct login_work {
	const char *hash, *owner;
	unsigned scopes;
	int64_t seconds;
};

static int login_work(struct store_txn *txn, void *arg, struct err *err)
{
	const struct login_work *work = arg;
	const int64_t now = store_txn_now(txn);
	char scopes[STORE_SCOPES_TEXT];
	auto_query struct query q = query_begin(txn->conn, SQL_OAUTH_LOGIN_ADD);

	store_scopes_print(work->scopes, scopes);
	query_bind_text(&q, ":hash", work->hash);
	query_bind_text(&q, ":owner", work->owner);
	query_bind_text(&q, ":scopes", scopes);
	query_bind_int(&q, ":now", now);
	query_bind_int(&q, ":expires", now + work->seconds * SECOND);
	return query_run(&q, NULL, err);
}

int store_oauth_login_add(struct store *store, const char *owner, unsigned scopes, int64_t seconds,
			  char ret_text[STORE_OAUTH_LOGIN_TEXT], struct err *err)
{
	char plain[LOGIN_LENGTH + 1], hash[SHA256_HEX_SIZE];
	const size_t n = sizeof(letters) - 1;

	if (!store_owner_valid(owner))
		return err_member(err, "owner", STORE_OWNER_WANTED);
	for (size_t i = 0; i < LOGIN_LENGTH;) {
		uint8_t byte;

		random_bytes(&byte, 1);
		if (byte < 256 / n * n) /* every letter as often as the others */
			plain[i++] = letters[byte % n];
	}
	plain[LOGIN_LENGTH] = '\0';
	sha256_hex(plain, LOGIN_LENGTH, hash);
	int result = store_commit(store, login_work, &(struct login_work){hash, owner, scopes, seconds}, err);

	if (result == 0)
		snprintf(ret_text, STORE_OAUTH_LOGIN_TEXT, "%.4s-%.4s-%.4s", plain, plain + LOGIN_GROUP,
			 plain + (ptrdiff_t)2 * LOGIN_GROUP);
	explicit_bzero(plain, sizeof(plain));
	return result;
}

int store_oauth_login_find(struct store *store, const char *hash, struct store_oauth_login *ret, struct err *err)
{
	auto_read struct query q = store_read(store, SQL_OAUTH_LOGIN_FIND, err);
	struct store_oauth_login login = {.scopes = 0};

	query_bind_text(&q, ":hash", hash);
	query_bind_int(&q, ":now", clock_now_us());
	int found = query_next(&q, err);

	if (found == 0)
		return err_set(err, ERR_DENIED, "the code is unknown, too old, or was used");
	if (found < 0)
		return found;
	snprintf(login.hash, sizeof(login.hash), "%s", hash);
	query_copy(&q, OAUTH_LOGIN_OWNER, login.owner, sizeof(login.owner));
	store_scopes_parse(query_text(&q, OAUTH_LOGIN_SCOPES), &login.scopes, NULL);
	*ret = login;
	return 0;
}

int store_oauth_login_check(struct store *store, const char *typed, struct store_oauth_login *ret, struct err *err)
{
	char plain[LOGIN_LENGTH + 1], hash[SHA256_HEX_SIZE];

	if (!login_plain(typed, plain))
		return err_set(err, ERR_DENIED, "this is not a login code");
	sha256_hex(plain, LOGIN_LENGTH, hash);
	return store_oauth_login_find(store, hash, ret, err);
}

/* -------- approvals ----------------------------------------------------------------------------------- */

struct approve {
	const struct store_oauth_approval *approval;
	const char *hash;
};

static int use_login(struct store_txn *txn, const char *hash, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_OAUTH_LOGIN_USE);
	int64_t changes = 0;

	query_bind_text(&q, ":hash", hash);
	query_bind_int(&q, ":now", store_txn_now(txn));
	int result = query_run(&q, &changes, err);

	return result == 0 && changes == 0 ? err_set(err, ERR_DENIED, "the login code was used, or is too old")
					   : result;
}

static int add_code(struct store_txn *txn, const struct approve *approve, struct err *err)
{
	const struct store_oauth_approval *approval = approve->approval;
	char scopes[STORE_SCOPES_TEXT];
	auto_query struct query q = query_begin(txn->conn, SQL_OAUTH_CODE_ADD);

	store_scopes_print(approval->scopes, scopes);
	query_bind_text(&q, ":hash", approve->hash);
	query_bind_text(&q, ":client", approval->client);
	query_bind_text(&q, ":redirect", approval->redirect);
	query_bind_text(&q, ":host", approval->host);
	query_bind_text(&q, ":challenge", approval->challenge);
	query_bind_text(&q, ":scopes", scopes);
	query_bind_int(&q, ":offline", approval->offline);
	query_bind_text(&q, ":owner", approval->owner);
	query_bind_text(&q, ":parent", approval->parent);
	query_bind_int(&q, ":expires", store_txn_now(txn) + STORE_OAUTH_CODE_SECONDS * SECOND);
	return query_run(&q, NULL, err);
}

static int drop_codes(struct store_txn *txn, const char *owner, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_OAUTH_CODE_SURPLUS);

	query_bind_text(&q, ":owner", owner);
	query_bind_int(&q, ":most", STORE_OAUTH_CODES_MAX);
	return query_run(&q, NULL, err);
}

static int approve_work(struct store_txn *txn, void *arg, struct err *err)
{
	const struct approve *approve = arg;
	int result = approve->approval->login ? use_login(txn, approve->approval->login, err) : 0;

	if (result == 0)
		result = add_code(txn, approve, err);
	if (result == 0)
		result = drop_codes(txn, approve->approval->owner, err);
	if (result < 0)
		return result;
	auto_query struct query q = query_begin(txn->conn, SQL_OAUTH_CLIENT_USED);

	query_bind_text(&q, ":id", approve->approval->client);
	query_bind_int(&q, ":now", store_txn_now(txn));
	return query_run(&q, NULL, err);
}

int store_oauth_code_add(struct store *store, const struct store_oauth_approval *approval,
			 char ret_text[STORE_OAUTH_CODE_TEXT], struct err *err)
{
	uint8_t bytes[CODE_BYTES];
	char text[STORE_OAUTH_CODE_TEXT], hash[SHA256_HEX_SIZE];
	struct buf out;

	random_bytes(bytes, sizeof(bytes));
	buf_init_room(&out, text, sizeof(text));
	buf_puts(&out, "spc_");
	base64url_encode(&out, bytes, sizeof(bytes));
	sha256_hex(text, strlen(text), hash);
	int result = store_commit(store, approve_work, &(struct approve){approval, hash}, err);

	if (result == 0)
		memcpy(ret_text, text, sizeof(text));
	explicit_bzero(text, sizeof(text));
	return result;
}

/* -------- from a code to a grant ---------------------------------------------------------------------- */

struct code {
	char client[513], *redirect, host[256], challenge[64], owner[STORE_OWNER_MAX + 1], parent[ID_SIZE];
	char token[ID_SIZE];
	bool offline;
	int64_t expires_us, used_us;
	unsigned scopes;
};
#define ROW struct code
static const struct column columns[] = {STORE_OAUTH_CODE_COLUMNS(COLUMN_PLACE, COLUMN_PLACE, COLUMN_NONE)};
#undef ROW
#define auto_code __attribute__((cleanup(code_clear)))
static void code_clear(struct code *code)
{
	free(code->redirect);
}

struct redeem {
	const struct store_oauth_redemption *redemption;
	const struct store_oauth_terms *terms;
	struct store_oauth_issued *issued;
	bool used_before;
};

/* 1: it is there. */
static int find_code(struct store_txn *txn, const char *hash, struct code *ret, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_OAUTH_CODE_FIND);

	query_bind_text(&q, ":hash", hash);
	int found = query_next(&q, err);

	if (found > 0) {
		query_read(&q, columns, ARRAY_SIZE(columns), ret);
		store_scopes_parse(query_text(&q, OAUTH_CODE_SCOPES), &ret->scopes, NULL);
	}
	return found;
}

static int check_code(const struct code *code, int found, const struct store_oauth_redemption *redemption,
		      struct err *err)
{
	if (found == 0)
		return err_set(err, ERR_DENIED, "the code is unknown");
	if (!streq(code->client, redemption->client))
		return err_set(err, ERR_DENIED, "the code is another client's");
	if (redemption->redirect && !streq(code->redirect, redemption->redirect))
		return err_set(err, ERR_DENIED, "redirect_uri is not the one that the code was sent to");
	if (strlen(code->challenge) != strlen(redemption->challenge) ||
	    !equal_constant_time(code->challenge, redemption->challenge, strlen(code->challenge)))
		return err_set(err, ERR_DENIED, "code_verifier does not belong to the code's code_challenge");
	return 0;
}

/* The token that approved it: when it ends, and what its programs may use; ERR_DENIED: it has ended. */
static int take_parent(struct store_txn *txn, const char *id, struct store_token *grant, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_TOKEN_FIND);
	struct store_token parent = {.revoked_us = 1}; /* if it is gone */

	query_bind_text(&q, ":from", id);
	query_bind_text(&q, ":to", STORE_ID_ABOVE);
	int found = query_next(&q, err);

	if (found < 0)
		return found;
	if (found > 0)
		store_token_read(&q, &parent);
	if (parent.revoked_us != 0 || (parent.expires_us != 0 && parent.expires_us <= store_txn_now(txn)))
		return err_set(err, ERR_DENIED, "the token that approved this was revoked or has expired");
	if (parent.expires_us != 0)
		grant->expires_us = MIN(grant->expires_us, parent.expires_us);
	memcpy(grant->results, parent.results, sizeof(grant->results));
	memcpy(grant->servers, parent.servers, sizeof(grant->servers));
	return 0;
}

static int make_room(struct store_txn *txn, const char *owner, struct err *err)
{
	for (int found = 1; found > 0;) {
		char surplus[ID_SIZE];

		{
			auto_query struct query q = query_begin(txn->conn, SQL_GRANT_SURPLUS);

			query_bind_text(&q, ":owner", owner);
			query_bind_int(&q, ":now", store_txn_now(txn));
			query_bind_int(&q, ":most", STORE_OAUTH_GRANTS_MAX - 1);
			found = query_next(&q, err);
			if (found > 0)
				query_copy(&q, 0, surplus, sizeof(surplus));
		}
		int result = found > 0 ? store_txn_token_revoke(txn, surplus, err) : found;

		if (result < 0)
			return result;
	}
	return 0;
}

static int add_grant(struct store_txn *txn, const struct redeem *redeem, const struct code *code,
		     struct store_token *grant, struct err *err)
{
	const char *name = redeem->redemption->client_name;
	uint8_t secret[SHA256_SIZE];
	char hash[SHA256_HEX_SIZE];

	*grant = (struct store_token){.scopes = code->scopes,
				      .expires_us = store_txn_now(txn) + redeem->terms->grant_us};
	int result = code->parent[0] ? take_parent(txn, code->parent, grant, err) : 0;

	if (result == 0)
		result = make_room(txn, code->owner, err);
	if (result < 0)
		return result;
	id_new(grant->id);
	random_bytes(secret, sizeof(secret));
	sha256_hex(secret, sizeof(secret), hash); /* of what nobody has */
	snprintf(grant->owner, sizeof(grant->owner), "%s", code->owner);
	snprintf(grant->name, sizeof(grant->name), "%.*s", (int)utf8_cut(name, strlen(name), sizeof(grant->name) - 1),
		 name);
	if ((result = store_txn_token_add(txn, grant, hash, err)) < 0)
		return result;
	auto_query struct query q = query_begin(txn->conn, SQL_GRANT_ADD);

	query_bind_text(&q, ":token", grant->id);
	query_bind_text(&q, ":issuer", "");
	query_bind_text(&q, ":subject", "");
	query_bind_text(&q, ":client", code->client);
	query_bind_text(&q, ":owner", code->owner);
	query_bind_some(&q, ":parent", code->parent);
	query_bind_text(&q, ":host", code->host);
	query_bind_int(&q, ":offline", code->offline);
	return query_run(&q, NULL, err);
}

static int use_code(struct store_txn *txn, const char *hash, const char *grant, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_OAUTH_CODE_USE);

	query_bind_text(&q, ":hash", hash);
	query_bind_text(&q, ":token", grant);
	query_bind_int(&q, ":now", store_txn_now(txn));
	return query_run(&q, NULL, err);
}

static int redeem_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct redeem *redeem = arg;
	struct store_oauth_issued *issued = redeem->issued;
	char hash[SHA256_HEX_SIZE];
	auto_code struct code code = {.scopes = 0};
	struct store_token grant;

	sha256_hex(redeem->redemption->code, strlen(redeem->redemption->code), hash);
	int found = find_code(txn, hash, &code, err);
	int result = found < 0 ? found : check_code(&code, found, redeem->redemption, err);

	if (result < 0)
		return result;
	if (code.used_us != 0) {
		redeem->used_before = true;
		return code.token[0] ? store_txn_token_revoke(txn, code.token, err) : 0;
	}
	if (code.expires_us <= store_txn_now(txn))
		return err_set(err, ERR_DENIED, "the code has expired");
	if ((result = add_grant(txn, redeem, &code, &grant, err)) < 0 ||
	    (result = use_code(txn, hash, grant.id, err)) < 0)
		return result;
	memcpy(issued->owner, grant.owner, sizeof(issued->owner));
	memcpy(issued->grant, grant.id, sizeof(issued->grant));
	issued->scopes = code.scopes;
	issued->offline = code.offline;
	const struct store_oauth_issue issue = {.terms = redeem->terms,
						.granted = code.scopes,
						.ends_us = grant.expires_us,
						.refreshes = redeem->terms->refresh_us > 0 &&
							     (redeem->redemption->refreshes || code.offline)};

	return store_txn_oauth_issue(txn, &issue, issued, err);
}

int store_oauth_code_redeem(struct store *store, const struct store_oauth_redemption *redemption,
			    const struct store_oauth_terms *terms, struct store_oauth_issued *ret, struct err *err)
{
	struct store_oauth_issued issued = {0};
	struct redeem redeem = {redemption, terms, &issued, false};
	int result = store_commit(store, redeem_work, &redeem, err);

	if (result == 0 && redeem.used_before)
		result = err_set(err, ERR_DENIED, "the code was used before: what it had become has been revoked");
	if (result == 0)
		*ret = issued;
	explicit_bzero(&issued, sizeof(issued));
	return result;
}
