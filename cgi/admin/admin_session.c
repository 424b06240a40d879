/*
 * admin_session.c - see admin_session.h.
 *
 * One table of sessions, of fixed size, under one lock that is held for a look only: the token is looked up and entries
 * are written without it. The secret of a cookie is 32 random bytes; what is compared is its SHA-256, against every
 * session, in constant time.
 *
 * Attempts are counted by address (attempts.h). Only failures are counted, so who has a token is not held up by signing
 * in often.
 *
 * A form is accepted if the request comes from a page of this site and carries the key of its own address: HMAC of the
 * address under a secret of the session. The first says that no other site sent it, the second that the page which it
 * came from was made for this person and this act.
 */
#include "admin_session.h"

#include <pthread.h>
#include <string.h>
#include <strings.h>

#include "cgi/http/attempts.h"
#include "lib/base/text.h"
#include "lib/base/util.h"
#include "lib/store/audit/store_audit.h"

#define MINUTE_US     (60 * INT64_C(1000000))
#define SECRET_BYTES  32
#define SECRET_DIGITS (2 * SECRET_BYTES)
#define COOKIES_MAX   4096
#define COOKIES_TRIED 16 /* of our name */
#define ENTRY_EVERY   (10 * INT64_C(1000000)) /* failures are entries of the audit log at most so often */

struct admin_session {
	bool used;
	uint8_t sum[SHA256_SIZE], secret[SHA256_SIZE];
	char token[ID_SIZE];
	int64_t opened_us, seen_us; /* monotonic */
};

struct admin {
	pthread_mutex_t lock;
	struct admin_session sessions[ADMIN_SESSIONS_MAX];
	struct attempts attempts; /* failures to sign in */
	int64_t failures, failed_us; /* not in the audit log yet; when the last entry was written */
};

struct admin *admin_session_table_new(void)
{
	struct admin *admin = xcalloc(1, sizeof(*admin));

	pthread_mutex_init(&admin->lock, NULL);
	attempts_init(&admin->attempts, ADMIN_FAILURES_MINUTE, MINUTE_US);
	return admin;
}

void admin_session_table_free(struct admin *admin)
{
	if (!admin)
		return;
	attempts_clear(&admin->attempts);
	pthread_mutex_destroy(&admin->lock);
	explicit_bzero(admin, sizeof(*admin));
	free(admin);
}

/* -------- the cookie ---------------------------------------------------------------------------------- */

static bool is_secure(const struct http_exchange *exchange)
{
	return str_starts(exchange->server->config->public_base_url, "https://");
}

/* With __Host- a browser takes it from this very host over HTTPS alone. */
static const char *cookie_name(const struct http_exchange *exchange)
{
	return is_secure(exchange) ? "__Host-sallyport_admin" : "sallyport_admin";
}

static void set_cookie(struct http_exchange *exchange, const char *value, int64_t seconds)
{
	reply_header(exchange->reply, "Set-Cookie", "%s=%s; Path=/; HttpOnly; SameSite=Lax; Max-Age=%lld%s",
		     cookie_name(exchange), value, (long long)seconds, is_secure(exchange) ? "; Secure" : "");
}

/* The secret of the next cookie of the name, from *at on; false: there is no more of the right form. */
static bool next_cookie(const char *name, const char **at, char ret[SECRET_DIGITS + 1])
{
	const size_t length = strlen(name);

	while (**at) {
		*at += strspn(*at, "; ");
		const char *value = *at + length + 1;
		const bool named = strncmp(*at, name, length) == 0 && (*at)[length] == '=';

		*at += strcspn(*at, ";");
		if (!named || strspn(value, "0123456789abcdef") != SECRET_DIGITS || value + SECRET_DIGITS != *at)
			continue;
		memcpy(ret, value, SECRET_DIGITS);
		ret[SECRET_DIGITS] = '\0';
		return true;
	}
	return false;
}

/* -------- sessions ------------------------------------------------------------------------------------ */

/* Under the lock: all are looked at, so that time says nothing. */
static struct admin_session *find(struct admin *admin, const uint8_t sum[SHA256_SIZE])
{
	struct admin_session *found = NULL;

	for (size_t i = 0; i < ADMIN_SESSIONS_MAX; i++) {
		struct admin_session *session = &admin->sessions[i];

		if (equal_constant_time(session->sum, sum, SHA256_SIZE) && session->used)
			found = session;
	}
	return found;
}

static bool take_session(const struct http_exchange *exchange, const uint8_t sum[SHA256_SIZE],
			 struct admin_session *ret)
{
	const struct config *config = exchange->server->config;
	struct admin *admin = exchange->server->admin;
	const int64_t now = clock_monotonic_us();

