/*
 * page_runs.c - runs, newest first: the table, and the view with its filters.
 *
 * Every state of the view is an address: the filters are the parameters of a GET form, and the next page begins below
 * the last id of this one, so that new runs do not move what one reads. There is no count of all runs and no last page:
 * they would cost a look at every row. A filter that nothing matches would, too; the store ends such a search after a
 * second (store_view.h), and the view says so.
 */
#include "pages.h"

#include <string.h>

#include "lib/base/util.h"

#define PAGE_ROWS 50
#define DAY_US    (86400 * INT64_C(1000000))

/* -------- the table ----------------------------------------------------------------------------------- */

struct table {
	struct admin_page *page;
	int64_t rows;
	char last[ID_SIZE];
};

static void put_row(void *arg, const struct store_view_run *run)
{
	struct table *table = arg;
	struct html *html = &table->page->html;
	const char *code = run->code + strspn(run->code, " \t\r\n"); /* its first line that says something */

	if (!table->rows++)
		admin_page_table(table->page, "runs",
				 "Verdict|Program|Owner=wide|Conversation=wide|"
				 "Wall=n mid|CPU=n wide|Memory=n wide|When=n");
	memcpy(table->last, run->id, sizeof(table->last));
	html_put(html, "<tr data-id=\"{}\"><td>", html_text(run->id));
	admin_page_verdict(table->page, run->verdict);
	html_put(html, "</td><td class=\"program\"><a href=\"/admin/run/{}\"><code>", html_part(run->id));
	if (run->erased[0] && !run->code[0])
		html_put(html, "(removed)");
	else if (!run->code[0])
		html_put(html, "({} of code)", html_size(run->code_bytes));
	else
		html_put(html, "{}", html_bytes(code, strcspn(code, "\r\n")));
	html_put(html,
		 "</code></a> <small>{}</small></td><td class=\"wide\"><a href=\"/admin/runs?owner={}\">{}</a></td>",
		 html_text(run->language), html_part(run->owner), html_text(run->owner));
	html_put(html, "<td class=\"wide name\"><a href=\"/admin/conversation?owner={}&amp;name={}\">{}</a></td>",
		 html_part(run->owner), html_part(run->conversation), html_text(run->conversation));
	if (run->verdict[0])
		html_put(html, "<td class=\"n mid\">{}</td><td class=\"n wide\">{}</td><td class=\"n wide\">{}</td>",
			 html_duration(run->wall_us), html_duration(run->cpu_us), html_size(run->memory_bytes));
	else
		html_put(html, "<td class=\"n mid\">–</td><td class=\"n wide\">–</td><td class=\"n wide\">–</td>");
	html_put(html, "<td class=\"n\">");
	admin_page_time(table->page, run->created_us);
	html_put(html, "</td></tr>\n");
}

int page_runs_table(struct admin_page *page, const struct store_view_filter *filter, struct page_runs_end *ret_end,
		    struct err *err)
{
	struct table table = {.page = page};
	int result = store_view_runs(page->exchange->server->store, filter, put_row, &table, err);

	admin_page_table_end(page, table.rows, result == 0 ? "No runs here." : NULL);
	if (ret_end) {
		ret_end->rows = table.rows;
		memcpy(ret_end->last, table.last, sizeof(table.last));
	}
	return result;
}

/* -------- the view ------------------------------------------------------------------------------------ */

static const struct {
	const char *name, *label;
	int64_t us;
} spans[] = {{"", "all time", 0},
	     {"1h", "last hour", DAY_US / 24},
	     {"24h", "last 24 hours", DAY_US},
	     {"7d", "last 7 days", 7 * DAY_US},
	     {"30d", "last 30 days", 30 * DAY_US}};

static const struct {
	const char *name, *label, *verdicts; /* verdicts NULL: any */
} endings[] = {
	{"", "any verdict", NULL},        {"failed", "failed (not OK)", "RE,SG,TO,ML,OL,CE,XX"},
	{"running", "running", NULL},     {"OK", "OK – ended with 0", "OK"},
	{"RE", "RE – exit status", "RE"}, {"SG", "SG – signal", "SG"},
	{"TO", "TO – time", "TO"},        {"ML", "ML – memory", "ML"},
	{"OL", "OL – output", "OL"},      {"CE", "CE – did not compile", "CE"},
	{"CX", "CX – cancelled", "CX"},   {"XX", "XX – sandbox failed", "XX"},
};

/* The filters as they stand in the address; each is a field of the form. */
struct asked {
	char owner[STORE_OWNER_MAX + 1], conversation[STORE_CONVERSATION_MAX + 1], token[ID_SIZE], language[32],
		text[200];
	char verdict[12], since[8], before[ID_SIZE];
};

