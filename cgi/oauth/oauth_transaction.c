/* oauth_transaction.c - see oauth_transaction.h. */
#include "oauth_transaction.h"

#include <string.h>

#include "lib/base/text.h"
#include "lib/base/util.h"
#include "lib/store/record/store_file.h"

#define SEALED_MAX    (16 * 1024)
#define COOKIE_BYTES  32
#define COOKIE_DIGITS (2 * COOKIE_BYTES)
#define COOKIES_MAX   4096

/* A text sealed for one step opens for no other. */
static const char *purpose(enum oauth_step step)
{
	return step == OAUTH_STEP_ASKED ? "oauth: asked" : "oauth: known";
}

char *oauth_transaction_seal(struct store *store, enum oauth_step step, const struct oauth_transaction *transaction)
{
	auto_json struct json_object *object = json_object_new_object();
	auto_buf struct buf text = {0}, sealed = {0};

	json_add_string(object, "client", transaction->client);
	json_add_string(object, "redirect", transaction->redirect);
	json_add_string(object, "state", transaction->state);
	json_add_string(object, "challenge", transaction->challenge);
	json_add_int(object, "asked", transaction->asked);
	json_add_bool(object, "offline", transaction->offline);
	json_add_string(object, "browser", transaction->browser);
	json_add_int(object, "expires", transaction->expires_us);
	json_add_string(object, "token", transaction->token);
	json_add_string(object, "login", transaction->login);
	buf_init(&text, SEALED_MAX);
	buf_init(&sealed, SIZE_MAX / 2);
	json_print(&text, object);
	store_seal(store, purpose(step), text.data, text.length, &sealed);
	return buf_steal(&sealed, NULL);
}

static void take(struct json_object *object, const char *name, char *ret, size_t size)
{
	const char *value = json_get_string(object, name);

	snprintf(ret, size, "%s", value ? value : "");
}

static int64_t number(struct json_object *object, const char *name)
{
	return json_object_get_int64(json_get(object, name, json_type_int));
}

/* -------- the cookie ---------------------------------------------------------------------------------- */

static bool is_secure(const struct http_exchange *exchange)
{
	return str_starts(exchange->server->config->public_base_url, "https://");
}

static const char *cookie_name(const struct http_exchange *exchange)
{
	return is_secure(exchange) ? "__Host-sallyport-oauth" : "sallyport-oauth";
}

/* The value of our cookie; false: there is none. */
static bool find_cookie(const struct http_exchange *exchange, char ret[COOKIE_DIGITS + 1])
{
	auto_free char *buffer = xmalloc(COOKIES_MAX);
	const char *at = request_header(exchange->request, "HTTP_COOKIE", buffer, COOKIES_MAX);
	const char *name = cookie_name(exchange);
	const size_t length = strlen(name);

	while (at && *at) {
		at += strspn(at, "; ");
		if (strncmp(at, name, length) == 0 && at[length] == '=' &&
		    strspn(at + length + 1, "0123456789abcdef") == COOKIE_DIGITS &&
		    strchr("; ", at[length + 1 + COOKIE_DIGITS])) {
			memcpy(ret, at + length + 1, COOKIE_DIGITS);
			ret[COOKIE_DIGITS] = '\0';
			return true;
		}
		at += strcspn(at, ";");
	}
	return false;
}

void oauth_transaction_browser(struct http_exchange *exchange, char ret[SHA256_HEX_SIZE])
{
	char value[COOKIE_DIGITS + 1];
	uint8_t bytes[COOKIE_BYTES];

	if (!find_cookie(exchange, value)) {
		random_bytes(bytes, sizeof(bytes));
		hex_encode(bytes, sizeof(bytes), value);
		reply_header(exchange->reply, "Set-Cookie", "%s=%s; Path=/; HttpOnly; SameSite=Lax%s",
			     cookie_name(exchange), value, is_secure(exchange) ? "; Secure" : "");
	}
	sha256_hex(value, COOKIE_DIGITS, ret);
}

int oauth_transaction_open(const struct http_exchange *exchange, enum oauth_step step, const char *text,
			   struct oauth_transaction *ret, struct err *err)
{
	struct oauth_transaction transaction = {.asked = 0};
	auto_json struct json_object *object = NULL;
	auto_buf struct buf plain = {0};
	char value[COOKIE_DIGITS + 1], browser[SHA256_HEX_SIZE];

	buf_init(&plain, SEALED_MAX);
	if (!text || store_unseal(exchange->server->store, purpose(step), text, &plain, NULL) < 0 ||
	    json_parse(plain.data, plain.length, &object, NULL) < 0)
		return err_set(err, ERR_DENIED, "this form was not made by this server");
	take(object, "client", transaction.client, sizeof(transaction.client));
	take(object, "redirect", transaction.redirect, sizeof(transaction.redirect));
	take(object, "state", transaction.state, sizeof(transaction.state));
	take(object, "challenge", transaction.challenge, sizeof(transaction.challenge));
	take(object, "browser", transaction.browser, sizeof(transaction.browser));
	take(object, "token", transaction.token, sizeof(transaction.token));
	take(object, "login", transaction.login, sizeof(transaction.login));
	transaction.asked = (unsigned)number(object, "asked");
	transaction.offline = json_object_get_boolean(json_get(object, "offline", json_type_boolean));
	transaction.expires_us = number(object, "expires");
	if (!find_cookie(exchange, value))
		return err_set(err, ERR_DENIED, "the browser sent no cookie of this page: it must accept cookies");
	sha256_hex(value, COOKIE_DIGITS, browser);
	if (!equal_constant_time(browser, transaction.browser, SHA256_HEX_SIZE))
		return err_set(err, ERR_DENIED, "this form was begun in another browser");
	if (transaction.expires_us <= clock_now_us())
		return err_set(err, ERR_DENIED, "this page was open for too long");
	*ret = transaction;
	return 0;
}
