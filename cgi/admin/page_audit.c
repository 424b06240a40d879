/*
 * page_audit.c - the audit log, newest first: who did what, to what, from where, with which result; with filters.
 *
 * Every state of the view is an address, as of the runs (page_runs.c): the filters are the parameters of a GET form,
 * and the next page begins below the last entry of this one. A filter that nothing matches would look at every entry:
 * the store ends such a question after a second, and the view says so.
 *
 * audit/N is one entry with all that is known of it. audit/verify runs `sallyport verify` and shows its verdicts.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/util.h"
#include "lib/store/audit/store_audit.h"
#include "lib/store/audit/store_audit_list.h"
#include "pages.h"

#define PAGE_ROWS  50
#define VALUE_SIZE 200

enum field { KIND, OWNER, TOKEN, CONVERSATION, FILE_NAME, RUN, REQUEST, ADDRESS, CLIENT, SINCE, UNTIL, FIELDS };
static const struct {
	const char *name, *label, *type;
} fields[FIELDS] = {
	[KIND] = {"kind", "What", NULL},
	[OWNER] = {"owner", "Owner", "text"},
	[TOKEN] = {"token", "Token", "text"},
	[CONVERSATION] = {"conversation", "Conversation", "text"},
	[FILE_NAME] = {"file", "File", "text"},
	[RUN] = {"run", "Run", "text"},
	[REQUEST] = {"request", "Request id", "text"},
	[ADDRESS] = {"address", "Address", "text"},
	[CLIENT] = {"client", "Client program", "text"},
	[SINCE] = {"since", "From (UTC)", "datetime-local"},
	[UNTIL] = {"until", "Until (UTC)", "datetime-local"},
};

struct asked {
	char values[FIELDS][VALUE_SIZE];
};

static const char *some(const char *text)
{
	return *text ? text : NULL;
}

/* -------- rows ---------------------------------------------------------------------------------------- */

struct table {
	struct admin_page *page;
	int64_t rows, last;
};

/* Entries count µs and bytes. */
static struct html_value fact_of(const char *name, struct json_object *value)
{
	const bool number = json_object_is_type(value, json_type_int);

	if (number && (streq(name, "wall") || streq(name, "cpu")))
		return html_duration(json_object_get_int64(value));
	if (number && (streq(name, "memory") || str_ends(name, "bytes")))
		return html_size(json_object_get_int64(value));
	return html_text(json_object_get_string(value));
}

/* {"bytes":12,"files":1} as "bytes 12 B, files 1". */
static void put_facts(struct html *html, const char *text)
{
	auto_json struct json_object *facts = NULL;
	const char *between = "";

	if (!text || json_parse(text, strlen(text), &facts, NULL) < 0 || !json_object_is_type(facts, json_type_object))
		return;
	html_put(html, " <small>");
	json_object_object_foreach(facts, name, value)
	{
		html_put(html, "{}{} {}", html_text(between), html_text(name), fact_of(name, value));
		between = ", ";
	}
	html_put(html, "</small>");
}

static void put_about(struct html *html, const struct store_audit_line *line)
{
	const char *run = line->columns[STORE_AUDIT_LINE_RUN], *file = line->columns[STORE_AUDIT_LINE_FILE];
	const char *owner = line->columns[STORE_AUDIT_LINE_OWNER];
	const char *conversation = line->columns[STORE_AUDIT_LINE_CONVERSATION];

	if (run)
		html_put(html, "<a class=\"id\" href=\"/admin/run/{}\">run {}</a> ", html_part(run),
			 html_text(strlen(run) == ID_SIZE - 1 ? STORE_ID_SHORT(run) : run));
	if (file)
		html_put(html, "<code>{}</code> ", html_text(file));
	if (conversation && owner)
		html_put(html, "<a href=\"/admin/conversation?owner={}&amp;name={}\">{}</a>", html_part(owner),
			 html_part(conversation), html_text(conversation));
	const char *object = line->columns[STORE_AUDIT_LINE_OBJECT], *id = object ? strchr(object, ':') : NULL;

	if (run || file || conversation)
		return;
	if (id && strlen(id + 1) == ID_SIZE - 1) /* an entry of its own has all of it */
		html_put(html, "{} <span class=\"id\">{}</span>", html_bytes(object, (size_t)(id - object)),
			 html_text(STORE_ID_SHORT(id + 1)));
	else
		html_put(html, "<span class=\"id\">{}</span>", html_text(object));
}

