/*
 * admin_page.c - see admin_page.h.
 *
 * Values of queries, then the pieces that views put together, from the smallest to texts of guests. At the end are
 * commands whose answers views show: a child that shares nothing with the gateway but its configuration.
 */
#include "admin_page.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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

static const struct verdict {
	const char *verdict, *kind, *words;
} verdicts[] = {
	{"", "live", "running"},         {"OK", "good", "ended with 0"},     {"RE", "bad", "exit status not 0"},
	{"SG", "bad", "signal"},         {"TO", "limit", "time limit"},      {"ML", "limit", "memory limit"},
	{"OL", "limit", "output limit"}, {"CE", "bad", "did not compile"},   {"CX", "quiet", "cancelled"},
	{"XX", "broken", "sandbox failed"},
};

static const struct verdict *find_verdict(const char *verdict)
{
	size_t at = 0;

	while (at + 1 < ARRAY_SIZE(verdicts) && !streq(verdicts[at].verdict, verdict))
		at++;
	return &verdicts[at];
}

const char *admin_page_verdict_text(const char *verdict)
{
	return find_verdict(verdict)->words;
}

/* Letters are what counts; the colour comes with them, and the words where there is room. */
void admin_page_verdict(struct admin_page *page, const char *verdict)
{
	const struct verdict *found = find_verdict(verdict);

	html_put(&page->html, "<span class=\"badge {}\">{}</span>", html_text(found->kind),
		 html_text(*verdict ? verdict : found->words));
	if (*verdict)
		html_put(&page->html, " <small class=\"words\">{}</small>", html_text(found->words));
}

void admin_page_time(struct admin_page *page, int64_t us)
{
	const struct html_value date = html_date(us);

	if (us <= 0)
		html_put(&page->html, "–");
	else
		html_put(&page->html,
			 "<time datetime=\"{}\"><span class=\"day\">{}</span>{}</time> "
			 "<small class=\"age\" data-age=\"{}\">{}</small>",
			 html_iso(us), html_bytes(date.room, 11), html_bytes(date.room + 11, 8),
			 html_plain(MAX(page->now_us - us, 0) / 1000000), html_ago(us, page->now_us));
}

void admin_page_elapsed(struct admin_page *page, int64_t us)
{
	const int64_t seconds = MAX(us, 0) / 1000000;

	html_put(&page->html, "<span data-elapsed=\"{}\">", html_plain(seconds));
	if (seconds < 120)
		html_put(&page->html, "{} s</span>", html_plain(seconds));
	else
		html_put(&page->html, "{}</span>", html_duration(us));
}

int admin_page_moment(const char *name, const char *text, int64_t *ret_us, struct err *err)
{
	static const char *const forms[] = {"%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%d"};

	for (size_t i = 0; *text && i < ARRAY_SIZE(forms); i++) {
		struct tm parts = {0};
		const char *end = strptime(text, forms[i], &parts);

		if (end && !*end) {
			*ret_us = (int64_t)timegm(&parts) * 1000000;
			return 0;
		}
	}
	return *text ? err_set(err, ERR_INVALID, "%s: must be a time as YYYY-MM-DDTHH:MM, not \"%s\"", name, text) : 0;
}

void admin_page_option(struct admin_page *page, const char *value, const char *label, const char *chosen)
{
	html_put(&page->html, "<option value=\"{}\"", html_text(value));
	if (streq(value, chosen))
		html_put(&page->html, " selected");
	html_put(&page->html, ">{}</option>", html_text(label));
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

static void put_cut(struct admin_page *page, size_t shown, size_t length, const char *more)
{
	if (shown < length)
		html_put(&page->html, "<p class=\"cut\">The first {} of {}. ", html_size((int64_t)shown),
			 html_size((int64_t)length));
	if (shown < length && more)
		html_put(&page->html, "<a href=\"/admin/{}\">Download all</a>", html_text(more));
	if (shown < length)
		html_put(&page->html, "</p>\n");
}

void admin_page_text(struct admin_page *page, const char *data, size_t length, const char *more)
{
	const size_t shown = utf8_cut(data, length, TEXT_MAX);

	html_put(&page->html, "<pre dir=\"ltr\" tabindex=\"0\"><code>{}</code></pre>\n", html_lines(data, shown));
	put_cut(page, shown, length, more);
}

void admin_page_code(struct admin_page *page, const char *data, size_t length, const char *more)
{
	const size_t shown = utf8_cut(data, length, TEXT_MAX);
	const char *end = data + shown;

	html_put(&page->html, "<pre class=\"numbered\" dir=\"ltr\" tabindex=\"0\"><code>");
	for (const char *line = data; line < end;) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));

		stop = stop ? stop + 1 : end;
		html_put(&page->html, "<span>{}</span>", html_lines(line, (size_t)(stop - line)));
		line = stop;
	}
	html_put(&page->html, "</code></pre>\n");
	put_cut(page, shown, length, more);
}

/* What the program writes until it ends, or the time is up; then it is ended. */
static void read_all(int fd, pid_t child, int64_t ms, struct buf *ret)
{
	const int64_t until = clock_monotonic_us() + ms * 1000;
	struct pollfd polled = {.fd = fd, .events = POLLIN};
	char part[4096];

	for (;;) {
		const int64_t left = (until - clock_monotonic_us()) / 1000;
		ssize_t length = left > 0 && poll(&polled, 1, (int)left) > 0 ? read(fd, part, sizeof(part)) : 0;

		if (length <= 0)
			break;
		buf_add(ret, part, (size_t)length);
	}
	kill(child, SIGKILL); /* it has closed its output, or is late */
	waitpid(child, NULL, 0);
}

#define ARGUMENTS_MAX 8

int admin_page_command(const struct admin_page *page, const char *const *arguments, int64_t ms, struct buf *ret,
		       struct err *err)
{
	const struct config *config = page->exchange->server->config;
	auto_free char *folder = config_program_dir(), *program = xasprintf("%s/sallyport", folder);
	char *all[ARGUMENTS_MAX + 4] = {program};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	size_t count = 1;
	sigset_t none;
	pid_t child;
	int ends[2];

	for (; arguments[count - 1] && count <= ARGUMENTS_MAX; count++)
		all[count] = unconst(arguments[count - 1]);
	if (config->path) {
		all[count++] = unconst("--config");
		all[count++] = config->path;
	}
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_errno(err, "making a pipe");
	sigemptyset(&none);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	int error = posix_spawn(&child, program, &actions, &attributes, all, environ);

	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	close(ends[1]);
	if (error == 0)
		read_all(ends[0], child, ms, ret);
	close(ends[0]);
	return error ? err_set(err, ERR_UNAVAILABLE, "%s cannot be started: %s", program, strerror(error)) : 0;
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
