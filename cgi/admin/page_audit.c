/* page_audit.c - the audit log, newest first, by kind. */
#include <string.h>

#include "lib/base/util.h"
#include "lib/store/audit/store_audit.h"
#include "pages.h"

#define PAGE_ROWS 100

struct table {
	struct admin_page *page;
	int64_t rows, last;
};

static void put_entry(void *arg, const struct store_view_entry *entry)
{
	struct table *table = arg;
	struct html *html = &table->page->html;

	if (!table->rows++)
		admin_page_table(table->page, "", "Entry=n mid|When|Kind|About|Text=wide");
	table->last = entry->n;
	html_put(html, "<tr><td class=\"n mid\">{}</td><td>", html_plain(entry->n));
	admin_page_time(table->page, entry->at_us);
	html_put(html, "</td><td class=\"name\">{}</td><td class=\"name\">", html_text(entry->kind));
	if (str_starts(entry->object, "execution:"))
		html_put(html, "<a class=\"id\" href=\"/admin/run/{}\">{}</a>",
			 html_part(entry->object + strlen("execution:")), html_text(entry->object));
	else
		html_put(html, "<span class=\"id\">{}</span>", html_text(entry->object));
	html_put(html,
		 "</td><td class=\"wide\"><details><summary>entry</summary>"
		 "<code class=\"entry\">{}</code></details></td></tr>\n",
		 html_text(entry->entry));
}

static void put_filter(struct html *html, const char *kind)
{
	html_put(html,
		 "<form class=\"filters\" method=\"get\" action=\"/admin/audit\"><label>Kind <select name=\"kind\">"
		 "<option value=\"\">any</option>");
	for (int i = 0; i < STORE_AUDIT_N_KINDS; i++) {
		const char *name = store_audit_kind((enum store_audit_kind)i);

		html_put(html, "<option");
		if (streq(name, kind))
			html_put(html, " selected");
		html_put(html, ">{}</option>", html_text(name));
	}
	html_put(html, "</select></label> <button class=\"main\">Filter</button></form>\n");
}

int page_audit(struct admin_page *page, const char *rest, struct err *err)
{
	struct table table = {.page = page};
	struct store_view_log log = {.limit = PAGE_ROWS};
	char kind[32] = "", before[24];
	uint64_t number;

	if (*rest)
		return err_set(err, ERR_NOT_FOUND, "There is no such page");
	if (admin_page_query(page, "kind", kind, sizeof(kind)) && kind[0])
		log.kind = kind;
	if (admin_page_query(page, "before", before, sizeof(before)) && parse_u64(before, 1, INT64_MAX, &number) == 0)
		log.before = (int64_t)number;
	html_put(&page->html,
		 "<h1>Audit log</h1>\n"
		 "<p class=\"note\"><code>sallyport verify</code> checks that it is whole and unaltered.</p>\n");
	put_filter(&page->html, kind);
	int result = store_view_entries(page->exchange->server->store, &log, put_entry, &table, err);

	admin_page_table_end(page, table.rows, result == 0 ? "No entries here." : NULL);
	if (table.rows == PAGE_ROWS)
		html_put(&page->html,
			 "<nav class=\"pager\" aria-label=\"Pages\">"
			 "<a rel=\"next\" href=\"/admin/audit?kind={}&amp;before={}\">Older</a></nav>\n",
			 html_part(kind), html_plain(table.last));
	return result;
}
