/*
 * replay_compare.c - the recorded outcome beside the new one.
 *
 * Compared are verdict, exit code, signal, both streams byte by byte, and the files that the run made, changed or
 * removed (name, kind, content by its SHA-256). A run that was ended from outside, for its time, memory or output,
 * stops at another instruction each time: of such a run the verdict and the common beginning of the streams are
 * compared, its files are not. Times, memory and file dates differ from run to run and say nothing.
 */
#include "replay.h"

#include <string.h>

#include "lib/base/utf8.h"
#include "lib/base/util.h"

#define LINE_SHOWN 160               /* bytes of a differing line */
#define STREAM_MAX (64 * 1024 * 1024) /* far above any output limit: only a broken row is larger */

static char *printable(const char *data, size_t length)
{
	struct buf text;

	buf_init(&text, SIZE_MAX);
	utf8_printable(&text, data, MIN(length, LINE_SHOWN));
	if (length > LINE_SHOWN)
		buf_puts(&text, "…");
	return buf_steal(&text, NULL);
}

/* Takes the three texts over. */
static void differ(struct replay_report *report, char *what, size_t line, char *recorded, char *now)
{
	report->differences = xrealloc(report->differences, report->n_differences + 1, sizeof(*report->differences));
	report->differences[report->n_differences++] = (struct replay_difference){what, line, recorded, now};
	report->outcome = REPLAY_DIFFERENT;
}

void replay_report_clear(struct replay_report *report)
{
	for (size_t i = 0; i < report->n_differences; i++) {
		free(report->differences[i].what);
		free(report->differences[i].recorded);
		free(report->differences[i].now);
	}
	free(report->differences);
	free(report->reason);
	*report = (struct replay_report){0};
}

static bool ended_from_outside(const char *verdict)
{
	return streq(verdict, "TO") || streq(verdict, "ML") || streq(verdict, "OL");
}

/* Names of the secrets that the run was given; "" if none. */
static void missing_secrets(const struct store_execution *execution, struct buf *names)
{
	auto_json struct json_object *env = NULL;

	if (!execution->env_json || json_parse(execution->env_json, strlen(execution->env_json), &env, NULL) < 0 ||
	    !json_object_is_type(env, json_type_object))
		return;
	json_object_object_foreach(env, name, value)
	{
		if (!value)
			buf_printf(names, "%s%s", names->length > 0 ? ", " : "", name);
	}
}

char *replay_incomparable(const struct store_execution *execution)
{
	auto_buf struct buf secrets = {0};

	if (execution->state == STORE_RUNNING)
		return xstrdup("it is still running");
	if (execution->state == STORE_INTERRUPTED)
		return xstrdup("it was interrupted: its process ended before the program did");
	if (streq(execution->verdict, "XX"))
		return xstrdup("the sandbox failed at the time (XX), so nothing of the program is known");
	if (streq(execution->verdict, "CX"))
		return xstrdup("it was cancelled (CX)");
	buf_init(&secrets, ERR_TEXT_SIZE);
	missing_secrets(execution, &secrets);
	return secrets.length > 0 ? xasprintf("it was given secrets, which are never stored: %s", secrets.data) : NULL;
}

/* -------- streams ------------------------------------------------------------------------------------- */

struct line {
	const char *start;
	size_t length;
};

/* The line that holds the byte `at`; beyond the end it is empty. */
static struct line line_at(const char *data, size_t length, size_t at)
{
	const char *start, *end;

	at = MIN(at, length);
	start = at > 0 ? memrchr(data, '\n', at) : NULL;
	start = start ? start + 1 : data;
	end = memchr(data + at, '\n', length - at);
	return (struct line){start, (size_t)((end ? end : data + length) - start)};
}

static size_t common(const char *a, const char *b, size_t length)
{
	size_t at = 0;

	while (at < length && a[at] == b[at])
		at++;
	return at;
}

/* A line so long that the difference is beyond what is shown: begin a little before it. */
static struct line shown(const char *data, size_t length, size_t at)
{
	struct line line = line_at(data, length, at);
	size_t before = (size_t)(data + MIN(at, length) - line.start);

