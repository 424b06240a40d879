/* admin_page.c - see admin_page.h. */
#include "admin_page.h"

#include <stdarg.h>
#include <string.h>

#include "cgi/http/uri.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "lib/store/audit/store_audit.h"

#define TEXT_MAX (64 * 1024)

bool admin_page_value(const char *text, const char *name, char *ret, size_t size)
{
	const size_t length = strlen(name);
	const char *at = text;
	size_t part = 0;
	auto_buf struct buf out = {0};

	while (at && *at) {
		part = strcspn(at, "&");
		if (part > length && strncmp(at, name, length) == 0 && at[length] == '=')
			break;
		at += part + (at[part] == '&');
	}
	if (!at || !*at)
		return false;
	auto_free char *raw = xstrndup(at + length + 1, part - length - 1);

	for (char *p = raw; *p; p++)
		*p = *p == '+' ? ' ' : *p;
	buf_init(&out, ADMIN_VALUE_MAX);
	if (uri_decode(raw, &out, NULL) < 0 || out.overflow || out.length >= size || !utf8_valid(out.data, out.length))
		return false;
	memcpy(ret, out.data, out.length + 1);
	return true;
}

bool admin_page_query(const struct admin_page *page, const char *name, char *ret, size_t size)
{
	const char *uri = request_param(page->exchange->request, "REQUEST_URI");
	const char *query = uri ? strchr(uri, '?') : NULL;

	return query && admin_page_value(query + 1, name, ret, size);
}

void admin_page_title(struct admin_page *page, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(page->title, sizeof(page->title), format, arguments);
	va_end(arguments);
}

/* Letters are what counts; the colour comes with them. */
void admin_page_verdict(struct admin_page *page, const char *verdict)
{
	static const struct {
		const char *verdict, *kind, *name;
	} kinds[] = {
		{"", "live", "running"},
		{"OK", "good", "ended with 0"},
		{"RE", "bad", "exit status not 0"},
		{"SG", "bad", "signal"},
		{"TO", "limit", "time limit"},
		{"ML", "limit", "memory limit"},
		{"OL", "limit", "output limit"},
		{"CE", "bad", "did not compile"},
		{"CX", "quiet", "cancelled"},
		{"XX", "broken", "sandbox failed"},
	};
	size_t at = 0;

	while (at + 1 < ARRAY_SIZE(kinds) && !streq(kinds[at].verdict, verdict))
		at++;
	html_put(&page->html, "<span class=\"badge {}\" title=\"{}\">{}</span>", html_text(kinds[at].kind),
		 html_text(kinds[at].name), html_text(*verdict ? verdict : "running"));
}

void admin_page_time(struct admin_page *page, int64_t us)
{
	if (us <= 0)
		html_put(&page->html, "–");
	else
		html_put(&page->html, "<time datetime=\"{}\" title=\"{} UTC\">{}</time>", html_iso(us), html_date(us),
			 html_ago(us, page->now_us));
}

void admin_page_table(struct admin_page *page, const char *kind, const char *columns)
{
	html_put(&page->html, "<table");
	if (*kind)
		html_put(&page->html, " class=\"{}\"", html_text(kind));
	html_put(&page->html, "><thead><tr>");
	for (const char *at = columns; *at;) {
		const size_t length = strcspn(at, "|"), name = strcspn(at, "=|");

		html_put(&page->html, "<th scope=\"col\"");
		if (name < length)
			html_put(&page->html, " class=\"{}\"", html_bytes(at + name + 1, length - name - 1));
		html_put(&page->html, ">{}</th>", html_bytes(at, name));
		at += length + (at[length] == '|');
	}
	html_put(&page->html, "</tr></thead><tbody>\n");
}

void admin_page_table_end(struct admin_page *page, int64_t rows, const char *empty)
{
	if (rows)
		html_put(&page->html, "</tbody></table>\n");
	else if (empty)
		admin_page_empty(page, empty);
}

void admin_page_bar(struct admin_page *page, const char *kind, int64_t whole, int64_t used, bool full)
{
	html_put(&page->html,
		 "<td class=\"{}\"><svg width=\"{}\" height=\"8\" aria-hidden=\"true\">"
		 "<rect class=\"track\" width=\"{}\" height=\"8\" rx=\"4\"/>"
		 "<rect class=\"{}\" width=\"{}\" height=\"8\" rx=\"4\"/></svg></td>",
		 html_text(kind), html_plain(whole), html_plain(whole), html_text(full ? "full" : "used"),
		 html_plain(used));
}

void admin_page_empty(struct admin_page *page, const char *text)
{
	html_put(&page->html, "<p class=\"empty\">{}</p>\n", html_text(text));
}

void admin_page_figure(struct admin_page *page, const struct admin_figure *figure)
{
	html_put(&page->html, "<div class=\"figure {}\"><dt>{}</dt><dd>", html_text(figure->warn ? "warn" : ""),
		 html_text(figure->name));
	if (figure->href && *figure->href)
		html_put(&page->html, "<a href=\"/admin/{}\">{}</a>", html_text(figure->href), figure->value);
	else
		html_put(&page->html, "{}", figure->value);
	if (figure->note && *figure->note)
		html_put(&page->html, " <small>{}</small>", html_text(figure->note));
	html_put(&page->html, "</dd></div>\n");
}

void admin_page_text(struct admin_page *page, const char *data, size_t length, const char *more)
{
	const size_t shown = utf8_cut(data, length, TEXT_MAX);

	html_put(&page->html, "<pre dir=\"ltr\" tabindex=\"0\"><code>{}</code></pre>\n", html_lines(data, shown));
	if (shown < length)
		html_put(&page->html, "<p class=\"cut\">The first {} of {}. ", html_size((int64_t)shown),
			 html_size((int64_t)length));
	if (shown < length && more)
		html_put(&page->html, "<a href=\"/admin/{}\">Download all</a>", html_text(more));
	if (shown < length)
		html_put(&page->html, "</p>\n");
}

void admin_page_viewed(struct admin_page *page, const char *type, const char *id, const char *owner)
{
	char actor[ADMIN_ACTOR_SIZE];
	struct store_audit entry;

	if (page->refresh)
		return;
	admin_session_actor(&page->visitor, actor);
	store_audit_init(&entry, STORE_AUDIT_ADMIN_VIEW, type, id);
	entry.actor = actor;
	entry.owner = owner;
	store_audit_client(&entry, &page->exchange->client);
	store_audit_later(page->exchange->server->store, &entry);
}
