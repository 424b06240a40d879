/* upstream_grant.c - see upstream_grant.h. Facts: RFC 6749 sections 4.1.3, 5 and 6, RFC 6750, RFC 7009, RFC 8707. */
#include "upstream_grant.h"

#include <string.h>
#include <strings.h>

#include "lib/base/json.h"
#include "lib/base/log.h"
#include "lib/base/util.h"
#include "upstream_discover.h"

#define FORM_MAX  (64 << 10)
#define TOKEN_MAX 16384
#define SECOND    INT64_C(1000000)

void upstream_grant_put(struct buf *form, const char *name, const char *value)
{
	buf_printf(form, "%s%s=", form->length > 0 ? "&" : "", name);
	oauth_fetch_encode(form, value);
}

static bool shows(const struct upstream_login *login, const char *way)
{
	return login->client_auth != NULL && streq(login->client_auth, way);
}

struct answer {
	int status;
	struct json_object *object; /* NULL: none */
};

/* A POST of the form, as the client of the login; `what` names the address. The answer's object is the caller's. */
static int post(const struct upstream_server *server, const struct upstream_login *login, struct oauth_fetch what,
		const char *form, struct answer *ret, struct err *err)
{
	auto_buf struct buf body = {0};

	buf_init(&body, FORM_MAX);
	buf_puts(&body, form);
	if (shows(login, "client_secret_basic")) {
		what.user = login->client_id;
		what.password = login->client_secret;
	} else {
		upstream_grant_put(&body, "client_id", login->client_id);
		if (shows(login, "client_secret_post") && login->client_secret != NULL)
			upstream_grant_put(&body, "client_secret", login->client_secret);
	}
	what.form = body.data;
	int result = body.overflow ? err_set(err, ERR_LIMIT, "the request for tokens is too large")
				   : upstream_discover_ask(server, &what, &ret->status, &ret->object, err);

	explicit_bzero(body.data, body.length);
	return result;
}

/* Characters that a header may hold, without blanks. */
static bool is_token(const char *text)
{
	size_t length = strlen(text);

	for (const char *c = text; *c != '\0'; c++)
		if (*c <= ' ' || *c > '~')
			return false;
	return length > 0 && length <= TOKEN_MAX;
}

static int take_tokens(struct json_object *answer, struct upstream_login *login, struct err *err)
{
	const char *access = json_get_string(answer, "access_token"), *type = json_get_string(answer, "token_type"),
		   *refresh = json_get_string(answer, "refresh_token"), *scope = json_get_string(answer, "scope");
	struct json_object *seconds = json_get(answer, "expires_in", json_type_int);

	if (access == NULL || !is_token(access))
		return err_set(err, ERR_UNAVAILABLE, "%.200s gave no access token", login->token_endpoint);
	if (type == NULL || strcasecmp(type, "Bearer") != 0)
		return err_set(err, ERR_UNAVAILABLE, "%.200s gave a token of the type %.40s: only Bearer is spoken",
			       login->token_endpoint, type != NULL ? type : "(none)");
	upstream_login_set(&login->access_token, access);
	if (refresh != NULL && is_token(refresh))
		upstream_login_set(&login->refresh_token, refresh);
	if (scope != NULL)
		upstream_login_set(&login->scope, scope);
	login->got_us = clock_now_us();
	login->expires_us = seconds != NULL && json_object_get_int64(seconds) > 0
				    ? login->got_us + MIN(json_object_get_int64(seconds), INT32_MAX) * SECOND
				    : 0;
	return 0;
}

/* Errors after which only a person can help. */
static bool is_final(const char *error)
{
	static const char *const finals[] = {"invalid_grant",   "invalid_client", "unauthorized_client",
					     "invalid_request", "invalid_scope",  "invalid_target"};

	for (size_t i = 0; i < ARRAY_SIZE(finals); i++)
		if (streq(error, finals[i]))
			return true;
	return false;
}

int upstream_grant_ask(const struct upstream_server *server, const char *form, const atomic_bool *stop,
		       struct upstream_login *login, struct err *err)
{
	struct answer answer = {0};
	const struct oauth_fetch what = {.url = login->token_endpoint, .stop = stop};
	int result = post(server, login, what, form, &answer, err);
	auto_json struct json_object *object = answer.object;

	if (result < 0)
		return result == -ERR_DENIED ? -ERR_UNAVAILABLE : result;
	if (answer.status == 200)
		return take_tokens(object, login, err);
	const char *error = json_get_string(object, "error"), *why = json_get_string(object, "error_description");

	error = error != NULL ? error : "";
	if (streq(error, "invalid_client") || streq(error, "unauthorized_client"))
		upstream_login_set(&login->registered, NULL);
	return err_set(err, answer.status < 500 && is_final(error) ? ERR_DENIED : ERR_UNAVAILABLE,
		       "%.200s answered with status %d%s%.60s%s%.200s", login->token_endpoint, answer.status,
		       *error ? ": " : "", error, why != NULL ? ": " : "", why != NULL ? why : "");
}

int upstream_grant_renew(const struct upstream_server *server, const atomic_bool *stop, struct upstream_login *login,
			 struct err *err)
{
	auto_buf struct buf form = {0};

	if (login->refresh_token == NULL)
		return err_set(err, ERR_DENIED, "the access token is not good any more, and there is none to renew it");
	buf_init(&form, FORM_MAX);
	upstream_grant_put(&form, "grant_type", "refresh_token");
	upstream_grant_put(&form, "refresh_token", login->refresh_token);
	if (login->resource != NULL)
		upstream_grant_put(&form, "resource", login->resource);
	int result = upstream_grant_ask(server, form.data, stop, login, err);

	explicit_bzero(form.data, form.length);
	return result;
}

int upstream_grant_revoke(const struct upstream_server *server, const struct upstream_login *login, struct err *err)
{
	const char *token = login->refresh_token != NULL ? login->refresh_token : login->access_token;
	struct answer answer = {0};
	auto_buf struct buf form = {0};

	if (login->revocation_endpoint == NULL || token == NULL)
		return err_set(err, ERR_NOT_FOUND, "%.200s takes no revocation",
			       login->issuer != NULL ? login->issuer : server->name);
	buf_init(&form, FORM_MAX);
	upstream_grant_put(&form, "token", token);
	upstream_grant_put(&form, "token_type_hint", login->refresh_token != NULL ? "refresh_token" : "access_token");
	const struct oauth_fetch what = {.url = login->revocation_endpoint};
	int result = post(server, login, what, form.data, &answer, err);
	auto_json struct json_object *object = answer.object;

	explicit_bzero(form.data, form.length);
	if (answer.status == 200)
		return 0; /* with an empty body */
	return result < 0 ? result
			  : err_set(err, ERR_UNAVAILABLE, "%.200s answered with status %d", login->revocation_endpoint,
				    answer.status);
}
