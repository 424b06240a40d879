/*
 * upstream_sign_in.c - see upstream_sign_in.h.
 *
 * Begin: who the issuer is, which scopes to ask for, who we are there, then the address. State and verifier are random
 * and live in this process alone: an answer to an earlier sign-in, or to somebody else's, is not an answer. End: state
 * first, so that a stranger's address changes nothing; then the issuer that the answer names (RFC 9207), before the
 * code goes anywhere; then an error that the person or the issuer gave; then code and verifier for tokens, and the
 * login is written under its lock.
 *
 * Facts: OAuth 2.1, RFC 7591, RFC 7636, RFC 8252, RFC 8707, RFC 9207; MCP 2026-07-28, client registration.
 */
#include "upstream_sign_in.h"

#include <string.h>
#include <strings.h>

#include "lib/base/host.h"
#include "lib/base/json.h"
#include "lib/base/text.h"
#include "lib/base/util.h"
#include "lib/store/db/crypto.h"
#include "upstream_discover.h"
#include "upstream_grant.h"
#include "upstream_redirected.h"

#define TEXT_MAX    16384
#define RANDOM_SIZE 32

struct upstream_sign_in {
	const struct config *config;
	const struct upstream_server *server;
	struct upstream_issuer issuer;
	struct upstream_login login; /* as far as it is known */
	char *url, *state, *verifier;
};

void upstream_sign_in_free(struct upstream_sign_in *sign_in)
{
	if (sign_in == NULL)
		return;
	upstream_issuer_clear(&sign_in->issuer);
	upstream_login_clear(&sign_in->login);
	upstream_login_set(&sign_in->verifier, NULL);
	free(sign_in->url);
	free(sign_in->state);
	free(sign_in);
}

void upstream_sign_in_free_pointer(struct upstream_sign_in **sign_in)
{
	upstream_sign_in_free(*sign_in);
}

const char *upstream_sign_in_url(const struct upstream_sign_in *sign_in)
{
	return sign_in->url;
}

const char *upstream_sign_in_issuer(const struct upstream_sign_in *sign_in)
{
	return sign_in->issuer.issuer;
}

/* -------- the client ---------------------------------------------------------------------------------- */

static void be_client(struct upstream_login *login, const char *id, const char *secret, const char *way)
{
	upstream_login_set(&login->client_id, id);
	upstream_login_set(&login->client_secret, secret);
	upstream_login_set(&login->client_auth, way);
}

/* How a client with a secret shows it. */
static const char *way_for_secret(unsigned auth)
{
	return upstream_auth_names[(auth & UPSTREAM_AUTH_BASIC) != 0 || (auth & UPSTREAM_AUTH_POST) == 0 ? 1 : 2];
}

/* What is asked for: no secret where that is allowed. */
static const char *way_to_register(unsigned auth)
{
	return (auth & UPSTREAM_AUTH_NONE) != 0 || auth == 0 ? upstream_auth_names[0] : way_for_secret(auth);
}

static void add_strings(struct json_object *object, const char *member, const char *first, const char *second)
{
	struct json_object *list = json_object_new_array();

	json_object_array_add(list, json_object_new_string(first));
	if (second != NULL)
		json_object_array_add(list, json_object_new_string(second));
	json_add(object, member, list);
}

static int take_registration(struct upstream_sign_in *sign_in, struct json_object *answer, const char *asked,
			     struct err *err)
{
	const char *id = json_get_string(answer, "client_id"), *secret = json_get_string(answer, "client_secret"),
		   *way = json_get_string(answer, "token_endpoint_auth_method");
	bool known = false;

