/*
 * show_steps.c - a conversation step by step, see show.h.
 *
 * The record has each run's files before and after. A client put, or removed, what differs between the end of one run
 * and the beginning of the next. After an erasure of a run's list of files this is not known. Files are a JSON object:
 * name, and hash of the content.
 */
#include "show.h"

#include <string.h>

#include "lib/base/util.h"
#include "lib/job/job_diff.h"

#define TEXT_SHOWN 4096 /* of code and of each stream */
#define DIFF_SHOWN (256 * 1024)

struct steps {
	const struct show_steps *which;
	struct store *store;
	struct json_object *files; /* as the last run left them; NULL: not known */
	char owner[STORE_OWNER_MAX + 1];
	int64_t count;
	struct err *err;
	int result;
};

static int add_file(void *arg, const struct store_execution_file *file)
{
	auto_free char *name = xstrndup(file->file.name, file->file.name_length);

	json_add_string(arg, name, file->file.blob);
	return 0;
}

/* What the run made of the files. */
static int apply(void *arg, const struct store_execution_file *file)
{
	auto_free char *name = xstrndup(file->file.name, file->file.name_length);

	if (streq(file->change, "lost"))
		return 0;
	if (*file->file.blob)
		json_add_string(arg, name, file->file.blob);
	else
		json_object_object_del(arg, name);
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(json_object_get_string(*(struct json_object *const *)a),
		      json_object_get_string(*(struct json_object *const *)b));
}

/* Names of `now` that `then` has not, or with another content; NULL: nothing is known of `then`. The caller's. */
static struct json_object *differ(struct json_object *now, struct json_object *then, bool contents)
{
	struct json_object *list = json_object_new_array();

	if (!now || !then)
		return list;
	json_object_object_foreach(now, name, hash)
	{
		const char *old = json_get_string(then, name);

		if (!old || (contents && !streq(old, json_object_get_string(hash))))
			json_object_array_add(list, json_new_safe(name, strlen(name)));
	}
	json_object_array_sort(list, by_text);
	return list;
}

static void print_names(struct json_object *list, const char *title)
{
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		const char *name = json_object_get_string(json_object_array_get_idx(list, i));

		printf("  %s ", title);
		cli_print_safe(stdout, name, strlen(name));
		putchar('\n');
	}
}

/* -------- a step -------------------------------------------------------------------------------------- */

static int show_text(struct store *store, const struct store_text *text, const char *title, struct err *err)
{
	auto_free char *data = NULL;
	size_t length = 0;
	int result = 0;

	if (!text->length || (!text->data && !*text->blob))
		return 0;
	result = store_text_read(store, text, &data, &length, err);
	if (result < 0)
		return result;
	printf("  %s%s%s\n", cli_colour_on(stdout, CLI_DIM), title, cli_colour_off(stdout));
	for (const char *at = data, *end = data + MIN(length, (size_t)TEXT_SHOWN); at < end;) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));

		stop = stop ? stop : end;
		fputs("    ", stdout);
		cli_print_safe(stdout, at, (size_t)(stop - at));
		putchar('\n');
		at = stop + 1;
	}
	if (length > TEXT_SHOWN)
		printf("    … %zu bytes in all\n", length);
	return 0;
}

static void heading(const struct steps *steps, const struct store_execution *e)
{
	char time[CLI_TEXT_SIZE], wall[CLI_TEXT_SIZE];
	const bool over = e->state == STORE_FINISHED;

	cli_text_time(e->created_us, time);
	cli_text_duration(e->run.wall_us, wall);
	printf("%s%s%lld  %s%s  %s  %s  %s%s%s  %s\n", steps->count > 1 ? "\n" : "", cli_colour_on(stdout, CLI_BOLD),
	       (long long)steps->count, time, cli_colour_off(stdout), e->id, e->language,
	       cli_colour_on(stdout, cli_verdict_colour(over ? e->verdict : "")),
	       over ? e->verdict : cli_state_text(e->state), cli_colour_off(stdout), over ? wall : "");
}

static int one_step(struct steps *steps, const struct store_execution *e, struct err *err)
{
	auto_json struct json_object *object = cli_execution_json(e), *files = json_object_new_object();
	auto_buf struct buf diff = {0};
	struct err erased = ERR_INIT;
	const bool whole = !*e->erased && e->state != STORE_RUNNING;
	int result = store_execution_files(steps->store, e->id, STORE_BEFORE, add_file, files, err);

	buf_init(&diff, DIFF_SHOWN);
	struct json_object *then = streq(e->erased, "content") ? NULL : steps->files;
	struct json_object *put = differ(files, then, true), *removed = differ(then, files, false);

	json_add_int(object, "step", steps->count);
	json_add(object, "put", put);
	json_add(object, "removed", removed);
	if (result == 0)
		result = store_execution_files(steps->store, e->id, STORE_AFTER, apply, files, err);
	if (result == 0 && whole)
		result = job_diff(steps->store, e, &diff, err);
	json_object_put(steps->files);
	steps->files = whole ? steal(&files) : NULL;
	json_add_string(object, "diff", diff.data);
	if (steps->which->json) {
		cli_print_json(stdout, object, false);
		return result;
	}
	heading(steps, e);
	print_names(put, "put by the client:");
	print_names(removed, "removed by the client:");
	if (result == 0)
		result = show_text(steps->store, &e->code, "code", err);
	if (result == 0)
		result = show_text(steps->store, &e->stdout_text, "standard output", err);
	if (result == 0)
		result = show_text(steps->store, &e->stderr_text, "standard error", err);
	if (store_execution_whole(e, &erased) < 0)
		printf("  %s\n", erased.text);
	cli_print_diff(stdout, diff.data, "  ");
	return result;
}

static int step(void *arg, const struct store_execution *e)
{
	struct steps *steps = arg;

	steps->count++;
	steps->result = one_step(steps, e, steps->err);
	return steps->result;
}

/* Nothing is printed of a conversation that may be another owner's. */
static int check_owner(void *arg, const struct store_execution *e)
{
	struct steps *steps = arg;

	if (steps->count++ == 0)
		snprintf(steps->owner, sizeof(steps->owner), "%s", e->owner);
	if (!streq(steps->owner, e->owner))
		steps->result = err_set(steps->err, ERR_CONFLICT,
					"several owners have a conversation '%s': name one with --owner",
					steps->which->conversation);
	return steps->result;
}

int show_steps(struct store *store, const struct show_steps *which, struct err *err)
{
	struct steps steps = {.which = which, .store = store, .files = json_object_new_object(), .err = err};
	const struct store_filter filter = {
		.owner = which->owner, .conversation = which->conversation, .running_too = true};
	int result = store_execution_list(store, &filter, check_owner, &steps, err);

	steps.count = 0;
	if (result == 0 && steps.result == 0)
		result = store_execution_list(store, &filter, step, &steps, err);
	json_object_put(steps.files);
	if (result == 0)
		result = steps.result;
	if (result == 0 && steps.count == 0)
		result = err_set(err, ERR_NOT_FOUND, "nothing ran in a conversation '%s'%s%s", which->conversation,
				 which->owner ? " of " : "", which->owner ? which->owner : "");
	return result;
}
