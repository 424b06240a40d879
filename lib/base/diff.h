/* diff.h - what differs between two texts, as a unified diff of bounded size. */
#pragma once

#include <stddef.h>

#include "buf.h"

#define DIFF_WINDOW   1000 /* lines of each side that are looked at, from the first that differs on */
#define DIFF_LINES    60   /* lines of a diff in a report */
#define DIFF_LINE_MAX 160  /* bytes of a line before it is cut */

/* Appends the diff, each line printable, at most so many lines besides the heads of hunks; nothing where the texts are
 * equal. */
void diff_unified(const char *old, size_t old_length, const char *now, size_t now_length, size_t lines,
		  struct buf *ret);
