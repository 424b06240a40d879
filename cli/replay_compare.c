/*
 * replay_compare.c - the recorded outcome compared with the new one.
 *
 * Compared are verdict, exit code, signal, both streams byte by byte and then as the normalisers leave them, and the
 * files that the run made, changed or removed (name, kind, content by its SHA-256). A run that was ended from outside,
 * for its time, memory or output, stops at another instruction each time: of such a run the verdict and the common
 * beginning of the streams are compared, its files are not. Processor time and memory are only noted here: what they
 * say takes several runs (replay_work.c).
 */
#include "replay.h"

#include <string.h>

#include "lib/base/diff.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "lib/store/record/store_baseline.h"

#define LINE_SHOWN 160                /* bytes of a differing line */
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

static void differ(struct replay_report *report, enum replay_class class, char *what, char *recorded, char *now)
{
	replay_differ(report, class, (struct replay_difference){what, 0, recorded, now, NULL});
}

static bool ended_from_outside(const char *verdict)
{
	return streq(verdict, "TO") || streq(verdict, "ML") || streq(verdict, "OL");
}

/* Names of the secrets that the run was given and we do not have; "" if none. */
static void missing_secrets(const struct store_execution *execution, const struct job_secrets *secrets,
			    struct buf *names)
{
	auto_json struct json_object *env = NULL;

	if (!execution->env_json || json_parse(execution->env_json, strlen(execution->env_json), &env, NULL) < 0 ||
	    !json_object_is_type(env, json_type_object))
		return;
	json_object_object_foreach(env, name, value)
	{
		if ((!value || json_object_is_type(value, json_type_boolean)) && !job_secrets_find(secrets, name))
			buf_printf(names, "%s%s", names->length > 0 ? ", " : "", name);
	}
}

bool replay_without_outcome(const struct store_execution *execution)
{
	auto_buf struct buf secrets = {0};

	buf_init(&secrets, ERR_TEXT_SIZE);
	missing_secrets(execution, &(struct job_secrets){0}, &secrets);
	return execution->state != STORE_RUNNING && secrets.length == 0 &&
	       (execution->state == STORE_INTERRUPTED || streq(execution->verdict, "XX") ||
		streq(execution->verdict, "CX"));
}

char *replay_incomparable(const struct store_execution *execution)
{
	return replay_incomparable_with(execution, &(struct job_secrets){0});
}

char *replay_incomparable_with(const struct store_execution *execution, const struct job_secrets *secrets)
{
	auto_buf struct buf missing = {0};
	struct err erased = ERR_INIT;

	if (execution->state == STORE_RUNNING)
		return xstrdup("it is still running");
	if (execution->state == STORE_INTERRUPTED)
		return xstrdup("it was interrupted: its process ended before the program did");
	if (streq(execution->verdict, "XX"))
		return xstrdup("the sandbox failed at the time (XX), so nothing of the program is known");
	if (streq(execution->verdict, "CX"))
		return xstrdup("it was cancelled (CX)");
	if (store_execution_whole(execution, &erased) < 0)
		return xstrdup(erased.text);
	buf_init(&missing, ERR_TEXT_SIZE);
	missing_secrets(execution, secrets, &missing);
	if (missing.length == 0)
		return NULL;
	return xasprintf(
		"it was given secrets, which are never stored, or variables that an export left out: %s (give them with --secret)",
		missing.data);
}

/* -------- streams ------------------------------------------------------------------------------------- */

static size_t common(const char *a, const char *b, size_t length)
{
	size_t at = 0;

	while (at < length && a[at] == b[at])
		at++;
	return at;
}

/* The line that holds the byte `at`; beyond the end it is empty. Where it is so long that the difference is beyond what
 * is shown, it begins a little before that. */
static char *describe(const char *data, size_t length, size_t at)
{
	const size_t place = MIN(at, length);
	const char *start = place > 0 ? memrchr(data, '\n', place) : NULL;
	const char *end = memchr(data + place, '\n', length - place);

	start = start ? start + 1 : data;
	end = end ? end : data + length;
	if ((size_t)(data + place - start) > LINE_SHOWN / 2)
		start = data + place - LINE_SHOWN / 2;
	auto_free char *text = printable(start, (size_t)(end - start));

	return at >= length ? xasprintf("\"%s\" and there it ends", text) : xasprintf("\"%s\"", text);
}

struct stream {
	const char *name;
	enum replay_class class;
	const struct store_text *recorded; /* NULL: standard output and the value */
	struct normalise_window then;
	int now_fd;
	bool prefix_only;
	struct store_result_sum *sum;
};