	pthread_mutex_lock(&admin->lock);
	struct admin_session *session = find(admin, sum);

	if (session && (now - session->opened_us >= config->admin.hours * 60 * MINUTE_US ||
			now - session->seen_us >= config->admin.idle_minutes * MINUTE_US)) {
		*session = (struct admin_session){0};
		session = NULL;
	}
	if (session) {
		session->seen_us = now;
		*ret = *session;
	}
	pthread_mutex_unlock(&admin->lock);
	return session;
}

static void drop_session(struct admin *admin, const uint8_t sum[SHA256_SIZE])
{
	pthread_mutex_lock(&admin->lock);
	struct admin_session *session = find(admin, sum);

	if (session)
		*session = (struct admin_session){0};
	pthread_mutex_unlock(&admin->lock);
}

static int check_token(const struct store_token *token, struct err *err)
{
	if (token->revoked_us || (token->expires_us && token->expires_us <= clock_now_us()))
		return err_set(err, ERR_DENIED, "the token of this session was revoked or has expired");
	if (!(token->scopes & STORE_SCOPE_ADMIN))
		return err_set(err, ERR_DENIED, "this token lacks the scope \"admin\"");
	return 0;
}

/* 1: a session of one of the cookies; 0: these have ended; -1: there is no cookie. Another application of the host may
 * plant a cookie of the same name in front of ours. */
static int find_session(struct http_exchange *exchange, uint8_t ret_sum[SHA256_SIZE], struct admin_session *ret)
{
	auto_free char *buffer = xmalloc(COOKIES_MAX);
	const char *at = request_header(exchange->request, "HTTP_COOKIE", buffer, COOKIES_MAX);
	char secret[SECRET_DIGITS + 1];
	int found = -1;

	for (int i = 0; found <= 0 && i < COOKIES_TRIED && at && next_cookie(cookie_name(exchange), &at, secret); i++) {
		sha256_bytes(secret, SECRET_DIGITS, ret_sum);
		found = take_session(exchange, ret_sum, ret);
	}
	explicit_bzero(secret, sizeof(secret));
	explicit_bzero(buffer, COOKIES_MAX);
	return found;
}

int admin_session_find(struct http_exchange *exchange, struct admin_visitor *ret, struct err *err)
{
	struct admin_visitor visitor;
	struct admin_session session;
	int found = find_session(exchange, visitor.sum, &session);

	if (found <= 0)
		return err_set(err, ERR_DENIED, found < 0 ? "sign in" : "the session has ended: sign in again");
	memcpy(visitor.secret, session.secret, sizeof(visitor.secret));
	int result = store_token_find(exchange->server->store, session.token, &visitor.token, err);

	if (result == 0)
		result = check_token(&visitor.token, err);
	if (result == -ERR_DENIED || result == -ERR_NOT_FOUND) {
		drop_session(exchange->server->admin, visitor.sum);
		return err_set(err, ERR_DENIED, "the token of this session was revoked or has expired");
	}
	if (result == 0)
		*ret = visitor;
	return result;
}

static const char *address_of(const struct http_exchange *exchange)
{
	const char *address = request_param(exchange->request, "REMOTE_ADDR");

	return address ? address : "";
}

/* Strangers can fail as often as they like: what the audit log gets is bounded, and says how many there were. */
static void note_failure(struct http_exchange *exchange)
{
	struct admin *admin = exchange->server->admin;
	const int64_t now = clock_monotonic_us();
	struct store_audit entry;
	int64_t failures = 0;

	attempts_count(&admin->attempts, address_of(exchange));
	pthread_mutex_lock(&admin->lock);
	admin->failures++;
	if (!admin->failed_us || now - admin->failed_us >= ENTRY_EVERY) {
		failures = admin->failures;
		admin->failures = 0;
		admin->failed_us = now;
	}
	pthread_mutex_unlock(&admin->lock);
	if (!failures)
		return;
	store_audit_init(&entry, STORE_AUDIT_SIGN_IN_FAILED, "log", "admin");
	store_audit_int(&entry, "failures", failures);
	store_audit_client(&entry, &exchange->client);
	store_audit_later(exchange->server->store, &entry);
}

static int note_session(struct http_exchange *exchange, enum store_audit_kind kind, const struct store_token *token,
			struct err *err)
{
	char actor[ADMIN_ACTOR_SIZE];
	struct store_audit entry;

	snprintf(actor, sizeof(actor), "admin:%s", token->id);
	store_audit_init(&entry, kind, "token", token->id);
	entry.actor = actor;
	entry.owner = token->owner;
	store_audit_client(&entry, &exchange->client);
	return store_audit_add(exchange->server->store, &entry, err);
}

