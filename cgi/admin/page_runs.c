/*
 * page_runs.c - runs, newest first: the table, and the view with its filters.
 *
 * Every state of the view is an address: the filters are the parameters of a GET form, and the next page begins below
 * the last id of this one, so that new runs do not move what one reads. There is no count of all runs and no last page:
 * they would cost a look at every row; the slowest and the largest are one page. A filter that nothing matches would,
 * too; the store ends such a search after a second (store_view.h), and the view says so.
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
enum field {
	TEXT, VERDICT, SINCE, OWNER, LANGUAGE, CONVERSATION, /* these are always shown */
	FROM, UNTIL, TOOL, FILE_NAME, CLIENT, TOKEN, REQUEST, SAME, DENIED, SECRETS, ORDER,
	BEFORE, FIELDS
};
static const struct {
	const char *name, *label, *type; /* label NULL: made by itself; type NULL: a choice */
} fields[FIELDS] = {
	[TEXT] = {"text", NULL, NULL},
	[VERDICT] = {"verdict", NULL, NULL},
	[SINCE] = {"since", NULL, NULL},
	[OWNER] = {"owner", NULL, NULL},
	[LANGUAGE] = {"language", NULL, NULL},
	[CONVERSATION] = {"conversation", "Conversation", "text"},
	[FROM] = {"from", "From (UTC)", "datetime-local"},
	[UNTIL] = {"until", "Until (UTC)", "datetime-local"},
	[TOOL] = {"tool", "Called tool", "text"},
	[FILE_NAME] = {"file", "Changed file", "text"},
	[CLIENT] = {"client", "Client program", "text"},
	[TOKEN] = {"token", "Token", "text"},
	[REQUEST] = {"request", "Request id", "text"},
	[SAME] = {"same", "Same code as run", "text"},
	[DENIED] = {"denied", "Denied something", NULL},
	[SECRETS] = {"secrets", "Had secrets", NULL},
	[ORDER] = {"order", "Order", NULL},
	[BEFORE] = {"before", NULL, NULL},
};
#define MORE FROM

struct asked {
	char values[FIELDS][200];
};

static const char *some(const char *text)
{
	return *text ? text : NULL;
}

static int find(const char *field, const char *value, const char *const *names, size_t count, size_t *ret,
		struct err *err)
{
	for (*ret = 0; *ret < count; ++*ret)
		if (streq(names[*ret], value))
			return 0;
	return err_set(err, ERR_INVALID, "%s: there is no \"%s\"", field, value);
}

static const char *const orders[] = {"", "slowest", "largest"};

/* A value that the form does not have is refused: it must not mean everything. */
static int read_asked(const struct admin_page *page, struct asked *asked, struct store_view_filter *ret,
		      struct err *err)
{
	const char *ending_names[ARRAY_SIZE(endings)], *span_names[ARRAY_SIZE(spans)];
	size_t ending = 0, span = 0, order = 0;

	*asked = (struct asked){0};
	for (int i = 0; i < FIELDS; i++)
		admin_page_query(page, fields[i].name, asked->values[i], sizeof(asked->values[i]));
	for (size_t i = 0; i < ARRAY_SIZE(endings); i++)
		ending_names[i] = endings[i].name;
	for (size_t i = 0; i < ARRAY_SIZE(spans); i++)
		span_names[i] = spans[i].name;
	*ret = (struct store_view_filter){
		.owner = some(asked->values[OWNER]),
		.conversation = some(asked->values[CONVERSATION]),
		.token = some(asked->values[TOKEN]),
		.language = some(asked->values[LANGUAGE]),
		.text = some(asked->values[TEXT]),
		.tool = some(asked->values[TOOL]),
		.file = some(asked->values[FILE_NAME]),
		.client = some(asked->values[CLIENT]),
		.request = some(asked->values[REQUEST]),
		.same = some(asked->values[SAME]),
		.before = some(asked->values[BEFORE]),
		.denied = asked->values[DENIED][0],
		.secrets = asked->values[SECRETS][0],
		.running = streq(asked->values[VERDICT], "running"),
		.limit = PAGE_ROWS,
	};
	int result = find("verdict", asked->values[VERDICT], ending_names, ARRAY_SIZE(endings), &ending, err);

	if (result == 0)
		result = find("since", asked->values[SINCE], span_names, ARRAY_SIZE(spans), &span, err);
	if (result == 0)
		result = find("order", asked->values[ORDER], orders, ARRAY_SIZE(orders), &order, err);
	if (result == 0)
		result = admin_page_moment("from", asked->values[FROM], &ret->since_us, err);
	if (result == 0)
		result = admin_page_moment("until", asked->values[UNTIL], &ret->until_us, err);
	if (result < 0)
		return result;
	ret->verdict = endings[ending].verdicts;
	if (spans[span].us)
		ret->since_us = MAX(ret->since_us, page->now_us - spans[span].us);
	ret->order = (int)order;
	return 0;
}

struct choices {
	struct admin_page *page;
	const char *chosen;
	bool known;
};

static void put_language(void *arg, const char *language)
{
	struct choices *choices = arg;

	choices->known = choices->known || streq(choices->chosen, language);
	admin_page_option(choices->page, language, language, choices->chosen);
}

static void put_owner(void *arg, const char *owner)
{
	html_put(&((struct admin_page *)arg)->html, "<option value=\"{}\"></option>", html_text(owner));
}