	if (before > LINE_SHOWN / 2) {
		line.start += before - LINE_SHOWN / 2;
		line.length -= before - LINE_SHOWN / 2;
	}
	return line;
}

static char *describe(const char *data, size_t length, size_t at)
{
	struct line line = shown(data, length, at);
	auto_free char *text = printable(line.start, line.length);

	return at >= length ? xasprintf("\"%s\" and there it ends", text) : xasprintf("\"%s\"", text);
}

struct stream {
	const char *name;
	const struct store_text *recorded;
	int now_fd;
	bool prefix_only;
};

static int compare_stream(struct store *store, const struct stream *stream, struct replay_report *report,
			  struct err *err)
{
	auto_free char *then = NULL, *now = NULL;
	size_t then_length = 0, now_length = 0, at, lines = 1;
	int result = store_text_read(store, stream->recorded, &then, &then_length, err);

	if (result < 0 || (result = read_fd(stream->now_fd, STREAM_MAX, &now, &now_length, err)) < 0)
		return err_wrap(err, "%s", stream->name);
	at = common(then, now, MIN(then_length, now_length));
	if (at == MIN(then_length, now_length) && (stream->prefix_only || then_length == now_length))
		return 0;
	for (size_t i = 0; i < at; i++)
		lines += then[i] == '\n';
	differ(report, xstrdup(stream->name), lines, describe(then, then_length, at), describe(now, now_length, at));
	return 0;
}

/* -------- files --------------------------------------------------------------------------------------- */

struct files {
	struct replay_report *report;
	const struct job_replay *now;
	bool *seen; /* by index into now->changes */
};

static char *file_what(const char *name, size_t length)
{
	auto_free char *text = printable(name, length);

	return xasprintf("file \"%s\"", text);
}

static char *file_text(const char *kind, const struct store_file *file)
{
	if (!*file->blob)
		return xstrdup(kind);
	return xasprintf("%s, %lld bytes, sha256 %.16s…", kind, (long long)file->size, file->blob);
}

static int compare_file(void *arg, const struct store_execution_file *recorded)
{
	struct files *files = arg;
	const struct store_file *then = &recorded->file;

	for (size_t i = 0; i < files->now->n_changes; i++) {
		const struct job_change *now = &files->now->changes[i];

		if (files->seen[i] || now->file.name_length != then->name_length ||
		    memcmp(now->file.name, then->name, then->name_length) != 0)
			continue;
		files->seen[i] = true;
		/* What was lost then, say to the owner's cap, has no content to compare with. */
		if (streq(recorded->change, "lost") ||
		    (streq(recorded->change, job_change_text(now->kind)) && streq(then->blob, now->file.blob)))
			return 0;
		differ(files->report, file_what(then->name, then->name_length), 0, file_text(recorded->change, then),
		       file_text(job_change_text(now->kind), &now->file));
		return 0;
	}
	differ(files->report, file_what(then->name, then->name_length), 0, file_text(recorded->change, then),
	       xstrdup("untouched"));
	return 0;
}

static int compare_files(struct store *store, const char *id, const struct job_replay *now,
			 struct replay_report *report, struct err *err)
{
	auto_free bool *seen = xcalloc(now->n_changes + 1, sizeof(*seen));
	struct files files = {report, now, seen};
	int result = store_execution_files(store, id, STORE_AFTER, compare_file, &files, err);

	if (result < 0)
		return result;
	for (size_t i = 0; i < now->n_changes; i++) {
		const struct job_change *change = &now->changes[i];

		if (!seen[i])
			differ(report, file_what(change->file.name, change->file.name_length), 0, xstrdup("untouched"),
			       file_text(job_change_text(change->kind), &change->file));
	}
	return 0;
}

/* -------- all of it ----------------------------------------------------------------------------------- */

static void compare_number(struct replay_report *report, const char *what, int recorded, int now, int none)
{
	if (recorded == now)
		return;
	differ(report, xstrdup(what), 0, recorded == none ? xstrdup("none") : xasprintf("%d", recorded),
	       now == none ? xstrdup("none") : xasprintf("%d", now));
}

