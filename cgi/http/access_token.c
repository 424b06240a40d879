/*
 * access_token.c - see access.h.
 *
 * Who checks a token is decided by its text alone. "sp_" begins tokens of `sallyport token add`: the store has their
 * hashes, and they never leave this machine. "spa_" begins access tokens of our own authorization server (oauth.mode
 * builtin), whose hashes are in the store, too. With oauth.mode external every other text is the issuer's
 * (lib/oauth/oauth_issuer.h). Below /v1/ a JWT may be a front end's (lib/oauth/oauth_front.h). Who comes to a door from
 * a network in doors.trusted, and brings no token at all, is that network's owner. A token that cannot be checked now
 * is 503 and never 401, which makes clients throw it away; a good one of somebody who has no owner here is 403, because
 * signing in again would not help.
 */
#include "access.h"

#include <strings.h>

#include "client.h"
#include "landing.h"
#include "lib/base/log.h"
#include "lib/base/text.h"
#include "lib/base/util.h"
#include "lib/oauth/oauth_front.h"
#include "lib/oauth/oauth_issuer.h"
#include "lib/oauth/oauth_jwt.h"
#include "lib/store/audit/store_refused.h"
#include "lib/store/record/store_grant.h"
#include "lib/store/record/store_oauth_token.h"

#define TOKEN_MAX     (OAUTH_TOKEN_MAX + 16) /* with the name of the scheme */
#define RETRY_SECONDS 2

/* Of Basic, which is how clients send what stands in a URL before the "@": the password, else the name. */
static const char *basic_token(const char *encoded, char buffer[TOKEN_MAX])
{
	auto_buf struct buf plain = {0};

	buf_init(&plain, TOKEN_MAX - 1);
	char *colon = base64_decode(encoded, strlen(encoded), &plain, NULL) == 0 ? strchr(plain.data, ':') : NULL;

	if (colon) {
		*colon = '\0';
		snprintf(buffer, TOKEN_MAX, "%s", colon[1] ? colon + 1 : plain.data);
	}
	explicit_bzero(plain.data, plain.length);
	return colon && *buffer ? buffer : NULL;
}

/* What follows "Bearer", or the token in one of the other forms that clients have, in `buffer`, which the caller wipes;
 * NULL: there is none, or the header says something else. */
static const char *bearer_token(const struct http_exchange *exchange, char buffer[TOKEN_MAX])
{
	const struct request *request = exchange->request;

	/* Programs that were written for other services send the token in a header of its own, or have only a URL. */
	if (!request_param(request, "HTTP_AUTHORIZATION")) {
		if (request_param(request, "HTTP_X_API_KEY"))
			return request_header(request, "HTTP_X_API_KEY", buffer, TOKEN_MAX);
		if (exchange->path_token && exchange->path_token_length < TOKEN_MAX) {
			snprintf(buffer, TOKEN_MAX, "%.*s", (int)exchange->path_token_length, exchange->path_token);
			return buffer;
		}
		return request_header(request, "HTTP_X_AUTH_TOKEN", buffer, TOKEN_MAX);
	}

	static const char scheme[] = "Bearer ";
	const size_t length = sizeof(scheme) - 1;
	const char *value = request_header(request, "HTTP_AUTHORIZATION", buffer, TOKEN_MAX);

	if (value && strncasecmp(value, "Basic ", strlen("Basic ")) == 0)
		return basic_token(value + strlen("Basic "), buffer);
	if (!value || strncasecmp(value, scheme, length) != 0 || strlen(value) == length)
		return NULL;
	return value + length + strspn(value + length, " ");
}

/* Does it bring anything that is meant as one, good or not? */
static bool has_token(const struct http_exchange *exchange)
{
	const struct request *request = exchange->request;

	return exchange->path_token || request_param(request, "HTTP_AUTHORIZATION") ||
	       request_param(request, "HTTP_X_API_KEY") || request_param(request, "HTTP_X_AUTH_TOKEN");
}

