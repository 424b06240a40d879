/*
 * admin.c - see admin.h: from the address to the view, and the frame around it.
 *
 * Who is not signed in gets the sign-in page under every address, with 401, and is led back afterwards. The cookie is
 * SameSite=Lax: a browser brings it when one follows a link from a chat or a mail. No GET does anything, and where a
 * POST comes from is looked at (admin_session.c).
 */
#include "admin.h"

#include <pthread.h>
#include <string.h>

#include "admin_page.h"
#include "lib/base/embed.h"
#include "lib/base/log.h"
#include "lib/base/util.h"
#include "pages.h"

#define PAGE_MAX (8 * 1024 * 1024)
#define FORM_MAX (16 * 1024)
#define NEXT_MAX 512

static const char policy[] =
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; "
	"trusted-types 'none'";

static const struct view {
	const char *name, *label; /* label NULL: not in the navigation */
	int (*show)(struct admin_page *page, const char *rest, struct err *err);
} views[] = {
	{"", "Now", page_now},
	{"runs", "Runs", page_runs},
	{"run", NULL, page_run},
	{"conversation", NULL, page_conversation},
	{"act", NULL, admin_act_ask},
	{"owners", "Owners", page_owners},
	{"tokens", "Tokens", page_tokens},
	{"servers", "Servers", page_servers},
	{"charts", "Charts", page_charts},
	{"health", "Health", page_health},
	{"audit", "Audit", page_audit},
};

void admin_headers(struct reply *reply)
{
	reply_header(reply, "Content-Security-Policy", "%s", policy);
	reply_header(reply, "X-Content-Type-Options", "nosniff");
	reply_header(reply, "Referrer-Policy", "same-origin");
	reply_header(reply, "Cross-Origin-Opener-Policy", "same-origin");
	reply_header(reply, "Cross-Origin-Resource-Policy", "same-origin");
}

/* -------- the files of assets/, which are part of the program ----------------------------------------- */

struct asset {
	const char *name, *type;
	const char *begin, *end;
	char tag[13]; /* of its content, in its address, so that browsers may keep it for ever */
};
enum { STYLE, SCRIPT, ICON, ASSETS };
EMBED(admin_style_css, "cgi/admin/assets/style.css");
EMBED(admin_page_js, "cgi/admin/assets/page.js");
EMBED(admin_icon_svg, "cgi/admin/assets/icon.svg");

static struct asset assets[ASSETS] = {
	[STYLE] = {"style.css", "text/css; charset=utf-8", admin_style_css, admin_style_css_end, ""},
	[SCRIPT] = {"page.js", "text/javascript; charset=utf-8", admin_page_js, admin_page_js_end, ""},
	[ICON] = {"icon.svg", "image/svg+xml", admin_icon_svg, admin_icon_svg_end, ""},
};

static void make_tags(void)
{
	for (size_t i = 0; i < ASSETS; i++) {
		char sum[SHA256_HEX_SIZE];

		sha256_hex(assets[i].begin, (size_t)(assets[i].end - assets[i].begin), sum);
		snprintf(assets[i].tag, sizeof(assets[i].tag), "%.12s", sum);
	}
}

static const struct asset *asset_of(int which)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_tags);
	return &assets[which];
}

static const struct asset *asset_find(const char *name)
{
	for (int i = 0; i < ASSETS; i++) {
		const struct asset *asset = asset_of(i);
		const size_t length = strlen(asset->tag);

		if (strncmp(name, asset->tag, length) == 0 && name[length] == '-' &&
		    streq(name + length + 1, asset->name))
			return asset;
	}
	return NULL;
}

/* -------- the frame ----------------------------------------------------------------------------------- */

static void put_navigation(struct html *html, const struct admin_page *page)
{
	char key[ADMIN_KEY_SIZE];

	html_put(html, "<a class=\"skip\" href=\"#main\">Skip to the content</a>\n<header class=\"top\">"
		       "<a class=\"brand\" href=\"/admin/\"><span aria-hidden=\"true\"></span>Sallyport</a>\n"
		       "<nav aria-label=\"Views\"><ul>");
	for (size_t i = 0; i < ARRAY_SIZE(views); i++) {
		if (!views[i].label)
			continue;
		html_put(html, "<li><a href=\"/admin/{}\"", html_text(views[i].name));
		if (streq(views[i].name, page->section))
			html_put(html, " aria-current=\"page\"");
		html_put(html, ">{}</a></li>", html_text(views[i].label));
	}
	admin_session_key(&page->visitor, "sign-out", key);
	html_put(html,
		 "</ul></nav>\n<form class=\"who\" method=\"post\" action=\"/admin/sign-out\">"
		 "<input type=\"hidden\" name=\"key\" value=\"{}\"><span>{}</span>"
		 "<button>Sign out</button></form></header>\n",
		 html_text(key), html_text(page->visitor.token.owner));
}