static void read_asked(const struct admin_page *page, struct asked *ret)
{
	const struct {
		const char *name;
		char *value;
		size_t size;
	} fields[] = {
		{"owner", ret->owner, sizeof(ret->owner)},
		{"conversation", ret->conversation, sizeof(ret->conversation)},
		{"token", ret->token, sizeof(ret->token)},
		{"language", ret->language, sizeof(ret->language)},
		{"text", ret->text, sizeof(ret->text)},
		{"verdict", ret->verdict, sizeof(ret->verdict)},
		{"since", ret->since, sizeof(ret->since)},
		{"before", ret->before, sizeof(ret->before)},
	};

	*ret = (struct asked){0};
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		admin_page_query(page, fields[i].name, fields[i].value, fields[i].size);
}

static const char *some(const char *text)
{
	return *text ? text : NULL;
}

static void make_filter(const struct admin_page *page, const struct asked *asked, struct store_view_filter *ret)
{
	*ret = (struct store_view_filter){
		.owner = some(asked->owner),
		.conversation = some(asked->conversation),
		.token = some(asked->token),
		.language = some(asked->language),
		.text = some(asked->text),
		.before = some(asked->before),
		.running = streq(asked->verdict, "running"),
		.limit = PAGE_ROWS,
	};
	for (size_t i = 0; i < ARRAY_SIZE(endings); i++)
		if (streq(endings[i].name, asked->verdict))
			ret->verdict = endings[i].verdicts;
	for (size_t i = 0; i < ARRAY_SIZE(spans); i++)
		if (spans[i].us && streq(spans[i].name, asked->since))
			ret->since_us = page->now_us - spans[i].us;
}

static void put_option(struct html *html, const char *value, const char *label, const char *chosen)
{
	html_put(html, "<option value=\"{}\"", html_text(value));
	if (streq(value, chosen))
		html_put(html, " selected");
	html_put(html, ">{}</option>", html_text(label));
}

static void put_field(struct html *html, const char *name, const char *label, const char *value)
{
	html_put(html, "<label>{} <input name=\"{}\" value=\"{}\"></label>\n", html_text(label), html_text(name),
		 html_text(value));
}

static void put_filters(struct html *html, const struct asked *asked)
{
	html_put(html,
		 "<form class=\"filters\" method=\"get\" action=\"/admin/runs\" role=\"search\">\n"
		 "<label class=\"text\">Text in program or output "
		 "<input id=\"search\" type=\"search\" name=\"text\" value=\"{}\"></label>\n"
		 "<label>Verdict <select name=\"verdict\">",
		 html_text(asked->text));
	for (size_t i = 0; i < ARRAY_SIZE(endings); i++)
		put_option(html, endings[i].name, endings[i].label, asked->verdict);
	html_put(html, "</select></label>\n<label>Time <select name=\"since\">");
	for (size_t i = 0; i < ARRAY_SIZE(spans); i++)
		put_option(html, spans[i].name, spans[i].label, asked->since);
	html_put(html, "</select></label>\n");
	put_field(html, "owner", "Owner", asked->owner);
	put_field(html, "language", "Language", asked->language);
	put_field(html, "conversation", "Conversation", asked->conversation);
	if (asked->token[0])
		put_field(html, "token", "Token", asked->token);
	html_put(html,
		 "<button class=\"main\">Filter</button> <a class=\"reset\" href=\"/admin/runs\">Clear</a></form>\n");
}

int page_runs(struct admin_page *page, const char *rest, struct err *err)
{
	struct store_view_filter filter;
	struct page_runs_end end = {0};
	struct asked asked;

	if (*rest)
		return err_set(err, ERR_NOT_FOUND, "There is no such page");
	read_asked(page, &asked);
	make_filter(page, &asked, &filter);
	html_put(&page->html, "<h1>Runs</h1>\n");
	put_filters(&page->html, &asked);
	html_put(&page->html, "<section aria-label=\"Runs\" data-new=\"runs\">");
	int result = page_runs_table(page, &filter, &end, err);

	html_put(&page->html, "</section>\n");
	if (result == -ERR_LIMIT) {
		html_put(&page->html,
			 "<p class=\"error\">The search was ended after a second: there may be more. "
			 "Choose an owner or a shorter time.</p>\n");
		result = 0;
	}
	if (end.rows < PAGE_ROWS)
		return result;
	html_put(&page->html, "<nav class=\"pager\" aria-label=\"Pages\">");
	if (asked.before[0])
		html_put(&page->html, "<a href=\"/admin/runs\" rel=\"first\">Newest</a> ");
	html_put(&page->html,
		 "<a rel=\"next\" href=\"/admin/runs?text={}&amp;verdict={}&amp;since={}&amp;owner={}&amp;language={}"
		 "&amp;conversation={}&amp;token={}&amp;before={}\">Older</a></nav>\n",
		 html_part(asked.text), html_part(asked.verdict), html_part(asked.since), html_part(asked.owner),
		 html_part(asked.language), html_part(asked.conversation), html_part(asked.token), html_part(end.last));
	return result;
}