bool access_bearer_is(const struct http_exchange *exchange, const char *expected)
{
	char buffer[TOKEN_MAX];
	const char *text = bearer_token(exchange, buffer);
	const size_t length = strlen(expected);
	unsigned char differs = 0;
	bool same_length = text && strlen(text) == length;

	/* All of them: how long this takes says nothing of the bytes. */
	for (size_t i = 0; same_length && i < length; i++)
		differs |= (unsigned char)(text[i] ^ expected[i]);
	explicit_bzero(buffer, sizeof(buffer));
	return same_length && !differs;
}

static int enter(const struct http_exchange *exchange, const char *issuer, const struct oauth_who *who,
		 struct store_token *ret, struct err *err)
{
	return store_grant_enter(exchange->server->store,
				 &(struct store_grant){.issuer = issuer,
						       .subject = who->subject,
						       .client = who->client,
						       .owner = who->owner,
						       .scopes = who->scopes},
				 ret, err);
}

/* Whose token is the text? ERR_DENIED: nobody's; ERR_NOT_FOUND: somebody's who may not be here; else it cannot be
 * known now. */
static int check_text(const struct http_exchange *exchange, const char *text, struct store_token *ret, struct err *err)
{
	struct server *server = exchange->server;
	struct oauth_who who;
	int result;

	if (server->oauth && str_starts(text, "spa_"))
		return store_oauth_token_check(server->store, text, ret, err);
	if (server->front && exchange->fronts && oauth_jwt_shaped(text)) {
		result = oauth_front_check(server->front, text, &who, err);
		if (result == 0)
			return enter(exchange, server->config->api.jwt_issuer, &who, ret, err);
		if (!server->issuer)
			return result;
	}
	if (!server->issuer || str_starts(text, "sp_"))
		return store_token_check(server->store, text, ret, err);
	result = oauth_issuer_check(server->issuer, text, &who, err);
	return result < 0 ? result : enter(exchange, server->config->oauth.issuer, &who, ret, err);
}

/* -------- doors.trusted ------------------------------------------------------------------------------- */

int access_trusted_check(const struct config *config, struct err *err)
{
	struct config_trusted trusted;

	for (size_t i = 0; i < config->doors.trusted.count; i++)
		if (config_trusted_parse(config->doors.trusted.items[i], &trusted, NULL) < 0 ||
		    !store_owner_valid(trusted.owner))
			return err_member(err, "doors.trusted", "\"%.64s\": %s", config->doors.trusted.items[i],
					  STORE_OWNER_WANTED);
	return 0;
}

/* 1: the client's network has an owner, whose the request is; 0: it has none. */
static int take_trusted(struct http_exchange *exchange, struct err *err)
{
	const struct config *config = exchange->server->config;
	char address[STORE_ADDRESS_SIZE];
	struct config_trusted trusted;
	struct oauth_who who = {.scopes = STORE_SCOPE_RUN};

	if (config->doors.trusted.count == 0 || !exchange->trusts)
		return 0;
	client_address(config, exchange->request, address);
	for (size_t i = 0; *address && i < config->doors.trusted.count; i++) {
		const char *entry = config->doors.trusted.items[i];

		if (config_trusted_parse(entry, &trusted, NULL) < 0 || !host_in(&trusted.network, address))
			continue;
		snprintf(who.owner, sizeof(who.owner), "%s", trusted.owner);
		snprintf(who.subject, sizeof(who.subject), "%s", entry);
		const int result = enter(exchange, "doors.trusted", &who, &exchange->token, err);

		return result < 0 ? result : 1;
	}
	return 0;
}