static int put_line(void *arg, const struct store_audit_line *line)
{
	struct table *table = arg;
	struct html *html = &table->page->html;
	const char *token = line->columns[STORE_AUDIT_LINE_TOKEN], *result = line->columns[STORE_AUDIT_LINE_RESULT];

	if (!table->rows++)
		admin_page_table(table->page, "log", "When (UTC)|What|Who|From=wide|About|Result=mid|Entry=n");
	table->last = line->n;
	const struct html_value date = html_date(line->at_us);

	html_put(html,
		 "<tr><td><time datetime=\"{}\"><span class=\"day\">{}</span>{}</time></td><td>{}",
		 html_iso(line->at_us), html_bytes(date.room, 11), html_bytes(date.room + 11, 8),
		 html_text(line->columns[STORE_AUDIT_LINE_KIND]));
	put_facts(html, line->columns[STORE_AUDIT_LINE_FACTS]);
	html_put(html, "</td><td class=\"name\">{} <small>{}</small></td>",
		 html_text(line->columns[STORE_AUDIT_LINE_OWNER]),
		 html_text(token ? token : line->columns[STORE_AUDIT_LINE_ACTOR]));
	html_put(html, "<td class=\"wide name\">{} <small>{}</small></td><td class=\"name\">",
		 html_text(line->columns[STORE_AUDIT_LINE_ADDRESS]), html_text(line->columns[STORE_AUDIT_LINE_CLIENT]));
	put_about(html, line);
	html_put(html,
		 "</td><td class=\"mid\">{}</td><td class=\"n\"><a href=\"/admin/audit/{}\">{}</a></td></tr>\n",
		 html_text(result), html_plain(line->n), html_plain(line->n));
	return 0;
}

/* -------- one entry ----------------------------------------------------------------------------------- */

static int put_entry(void *arg, const struct store_audit_line *line)
{
	struct table *table = arg;
	struct html *html = &table->page->html;

	table->rows++;
	html_put(html, "<dl class=\"facts\"><div><dt>When</dt><dd>");
	admin_page_time(table->page, line->at_us);
	html_put(html, "</dd></div>\n");
	for (int i = 0; i < STORE_AUDIT_LINE_FACTS; i++)
		if (line->columns[i])
			html_put(html, "<div><dt>{}</dt><dd class=\"name\">{}</dd></div>\n",
				 html_text(store_audit_line_names[i]), html_text(line->columns[i]));
	html_put(html, "</dl>\n<section><h2>About</h2><p>");
	put_about(html, line);
	html_put(html, "</p></section>\n");
	for (int i = STORE_AUDIT_LINE_FACTS; i < STORE_AUDIT_LINE_COLUMNS; i++)
		if (line->columns[i])
			html_put(html, "<section><h2>{}</h2><pre tabindex=\"0\"><code>{}</code></pre></section>\n",
				 html_text(i == STORE_AUDIT_LINE_FACTS ? "Facts" : "Details"),
				 html_text(line->columns[i]));
	return 0;
}

static int one_entry(struct admin_page *page, int64_t n, struct err *err)
{
	struct table table = {.page = page};
	const struct store_audit_lines which = {.after = n - 1, .before = n + 1, .limit = 1, .us = STORE_VIEW_US};

	admin_page_title(page, "Entry %lld", (long long)n);
	html_put(&page->html, "<h1>Entry {} of the audit log</h1>\n", html_plain(n));
	int result = store_audit_list(page->exchange->server->store, &which, put_entry, &table, err);

	return result == 0 && table.rows == 0 ? err_set(err, ERR_NOT_FOUND, "There is no such entry") : result;
}

/* -------- is it whole, and signed? -------------------------------------------------------------------- */

#define VERIFY_MS   (120 * 1000)
#define ANSWER_MAX  (256 * 1024)
#define FIGURES_MAX (64 * 1024)