int replay_compare(struct store *store, const struct store_execution *execution, const struct job_replay *now,
		   struct replay_report *report, struct err *err)
{
	const char *verdict = jail_verdict_text(now->jail.verdict);
	const bool loose = ended_from_outside(execution->verdict);
	const struct stream out = {"stdout", &execution->stdout_text, now->stdout_fd, loose};
	const struct stream error = {"stderr", &execution->stderr_text, now->stderr_fd, loose};
	int result;

	report->outcome = REPLAY_IDENTICAL;
	if (!streq(execution->verdict, verdict))
		differ(report, xstrdup("verdict"), 0, xasprintf("%s (%s)", execution->verdict, execution->message),
		       xasprintf("%s (%s)", verdict, now->jail.message));
	if (!loose) {
		compare_number(report, "exit code", execution->exit_code, now->jail.exit_code, -1);
		compare_number(report, "signal", execution->signal, now->jail.signal, 0);
	}
	if ((result = compare_stream(store, &out, report, err)) < 0 ||
	    (result = compare_stream(store, &error, report, err)) < 0)
		return result;
	return loose ? 0 : compare_files(store, execution->id, now, report, err);
}

void replay_report_earlier(struct replay_report *report, struct replay_report *earlier, int64_t seq)
{
	for (size_t i = 0; i < earlier->n_differences; i++) {
		struct replay_difference *difference = &earlier->differences[i];

		differ(report, xasprintf("run %lld of its sandbox: %s", (long long)seq, difference->what),
		       difference->line, steal(&difference->recorded), steal(&difference->now));
	}
	replay_report_clear(earlier);
}

void replay_report_unreached(struct replay_report *report, int64_t seq)
{
	differ(report, xstrdup("sandbox"), 0, xstrdup("it was still there for this run"),
	       xasprintf("it ended with run %lld", (long long)seq));
}

/* -------- the report ---------------------------------------------------------------------------------- */

static const char *const outcome_texts[] = {"identical", "different", "not comparable", "failed"};

void replay_report_print(FILE *out, const struct replay_report *report)
{
	static const enum cli_colour colours[] = {CLI_GREEN, CLI_YELLOW, CLI_DIM, CLI_RED};

	fprintf(out, "%s %s %s%s%s", report->id, report->language, cli_colour_on(out, colours[report->outcome]),
		outcome_texts[report->outcome], cli_colour_off(out));
	if (report->reason) {
		fputs(": ", out);
		cli_print_safe(out, report->reason, strlen(report->reason));
	}
	fputc('\n', out);
	for (size_t i = 0; i < report->n_differences; i++) {
		const struct replay_difference *difference = &report->differences[i];

		fprintf(out, "  %s", difference->what);
		if (difference->line > 0)
			fprintf(out, ", line %zu", difference->line);
		fputs(":\n    recorded: ", out);
		cli_print_safe(out, difference->recorded, strlen(difference->recorded));
		fputs("\n    now:      ", out);
		cli_print_safe(out, difference->now, strlen(difference->now));
		fputc('\n', out);
	}
}

struct json_object *replay_report_json(const struct replay_report *report)
{
	struct json_object *object = json_object_new_object(), *differences = json_object_new_array();

	json_add_string(object, "id", report->id);
	json_add_string(object, "language", report->language);
	json_add_string(object, "outcome", outcome_texts[report->outcome]);
	if (report->reason)
		json_add_string(object, "reason", report->reason);
	for (size_t i = 0; i < report->n_differences; i++) {
		const struct replay_difference *difference = &report->differences[i];
		struct json_object *item = json_object_new_object();

		json_add_string(item, "what", difference->what);
		if (difference->line > 0)
			json_add_int(item, "line", (int64_t)difference->line);
		json_add_string(item, "recorded", difference->recorded);
		json_add_string(item, "now", difference->now);
		json_object_array_add(differences, item);
	}
	json_add(object, "differences", differences);
	return object;
}
