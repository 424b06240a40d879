/*
 * normalise_file.h - a project's own normalisers, from a JSON file (comments allowed):
 *
 *     {"normalisers": [
 *         {"name": "build-id", "version": 1, "pattern": "build [0-9a-f]{8}", "replacement": "[BUILD]"}
 *     ]}
 *
 * The pattern is a Perl-compatible regular expression, applied line by line; the replacement is literal text. They
 * apply in the order of the file, after the built-in ones, and are on unless somebody says otherwise. A pattern that
 * takes more than NORMALISE_FILE_STEPS steps on a line leaves that line as it is, so no pattern can hang a replay, and
 * what comes out does not depend on how fast a machine is.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

#define NORMALISE_FILE_MAX   16 /* normalisers of all files */
#define NORMALISE_FILE_STEPS 100000

/* Adds those of a file to the ones that are there: before any thread is started. */
int normalise_file_load(const char *path, struct err *err);
void normalise_file_forget(void);

/* By place, from 0 on. */
size_t normalise_file_count(void);
const char *normalise_file_name(size_t i);
int64_t normalise_file_version(size_t i);
const char *normalise_file_pattern(size_t i);
const char *normalise_file_replacement(size_t i);
/* "build-id/1:" and the beginning of the SHA-256 of pattern and replacement. */
void normalise_file_identity(size_t i, struct buf *ret);
void normalise_file_apply(size_t i, const char *line, size_t length, struct buf *ret);
