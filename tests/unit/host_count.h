/* host_count.h - for tests and benches: how much of something a process of the host has. 0 where it cannot be looked
 * at. */
#pragma once

#include <dirent.h>
#include <fcntl.h>

#include "lib/base/util.h"

#define COUNT_TEXT (1 << 20)

/* "." and ".." among them. */
static inline size_t count_entries(const char *path)
{
	DIR *list = opendir(path);
	size_t n = 0;

	while (list && readdir(list))
		n++;
	if (list)
		closedir(list);
	return n;
}

static inline size_t count_lines(const char *path)
{
	auto_free char *text = NULL;
	size_t length = 0, n = 0;

	if (read_file_at(AT_FDCWD, path, COUNT_TEXT, &text, &length, NULL) == 0)
		for (size_t i = 0; i < length; i++)
			n += text[i] == '\n';
	return n;
}
