/* normalise_value.h - the normalisers that read what they normalise; between normalise.c and normalise_value.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

/* A date, a time of day, both, or a number of seconds, ms, µs or ns since 1970; UTC where no zone is named. */
bool normalise_time_within(const char *text, size_t length, int64_t from_us, int64_t to_us);
/* "{b, a}" -> "{a, b}"; the caller's. */
char *normalise_set(const char *text, size_t length);
/* JSON with members in the order of their names: the whole, else each line that is an object or an array. */
void normalise_json(const char *data, size_t length, struct buf *ret);
/* Lines in the order of their bytes. */
void normalise_lines(const char *data, size_t length, struct buf *ret);