bool access_still_good(const struct http_exchange *exchange, int64_t *looked_us)
{
	const int64_t now_us = clock_monotonic_us();
	char buffer[TOKEN_MAX];
	struct store_token token;
	struct err err = ERR_INIT;

	if (!exchange->token.id[0] || now_us - *looked_us < ACCESS_AGAIN_US)
		return true;
	*looked_us = now_us;
	const char *text = bearer_token(exchange, buffer);
	int result = text ? check_text(exchange, text, &token, &err) : 0;

	explicit_bzero(buffer, sizeof(buffer));
	return result == 0 || (err.code != ERR_DENIED && err.code != ERR_NOT_FOUND);
}

enum fault { FAULT_MISSING, FAULT_MALFORMED, FAULT_UNKNOWN };

static int refuse_unknown(struct http_exchange *exchange, enum fault fault)
{
	static const char *const reasons[] = {"missing", "malformed", "unknown"};
	static const char *const texts[] = {
		"Missing Authorization header: send \"Authorization: Bearer TOKEN\"",
		"Malformed Authorization header: it must be \"Bearer TOKEN\"",
		"Unknown, expired or revoked token: `sallyport token add` makes a new one",
	};
	auto_json struct json_object *body = json_object_new_object();

	store_refused(exchange->server->store, STORE_AUDIT_DENIED, reasons[fault],
		      &(struct store_refused_who){.client = &exchange->client});
	if (fault == FAULT_MISSING)
		access_challenge(exchange, NULL, NULL);
	else
		access_challenge(exchange, "invalid_token", "unknown, revoked or malformed token");
	if (landing_wanted(exchange)) {
		landing_page(exchange, 401);
		return -ERR_DENIED;
	}
	json_add_string(body, "error", "invalid_token");
	json_add_string(body, "error_description", texts[fault]);
	if (exchange->reply->request_id[0])
		json_add_string(body, "request_id", exchange->reply->request_id);
	reply_json(exchange->reply, 401, body);
	return -ERR_DENIED;
}

static int refuse_unchecked(struct http_exchange *exchange, const struct err *err)
{
	if (err->code == ERR_NOT_FOUND) {
		log_event(LOG_INFO, "nobody here", "error", err->text, "request_id", exchange->reply->request_id, NULL);
		reply_refuse(exchange->reply, 403,
			     "this person may not use this server: its operator has no owner for them, or revoked "
			     "their access");
		return -ERR_DENIED;
	}
	log_event(LOG_ERROR, "token check failed", "error", err->text, NULL);
	reply_header(exchange->reply, "Retry-After", "%d", RETRY_SECONDS);
	reply_refuse(exchange->reply, 503, "the token cannot be checked at the moment: try again");
	return -ERR_SYSTEM;
}

int access_token(struct http_exchange *exchange)
{
	char buffer[TOKEN_MAX];
	const char *raw = request_param(exchange->request, "HTTP_AUTHORIZATION");
	const char *text = bearer_token(exchange, buffer);
	struct err err = ERR_INIT;
	int result = !text && !has_token(exchange) ? take_trusted(exchange, &err) : 0;

	if (!text && result == 0)
		return refuse_unknown(exchange, raw && *raw ? FAULT_MALFORMED : FAULT_MISSING);
	if (text)
		result = check_text(exchange, text, &exchange->token, &err);
	explicit_bzero(buffer, sizeof(buffer));
	if (result >= 0) {
		snprintf(exchange->reply->owner, sizeof(exchange->reply->owner), "%s", exchange->token.owner);
		return 0;
	}
	if (err.code != ERR_DENIED && err.code != ERR_INVALID)
		return refuse_unchecked(exchange, &err);
	if (exchange->server->issuer)
		log_event(LOG_INFO, "token refused", "reason", err.text, "request_id", exchange->reply->request_id,
			  NULL);
	return refuse_unknown(exchange, FAULT_UNKNOWN);
}

bool access_from_loopback(const struct request *request)
{
	const char *address = request_param(request, "REMOTE_ADDR");

	return !address || streq(address, "127.0.0.1") || streq(address, "::1");
}
