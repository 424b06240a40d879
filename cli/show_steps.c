/*
 * show_steps.c - see show_steps.h.
 *
 * The record has each run's files before and after. What differs between the end of one run and the beginning of the
 * next was put, or removed, by a client. Where an erasure took a run's list of files that cannot be told.
 */
#include "show_steps.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "lib/job/job_diff.h"

#define TEXT_SHOWN 4096 /* of code and of each stream */
#define DIFF_SHOWN (256 * 1024)

struct entry {
	char *name;
	size_t length;
	char blob[SHA256_HEX_SIZE];
};
struct entries { /* in the order of names */
	struct entry *items;
	size_t count, room;
};

struct steps {
	const struct show_steps *which;
	struct store *store;
	struct entries files; /* as the last run left them */
	bool known;           /* are they? */
	char owner[STORE_OWNER_MAX + 1];
	int64_t count;
	struct err *err;
	int result;
};

static int compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	const int order = memcmp(x->name, y->name, MIN(x->length, y->length));

	return order != 0 ? order : (x->length > y->length) - (x->length < y->length);
}

static void entries_clear(struct entries *entries)
{
	for (size_t i = 0; i < entries->count; i++)
		free(entries->items[i].name);
	free(entries->items);
	*entries = (struct entries){0};
}
#define auto_entries __attribute__((cleanup(entries_clear)))

static struct entry *find(const struct entries *entries, const char *name, size_t length)
{
	const struct entry key = {.name = unconst(name), .length = length};

	if (entries->count == 0)
		return NULL;
	return bsearch(&key, entries->items, entries->count, sizeof(*entries->items), compare);
}

static int add_file(void *arg, const struct store_execution_file *file)
{
	struct entries *entries = arg;
	struct entry *entry;

	if (entries->count == entries->room) {
		entries->room = 2 * entries->room + 16;
		entries->items = xrealloc(entries->items, entries->room, sizeof(*entries->items));
	}
	entry = &entries->items[entries->count++];
	*entry = (struct entry){.name = xstrndup(file->file.name, file->file.name_length),
				.length = file->file.name_length};
	memcpy(entry->blob, file->file.blob, sizeof(entry->blob));
	return 0;
}

struct after {
	struct entries *files;
	struct entries added;
};

/* What the run made of the files: those that are gone have no name any more, new ones come in the end. */
static int apply(void *arg, const struct store_execution_file *file)
{
	struct after *after = arg;
	struct entry *entry = find(after->files, file->file.name, file->file.name_length);

	if (streq(file->change, "lost"))
		return 0;
	if (entry != NULL)
		memcpy(entry->blob, file->file.blob, sizeof(entry->blob)); /* "": deleted */
	else if (*file->file.blob)
		add_file(&after->added, file);
	return 0;
}

static void join(struct entries *files, struct entries *added)
{
	for (size_t i = 0; i < added->count; i++)
		add_file(files, &(struct store_execution_file){.file = {.name = added->items[i].name,
									.name_length = added->items[i].length}});
	for (size_t i = 0; i < added->count; i++)
		memcpy(files->items[files->count - added->count + i].blob, added->items[i].blob, SHA256_HEX_SIZE);
	entries_clear(added);
	if (files->count > 1)
		qsort(files->items, files->count, sizeof(*files->items), compare);
}

static int files_of(struct store *store, const char *id, enum store_phase phase,
		    int (*each)(void *arg, const struct store_execution_file *file), void *arg, struct err *err)
{
	return store_execution_files(store, id, phase, each, arg, err);
}

/* -------- between two runs ---------------------------------------------------------------------------- */

static void say(struct json_object *list, const char *what, const struct entry *entry)
{
	if (list) {
		auto_buf struct buf text = {0};

		buf_init(&text, SIZE_MAX);
		utf8_safe(&text, entry->name, entry->length);
		json_object_array_add(list, json_object_new_string_len(text.data, (int)text.length));
		return;
	}
	printf("  %s ", what);
	cli_print_safe(stdout, entry->name, entry->length);
	putchar('\n');
}

