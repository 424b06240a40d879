/* job_known.c - see job_known.h. */
#include "job_known.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/util.h"

struct job_known_file {
	char *name;
	char blob[SHA256_HEX_SIZE];
	uint32_t mode;
	int64_t mtime_us;
	bool asked;
};

/* Where the name is, or would be. */
static size_t place_of(const struct job_known *known, const char *name, bool *ret_there)
{
	size_t low = 0, high = known->count;

	*ret_there = false;
	while (low < high && !*ret_there) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(known->items[middle].name, name);

		*ret_there = order == 0;
		if (order == 0)
			low = middle;
		else if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void job_known_begin(struct job_known *known)
{
	for (size_t i = 0; i < known->count; i++)
		known->items[i].asked = false;
}

bool job_known_has(struct job_known *known, const struct store_file *file)
{
	bool there;
	size_t place = place_of(known, file->name, &there);
	struct job_known_file *found = &known->items[place];

	if (there)
		found->asked = true;
	return there && streq(found->blob, file->blob) && found->mode == file->mode &&
	       found->mtime_us == file->mtime_us;
}

void job_known_put(struct job_known *known, const struct store_file *file)
{
	bool there;
	size_t place = place_of(known, file->name, &there);

	if (!there) {
		known->items = xrealloc(known->items, known->count + 1, sizeof(*known->items));
		memmove(&known->items[place + 1], &known->items[place], (known->count - place) * sizeof(*known->items));
		known->items[place] = (struct job_known_file){.name = xstrdup(file->name)};
		known->count++;
	}
	snprintf(known->items[place].blob, sizeof(known->items[place].blob), "%s", file->blob);
	known->items[place].mode = file->mode;
	known->items[place].mtime_us = file->mtime_us;
}

void job_known_remove(struct job_known *known, const char *name)
{
	bool there;
	size_t place = place_of(known, name, &there);

	if (!there)
		return;
	free(known->items[place].name);
	known->count--;
	memmove(&known->items[place], &known->items[place + 1], (known->count - place) * sizeof(*known->items));
}

void job_known_gone(const struct job_known *known, struct job_gone *ret)
{
	for (size_t i = known->count; i > 0;
	     i--) { /* from behind, in which order they are removed from it: less is moved */
		if (known->items[i - 1].asked)
			continue;
		ret->files = xrealloc(ret->files, ret->count + 1, sizeof(*ret->files));
		ret->names = xrealloc(ret->names, ret->count + 1, sizeof(*ret->names));
		ret->names[ret->count] = xstrdup(known->items[i - 1].name);
		ret->files[ret->count] = (struct jail_file){.name = ret->names[ret->count], .fd = -1};
		ret->count++;
	}
}

void job_known_forget(struct job_known *known, const struct job_gone *gone)
{
	for (size_t i = 0; i < gone->count; i++)
		job_known_remove(known, gone->names[i]);
}

void job_gone_clear(struct job_gone *gone)
{
	for (size_t i = 0; i < gone->count; i++)
		free(gone->names[i]);
	free(gone->names);
	free(gone->files);
	*gone = (struct job_gone){0};
}

void job_known_clear(struct job_known *known)
{
	for (size_t i = 0; i < known->count; i++)
		free(known->items[i].name);
	free(known->items);
	*known = (struct job_known){0};
}
