/*
 * oauth_token.c - see oauth_token.h.
 *
 * Each request has three gates: how often this address was refused lately, the form, and the client. Behind them one
 * transaction of the store does the whole: marks the code or token as used, makes the grant, makes the tokens. So an
 * answer that was sent is on disk, and one that could not be written was never made.
 */
#include "oauth_token.h"

#include <string.h>
#include <strings.h>

#include "lib/base/log.h"
#include "lib/base/text.h"
#include "lib/base/util.h"
#include "lib/oauth/oauth_client.h"
#include "lib/oauth/oauth_who.h"
#include "lib/store/record/store_oauth_token.h"
#include "oauth_reply.h"
#include "oauth_server.h"

#define SECOND       INT64_C(1000000)
#define DAY_US       (86400 * SECOND)
#define VERIFIER_MIN 43
#define VERIFIER_MAX 128
#define BASIC        "Basic "

/* A request that was refused for what it brought counts. */
static void refuse(struct http_exchange *exchange, const char *error, const char *description)
{
	char address[STORE_ADDRESS_SIZE];

	oauth_server_address(exchange, address);
	attempts_count(&exchange->server->oauth->failures, address);
	oauth_reply_error(exchange, 400, error, description);
}

/* -------- who asks ------------------------------------------------------------------------------------ */

/* Of Basic: both form-encoded (RFC 6749, section 2.3.1). */
struct credentials {
	struct oauth_form form; /* owns the texts */
	const char *id, *secret;
};
#define auto_credentials __attribute__((cleanup(credentials_clear)))
static void credentials_clear(struct credentials *credentials)
{
	oauth_form_clear(&credentials->form);
}

static bool read_basic(const char *encoded, struct credentials *ret)
{
	auto_buf struct buf plain = {0}, form = {0};

	buf_init(&plain, OAUTH_REPLY_BODY_MAX);
	buf_init(&form, OAUTH_REPLY_BODY_MAX + 64);
	char *colon = base64_decode(encoded, strlen(encoded), &plain, NULL) == 0 ? strchr(plain.data, ':') : NULL;

	if (!colon || strpbrk(plain.data, "&=") || strlen(plain.data) != plain.length)
		return false;
	*colon = '\0';
	buf_printf(&form, "id=%s&secret=%s", plain.data, colon + 1);
	const bool parsed = oauth_form_parse(form.data, form.length, &ret->form, NULL) == 0;

	explicit_bzero(plain.data, plain.length);
	explicit_bzero(form.data, form.length);
	ret->id = parsed ? oauth_form_get(&ret->form, "id") : NULL;
	ret->secret = parsed ? oauth_form_get(&ret->form, "secret") : NULL;
	return ret->id;
}

static void refuse_client(struct http_exchange *exchange, bool basic)
{
	refuse(exchange, "invalid_client", "the client is unknown here, or its secret is wrong: register it again");
	exchange->reply->status = 401;
	if (basic)
		reply_header(exchange->reply, "WWW-Authenticate", "Basic realm=\"sallyport\"");
}

static bool secret_right(const struct store_oauth_client *client, const char *secret)
{
	char hash[SHA256_HEX_SIZE];

	if (!client->secret_hash[0])
		return !secret;
	sha256_hex(secret ? secret : "", secret ? strlen(secret) : 0, hash);
	return equal_constant_time(hash, client->secret_hash, SHA256_HEX_SIZE) && secret;
}

/* The client that the request comes from; negative: the reply says why it is none. */
static int find_client(struct http_exchange *exchange, const struct oauth_form *form, struct store_oauth_client *ret)
{
	const char *authorization = request_param(exchange->request, "HTTP_AUTHORIZATION");
	const bool basic = authorization && strncasecmp(authorization, BASIC, strlen(BASIC)) == 0;
	const char *id = oauth_form_get(form, "client_id"), *secret = oauth_form_get(form, "client_secret");
	auto_credentials struct credentials credentials = {.id = NULL};
	struct err err = ERR_INIT;

	if (basic) {
		if (!read_basic(authorization + strlen(BASIC), &credentials)) {
			refuse_client(exchange, true);
			return -ERR_DENIED;
		}
		if (secret || (id && !streq(id, credentials.id))) {
			refuse(exchange, "invalid_request", "the client names itself in two ways");
			return -ERR_INVALID;
		}
		id = credentials.id;
		secret = credentials.secret;
	}
	if (!id) {
		refuse(exchange, "invalid_request", "client_id is missing");
		return -ERR_INVALID;
	}
	int result = store_oauth_client_find(exchange->server->store, id, ret, &err);

	if (result == -ERR_NOT_FOUND || (result == 0 && (ret->blocked_us || !secret_right(ret, secret)))) {
		refuse_client(exchange, basic);
		return -ERR_DENIED;
	}
	if (result < 0)
		oauth_reply_fault(exchange, &err);
	return result;
}

