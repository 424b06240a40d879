/* grade_lines.h - JSON Lines, plain or compressed (gzip, xz, bzip2, zstd: what libarchive's raw filter reads). */
#pragma once

#include "lib/base/err.h"
#include "lib/base/json.h"

#define GRADE_LINES_BYTES (512 << 20) /* of a file, decompressed */
#define GRADE_LINES_MAX   1000000

/* Every line that is not blank as an object of the array *ret (the caller's); ERR_INVALID names the line. */
int grade_lines_read(const char *path, struct json_object **ret, struct err *err);
