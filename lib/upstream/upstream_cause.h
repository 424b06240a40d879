/*
 * upstream_cause.h - why a program ended, out of what it wrote to standard error: the one line that names the cause,
 * not the stack above or below it.
 */
#pragma once

#include <stddef.h>

#include "lib/base/bind.h"
#include "lib/base/buf.h"

#define UPSTREAM_CAUSE_MAX 400 /* bytes of the line */

/* The first line that reads like an error, else the last one; nothing where there is none. Control characters are
 * printed as \xNN. */
void upstream_cause(const char *errors, size_t length, struct buf *out);
/* The first absolute path of the text that a jail with these folders does not see: its length, and where it begins; 0:
 * there is none. */
size_t upstream_cause_unseen(const char *text, const struct bind_strings *folders, const char **ret);
