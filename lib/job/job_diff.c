/* job_diff.c - see job_diff.h. */
#include "job_diff.h"

#include <string.h>

#include "job_internal.h"
#include "lib/base/diff.h"
#include "lib/base/utf8.h"
#include "lib/store/blob/store_blob.h"

#define ROOM_LEAST 256 /* of the buffer, for the last line */

struct change {
	char *name;
	size_t length;
	struct store_execution_file now;
	struct store_file before; /* blob "": it was not there */
};
struct changes {
	struct change *items;
	size_t count;
};

static int add_change(void *arg, const struct store_execution_file *found)
{
	struct changes *changes = arg;
	struct change *change;

	changes->items = xrealloc(changes->items, changes->count + 1, sizeof(*changes->items));
	change = &changes->items[changes->count++];
	*change = (struct change){.name = xmemdup(found->file.name, found->file.name_length),
				  .length = found->file.name_length,
				  .now = *found};
	change->now.file.name = change->name;
	return 0;
}

/* Both lists are in the order of their names, but an unchanged file costs a look at the changes only. */
static int add_before(void *arg, const struct store_execution_file *found)
{
	struct changes *changes = arg;

	for (size_t i = 0; i < changes->count; i++) {
		struct change *change = &changes->items[i];

		if (change->length != found->file.name_length ||
		    memcmp(change->name, found->file.name, change->length) != 0)
			continue;
		change->before = found->file;
		change->before.name = NULL;
		break;
	}
	return 0;
}

static void changes_clear(struct changes *changes)
{
	for (size_t i = 0; i < changes->count; i++)
		free(changes->items[i].name);
	free(changes->items);
}

/* Text of a content that can be compared; false: it is none, or too large, or cannot be read. */
static bool load(struct store *store, const struct store_file *file, char **ret, size_t *ret_length)
{
	auto_close int fd = -1;
	auto_free char *data = NULL;

	*ret_length = 0;
	if (!*file->blob) {
		*ret = xstrdup("");
		return true;
	}
	if (file->size > JOB_DIFF_FILE_MAX || store_blob_open(store, file->blob, &fd, NULL, NULL) < 0 ||
	    read_fd(fd, JOB_DIFF_FILE_MAX, &data, ret_length, NULL) < 0 || memchr(data, '\0', *ret_length) ||
	    !utf8_valid(data, *ret_length))
		return false;
	*ret = steal(&data);
	return true;
}

static void add_name(struct buf *text, const char *mark, const char *side, const struct change *change, bool there)
{
	buf_printf(text, "%s %s", mark, there ? side : "/dev/null");
	if (there)
		utf8_printable(text, change->name, change->length);
	buf_putc(text, '\n');
}

static void describe(struct store *store, const struct change *change, struct buf *text)
{
	auto_free char *before = NULL, *now = NULL;
	size_t before_length = 0, now_length = 0;
	const bool there = *change->now.file.blob != '\0';

	if (streq(change->now.change, job_change_text(JAIL_FILE_NOT_KEPT))) {
		buf_puts(text, "Not kept ");
		utf8_printable(text, change->name, change->length);
		buf_printf(text, ": %s\n", change->now.reason);
		return;
	}
	if (!load(store, &change->before, &before, &before_length) ||
	    !load(store, &change->now.file, &now, &now_length)) {
		buf_puts(text, "Binary ");
		utf8_printable(text, change->name, change->length);
		if (!*change->before.blob)
			buf_printf(text, ": new, %lld bytes\n", (long long)change->now.file.size);
		else if (!there)
			buf_printf(text, ": removed, %lld bytes\n", (long long)change->before.size);
		else
			buf_printf(text, ": %lld bytes, were %lld\n", (long long)change->now.file.size,
				   (long long)change->before.size);
		return;
	}
	add_name(text, "---", "a/", change, *change->before.blob != '\0');
	add_name(text, "+++", "b/", change, there);
	diff_unified(before, before_length, now, now_length, JOB_DIFF_LINES, text);
}

int job_diff(struct store *store, const struct store_execution *execution, struct buf *ret, struct err *err)
{
	__attribute__((cleanup(changes_clear))) struct changes changes = {0};
	int result = execution->state == STORE_RUNNING
			     ? err_set(err, ERR_BUSY, "execution %s has not ended", execution->id)
			     : store_execution_whole(execution, err);

	if (result == 0)
		result = store_execution_files(store, execution->id, STORE_AFTER, add_change, &changes, err);
	if (result == 0)
		result = store_execution_files(store, execution->id, STORE_BEFORE, add_before, &changes, err);
	if (result < 0)
		return result;
	for (size_t i = 0; i < changes.count; i++) {
		auto_buf struct buf one = {0};

		buf_init(&one, ret->max);
		describe(store, &changes.items[i], &one);
		if (one.overflow || ret->length + one.length + ROOM_LEAST > ret->max) {
			buf_printf(ret, "… and %zu more files\n", changes.count - i);
			break;
		}
		buf_add(ret, one.data, one.length);
	}
	return 0;
}