static void send_page(struct admin_page *page, bool framed)
{
	const struct asset *style = asset_of(STYLE), *script = asset_of(SCRIPT), *icon = asset_of(ICON);
	struct reply *reply = page->exchange->reply;
	struct html html;

	html_init(&html, &reply->body);
	html_put(&html,
		 "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		 "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		 "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{} – Sallyport</title>\n"
		 "<link rel=\"icon\" href=\"/admin/asset/{}-{}\">\n"
		 "<link rel=\"stylesheet\" href=\"/admin/asset/{}-{}\">\n"
		 "<script src=\"/admin/asset/{}-{}\" defer></script>\n</head>\n<body>\n",
		 html_text(page->title), html_text(icon->tag), html_text(icon->name), html_text(style->tag),
		 html_text(style->name), html_text(script->tag), html_text(script->name));
	if (framed)
		put_navigation(&html, page);
	html_put(&html, "<main id=\"main\" tabindex=\"-1\">\n");
	buf_add(&reply->body, page->body.data, page->body.length);
	html_put(&html, "</main>\n");
	if (framed)
		html_put(&html,
			 "<footer><p id=\"status\" role=\"status\"></p>"
			 "<p>{} UTC <span id=\"keys\"></span></p></footer>\n",
			 html_date(page->now_us));
	html_put(&html, "</body>\n</html>\n");
	if (!html_sound(&page->html) || !html_sound(&html)) {
		log_event(LOG_ERROR, "admin page is wrong", "title", page->title, NULL);
		buf_reset(&reply->body);
		reply->status = 500;
		return;
	}
	reply->status = page->status;
	reply_header(reply, "Content-Type", "text/html; charset=utf-8");
	reply_header(reply, "Cache-Control", "no-store");
}

static void put_error(struct admin_page *page, int code, const char *text)
{
	buf_reset(&page->body);
	html_init(&page->html, &page->body);
	page->status = err_info((enum err_code) - code)->http;
	if (code == -ERR_LIMIT)
		page->status = 503;
	admin_page_title(page, "%s", page->status == 404 ? "Not found" : "This did not work");
	html_put(&page->html,
		 "<h1>{}</h1>\n<p class=\"error\">{}</p>\n<p><a href=\"/admin/\">To the first page</a></p>\n",
		 html_text(page->title), html_text(text));
}

/* -------- in and out ---------------------------------------------------------------------------------- */

/* Where to go after the sign-in: below /admin, and nothing that a browser could take for another host. */
static bool next_ok(const char *next)
{
	return (streq(next, "/admin") || str_starts(next, "/admin/") || str_starts(next, "/admin?")) &&
	       !strpbrk(next, "\\\"'<>") && strlen(next) < NEXT_MAX;
}

static void send_sign_in(struct admin_page *page, const char *next, const char *problem)
{
	admin_page_title(page, "Sign in");
	html_put(&page->html,
		 "<div class=\"door\"><h1><span class=\"mark\" aria-hidden=\"true\"></span>Sallyport</h1>\n");
	if (problem)
		html_put(&page->html, "<p class=\"error\" role=\"alert\">{}</p>\n", html_text(problem));
	html_put(&page->html,
		 "<form method=\"post\" action=\"/admin/sign-in\">"
		 "<label for=\"token\">Token with the scope admin</label>"
		 "<input id=\"token\" name=\"token\" type=\"password\" autocomplete=\"current-password\" "
		 "required autofocus spellcheck=\"false\"><input type=\"hidden\" name=\"next\" value=\"{}\">"
		 "<button class=\"main\">Sign in</button></form></div>\n",
		 html_text(next));
	send_page(page, false);
}

static void redirect(struct http_exchange *exchange, const char *to)
{
	exchange->reply->status = 303;
	reply_header(exchange->reply, "Location", "%s", to);
	reply_header(exchange->reply, "Cache-Control", "no-store");
}

static void post_sign_in(struct admin_page *page, const char *form)
{
	char token[ADMIN_VALUE_MAX], next[NEXT_MAX];
	struct err err = ERR_INIT;
	int64_t retry = 0;

	if (!admin_page_value(form, "next", next, sizeof(next)) || !next_ok(next))
		snprintf(next, sizeof(next), "/admin/");
	if (!admin_page_value(form, "token", token, sizeof(token)))
		token[0] = '\0';
	int result = admin_session_open(page->exchange, token, &retry, &err);

	explicit_bzero(token, sizeof(token));
	if (result == 0) {
		redirect(page->exchange, next);
		return;
	}
	page->status = result == -ERR_BUSY ? 429 : result == -ERR_DENIED ? 401 : 503;
	if (result == -ERR_BUSY)
		reply_header(page->exchange->reply, "Retry-After", "%lld", (long long)retry);
	send_sign_in(page, next, err.text);
}

