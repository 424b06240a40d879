/* page_conversation.c - one conversation: its files as they are, and its runs as steps: code, output, changed files. */
#include <string.h>

#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "lib/store/record/store_resource.h"
#include "pages.h"

#define RUNS_MAX      50
#define FILES_MAX     500
#define CODE_SHOWN    2000 /* bytes of each */
#define OUTPUT_SHOWN  1000
#define CHANGES_SHOWN 4096

struct view {
	struct admin_page *page;
	struct store *store;
	int64_t rows;
	struct err err;
};

static int put_file(void *arg, const struct store_listed_file *file)
{
	struct view *view = arg;
	struct html *html = &view->page->html;

	if (!view->rows++)
		admin_page_table(view->page, "", "File|Size=n|Changed|By=wide");
	html_put(html, "<tr><td class=\"name\">{}</td><td class=\"n\">{}</td><td>",
		 html_bytes(file->file.name, file->file.name_length), html_size(file->file.size));
	admin_page_time(view->page, file->file.mtime_us);
	if (file->run[0])
		html_put(html, "</td><td class=\"wide\"><a class=\"id\" href=\"/admin/run/{}\">{}</a></td></tr>\n",
			 html_part(file->run), html_text(file->run));
	else
		html_put(html, "</td><td class=\"wide\">a client</td></tr>\n");
	return view->rows >= FILES_MAX;
}

/* The beginning of a text, if it is in the row. */
static void put_begin(struct html *html, const struct store_text *text, size_t most)
{
	const size_t shown = text->data ? utf8_cut(text->data, text->length, most) : 0;

	if (!shown)
		return;
	html_put(html, "<pre dir=\"ltr\" tabindex=\"0\"><code>{}", html_lines(text->data, shown));
	if (shown < text->length)
		html_put(html, "\n… {} in all", html_size((int64_t)text->length));
	html_put(html, "</code></pre>\n");
}

/* What was asked, what came of it, and what it changed. */
static void put_step(struct view *view, const char *id)
{
	struct store_execution run = {0};

	if (view->err.code != ERR_NONE || store_execution_find(view->store, id, &run, &view->err) < 0)
		return;
	if (run.message[0] && !streq(run.verdict, "OK"))
		html_put(&view->page->html, "<p>{}</p>\n", html_text(run.message));
	put_begin(&view->page->html, &run.code, CODE_SHOWN);
	put_begin(&view->page->html, &run.stdout_text, OUTPUT_SHOWN);
	put_begin(&view->page->html, &run.stderr_text, OUTPUT_SHOWN);
	page_run_changes(view->page, &run, CHANGES_SHOWN, &view->err);
	store_execution_clear(&run);
}

static void put_run(void *arg, const struct store_view_run *run)
{
	struct view *view = arg;
	struct html *html = &view->page->html;

	if (!view->rows++)
		html_put(html, "<ol class=\"timeline\" reversed>\n");
	html_put(html, "<li><p>");
	admin_page_verdict(view->page, run->verdict);
	html_put(html, " <a class=\"id\" href=\"/admin/run/{}\">run {}</a> <small>", html_part(run->id),
		 html_text(STORE_ID_SHORT(run->id)));
	admin_page_time(view->page, run->created_us);
	html_put(html, ", {}, {}</small></p>\n", html_text(run->language), html_duration(run->wall_us));
	put_step(view, run->id);
	html_put(html, "</li>\n");
}

int page_conversation(struct admin_page *page, const char *rest, struct err *err)
{
	struct view view = {.page = page, .store = page->exchange->server->store, .err = ERR_INIT};
	char owner[STORE_OWNER_MAX + 1], name[STORE_CONVERSATION_MAX + 1];
	const struct store_view_filter filter = {.owner = owner, .conversation = name, .limit = RUNS_MAX};

	if (*rest || !admin_page_query(page, "owner", owner, sizeof(owner)) ||
	    !admin_page_query(page, "name", name, sizeof(name)))
		return err_set(err, ERR_NOT_FOUND, "There is no such conversation");
	page->section = "runs";
	admin_page_title(page, "Conversation");
	html_put(&page->html,
		 "<h1>Conversation <span class=\"id\">{}</span></h1>\n"
		 "<p class=\"message\">of <a href=\"/admin/runs?owner={}\">{}</a> · "
		 "<a href=\"/admin/runs?owner={}&amp;conversation={}\">its runs as a table</a></p>\n"
		 "<section><h2>Files now</h2>\n",
		 html_text(name), html_part(owner), html_text(owner), html_part(owner), html_part(name));
	int result = store_files_list(view.store, owner, name, put_file, &view, err);

	admin_page_table_end(page, view.rows, NULL);
	if (!view.rows)
		html_put(&page->html, "<p class=\"note\">None.</p>\n");
	html_put(&page->html, "</section>\n<section><h2>What happened, newest first</h2>\n");
	view.rows = 0;
	if (result == 0 || result == -ERR_NOT_FOUND)
		result = store_view_runs(view.store, &filter, put_run, &view, err);
	if (view.rows)
		html_put(&page->html, "</ol>\n");
	else
		admin_page_empty(page, "No runs.");
	html_put(&page->html, "</section>\n");
	if (view.rows == RUNS_MAX)
		html_put(&page->html,
			 "<p class=\"more\">The last {}. <a href=\"/admin/runs?owner={}&amp;conversation={}\">All runs</a></p>\n",
			 html_number(RUNS_MAX), html_part(owner), html_part(name));
	return result;
}