/* A form from a client that may ask now; negative: the reply says why not. */
static int begin(struct http_exchange *exchange, struct oauth_form *form, struct store_oauth_client *client)
{
	char address[STORE_ADDRESS_SIZE];

	oauth_server_address(exchange, address);
	const int64_t seconds = attempts_wait(&exchange->server->oauth->failures, address);

	if (seconds > 0) {
		oauth_reply_busy(exchange, 429, seconds, "too many refused requests: try again later");
		return -ERR_BUSY;
	}
	int result = oauth_reply_form(exchange, form);

	return result < 0 ? result : find_client(exchange, form, client);
}

/* -------- tokens -------------------------------------------------------------------------------------- */

static struct store_oauth_terms terms_of(const struct config *config)
{
	return (struct store_oauth_terms){.access_us = config->oauth.access_seconds * SECOND,
					  .refresh_us = config->oauth.refresh_days * DAY_US,
					  .grant_us = config->oauth.grant_days * DAY_US};
}

/* A client that names a resource names this server; more than one, and all of them do. */
static bool resources_ours(const struct http_exchange *exchange, const struct oauth_form *form)
{
	for (size_t i = 0; i < form->count; i++)
		if (streq(form->fields[i].name, "resource") && form->fields[i].value[0] &&
		    !oauth_redirect_resource(exchange->server->config, form->fields[i].value))
			return false;
	return true;
}

static void reply_tokens(struct http_exchange *exchange, struct store_oauth_issued *issued)
{
	auto_json struct json_object *body = json_object_new_object();
	char scopes[STORE_SCOPES_TEXT], text[STORE_SCOPES_TEXT + sizeof(OAUTH_OFFLINE) + 1];

	store_scopes_print(issued->scopes, scopes);
	snprintf(text, sizeof(text), "%s%s", scopes, issued->offline ? " " OAUTH_OFFLINE : "");
	json_add_string(body, "access_token", issued->access);
	json_add_string(body, "token_type", "Bearer");
	json_add_int(body, "expires_in", issued->access_us / SECOND);
	if (issued->refresh[0])
		json_add_string(body, "refresh_token", issued->refresh);
	json_add_string(body, "scope", text);
	snprintf(exchange->reply->owner, sizeof(exchange->reply->owner), "%s", issued->owner);
	reply_header(exchange->reply, "Cache-Control", "no-store");
	reply_header(exchange->reply, "Pragma", "no-cache");
	reply_json(exchange->reply, 200, body);
	explicit_bzero(issued, sizeof(*issued));
}

static void reply_refused(struct http_exchange *exchange, int result, const struct err *err)
{
	if (result == -ERR_DENIED)
		refuse(exchange, "invalid_grant", err->text);
	else if (result == -ERR_INVALID)
		refuse(exchange, "invalid_scope", err->text);
	else
		oauth_reply_fault(exchange, err);
}