static void send_refusal(struct admin_page *page, int code, const char *problem)
{
	const char *next = request_param(page->exchange->request, "REQUEST_URI");
	const bool had = request_param(page->exchange->request, "HTTP_COOKIE");

	if (code != -ERR_DENIED) {
		put_error(page, -ERR_UNAVAILABLE, problem);
		send_page(page, false);
		return;
	}
	page->status = 401;
	send_sign_in(page, next && next_ok(next) ? next : "/admin/", had ? problem : NULL);
}

/* -------- requests ------------------------------------------------------------------------------------ */

static int show(struct admin_page *page, const char *rest, struct err *err)
{
	const size_t length = strcspn(rest, "/");

	for (size_t i = 0; i < ARRAY_SIZE(views); i++) {
		if (strlen(views[i].name) != length || strncmp(views[i].name, rest, length) != 0)
			continue;
		page->section = views[i].name;
		admin_page_title(page, "%s", views[i].label ? views[i].label : "");
		return views[i].show(page, rest + length + (rest[length] == '/'), err);
	}
	return err_set(err, ERR_NOT_FOUND, "There is no such page");
}

static void get(struct admin_page *page, const char *rest)
{
	struct err err = ERR_INIT;
	int result = admin_session_find(page->exchange, &page->visitor, &err);

	if (result < 0) {
		send_refusal(page, result, err.text);
		return;
	}
	snprintf(page->exchange->reply->owner, sizeof(page->exchange->reply->owner), "%s", page->visitor.token.owner);
	result = show(page, rest, &err);
	if (result < 0)
		put_error(page, result, err.text);
	if (!page->raw || result < 0)
		send_page(page, true);
}

static void refuse(struct admin_page *page, int code, const char *text)
{
	put_error(page, code, text);
	send_page(page, false);
}

static void post_act(struct admin_page *page, const char *rest, const char *form)
{
	char to[ADMIN_VALUE_MAX];
	struct err err = ERR_INIT;
	int result = admin_act_do(page, rest, form, to, &err);

	if (result == 0 && to[0]) {
		auto_free char *address = xasprintf("/admin/%s", to);

		redirect(page->exchange, address);
		return;
	}
	if (result < 0)
		put_error(page, result, err.text);
	send_page(page, true);
}

static void post(struct admin_page *page, const char *rest)
{
	struct http_exchange *exchange = page->exchange;
	char key[ADMIN_KEY_SIZE];
	auto_buf struct buf form = {0};
	struct err err = ERR_INIT;

	buf_init(&form, FORM_MAX);
	if (!admin_session_own_page(exchange)) {
		refuse(page, -ERR_DENIED, "This request did not come from a page of this site");
		return;
	}
	if (exchange->request->read_body(exchange->request->arg, &form, &err) < 0 || form.overflow) {
		refuse(page, -ERR_INVALID, "The form could not be read");
		return;
	}
	if (streq(rest, "sign-in")) {
		post_sign_in(page, form.data);
		explicit_bzero(form.data, form.length);
		return;
	}
	int result = admin_session_find(exchange, &page->visitor, &err);

	if (result < 0) {
		send_refusal(page, result, err.text);
		return;
	}
	if (!admin_page_value(form.data, "key", key, sizeof(key)) ||
	    !admin_session_key_right(&page->visitor, rest, key)) {
		refuse(page, -ERR_DENIED, "This form is not of this session: open the page again");
		return;
	}
	if (streq(rest, "sign-out")) {
		admin_session_end(exchange, &page->visitor);
		redirect(exchange, "/admin/");
		return;
	}
	if (str_starts(rest, "act/"))
		post_act(page, rest + strlen("act/"), form.data);
	else
		refuse(page, -ERR_NOT_FOUND, "There is no such act");
}

void admin_handle(struct http_exchange *exchange, const char *method, const char *rest)
{
	struct admin_page page = {.exchange = exchange, .section = "", .status = 200, .now_us = clock_now_us()};

	if (!exchange->server->config->admin.enabled || !exchange->server->admin) {
		reply_refuse(exchange->reply, 404,
			     "the admin page is not served here: admin.enabled in the configuration");
		return;
	}
	if (str_starts(rest, "asset/")) {
		const struct asset *asset = asset_find(rest + strlen("asset/"));

		if (!asset) {
			reply_refuse(exchange->reply, 404, "no such file");
			return;
		}
		exchange->reply->status = 200;
		reply_header(exchange->reply, "Content-Type", "%s", asset->type);
		reply_header(exchange->reply, "Cache-Control", "private, max-age=31536000, immutable");
		buf_add(&exchange->reply->body, asset->begin, (size_t)(asset->end - asset->begin));
		return;
	}
	page.refresh = request_param(exchange->request, "HTTP_X_SALLYPORT_REFRESH");
	buf_init(&page.body, PAGE_MAX);
	html_init(&page.html, &page.body);
	if (streq(method, "POST"))
		post(&page, rest);
	else
		get(&page, rest);
	buf_clear(&page.body);
	explicit_bzero(&page.visitor, sizeof(page.visitor));
}
