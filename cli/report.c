/*
 * report.c - collects what was found and writes the files, see report.h. report_text.c, report_xml.c and report_html.c
 * have the formats.
 *
 * All cases are kept until the end, because a matrix, a plan and counts come before the details.
 *
 * A file gets its name when it is whole: until then it has none where the file system can do that, so that nothing of
 * it stays when this program is killed. Links are followed. What is no regular file (a terminal, a pipe, /dev/null) is
 * written to, and never replaced.
 */
#include "report.h"

#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "lib/store/transfer/store_results.h"

const struct cli_option report_options[] = {
	{.name = "report", .type = CLI_STRINGS, .offset = offsetof(struct report_wanted, files), .value = "FORMAT=FILE",
	 .help = "write a report in FORMAT: text, jsonl, junit, tap, html, evalplus or bigcode; repeatable"},
	{0},
};

static const struct format {
	const char *name;
	void (*write)(const struct report_all *all, FILE *out);
} formats[] = {{"text", report_text},
	       {"jsonl", report_jsonl},
	       {"junit", report_junit},
	       {"tap", report_tap},
	       {"html", report_html},
	       {"evalplus", report_evalplus},
	       {"bigcode", report_bigcode}};

struct file {
	const struct format *format;
	char *path;
	char *part; /* its name before it is whole; NULL: it has its own from the beginning */
	bool named; /* does it have this name already? */
	FILE *out;
};
struct report {
	struct file *files;
	size_t n_files;
	struct report_item *items;
	size_t count, size;
	char *title;
};

/* -------- collecting ---------------------------------------------------------------------------------- */

static int open_part(struct file *file)
{
	auto_free char *path = xstrdup(file->path);
	int fd = open(dirname(path), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);

	file->part = xasprintf("%s.part-%d", file->path, (int)getpid());
	file->named = fd < 0;
	return fd < 0 ? open(file->part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : fd;
}

/* Gives a file that is whole its name. */
static bool publish(struct file *file)
{
	char path[64];
	bool written = fflush(file->out) == 0 && !ferror(file->out);

	if (written && file->part && !file->named) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fileno(file->out));
		written = linkat(AT_FDCWD, path, AT_FDCWD, file->part, AT_SYMLINK_FOLLOW) == 0;
		file->named = written;
	}
	return fclose(steal(&file->out)) == 0 && written && (!file->part || rename(file->part, file->path) == 0);
}

static int open_file(const char *wanted, struct file *ret, struct err *err)
{
	struct file file = {0};
	const char *path = NULL;
	bool special;

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		size_t length = strlen(formats[i].name);

		if (strncmp(wanted, formats[i].name, length) == 0 && wanted[length] == '=' && wanted[length + 1]) {
			file.format = &formats[i];
			path = wanted + length + 1;
		}
	}
	if (!path)
		return err_set(err, ERR_INVALID,
			       "--report takes FORMAT=FILE, and the formats are text, jsonl, junit, tap and html, for "
			       "samples of tasks also evalplus and bigcode");
	file.path = path_to_replace(path, &special);
	int fd = special ? open(file.path, O_WRONLY | O_CLOEXEC) : open_part(&file);
	if (fd >= 0)
		file.out = fdopen(fd, "w");
	*ret = file;
	return file.out ? 0 : err_errno(err, "%s", ret->path);
}

int report_open(const struct report_wanted *wanted, const char *title, struct report **ret, struct err *err)
{
	struct report *report;
	int result = 0;

	*ret = NULL;
	if (wanted->files.count == 0)
		return 0;
	report = xcalloc(1, sizeof(*report));
	report->files = xcalloc(wanted->files.count, sizeof(*report->files));
	report->title = xstrdup(title);
	for (size_t i = 0; result == 0 && i < wanted->files.count; i++)
		result = open_file(wanted->files.items[i], &report->files[report->n_files++], err);
	if (result < 0)
		report_free(report);
	else
		*ret = report;
	return result;
}

static char *copy(const char *text)
{
	return text ? xstrdup(text) : NULL;
}

void report_add(struct report *report, const struct report_case *one)
{
	if (!report)
		return;
	if (report->count == report->size) {
		report->size = report->size ? 2 * report->size : 256;
		report->items = xrealloc(report->items, report->size, sizeof(*report->items));
	}
	report->items[report->count++] = (struct report_item){
		copy(one->group),   copy(one->name),    copy(one->label), copy(one->expected), copy(one->now),
		copy(one->message), copy(one->details), copy(one->json),  copy(one->code),     copy(one->conversation),
		one->state,         one->wall_us};
}

int report_finish(struct report *report, const char *summary, double seconds, struct err *err)
{
	struct report_all all = {.summary = summary, .seconds = seconds};

	if (!report)
		return 0;
	all.title = report->title;
	all.items = report->items;
	all.count = report->count;
	for (size_t i = 0; i < report->count; i++)
		all.states[report->items[i].state]++;
	for (size_t i = 0; i < report->n_files; i++) {
		struct file *file = &report->files[i];

		file->format->write(&all, file->out);
		if (!publish(file))
			return err_errno(err, "writing %s", file->path);
		free(steal(&file->part));
	}
	return 0;
}

void report_free(struct report *report)
{
	if (!report)
		return;
	for (size_t i = 0; i < report->n_files; i++) {
		if (report->files[i].out)
			fclose(report->files[i].out);
		if (report->files[i].part && report->files[i].named)
			unlink(report->files[i].part);
		free(report->files[i].part);
		free(report->files[i].path);
	}
	for (size_t i = 0; i < report->count; i++) {
		struct report_item *item = &report->items[i];
		char *const texts[] = {item->group, item->name,    item->label,   item->expected,
				       item->now,   item->message, item->details, item->json,  item->code,
				       item->conversation};

		for (size_t k = 0; k < ARRAY_SIZE(texts); k++)
			free(texts[k]);
	}
	free(report->items);
	free(report->files);
	free(report->title);
	free(report);
}

int report_kept(struct store_results *results, bool wanted, int status)
{
	struct err why = ERR_INIT;
	int64_t lost = results ? store_results_lost(results, &why) : 0;

	if (lost == 0)
		return status;
	fprintf(stderr, "sallyport: %" PRId64 " results could not be kept: %s\n", lost, why.text);
	return wanted && (status == CLI_OK || status == CLI_DIFFERENT) ? CLI_INCOMPLETE : status;
}
