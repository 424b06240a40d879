/*
 * oauth_page.c - see oauth_page.h.
 *
 * The last page goes on to the client by a refresh, not by a redirect: browsers hold `form-action 'self'` against the
 * whole chain of redirects behind a form, and clients lead on to addresses of apps. The forms have Referrer-Policy
 * same-origin, since with no-referrer browsers send "Origin: null", which the check of forms refuses.
 */
#include "oauth_page.h"

#include <pthread.h>
#include <string.h>

#include "cgi/http/html.h"
#include "cgi/http/uri.h"
#include "lib/base/embed.h"
#include "lib/base/log.h"
#include "lib/base/text.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "lib/oauth/oauth_client.h"

#define NAME_SHOWN 80 /* bytes of a client's name */
#define KEEP       "-._~"

EMBED(oauth_page_css, "cgi/oauth/oauth_page.css");

static char style_hash[64];

static void make_hash(void)
{
	uint8_t sum[SHA256_SIZE];
	struct buf out;

	sha256_bytes(oauth_page_css, strlen(oauth_page_css), sum);
	buf_init_room(&out, style_hash, sizeof(style_hash));
	base64_encode(&out, sum, sizeof(sum));
}

static void put_headers(struct reply *reply, int status, bool leaves)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_hash);
	reply->status = status;
	reply_header(reply, "Content-Type", "text/html; charset=utf-8");
	reply_header(reply, "Content-Security-Policy",
		     "default-src 'none'; style-src 'sha256-%s'; form-action 'self'; base-uri 'none'; frame-ancestors "
		     "'none'",
		     style_hash);
	reply_header(reply, "X-Frame-Options", "DENY");
	reply_header(reply, "X-Content-Type-Options", "nosniff");
	reply_header(reply, "Referrer-Policy", leaves ? "no-referrer" : "same-origin");
	reply_header(reply, "Cache-Control", "no-store");
}

/* `to` NULL: the page stays. */
static void begin(struct http_exchange *exchange, struct html *html, int status, const char *title, const char *to)
{
	struct reply *reply = exchange->reply;

	put_headers(reply, status, to);
	buf_reset(&reply->body);
	html_init(html, &reply->body);
	html_put(html, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
		       "content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light "
		       "dark\">\n");
	if (to)
		html_put(html, "<meta http-equiv=\"refresh\" content=\"0;url={}\">\n", html_text(to));
	html_put(html, "<title>{} – Sallyport</title>\n<style>", html_text(title));
	buf_puts(&reply->body, oauth_page_css);
	html_put(html, "</style>\n</head>\n<body>\n<main>\n<p class=\"brand\">Sallyport</p>\n<h1>{}</h1>\n",
		 html_text(title));
}

static void end(struct http_exchange *exchange, struct html *html)
{
	html_put(html, "</main>\n</body>\n</html>\n");
	if (html_sound(html))
		return;
	log_event(LOG_ERROR, "sign-in page is wrong", NULL);
	buf_reset(&exchange->reply->body);
	exchange->reply->status = 500;
}

char *oauth_page_address(const struct http_exchange *exchange, const struct oauth_transaction *transaction,
			 const struct oauth_page_answer *answer)
{
	const char *issuer = exchange->server->config->public_base_url;
	auto_buf struct buf out = {0};
	const struct {
		const char *name, *value;
	} rows[] = {{"code", answer->error ? NULL : answer->code},
		    {"error", answer->error},
		    {"error_description", answer->error ? answer->description : NULL},
		    {"state", transaction->state[0] ? transaction->state : NULL},
		    {"iss", issuer}};
	char separator = strchr(transaction->redirect, '?') ? '&' : '?';

	buf_init(&out, SIZE_MAX / 2);
	buf_puts(&out, transaction->redirect);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (!rows[i].value)
			continue;
		buf_printf(&out, "%c%s=", separator, rows[i].name);
		uri_encode(rows[i].value, strlen(rows[i].value), KEEP, &out);
		separator = '&';
	}
	return buf_steal(&out, NULL);
}

