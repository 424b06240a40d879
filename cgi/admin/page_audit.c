/*
 * page_audit.c - the audit log, newest first: who did what, to what, from where, with which result; with filters.
 *
 * Every state of the view is an address, as of the runs (page_runs.c): the filters are the parameters of a GET form,
 * and the next page begins below the last entry of this one. A filter that nothing matches would look at every entry:
 * the store ends such a question after a second, and the view says so.
 */
#include <string.h>
#include <time.h>

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

/* {"bytes":12,"files":1} as "bytes 12, files 1". */
static void put_facts(struct html *html, const char *text)
{
	auto_json struct json_object *facts = NULL;
	const char *between = "";

	if (!text || json_parse(text, strlen(text), &facts, NULL) < 0 || !json_object_is_type(facts, json_type_object))
		return;
	html_put(html, " <small>");
	json_object_object_foreach(facts, name, value)
	{
		html_put(html, "{}{} {}", html_text(between), html_text(name),
			 html_text(json_object_get_string(value)));
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
	if (!run && !file && !conversation)
		html_put(html, "<span class=\"id\">{}</span>", html_text(line->columns[STORE_AUDIT_LINE_OBJECT]));
}

static int put_line(void *arg, const struct store_audit_line *line)
{
	struct table *table = arg;
	struct html *html = &table->page->html;
	const char *token = line->columns[STORE_AUDIT_LINE_TOKEN], *result = line->columns[STORE_AUDIT_LINE_RESULT];

	if (!table->rows++)
		admin_page_table(table->page, "", "When (UTC)|What|Who|From=wide|About|Result=mid|Entry=wide");
	table->last = line->n;
	html_put(html, "<tr><td><time datetime=\"{}\">{}</time></td><td class=\"name\">{}", html_iso(line->at_us),
		 html_date(line->at_us), html_text(line->columns[STORE_AUDIT_LINE_KIND]));
	put_facts(html, line->columns[STORE_AUDIT_LINE_FACTS]);
	html_put(html, "</td><td class=\"name\">{} <small>{}</small></td>",
		 html_text(line->columns[STORE_AUDIT_LINE_OWNER]),
		 html_text(token ? token : line->columns[STORE_AUDIT_LINE_ACTOR]));
	html_put(html, "<td class=\"wide name\">{} <small>{}</small></td><td class=\"name\">",
		 html_text(line->columns[STORE_AUDIT_LINE_ADDRESS]), html_text(line->columns[STORE_AUDIT_LINE_CLIENT]));
	put_about(html, line);
	html_put(html,
		 "</td><td class=\"mid\">{}</td><td class=\"wide\"><details><summary>{}</summary>"
		 "<code class=\"entry\">{}</code></details></td></tr>\n",
		 html_text(result), html_plain(line->n), html_text(line->columns[STORE_AUDIT_LINE_DETAILS]));
	return 0;
}

/* -------- filters ------------------------------------------------------------------------------------- */

static void put_filters(struct html *html, const struct asked *asked)
{
	html_put(html,
		 "<form class=\"filters\" method=\"get\" action=\"/admin/audit\" role=\"search\"><label>{} "
		 "<select name=\"kind\"><option value=\"\">any</option>",
		 html_text(fields[KIND].label));
	for (int i = 0; i < STORE_AUDIT_N_KINDS; i++) {
		const char *name = store_audit_kind((enum store_audit_kind)i);

		html_put(html, "<option");
		if (streq(name, asked->values[KIND]))
			html_put(html, " selected");
		html_put(html, ">{}</option>", html_text(name));
	}
	html_put(html, "</select></label>\n");
	for (int i = OWNER; i < FIELDS; i++)
		html_put(html, "<label>{} <input type=\"{}\" name=\"{}\" value=\"{}\"></label>\n",
			 html_text(fields[i].label), html_text(fields[i].type), html_text(fields[i].name),
			 html_text(asked->values[i]));
	html_put(html,
		 "<button class=\"main\">Filter</button> <a class=\"reset\" href=\"/admin/audit\">Clear</a></form>\n");
}

/* "2026-11-27T14:00", as the form sends it; a date alone, and a blank for the T, will do. ERR_INVALID. */
static int read_time(const char *name, const char *text, int64_t *ret, struct err *err)
{
	static const char *const forms[] = {"%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%d"};

	for (size_t i = 0; *text && i < ARRAY_SIZE(forms); i++) {
		struct tm parts = {0};
		const char *end = strptime(text, forms[i], &parts);

		if (end && !*end) {
			*ret = (int64_t)timegm(&parts) * 1000000;
			return 0;
		}
	}
	return *text ? err_set(err, ERR_INVALID, "%s: must be a time as YYYY-MM-DDTHH:MM, not \"%s\"", name, text) : 0;
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
	int result = read_time("since", asked->values[SINCE], &ret->since_us, err);

	return result < 0 ? result : read_time("until", asked->values[UNTIL], &ret->until_us, err);
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

	if (*rest)
		return err_set(err, ERR_NOT_FOUND, "There is no such page");
	int result = read_asked(page, &asked, &which, err);

	if (result < 0)
		return result;
	html_put(&page->html,
		 "<h1>Audit log</h1>\n"
		 "<p class=\"note\">Patterns with * and ? do in What, File, Address and Client program. "
		 "<code>sallyport audit verify</code> checks that the log is whole and unaltered.</p>\n");
	put_filters(&page->html, &asked);
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