static bool several_lines(const struct normalise_text *text)
{
	const char *newline = memchr(text->data, '\n', text->length);

	return newline && newline + 1 < text->data + text->length;
}

static void streams_differ(const struct stream *stream, const struct normalise_text *then,
			   const struct normalise_text *now, struct replay_report *report)
{
	size_t at = common(then->data, now->data, MIN(then->length, now->length)), lines = 1;
	auto_buf struct buf diff = {0};

	for (size_t i = 0; i < at; i++)
		lines += then->data[i] == '\n';
	if (several_lines(then) || several_lines(now)) {
		buf_init(&diff, SIZE_MAX / 2);
		diff_unified(then->data, then->length, now->data, now->length, DIFF_LINES, &diff);
		buf_putc(&diff, '\0');
	}
	replay_differ(report, stream->class,
		      (struct replay_difference){xstrdup(stream->name), lines, describe(then->data, then->length, at),
						 describe(now->data, now->length, at),
						 diff.data ? buf_steal(&diff, NULL) : NULL});
}

static void add_up(unsigned normalisers, const struct normalise_text *text, struct store_result_sum *ret)
{
	auto_buf struct buf left = {0};

	sha256_hex(text->data, text->length, ret->raw);
	*ret->normalised = '\0';
	if (text->length > STORE_RESULTS_NORMALISED)
		return;
	buf_init(&left, SIZE_MAX / 2);
	normalise(normalisers, text, &left);
	sha256_hex(left.data, left.length, ret->normalised);
}

/* The clock of a deterministic run begins where the recorded one's began. When another run began is not known exactly:
 * the slack that normalisers give has room for the rest. */
static struct normalise_window window_now(const struct stream *stream, const struct replay_report *report)
{
	const struct normalise_window then = stream->then;
	const int64_t now_us = clock_now_us();

	if (report->deterministic)
		return (struct normalise_window){then.begin_us, MAX(then.end_us, then.begin_us + report->wall_us)};
	return (struct normalise_window){now_us - report->wall_us, now_us};
}

static int compare_stream(struct store *store, const struct replay_settings *settings,
			  const struct store_execution *execution, const struct stream *stream,
			  struct replay_report *report, struct err *err)
{
	const struct normalise_window window = window_now(stream, report);
	auto_free char *then = NULL, *now = NULL;
	size_t then_length = 0, now_length = 0;
	int result = stream->recorded ? store_text_read(store, stream->recorded, &then, &then_length, err)
				      : job_replay_stdout(store, execution, &then, &then_length, err);

	if (result < 0 || (result = read_fd(stream->now_fd, STREAM_MAX, &now, &now_length, err)) < 0)
		return err_wrap(err, "%s", stream->name);
	const struct normalise_text was = {then, then_length, stream->then};
	const struct normalise_text is = {now, now_length, window};

	/* What the run did goes into report->outcome: that it was as recorded, or the normalised text. */
	size_t shorter = MIN(was.length, is.length), at = common(was.data, is.data, shorter);
	unsigned hidden = 0;

	if (at == shorter && (stream->prefix_only || was.length == is.length)) {
		buf_puts(&report->outcome, "as recorded");
	} else if (stream->prefix_only) {
		streams_differ(stream, &was, &is, report);
	} else if (normalise_equal(settings->normalisers, &was, &is, &hidden)) {
		report->class = MAX(report->class, REPLAY_EQUAL);
		report->hidden_by |= hidden;
		buf_puts(&report->outcome, "as recorded");
	} else {
		streams_differ(stream, &was, &is, report);
		normalise(settings->normalisers, &is, &report->outcome);
	}
	buf_putc(&report->outcome, '\0');
	add_up(settings->normalisers, &is, stream->sum);
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
	return xasprintf("%s, %lld bytes, mode %03o, sha256 %.16s…", kind, (long long)file->size,
			 (unsigned)file->mode & 07777, file->blob);
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
		    (streq(recorded->change, job_change_text(now->kind)) && streq(then->blob, now->file.blob) &&
		     (!*then->blob || then->mode == now->file.mode)))
			return 0;
		differ(files->report, REPLAY_FILES, file_what(then->name, then->name_length),
		       file_text(recorded->change, then), file_text(job_change_text(now->kind), &now->file));
		return 0;
	}
	differ(files->report, REPLAY_FILES, file_what(then->name, then->name_length), file_text(recorded->change, then),
	       xstrdup("untouched"));
	return 0;
}