void oauth_page_error(struct http_exchange *exchange, int status, const char *text, const char *back)
{
	struct html html;

	begin(exchange, &html, status, "This did not work", NULL);
	html_put(&html, "<p class=\"error\" role=\"alert\">{}</p>\n", html_text(text));
	if (back)
		html_put(&html, "<p><a rel=\"noreferrer\" href=\"{}\">Back to the program that asked</a></p>\n",
			 html_address(back));
	else
		html_put(&html, "<p>Go back to the program that sent you here, and start again there.</p>\n");
	end(exchange, &html);
}

static struct html_value shown(const char *name)
{
	return html_bytes(name, utf8_cut(name, strlen(name), NAME_SHOWN));
}

/* Who asks, as far as it can be known before anybody is signed in. */
static void put_client(struct html *html, const struct oauth_transaction *transaction,
		       const struct store_oauth_client *client)
{
	char host[OAUTH_REDIRECT_HOST];

	oauth_redirect_host(transaction->client, host);
	if (client && client->name[0])
		html_put(html, "“{}”", shown(client->name));
	else if (str_starts(transaction->client, "https://"))
		html_put(html, "{}", html_text(host));
	else
		html_put(html, "A program without a name");
}

void oauth_page_ask(struct http_exchange *exchange, int status, const struct oauth_transaction *transaction,
		    const struct store_oauth_client *client, const char *problem)
{
	auto_free char *sealed = oauth_transaction_seal(exchange->server->store, OAUTH_STEP_ASKED, transaction);
	struct html html;

	begin(exchange, &html, status, "Sign in", NULL);
	if (problem)
		html_put(&html, "<p class=\"error\" role=\"alert\">{}</p>\n", html_text(problem));
	html_put(&html, "<p><strong>");
	put_client(&html, transaction, client);
	html_put(&html,
		 "</strong> wants to use this server. First say who you are; then you see what is asked.</p>\n"
		 "<form method=\"post\" action=\"/authorize\">\n<input type=\"hidden\" name=\"step\" value=\"1\">\n"
		 "<input type=\"hidden\" name=\"transaction\" value=\"{}\">\n"
		 "<label class=\"field\" for=\"credential\">Sallyport token, or code of <code>sallyport "
		 "login-code</code>"
		 "</label>\n<input id=\"credential\" name=\"credential\" type=\"password\" autocomplete=\"off\" "
		 "spellcheck=\"false\" autocapitalize=\"none\" required autofocus>\n"
		 "<div class=\"acts\"><button class=\"main\">Continue</button></div>\n</form>\n",
		 html_text(sealed));
	end(exchange, &html);
}

/* Where the answer goes: what a person must look at, because anybody may call a program “Claude”. */
static void put_where(struct html *html, const struct oauth_transaction *transaction,
		      const struct store_oauth_client *client)
{
	char host[OAUTH_REDIRECT_HOST], home[OAUTH_REDIRECT_HOST];
	const bool local = oauth_redirect_loopback(transaction->redirect);

	oauth_redirect_host(transaction->redirect, host);
	oauth_redirect_host(client->id, home);
	html_put(html, "<dl>\n<dt>Who asks</dt>\n<dd><strong>");
	put_client(html, transaction, client);
	html_put(html, "</strong><br><span class=\"soft\">");
	if (streq(client->kind, STORE_OAUTH_MANUAL))
		html_put(html, "Entered by this server’s operator");
	else if (streq(client->kind, STORE_OAUTH_REGISTERED))
		html_put(html, "It registered itself: its name is not verified");
	else
		html_put(html, "Described at {}", html_text(home));
	html_put(html, "</span></dd>\n<dt>Your approval goes to</dt>\n<dd class=\"host\">{}</dd>\n",
		 html_text(local ? "a program on this computer" : host));
	if (local)
		html_put(html, "<dd class=\"soft\">{}: go on only if you have just started it yourself.{}</dd>\n",
			 html_text(host),
			 html_text(oauth_client_local(client) && streq(client->kind, STORE_OAUTH_DOCUMENT)
					   ? " Any program on this computer can pretend to be this one."
					   : ""));
	html_put(html, "</dl>\n");
}

