/* workspace_list.c - lists of files, and marks by which a file is known to be as it was; see workspace_internal.h. */
#include "workspace_internal.h"

#include <string.h>

#define SETTLED_US (2 * INT64_C(1000000)) /* the coarsest grain of a file system's times */

struct workspace_mark workspace_mark_of(const struct stat *status)
{
	return (struct workspace_mark){
		.dev = status->st_dev,
		.ino = status->st_ino,
		.size = status->st_size,
		.mtime_ns = status->st_mtim.tv_sec * INT64_C(1000000000) + status->st_mtim.tv_nsec,
		.ctime_ns = status->st_ctim.tv_sec * INT64_C(1000000000) + status->st_ctim.tv_nsec,
	};
}

bool workspace_mark_same(const struct workspace_mark *a, const struct workspace_mark *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size && a->mtime_ns == b->mtime_ns &&
	       a->ctime_ns == b->ctime_ns;
}

bool workspace_settled(const struct stat *status)
{
	return status->st_ctim.tv_sec * INT64_C(1000000) + SETTLED_US < clock_now_us();
}

struct workspace_file *workspace_list_add(struct workspace_list *list, const char *name)
{
	if (list->count % 64 == 0)
		list->items = xrealloc(list->items, list->count + 64, sizeof(*list->items));
	struct workspace_file *file = &list->items[list->count++];

	*file = (struct workspace_file){.name = xstrdup(name)};
	return file;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct workspace_file *)a)->name, ((const struct workspace_file *)b)->name);
}

void workspace_list_sort(struct workspace_list *list)
{
	if (list->count > 0)
		qsort(list->items, list->count, sizeof(*list->items), by_name);
}

struct workspace_file *workspace_list_find(const struct workspace_list *list, const char *name)
{
	const struct workspace_file wanted = {.name = unconst(name)};

	return list->count == 0 ? NULL : bsearch(&wanted, list->items, list->count, sizeof(wanted), by_name);
}

void workspace_list_clear(struct workspace_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i].name);
	free(list->items);
	*list = (struct workspace_list){0};
}

void workspace_names_clear(struct workspace_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->items[i]);
	free(names->items);
	*names = (struct workspace_names){0};
}