/* base64url(SHA-256(verifier)), as the client sent it to /authorize; false: it is no verifier. */
static bool challenge_of(const char *verifier, char ret[64])
{
	uint8_t sum[SHA256_SIZE];
	struct buf out;
	const size_t length = strlen(verifier);

	if (length < VERIFIER_MIN || length > VERIFIER_MAX ||
	    strspn(verifier, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~") != length)
		return false;
	sha256_bytes(verifier, length, sum);
	buf_init_room(&out, ret, 64);
	base64url_encode(&out, sum, sizeof(sum));
	return true;
}

static void redeem_code(struct http_exchange *exchange, const struct oauth_form *form,
			const struct store_oauth_client *client)
{
	const struct store_oauth_terms terms = terms_of(exchange->server->config);
	const char *verifier = oauth_form_get(form, "code_verifier"), *code = oauth_form_get(form, "code");
	struct store_oauth_issued issued = {0};
	struct err err = ERR_INIT;
	char challenge[64];

	if (!code || !verifier) {
		refuse(exchange, "invalid_request", code ? "code_verifier is missing" : "code is missing");
		return;
	}
	if (!challenge_of(verifier, challenge)) {
		refuse(exchange, "invalid_grant", "code_verifier must be 43 to 128 unreserved characters");
		return;
	}
	const struct store_oauth_redemption redemption = {.code = code,
							  .client = client->id,
							  .client_name = client->name[0] ? client->name : client->id,
							  .redirect = oauth_form_get(form, "redirect_uri"),
							  .challenge = challenge,
							  .refreshes = client->refreshes};
	int result = store_oauth_code_redeem(exchange->server->store, &redemption, &terms, &issued, &err);

	if (result < 0) {
		reply_refused(exchange, result, &err);
		return;
	}
	log_event(LOG_INFO, "client signed in", "owner", issued.owner, "grant", issued.grant, "client", client->id,
		  "request_id", exchange->reply->request_id, NULL);
	reply_tokens(exchange, &issued);
}

static void refresh(struct http_exchange *exchange, const struct oauth_form *form,
		    const struct store_oauth_client *client)
{
	const struct store_oauth_terms terms = terms_of(exchange->server->config);
	const char *token = oauth_form_get(form, "refresh_token");
	struct store_oauth_issued issued = {0};
	struct err err = ERR_INIT;
	bool offline = false, stolen = false;

	if (!token) {
		refuse(exchange, "invalid_request", "refresh_token is missing");
		return;
	}
	const struct store_oauth_renewal renewal = {
		.refresh = token,
		.client = client->id,
		.wanted = oauth_who_asked(oauth_form_get(form, "scope"), &offline),
	};
	int result = store_oauth_token_refresh(exchange->server->store, &renewal, &terms, &issued, &stolen, &err);

	if (stolen)
		log_event(LOG_WARN, "refresh token reused", "owner", issued.owner, "grant", issued.grant, "client",
			  client->id, "request_id", exchange->reply->request_id, NULL);
	if (result < 0)
		reply_refused(exchange, result, &err);
	else
		reply_tokens(exchange, &issued);
}

void oauth_token_post(struct http_exchange *exchange, const char *method, const char *rest)
{
	auto_form struct oauth_form form = {.count = 0};
	auto_oauth_client struct store_oauth_client client = {.redirects = NULL};

	(void)method;
	(void)rest;
	if (begin(exchange, &form, &client) < 0)
		return;
	const char *type = oauth_form_get(&form, "grant_type");

	if (!type)
		refuse(exchange, "invalid_request", "grant_type is missing");
	else if (!resources_ours(exchange, &form))
		refuse(exchange, "invalid_target", "resource is not this server");
	else if (streq(type, "authorization_code"))
		redeem_code(exchange, &form, &client);
	else if (streq(type, "refresh_token"))
		refresh(exchange, &form, &client);
	else
		refuse(exchange, "unsupported_grant_type", "grant_type must be authorization_code or refresh_token");
}

void oauth_token_revoke(struct http_exchange *exchange, const char *method, const char *rest)
{
	auto_form struct oauth_form form = {.count = 0};
	auto_oauth_client struct store_oauth_client client = {.redirects = NULL};
	struct err err = ERR_INIT;

	(void)method;
	(void)rest;
	if (begin(exchange, &form, &client) < 0)
		return;
	const char *token = oauth_form_get(&form, "token");

	if (!token) {
		refuse(exchange, "invalid_request", "token is missing");
		return;
	}
	if (store_oauth_token_revoke(exchange->server->store, token, client.id, &err) < 0) {
		oauth_reply_fault(exchange, &err);
		return;
	}
	exchange->reply->status = 200;
	reply_header(exchange->reply, "Cache-Control", "no-store");
}
