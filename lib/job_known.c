/* job_known.c - see job_known.h. */
#include "job_known.h"

#include <stdlib.h>
#include <string.h>

#include "util.h"

struct job_known_file {
	char *name;
	char blob[SHA256_HEX_SIZE];
	uint32_t mode;
	int64_t mtime_us;
};

/* Where the name stands, or would. */
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

bool job_known_has(const struct job_known *known, const struct store_file *file)
{
	bool there;
	size_t place = place_of(known, file->name, &there);
	const struct job_known_file *found = &known->items[place];

	return there && streq(found->blob, file->blob) && found->mode == file->mode && found->mtime_us == file->mtime_us;
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

void job_known_clear(struct job_known *known)
{
	for (size_t i = 0; i < known->count; i++)
		free(known->items[i].name);
	free(known->items);
	*known = (struct job_known){0};
}
