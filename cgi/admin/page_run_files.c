/*
 * page_run_files.c - see pages.h.
 *
 * What the run changed comes first, as diff has it (job_diff.h); then the files after the run, and those that it found.
 * Pictures are shown by the four types that browsers may show in place.
 */
#include "pages.h"

#include <string.h>

#include "cgi/http/files.h"
#include "lib/base/util.h"
#include "lib/job/job_diff.h"

#define PICTURES_MAX 8 /* shown at once */
#define FILES_MAX    500
#define CHANGES_MAX  (128 * 1024)

struct listing {
	struct admin_page *page;
	const struct store_execution *run;
	size_t rows, pictures;
};

static int put_file(void *arg, const struct store_execution_file *file)
{
	struct listing *listing = arg;
	struct html *html = &listing->page->html;
	const struct html_value name = html_bytes(file->file.name, file->file.name_length),
				part = html_part_bytes(file->file.name, file->file.name_length);
	const bool left = file->phase == STORE_AFTER;

	if (!listing->rows++)
		admin_page_table(listing->page, "", "File|Change|Size=n|Type=wide");
	html_put(html, "<tr><td class=\"name\">");
	if (file->file.blob[0])
		html_put(html, "<a href=\"/admin/run/{}/file?phase={}&amp;name={}\">{}</a>",
			 html_part(listing->run->id), html_text(left ? "after" : "before"), part, name);
	else
		html_put(html, "{}", name);
	html_put(html, "</td><td>{}", html_text(left ? file->change : "was there"));
	if (file->reason[0])
		html_put(html, " <small>{}</small>", html_text(file->reason));
	html_put(html, "</td><td class=\"n\">{}</td><td class=\"wide\">{}</td></tr>\n", html_size(file->file.size),
		 html_text(file->file.media_type));
	if (left && file->file.blob[0] && files_is_image(file->file.media_type) && listing->pictures++ < PICTURES_MAX)
		html_put(html,
			 "<tr class=\"picture\"><td colspan=\"4\"><img loading=\"lazy\" alt=\"{}\" "
			 "src=\"/admin/run/{}/file?phase=after&amp;name={}\"></td></tr>\n",
			 name, html_part(listing->run->id), part);
	return listing->rows >= FILES_MAX;
}

/* -------- differences --------------------------------------------------------------------------------- */

/* Each line with its sign; the colour comes with it. */
void page_run_files_diff(struct html *html, const char *diff)
{
	for (const char *line = diff; *line;) {
		const size_t length = strcspn(line, "\n") + 1;

		html_put(html, "<span class=\"{}\">{}</span>",
			 html_text(*line == '+'   ? "ins"
				   : *line == '-' ? "del"
						  : "same"),
			 html_lines(line, MIN(length, strlen(line))));
		line += MIN(length, strlen(line));
	}
}

int page_run_changes(struct admin_page *page, const struct store_execution *run, size_t most, struct err *err)
{
	auto_buf struct buf diff = {0};

	buf_init(&diff, most);
	int result = run->state == STORE_RUNNING || run->erased[0]
			     ? 0
			     : job_diff(page->exchange->server->store, run, &diff, err);

	if (result == 0 && diff.length) {
		html_put(&page->html, "<pre class=\"diff\" dir=\"ltr\" tabindex=\"0\"><code>");
		page_run_files_diff(&page->html, diff.data);
		html_put(&page->html, "</code></pre>\n");
	}
	return result;
}

int page_run_files(struct admin_page *page, const struct store_execution *run, struct err *err)
{
	struct store *store = page->exchange->server->store;
	struct listing listing = {.page = page, .run = run};

	html_put(&page->html, "<section><h2>Files</h2>\n");
	int result = page_run_changes(page, run, CHANGES_MAX, err);

	if (result == 0)
		result = store_execution_files(store, run->id, STORE_AFTER, put_file, &listing, err);
	if (result == 0)
		result = store_execution_files(store, run->id, STORE_BEFORE, put_file, &listing, err);
	admin_page_table_end(page, (int64_t)listing.rows, NULL);
	if (!listing.rows)
		html_put(&page->html, "<p class=\"note\">None.</p>\n");
	html_put(&page->html, "</section>\n");
	return result;
}