/* A figure of Prometheus' text; -1: it is not there. */
static int64_t figure_of(const char *text, const char *name)
{
	for (const char *at = text; (at = strstr(at, name)) != NULL; at += strlen(name))
		if ((at == text || at[-1] == '\n') && at[strlen(name)] == ' ')
			return (int64_t)strtod(at + strlen(name), NULL);
	return -1;
}

static void put_time_of(struct admin_page *page, int64_t seconds)
{
	admin_page_time(page, seconds * 1000000);
}

/* The signer is another account; its figures say how far it came. */
static void put_signed(struct admin_page *page)
{
	const char *path = page->exchange->server->config->admin.signer_figures;
	auto_free char *text = NULL;
	size_t length;
	int64_t entries = -1;

	if (path && *path && read_file_at(AT_FDCWD, path, FIGURES_MAX, &text, &length, NULL) == 0)
		entries = figure_of(text, "sallyport_audit_checkpoint_entries");
	html_put(&page->html, "<p class=\"acts\"><span class=\"note\">");
	if (entries < 0) {
		html_put(&page->html, "Nobody says that it is signed (<code>sallyport checkpoint --metrics</code>).");
	} else {
		html_put(&page->html, "Signed through entry {} at ", html_number(entries - 1));
		put_time_of(page, figure_of(text, "sallyport_audit_checkpoint_timestamp_seconds"));
		const int64_t verified = figure_of(text, "sallyport_verify_success_timestamp_seconds");

		if (verified > 0) {
			html_put(&page->html, ", verified at ");
			put_time_of(page, verified);
		}
		html_put(&page->html, ".");
	}
	html_put(&page->html, "</span> <a class=\"button\" href=\"/admin/audit/verify\">Verify it now</a></p>\n");
}

static void put_verdict(struct html *html, const char *name, struct json_object *verdict)
{
	const char *state = json_get_string(verdict, "state"), *text = json_get_string(verdict, "text");
	const bool holds = state && streq(state, "holds"), broken = !state || streq(state, "broken");

	html_put(html,
		 "<tr><th scope=\"row\">{}</th><td><span class=\"badge {}\">{}</span></td><td class=\"n mid\">{}</td>"
		 "<td class=\"name\">{}</td></tr>\n",
		 html_text(name), html_text(holds ? "good" : broken ? "bad" : "quiet"), html_text(state),
		 html_number(json_object_get_int64(json_get(verdict, "checked", json_type_int))), html_text(text));
}

static int verify(struct admin_page *page, struct err *err)
{
	static const char *const arguments[] = {"verify", "--json", NULL};
	static const char *const names[] = {"tree", "signatures", "anchors", "coverage", "content"};
	auto_buf struct buf answer = {0};
	auto_json struct json_object *report = NULL;
	struct err why = ERR_INIT;

	(void)err;
	buf_init(&answer, ANSWER_MAX);
	admin_page_title(page, "Verify");
	html_put(&page->html, "<h1>Is the audit log whole and unaltered?</h1>\n");
	int result = admin_page_command(page, arguments, VERIFY_MS, &answer, &why);

	if (result == 0)
		result = json_parse(answer.data ? answer.data : "", answer.length, &report, &why);
	if (result < 0) {
		html_put(&page->html, "<p class=\"error\">sallyport verify gave no answer: {}</p>\n",
			 html_text(why.text));
		return 0;
	}
	html_put(&page->html, "<p class=\"message\">{} entries, verified at ",
		 html_number(json_object_get_int64(json_get(report, "entries", json_type_int))));
	admin_page_time(page, page->now_us);
	html_put(&page->html, ".</p>\n");
	admin_page_table(page, "", "Verdict|State|Checked=n mid|Finding");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		put_verdict(&page->html, names[i], json_get(report, names[i], json_type_object));
	html_put(&page->html,
		 "</tbody></table>\n<p class=\"note\">The gateway cannot read the signer's folder. On the host, "
		 "<code>sallyport verify --signer DIR</code> compares with what was signed.</p>\n");
	put_signed(page);
	return 0;
}

/* -------- filters ------------------------------------------------------------------------------------- */