/* -------- in and out ---------------------------------------------------------------------------------- */

int admin_session_open(struct http_exchange *exchange, const char *token, int64_t *ret_retry, struct err *err)
{
	struct admin *admin = exchange->server->admin;
	uint8_t bytes[SECRET_BYTES];
	char secret[SECRET_DIGITS + 1];
	struct admin_session session = {.used = true, .opened_us = clock_monotonic_us()};
	struct store_token found;
	const int64_t seconds = attempts_wait(&admin->attempts, address_of(exchange));

	if (seconds) {
		*ret_retry = seconds;
		return err_set(err, ERR_BUSY, "Too many attempts: try again in %lld s", (long long)seconds);
	}
	int result = store_token_check(exchange->server->store, token, &found, err);

	if (result == 0)
		result = check_token(&found, err);
	if (result == -ERR_DENIED) {
		note_failure(exchange);
		return err_set(err, ERR_DENIED,
			       "This token may not sign in here: it needs the scope admin "
			       "(sallyport token add --scope admin)");
	}
	if (result == 0)
		result = note_session(exchange, STORE_AUDIT_SIGN_IN, &found, err);
	if (result < 0)
		return result;
	random_bytes(bytes, sizeof(bytes));
	hex_encode(bytes, sizeof(bytes), secret);
	sha256_bytes(secret, SECRET_DIGITS, session.sum);
	random_bytes(session.secret, sizeof(session.secret));
	memcpy(session.token, found.id, sizeof(session.token));
	session.seen_us = session.opened_us;
	/* A free place, else that of the session which was not used for longest. */
	struct admin_session *place = &admin->sessions[0];

	pthread_mutex_lock(&admin->lock);
	for (size_t i = 0; i < ADMIN_SESSIONS_MAX && place->used; i++) {
		struct admin_session *other = &admin->sessions[i];

		if (!other->used || other->seen_us < place->seen_us)
			place = other;
	}
	*place = session;
	pthread_mutex_unlock(&admin->lock);
	set_cookie(exchange, secret, exchange->server->config->admin.hours * 3600);
	explicit_bzero(secret, sizeof(secret));
	return 0;
}

void admin_session_end(struct http_exchange *exchange, const struct admin_visitor *visitor)
{
	drop_session(exchange->server->admin, visitor->sum);
	note_session(exchange, STORE_AUDIT_SIGN_OUT, &visitor->token, NULL); /* it has ended, written down or not */
	set_cookie(exchange, "", 0);
}

/* -------- forms --------------------------------------------------------------------------------------- */

/* Scheme, host and port of the page against ours; where public_base_url names this host, its scheme counts. */
static bool own_origin(const struct http_exchange *exchange, const char *origin, const char *host)
{
	const char *base = exchange->server->config->public_base_url, *begin = strstr(origin, "://");
	const char *ours = strstr(base, "://");

	if (!begin || !host || strcasecmp(begin + 3, host) != 0)
		return false;
	if (ours && strncasecmp(ours + 3, host, strlen(host)) == 0)
		return strncasecmp(base, origin, (size_t)(begin - origin) + 3) == 0;
	return str_starts(origin, "http://") || str_starts(origin, "https://");
}

bool admin_session_own_page(const struct http_exchange *exchange)
{
	const char *site = request_param(exchange->request, "HTTP_SEC_FETCH_SITE");
	const char *origin = request_param(exchange->request, "HTTP_ORIGIN");

	if (site && !streq(site, "same-origin"))
		return false;
	if (origin)
		return own_origin(exchange, origin, request_param(exchange->request, "HTTP_HOST"));
	return site; /* a cookie is involved, so who says nothing is refused */
}

void admin_session_key(const struct admin_visitor *visitor, const char *address, char ret[ADMIN_KEY_SIZE])
{
	uint8_t sum[SHA256_SIZE];

	hmac_sha256(visitor->secret, sizeof(visitor->secret), address, strlen(address), sum);
	hex_encode(sum, sizeof(sum), ret);
}

bool admin_session_key_right(const struct admin_visitor *visitor, const char *address, const char *key)
{
	char right[ADMIN_KEY_SIZE];

	admin_session_key(visitor, address, right);
	return strlen(key) == sizeof(right) - 1 && equal_constant_time(right, key, sizeof(right) - 1);
}

void admin_session_actor(const struct admin_visitor *visitor, char ret[ADMIN_ACTOR_SIZE])
{
	snprintf(ret, ADMIN_ACTOR_SIZE, "admin:%s", visitor->token.id);
}