static int compare_files(struct store *store, const struct store_execution *execution, const struct job_replay *now,
			 struct replay_report *report, struct err *err)
{
	auto_free bool *seen = xcalloc(now->n_changes + 1, sizeof(*seen));
	struct files files = {report, now, seen};
	int result = store_baseline_files(store, execution, compare_file, &files, err);

	if (result < 0)
		return result;
	for (size_t i = 0; i < now->n_changes; i++) {
		const struct job_change *change = &now->changes[i];

		buf_printf(&report->outcome, "%s %s %o %s\n", job_change_text(change->kind), change->file.name,
			   (unsigned)change->file.mode, change->file.blob);
		if (!seen[i])
			differ(report, REPLAY_FILES, file_what(change->file.name, change->file.name_length),
			       xstrdup("untouched"), file_text(job_change_text(change->kind), &change->file));
	}
	return 0;
}

/* -------- all of it ----------------------------------------------------------------------------------- */

static void compare_number(struct replay_report *report, const char *what, int recorded, int now, int none)
{
	if (recorded == now)
		return;
	differ(report, REPLAY_EXIT, xstrdup(what), recorded == none ? xstrdup("none") : xasprintf("%d", recorded),
	       now == none ? xstrdup("none") : xasprintf("%d", now));
}

static void compare_end(const struct replay_settings *settings, const struct store_execution *execution,
			const struct jail_result *now, struct replay_report *report)
{
	const char *verdict = jail_verdict_text(now->verdict);

	if ((settings->by & REPLAY_BY_VERDICT) && !streq(execution->verdict, verdict))
		differ(report, REPLAY_VERDICT, xstrdup("verdict"),
		       xasprintf("%s (%s)", execution->verdict, execution->message),
		       xasprintf("%s (%s)", verdict, now->message));
	if ((settings->by & REPLAY_BY_EXIT) && !ended_from_outside(execution->verdict)) {
		compare_number(report, "exit code", execution->exit_code, now->exit_code, -1);
		compare_number(report, "signal", execution->signal, now->signal, 0);
		buf_printf(&report->outcome, "%d %d\n", now->exit_code, now->signal);
		/* The same end for another reason: the jail refused something. */
		if (streq(execution->verdict, verdict) && execution->exit_code == now->exit_code &&
		    execution->signal == now->signal && !streq(execution->message, now->message))
			differ(report, REPLAY_EXIT, xstrdup("message"), xstrdup(execution->message),
			       xstrdup(now->message));
	}
	snprintf(report->now, sizeof(report->now), "%s", verdict);
	buf_printf(&report->outcome, "%s\n", verdict);
	report->wall_us = now->run.wall_us + now->compile.wall_us + now->setup_us;
	report->cpu_us = now->run.cpu_user_us + now->run.cpu_system_us;
	report->memory_bytes = now->run.memory_peak_bytes;
}

int replay_compare(struct store *store, const struct replay_settings *settings, const struct store_execution *execution,
		   const struct job_replay *now, struct replay_report *report, struct err *err)
{
	const bool loose = ended_from_outside(execution->verdict);
	const struct normalise_window then = {execution->created_us, execution->finished_us};
	const struct stream out = {"stdout", REPLAY_OUTPUT, NULL, then, now->stdout_fd, loose, &report->output};
	const struct stream error = {"stderr",       REPLAY_STDERR, &execution->stderr_text, then,
				     now->stderr_fd, loose,         &report->errors};
	int result = 0;

	compare_end(settings, execution, &now->jail, report);
	if (settings->by & REPLAY_BY_STDOUT)
		result = compare_stream(store, settings, execution, &out, report, err);
	if (result == 0 && (settings->by & REPLAY_BY_STDERR))
		result = compare_stream(store, settings, execution, &error, report, err);
	if (result == 0 && !loose && (settings->by & REPLAY_BY_FILES))
		result = compare_files(store, execution, now, report, err);
	return result;
}

int replay_compare_earlier(struct store *store, const struct replay_settings *settings,
			   const struct store_execution *execution, const struct job_replay *now,
			   struct replay_report *report, struct err *err)
{
	size_t before = report->n_differences;
	int result = replay_compare(store, settings, execution, now, report, err);

	for (size_t i = before; i < report->n_differences; i++) {
		auto_free char *what = steal(&report->differences[i].what);

		report->differences[i].what =
			xasprintf("run %lld of its sandbox: %s", (long long)execution->sandbox_seq, what);
	}
	return result;
}
