/*
 * page_run_files.c - see pages.h.
 *
 * The files after the run first, then those that it found. Pictures are shown by the four types that browsers may show
 * in place; of a text that was changed both versions are read, within bounds, and their difference is shown.
 */
#include "pages.h"

#include <string.h>

#include "cgi/http/files.h"
#include "lib/base/diff.h"
#include "lib/base/util.h"
#include "lib/store/blob/store_blob.h"

#define PICTURES_MAX 8 /* shown at once */
#define FILES_MAX    500
#define DIFFS_MAX    8
#define DIFF_BYTES   (256 * 1024) /* of each side */

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

/* Files of text that were changed, and what they were before. */
struct changes {
	struct {
		char *name;
		size_t length;
		char before[SHA256_HEX_SIZE], after[SHA256_HEX_SIZE];
	} files[DIFFS_MAX];
	size_t count;
};

static int add_change(void *arg, const struct store_execution_file *file)
{
	struct changes *changes = arg;

	if (!streq(file->change, "changed") || !str_starts(file->file.media_type, "text/") || !file->file.blob[0])
		return 0;
	changes->files[changes->count].name = xmemdup(file->file.name, file->file.name_length);
	changes->files[changes->count].length = file->file.name_length;
	memcpy(changes->files[changes->count].after, file->file.blob, SHA256_HEX_SIZE);
	return ++changes->count == DIFFS_MAX;
}

static int add_before(void *arg, const struct store_execution_file *file)
{
	struct changes *changes = arg;

	for (size_t i = 0; i < changes->count; i++)
		if (changes->files[i].length == file->file.name_length &&
		    memcmp(changes->files[i].name, file->file.name, file->file.name_length) == 0)
			memcpy(changes->files[i].before, file->file.blob, SHA256_HEX_SIZE);
	return 0;
}

static int read_blob(struct store *store, const char *sha256, char **ret, size_t *ret_length, struct err *err)
{
	auto_close int fd = -1;
	int64_t size;
	int result = store_blob_open(store, sha256, &fd, &size, err);

	return result < 0 ? result : read_fd(fd, DIFF_BYTES, ret, ret_length, err);
}

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

static void put_diff(struct admin_page *page, const struct changes *changes, size_t at)
{
	struct store *store = page->exchange->server->store;
	auto_free char *before = NULL, *after = NULL;
	size_t before_length, after_length;
	auto_buf struct buf diff = {0};

	if (!changes->files[at].before[0] ||
	    read_blob(store, changes->files[at].before, &before, &before_length, NULL) < 0 ||
	    read_blob(store, changes->files[at].after, &after, &after_length, NULL) < 0)
		return; /* the table has both for download */
	buf_init(&diff, DIFF_BYTES);
	diff_unified(before, before_length, after, after_length, DIFF_LINES, &diff);
	html_put(&page->html, "<h3 class=\"name\">{}</h3>\n<pre dir=\"ltr\" tabindex=\"0\"><code>",
		 html_bytes(changes->files[at].name, changes->files[at].length));
	page_run_files_diff(&page->html, diff.data);
	html_put(&page->html, "</code></pre>\n");
}

static int put_diffs(struct admin_page *page, const struct store_execution *run, struct err *err)
{
	struct store *store = page->exchange->server->store;
	struct changes changes = {0};
	int result = store_execution_files(store, run->id, STORE_AFTER, add_change, &changes, err);

	if (result == 0 && changes.count)
		result = store_execution_files(store, run->id, STORE_BEFORE, add_before, &changes, err);
	for (size_t i = 0; i < changes.count; i++) {
		put_diff(page, &changes, i);
		free(changes.files[i].name);
	}
	return result;
}

int page_run_files(struct admin_page *page, const struct store_execution *run, struct err *err)
{
	struct store *store = page->exchange->server->store;
	struct listing listing = {.page = page, .run = run};

	html_put(&page->html, "<section><h2>Files</h2>\n");
	int result = store_execution_files(store, run->id, STORE_AFTER, put_file, &listing, err);

	if (result == 0)
		result = store_execution_files(store, run->id, STORE_BEFORE, put_file, &listing, err);
	admin_page_table_end(page, (int64_t)listing.rows, "No files.");
	if (result == 0)
		result = put_diffs(page, run, err);
	html_put(&page->html, "</section>\n");
	return result;
}