/* Names of `now` that `then` has not, or with another content. */
static void differ(const struct entries *now, const struct entries *then, bool contents, const char *what,
		   struct json_object *list)
{
	for (size_t i = 0; i < now->count; i++) {
		const struct entry *entry = &now->items[i], *old;

		if (!*entry->blob)
			continue;
		old = find(then, entry->name, entry->length);
		if (old == NULL || !*old->blob || (contents && !streq(old->blob, entry->blob)))
			say(list, what, entry);
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

static int print_step(struct steps *steps, const struct store_execution *e, const char *diff, struct err *err)
{
	struct err erased = ERR_INIT;
	int result;

	result = show_text(steps->store, &e->code, "code", err);
	if (result == 0)
		result = show_text(steps->store, &e->stdout_text, "standard output", err);
	if (result == 0)
		result = show_text(steps->store, &e->stderr_text, "standard error", err);
	if (store_execution_whole(e, &erased) < 0)
		printf("  %s\n", erased.text);
	cli_print_diff(stdout, diff, "  ");
	return result;
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
	auto_json struct json_object *object = steps->which->json ? cli_execution_json(e) : NULL;
	struct json_object *put = object ? json_object_new_array() : NULL;
	struct json_object *removed = object ? json_object_new_array() : NULL;
	auto_entries struct entries before = {0};
	auto_buf struct buf diff = {0};
	const bool whole = !*e->erased && e->state != STORE_RUNNING;
	struct after after = {.files = &before};
	int result = files_of(steps->store, e->id, STORE_BEFORE, add_file, &before, err);

	buf_init(&diff, DIFF_SHOWN);
	if (before.count > 1)
		qsort(before.items, before.count, sizeof(*before.items), compare);
	if (!object)
		heading(steps, e);
	if (steps->known && !streq(e->erased, "content")) {
		differ(&before, &steps->files, true, "put by the client:", put);
		differ(&steps->files, &before, false, "removed by the client:", removed);
	}
	if (result == 0)
		result = files_of(steps->store, e->id, STORE_AFTER, apply, &after, err);
	join(&before, &after.added);
	if (result == 0 && whole)
		result = job_diff(steps->store, e, &diff, err);
	entries_clear(&steps->files);
	steps->files = before;
	before = (struct entries){0};
	steps->known = whole;
	if (object) {
		json_add_int(object, "step", steps->count);
		json_add(object, "put", put);
		json_add(object, "removed", removed);
		json_add_string(object, "diff", diff.data);
		cli_print_json(stdout, object, false);
		return result;
	}
	return result < 0 ? result : print_step(steps, e, diff.data, err);
}

static int step(void *arg, const struct store_execution *e)
{
	struct steps *steps = arg;

	if (steps->count == 0)
		snprintf(steps->owner, sizeof(steps->owner), "%s", e->owner);
	steps->count++;
	if (!streq(steps->owner, e->owner))
		steps->result = err_set(steps->err, ERR_CONFLICT,
					"several owners have a conversation '%s': say whose by --owner",
					steps->which->conversation);
	else
		steps->result = one_step(steps, e, steps->err);
	return steps->result;
}

int show_steps(struct store *store, const struct show_steps *which, struct err *err)
{
	struct steps steps = {.which = which, .store = store, .known = true, .err = err};
	const struct store_filter filter = {
		.owner = which->owner, .conversation = which->conversation, .running_too = true};
	int result = store_execution_list(store, &filter, step, &steps, err);

	entries_clear(&steps.files);
	if (result == 0)
		result = steps.result;
	if (result == 0 && steps.count == 0)
		result = err_set(err, ERR_NOT_FOUND, "nothing ran in a conversation '%s'%s%s", which->conversation,
				 which->owner ? " of " : "", which->owner ? which->owner : "");
	return result;
}