	if (id == NULL || id[0] == '\0')
		return err_set(err, ERR_UNAVAILABLE, "%.200s registered a client without an id",
			       sign_in->issuer.issuer);
	if (way == NULL)
		way = secret != NULL && streq(asked, upstream_auth_names[0]) ? way_for_secret(sign_in->issuer.auth)
									     : asked;
	for (size_t i = 0; upstream_auth_names[i] != NULL; i++)
		known |= streq(way, upstream_auth_names[i]);
	if (!known)
		return err_set(err, ERR_UNAVAILABLE, "%.200s wants clients to show themselves by %.40s: not spoken",
			       sign_in->issuer.issuer, way);
	be_client(&sign_in->login, id, secret, way);
	upstream_login_set(&sign_in->login.registered, "yes");
	return 0;
}

static int register_client(struct upstream_sign_in *sign_in, struct err *err)
{
	const struct upstream_issuer *issuer = &sign_in->issuer;
	auto_json struct json_object *document = json_object_new_object(), *answer = NULL;
	const char *way = way_to_register(issuer->auth);
	auto_buf struct buf text = {0};
	int status = 0;

	if (issuer->registration_endpoint == NULL)
		return err_set(err, ERR_UNAVAILABLE,
			       "%.200s does not register clients by itself: register one there with the redirect "
			       "address %s, and put its id into mcpServers.%s.oauth.client_id",
			       issuer->issuer, sign_in->login.redirect_uri, sign_in->server->name);
	json_add_string(document, "client_name", "Sallyport");
	add_strings(document, "redirect_uris", sign_in->login.redirect_uri, NULL);
	add_strings(document, "grant_types", "authorization_code", "refresh_token");
	add_strings(document, "response_types", "code", NULL);
	json_add_string(document, "token_endpoint_auth_method", way);
	json_add_string(document, "application_type", "native");
	/* No scope: issuers refuse those that belong to a resource and not to themselves. */
	buf_init(&text, TEXT_MAX);
	json_print(&text, document);
	const struct oauth_fetch what = {.url = issuer->registration_endpoint, .json = text.data};
	int result = upstream_discover_ask(sign_in->server, &what, &status, &answer, err);

	if (result < 0)
		return result;
	if (status != 201 && status != 200) {
		const char *error = json_get_string(answer, "error"),
			   *why = json_get_string(answer, "error_description");

		return err_set(err, ERR_UNAVAILABLE, "%.200s did not register a client: status %d %.60s %.200s",
			       issuer->registration_endpoint, status, error != NULL ? error : "",
			       why != NULL ? why : "");
	}
	return take_registration(sign_in, answer, way, err);
}

/* Did a client register itself at this issuer before, for the same redirect? */
static bool recall_client(struct upstream_sign_in *sign_in)
{
	struct upstream_login *login = &sign_in->login;
	auto_login struct upstream_login kept = {0};

	if (upstream_login_read(sign_in->config->data_dir, sign_in->server, &kept, NULL) < 0 ||
	    kept.registered == NULL || kept.client_id == NULL || kept.issuer == NULL ||
	    !streq(kept.issuer, sign_in->issuer.issuer) || kept.redirect_uri == NULL ||
	    !streq(kept.redirect_uri, login->redirect_uri))
		return false;
	be_client(login, kept.client_id, kept.client_secret, kept.client_auth);
	upstream_login_set(&login->registered, kept.registered);
	return true;
}

static int choose_client(struct upstream_sign_in *sign_in, struct err *err)
{
	const struct upstream_server *server = sign_in->server;
	const char *secret = server->oauth.client_secret;

	if (server->oauth.client_id != NULL) {
		be_client(&sign_in->login, server->oauth.client_id, secret,
			  secret != NULL ? way_for_secret(sign_in->issuer.auth) : upstream_auth_names[0]);
		return 0;
	}
	if (server->oauth.client_metadata_url != NULL && sign_in->issuer.takes_urls) {
		be_client(&sign_in->login, server->oauth.client_metadata_url, NULL, upstream_auth_names[0]);
		return 0;
	}
	return recall_client(sign_in) ? 0 : register_client(sign_in, err);
}

/* -------- the request --------------------------------------------------------------------------------- */