static void put_choices(struct admin_page *page, const struct asked *asked)
{
	struct store *store = page->exchange->server->store;
	struct choices choices = {page, asked->values[LANGUAGE], !asked->values[LANGUAGE][0]};

	html_put(&page->html, "<label>Language <select name=\"language\">");
	admin_page_option(page, "", "any", asked->values[LANGUAGE]);
	store_view_languages(store, put_language, &choices, NULL);
	if (!choices.known)
		admin_page_option(page, choices.chosen, choices.chosen, choices.chosen);
	html_put(&page->html,
		 "</select></label>\n<label>Owner <input name=\"owner\" list=\"owners\" value=\"{}\"></label>"
		 "<datalist id=\"owners\">",
		 html_text(asked->values[OWNER]));
	store_view_names(store, put_owner, page, NULL);
	html_put(&page->html, "</datalist>\n");
}

static void put_field(struct html *html, enum field field, const struct asked *asked)
{
	html_put(html, "<label>{} <input type=\"{}\" name=\"{}\" value=\"{}\"></label>\n",
		 html_text(fields[field].label), html_text(fields[field].type), html_text(fields[field].name),
		 html_text(asked->values[field]));
}

static void put_check(struct html *html, enum field field, const struct asked *asked)
{
	html_put(html, "<label class=\"check\"><input type=\"checkbox\" name=\"{}\" value=\"yes\"",
		 html_text(fields[field].name));
	if (asked->values[field][0])
		html_put(html, " checked");
	html_put(html, "> {}</label>\n", html_text(fields[field].label));
}

static void put_more(struct admin_page *page, const struct asked *asked)
{
	struct html *html = &page->html;
	bool open = false;

	for (int i = MORE; i < BEFORE; i++)
		open = open || asked->values[i][0];
	html_put(html, "<details class=\"more\"");
	if (open)
		html_put(html, " open");
	html_put(html, "><summary>More filters</summary><div class=\"filters\">\n");
	for (int i = MORE; i < DENIED; i++)
		put_field(html, i, asked);
	html_put(html, "<label>Order <select name=\"order\">");
	admin_page_option(page, "", "newest first", asked->values[ORDER]);
	admin_page_option(page, "slowest", "slowest first", asked->values[ORDER]);
	admin_page_option(page, "largest", "largest first", asked->values[ORDER]);
	html_put(html, "</select></label>\n");
	put_check(html, DENIED, asked);
	put_check(html, SECRETS, asked);
	html_put(html, "</div></details>\n");
}

static void put_filters(struct admin_page *page, const struct asked *asked)
{
	struct html *html = &page->html;

	html_put(html,
		 "<form class=\"filters\" method=\"get\" action=\"/admin/runs\" role=\"search\">\n"
		 "<label class=\"text\">Text in program or output "
		 "<input id=\"search\" type=\"search\" name=\"text\" value=\"{}\"></label>\n"
		 "<label>Verdict <select name=\"verdict\">",
		 html_text(asked->values[TEXT]));
	for (size_t i = 0; i < ARRAY_SIZE(endings); i++)
		admin_page_option(page, endings[i].name, endings[i].label, asked->values[VERDICT]);
	html_put(html, "</select></label>\n<label>Time <select name=\"since\">");
	for (size_t i = 0; i < ARRAY_SIZE(spans); i++)
		admin_page_option(page, spans[i].name, spans[i].label, asked->values[SINCE]);
	html_put(html, "</select></label>\n");
	put_choices(page, asked);
	put_field(html, CONVERSATION, asked);
	html_put(html,
		 "<button class=\"main\">Filter</button> <a class=\"reset\" href=\"/admin/runs\">Clear</a>\n");
	put_more(page, asked);
	html_put(html, "</form>\n");
}

static void put_older(struct html *html, const struct asked *asked, const char *last)
{
	html_put(html, "<nav class=\"pager\" aria-label=\"Pages\">");
	if (asked->values[BEFORE][0])
		html_put(html, "<a href=\"/admin/runs\" rel=\"first\">Newest</a> ");
	html_put(html, "<a rel=\"next\" href=\"/admin/runs?before={}", html_part(last));
	for (int i = 0; i < BEFORE; i++)
		if (asked->values[i][0])
			html_put(html, "&amp;{}={}", html_part(fields[i].name), html_part(asked->values[i]));
	html_put(html, "\">Older</a></nav>\n");
}

int page_runs(struct admin_page *page, const char *rest, struct err *err)
{
	struct store_view_filter filter;
	struct page_runs_end end = {0};
	struct asked asked;

	if (*rest)
		return err_set(err, ERR_NOT_FOUND, "There is no such page");
	int result = read_asked(page, &asked, &filter, err);

	if (result < 0)
		return result;
	html_put(&page->html, "<h1>Runs</h1>\n");
	put_filters(page, &asked);
	html_put(&page->html, "<section aria-label=\"Runs\"");
	if (!filter.order)
		html_put(&page->html, " data-new=\"runs\"");
	html_put(&page->html, ">");
	result = page_runs_table(page, &filter, &end, err);
	html_put(&page->html, "</section>\n");
	if (result == -ERR_LIMIT) {
		html_put(&page->html,
			 "<p class=\"error\">The search was ended after a second: there may be more. "
			 "Choose an owner or a shorter time.</p>\n");
		result = 0;
	}
	if (end.rows == PAGE_ROWS && !filter.order)
		put_older(&page->html, &asked, end.last);
	return result;
}