static void put_network(struct html *html, const struct config *config)
{
	const struct bind_strings *allow = &config->network.allow;
	const size_t most = 3;

	html_put(html, "Let these programs reach ");
	for (size_t i = 0; i < MIN(allow->count, most); i++)
		html_put(html, "{}{}", html_text(i ? ", " : ""), html_text(allow->items[i]));
	if (allow->count > most)
		html_put(html, " and {} other places", html_number((int64_t)(allow->count - most)));
	else if (allow->count == 0)
		html_put(html, "the network, where the operator allows it: now nowhere");
}

static void put_ticks(struct html *html, const struct http_exchange *exchange,
		      const struct oauth_page_approval *approval)
{
	static const struct {
		unsigned scope;
		const char *text; /* NULL: put_network */
	} rows[] = {{STORE_SCOPE_RUN, "Run programs"},
		    {STORE_SCOPE_FILES, "Upload files, and read files and results"},
		    {STORE_SCOPE_NETWORK, NULL},
		    {STORE_SCOPE_ADMIN, "Everything: all of this server, of all its owners"}};

	html_put(html, "<fieldset>\n<legend>What it may do as {}</legend>\n", html_text(approval->owner));
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char name[STORE_SCOPES_TEXT];

		if (!(approval->may & rows[i].scope))
			continue;
		store_scopes_print(rows[i].scope, name);
		html_put(html, "<label class=\"tick\"><input type=\"checkbox\" name=\"scope_{}\" value=\"yes\"",
			 html_part(name));
		if (rows[i].scope != STORE_SCOPE_ADMIN)
			html_put(html, " checked");
		html_put(html, "><span>");
		if (rows[i].text)
			html_put(html, "{}", html_text(rows[i].text));
		else
			put_network(html, exchange->server->config);
		html_put(html, " <span class=\"soft\">({})</span></span></label>\n", html_text(name));
	}
	html_put(html, "</fieldset>\n");
}

void oauth_page_approve(struct http_exchange *exchange, const struct oauth_page_approval *approval)
{
	const struct config *config = exchange->server->config;
	auto_free char *sealed =
		oauth_transaction_seal(exchange->server->store, OAUTH_STEP_KNOWN, approval->transaction);
	struct html html;

	begin(exchange, &html, 200, "Allow this program?", NULL);
	if (approval->problem)
		html_put(&html, "<p class=\"error\" role=\"alert\">{}</p>\n", html_text(approval->problem));
	put_where(&html, approval->transaction, approval->client);
	html_put(&html,
		 "<form method=\"post\" action=\"/authorize\">\n<input type=\"hidden\" name=\"step\" value=\"2\">\n"
		 "<input type=\"hidden\" name=\"transaction\" value=\"{}\">\n",
		 html_text(sealed));
	put_ticks(&html, exchange, approval);
	html_put(&html,
		 "<p class=\"soft\">For {} days, or until you revoke it: <code>sallyport token list</code> shows it."
		 "</p>\n<div class=\"acts\"><button class=\"main\" name=\"decision\" value=\"approve\">Approve</button>"
		 "<button name=\"decision\" value=\"deny\">Deny</button></div>\n</form>\n",
		 html_plain(config->oauth.grant_days));
	end(exchange, &html);
}

void oauth_page_done(struct http_exchange *exchange, const char *address, bool approved)
{
	struct html html;

	begin(exchange, &html, 200, approved ? "Approved" : "Denied", address);
	html_put(&html,
		 "<p>You are on your way back. If nothing happens: <a rel=\"noreferrer\" href=\"{}\">go on</a>.</p>\n"
		 "<p class=\"soft\">Afterwards you can close this window.</p>\n",
		 html_address(address));
	end(exchange, &html);
}
