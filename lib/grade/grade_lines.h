/*
 * grade_lines.h - files of JSON Lines: plain or compressed (gzip, xz, bzip2, zstd), with or without a byte order mark.
 */
#pragma once

#include "grade.h"
#include "lib/base/json.h"

/* Lines that are not blank, as objects of the array *ret (the caller's). With `bad`, what is no JSON object is
 * described to it and left out; else it is an error that names the line. */
typedef void grade_lines_bad(void *arg, const char *why);
int grade_lines_read(const char *path, grade_lines_bad *bad, void *arg, struct json_object **ret, struct err *err);
/* The text of task_id; the caller's, or NULL. */
char *grade_line_id(struct json_object *line);