static char *random_text(void)
{
	unsigned char bytes[RANDOM_SIZE];
	auto_buf struct buf text = {0};

	random_bytes(bytes, sizeof(bytes));
	buf_init(&text, TEXT_MAX);
	base64url_encode(&text, bytes, sizeof(bytes));
	return buf_steal(&text, NULL);
}

static bool has_word(const char *words, const char *word)
{
	const size_t length = strlen(word);

	for (const char *at = words; (at = strstr(at, word)) != NULL; at += length)
		if ((at == words || at[-1] == ' ') && (at[length] == '\0' || at[length] == ' '))
			return true;
	return false;
}

/* Which scopes to ask for: NULL for none. Tokens that renew themselves may have one of their own. */
static void choose_scope(struct upstream_sign_in *sign_in, const char *scope)
{
	struct upstream_issuer *issuer = &sign_in->issuer;

	if (scope == NULL)
		scope = sign_in->server->oauth.scopes;
	if (scope != NULL) {
		free(issuer->scope);
		issuer->scope = xstrdup(scope);
	}
	if (!issuer->offline || (issuer->scope != NULL && has_word(issuer->scope, "offline_access")))
		return;
	char *more = issuer->scope != NULL ? xasprintf("%s offline_access", issuer->scope) : xstrdup("offline_access");

	free(issuer->scope);
	issuer->scope = more;
}

static void write_url(struct upstream_sign_in *sign_in)
{
	const struct upstream_issuer *issuer = &sign_in->issuer;
	auto_buf struct buf query = {0}, challenge = {0};
	uint8_t sum[SHA256_SIZE];

	sign_in->state = random_text();
	sign_in->verifier = random_text();
	sha256_bytes(sign_in->verifier, strlen(sign_in->verifier), sum);
	buf_init(&challenge, TEXT_MAX);
	base64url_encode(&challenge, sum, sizeof(sum));
	buf_init(&query, TEXT_MAX);
	upstream_grant_put(&query, "response_type", "code");
	upstream_grant_put(&query, "client_id", sign_in->login.client_id);
	upstream_grant_put(&query, "redirect_uri", sign_in->login.redirect_uri);
	upstream_grant_put(&query, "code_challenge", challenge.data);
	upstream_grant_put(&query, "code_challenge_method", "S256");
	upstream_grant_put(&query, "state", sign_in->state);
	upstream_grant_put(&query, "resource", issuer->resource);
	if (issuer->scope != NULL)
		upstream_grant_put(&query, "scope", issuer->scope);
	if (issuer->offline)
		upstream_grant_put(&query, "prompt", "consent"); /* else OpenID Connect gives no refresh token */
	sign_in->url = xasprintf("%s%c%s", issuer->authorization_endpoint,
				 strchr(issuer->authorization_endpoint, '?') != NULL ? '&' : '?', query.data);
}

static int check_server(const struct config *config, const struct upstream_server *server, struct err *err)
{
	struct host_url url;

	if (server->problem != NULL)
		return err_set(err, ERR_UNAVAILABLE, "%s", server->problem);
	if (server->url == NULL)
		return err_set(err, ERR_INVALID, "%s is a program: only servers with a url ask for a sign-in",
			       server->name);
	if (host_url_parse(server->url, &url) < 0 || !url.secure)
		return err_set(err, ERR_DENIED, "%.200s is not https: tokens would cross the network in the clear",
			       server->url);
	if (config->data_dir[0] == '\0')
		return err_set(err, ERR_UNAVAILABLE, "signing in needs data_dir in the configuration");
	if (!upstream_login_possible(server))
		return err_set(err, ERR_CONFLICT,
			       "mcpServers.%s.headers.Authorization is what this server gets: take it out of "
			       "upstream.file to sign in instead",
			       server->name);
	return 0;
}

