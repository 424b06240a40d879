/*
 * grade_lines.h - files of JSON Lines: plain or compressed (gzip, xz, bzip2, zstd), with or without a byte order mark.
 */
#pragma once

#include "grade.h"
#include "lib/base/json.h"

/* Lines that are not blank, as objects of the array *ret (the caller's); a file that is one JSON array is that array.
 * With `bad`, a line that is no JSON object is described to it and left out; else it is an error that names it. */
typedef void grade_lines_bad(void *arg, const char *why);
int grade_lines_read(const char *path, grade_lines_bad *bad, void *arg, struct json_object **ret, struct err *err);
/* base64 of zlib's format of Python's pickle of JSON as text, as LiveCodeBench has it. */
int grade_lines_packed(const char *text, struct json_object **ret, struct err *err);
/* The text of task_id, problem_id, question_id, id or name, also in `metadata`; the caller's, or NULL. */
char *grade_line_id(struct json_object *line);