static void put_filters(struct admin_page *page, const struct asked *asked)
{
	struct html *html = &page->html;

	html_put(html,
		 "<form class=\"filters\" method=\"get\" action=\"/admin/audit\" role=\"search\"><label>{} "
		 "<select name=\"kind\"><option value=\"\">any</option>",
		 html_text(fields[KIND].label));
	for (int i = 0; i < STORE_AUDIT_N_KINDS; i++) {
		const char *name = store_audit_kind((enum store_audit_kind)i);

		admin_page_option(page, name, name, asked->values[KIND]);
	}
	if (strchr(asked->values[KIND], '*')) /* of an address that somebody made */
		admin_page_option(page, asked->values[KIND], asked->values[KIND], asked->values[KIND]);
	html_put(html, "</select></label>\n");
	for (int i = OWNER; i < FIELDS; i++)
		html_put(html, "<label>{} <input type=\"{}\" name=\"{}\" value=\"{}\"></label>\n",
			 html_text(fields[i].label), html_text(fields[i].type), html_text(fields[i].name),
			 html_text(asked->values[i]));
	html_put(html,
		 "<button class=\"main\">Filter</button> <a class=\"reset\" href=\"/admin/audit\">Clear</a></form>\n");
}

static int read_asked(const struct admin_page *page, struct asked *asked, struct store_audit_lines *ret,
		      struct err *err)
{
	char before[24];
	uint64_t number;

	*asked = (struct asked){0};
	for (int i = 0; i < FIELDS; i++)
		admin_page_query(page, fields[i].name, asked->values[i], VALUE_SIZE);
	*ret = (struct store_audit_lines){.kind = some(asked->values[KIND]),
					  .owner = some(asked->values[OWNER]),
					  .token = some(asked->values[TOKEN]),
					  .conversation = some(asked->values[CONVERSATION]),
					  .file = some(asked->values[FILE_NAME]),
					  .run = some(asked->values[RUN]),
					  .request_id = some(asked->values[REQUEST]),
					  .address = some(asked->values[ADDRESS]),
					  .client = some(asked->values[CLIENT]),
					  .after = -1,
					  .limit = PAGE_ROWS,
					  .newest_first = true,
					  .us = STORE_VIEW_US};
	if (admin_page_query(page, "before", before, sizeof(before)) && parse_u64(before, 1, INT64_MAX, &number) == 0)
		ret->before = (int64_t)number;
	int result = admin_page_moment("since", asked->values[SINCE], &ret->since_us, err);

	return result < 0 ? result : admin_page_moment("until", asked->values[UNTIL], &ret->until_us, err);
}

static void put_older(struct html *html, const struct asked *asked, int64_t last)
{
	html_put(html, "<nav class=\"pager\" aria-label=\"Pages\"><a rel=\"next\" href=\"/admin/audit?before={}",
		 html_plain(last));
	for (int i = 0; i < FIELDS; i++)
		if (asked->values[i][0])
			html_put(html, "&amp;{}={}", html_part(fields[i].name), html_part(asked->values[i]));
	html_put(html, "\">Older</a></nav>\n");
}

int page_audit(struct admin_page *page, const char *rest, struct err *err)
{
	struct table table = {.page = page};
	struct store_audit_lines which;
	struct asked asked;
	uint64_t n;

	if (streq(rest, "verify"))
		return verify(page, err);
	if (*rest && parse_u64(rest, 0, INT64_MAX - 1, &n) == 0)
		return one_entry(page, (int64_t)n, err);
	if (*rest)
		return err_set(err, ERR_NOT_FOUND, "There is no such page");
	int result = read_asked(page, &asked, &which, err);

	if (result < 0)
		return result;
	html_put(&page->html,
		 "<h1>Audit log</h1>\n"
		 "<p class=\"note\">Patterns with * and ? do in File, Address and Client program.</p>\n");
	put_signed(page);
	put_filters(page, &asked);
	result = store_audit_list(page->exchange->server->store, &which, put_line, &table, err);
	admin_page_table_end(page, table.rows, result == 0 ? "No entries here." : NULL);
	if (result == -ERR_LIMIT) {
		html_put(&page->html,
			 "<p class=\"error\">The search was ended after a second: there may be more. "
			 "Choose a shorter time.</p>\n");
		result = 0;
	}
	if (table.rows == PAGE_ROWS)
		put_older(&page->html, &asked, table.last);
	return result;
}