int upstream_sign_in_begin(const struct config *config, const struct upstream_server *server, const char *redirect,
			   const char *scope, struct upstream_sign_in **ret, struct err *err)
{
	int result = check_server(config, server, err);

	if (result < 0)
		return result;
	auto_sign_in struct upstream_sign_in *sign_in = xcalloc(1, sizeof(*sign_in));

	sign_in->config = config;
	sign_in->server = server;
	oauth_fetch_begin();
	result = upstream_discover(server, &sign_in->issuer, err);
	if (result < 0)
		return result;
	upstream_login_set(&sign_in->login.url, server->url);
	upstream_login_set(&sign_in->login.issuer, sign_in->issuer.issuer);
	upstream_login_set(&sign_in->login.resource, sign_in->issuer.resource);
	upstream_login_set(&sign_in->login.token_endpoint, sign_in->issuer.token_endpoint);
	upstream_login_set(&sign_in->login.revocation_endpoint, sign_in->issuer.revocation_endpoint);
	upstream_login_set(&sign_in->login.redirect_uri, redirect);
	choose_scope(sign_in, scope);
	result = choose_client(sign_in, err);
	if (result < 0)
		return result;
	write_url(sign_in);
	*ret = steal(&sign_in);
	return 0;
}

/* -------- the answer ---------------------------------------------------------------------------------- */

static int check_answer(const struct upstream_sign_in *sign_in, const struct upstream_redirected *answer,
			struct err *err)
{
	const struct upstream_issuer *issuer = &sign_in->issuer;

	if (answer->state == NULL || !streq(answer->state, sign_in->state))
		return err_set(err, ERR_INVALID, "this is not the answer to this sign-in: its state is another one");
	if (answer->iss == NULL && issuer->sends_iss)
		return err_set(err, ERR_DENIED, "the answer does not say which issuer gave it, and %.200s always does",
			       issuer->issuer);
	if (answer->iss != NULL && !streq(answer->iss, issuer->issuer))
		return err_set(err, ERR_DENIED, "the answer is of %.200s, not of %.200s", answer->iss, issuer->issuer);
	if (answer->error != NULL)
		return err_set(err, ERR_DENIED, "%.200s refused: %.60s%s%.200s", issuer->issuer, answer->error,
			       answer->error_description != NULL ? ": " : "",
			       answer->error_description != NULL ? answer->error_description : "");
	if (answer->code == NULL)
		return err_set(err, ERR_INVALID, "the answer has no code");
	return 0;
}

int upstream_sign_in_end(struct upstream_sign_in *sign_in, const char *text, struct upstream_login *ret,
			 struct err *err)
{
	const struct upstream_server *server = sign_in->server;
	auto_redirected struct upstream_redirected answer = {0};
	auto_buf struct buf form = {0};

	if (upstream_redirected_read(text, &answer) < 0)
		return err_set(err, ERR_INVALID, "this is not the address that the browser was sent to");
	int result = check_answer(sign_in, &answer, err);

	if (result < 0)
		return result;
	buf_init(&form, TEXT_MAX);
	upstream_grant_put(&form, "grant_type", "authorization_code");
	upstream_grant_put(&form, "code", answer.code);
	upstream_grant_put(&form, "redirect_uri", sign_in->login.redirect_uri);
	upstream_grant_put(&form, "code_verifier", sign_in->verifier);
	upstream_grant_put(&form, "resource", sign_in->issuer.resource);
	if (sign_in->login.scope == NULL && sign_in->issuer.scope != NULL)
		upstream_login_set(&sign_in->login.scope, sign_in->issuer.scope); /* unless the answer says another */
	result = upstream_grant_ask(server, form.data, NULL, &sign_in->login, err);
	if (result < 0)
		return result;
	auto_close int lock = upstream_login_lock(sign_in->config->data_dir, server, NULL, err);

	if (lock < 0)
		return lock;
	result = upstream_login_write(sign_in->config->data_dir, server, &sign_in->login, err);
	if (result < 0)
		return result;
	*ret = sign_in->login;
	sign_in->login = (struct upstream_login){0};
	return 0;
}
