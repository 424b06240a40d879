/*
 * normalise.h - takes out of a program's output what differs from run to run and says nothing.
 *
 * The normalisers are a table in the order in which they apply; each has a name, a version and a default. A result that
 * was made with them is worth as much as normalise_version says: the key of stored results contains it. They are pure
 * functions of bytes; a line longer than NORMALISE_LINE_MAX is left as it is by those that look for patterns.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

#define NORMALISE_LINE_MAX 65536
#define NORMALISE_TEXT_MAX ((size_t)80 * 1024 * 1024)

enum normaliser {
	NORMALISE_NEWLINES,
	NORMALISE_ANSI,
	NORMALISE_ADDRESSES,
	NORMALISE_PATHS,
	NORMALISE_PIDS,
	NORMALISE_UUIDS,
	NORMALISE_TIMES,
	NORMALISE_DURATIONS,
	NORMALISE_SETS,
	NORMALISE_FLOATS,
	NORMALISE_JSON,
	NORMALISE_LINES,
	NORMALISERS
};
#define NORMALISE_BIT(which) (1u << (which))

/* The built-in ones, and behind them those of normalise_file_load. */
int normalise_count(void);
const char *normalise_name(int which);
/* What it takes out, for people; of a file's: its pattern. */
const char *normalise_about(int which);
/* Those that are on unless somebody says otherwise: they hide nothing that a program computed. */
unsigned normalise_defaults(void);
/* "default", "all", "none", or names with commas between; "-name" takes one away, "default,json" adds one. ERR_INVALID
 * names the one that is unknown. */
int normalise_parse(const char *list, unsigned *ret, struct err *err);
/* "newlines/1,ansi/1,…" of these: the same text means the same result. */
void normalise_version(unsigned which, struct buf *ret);

/* When the program ran; only times in it, give or take NORMALISE_SLACK_US, are taken for the clock's. */
#define NORMALISE_SLACK_US 2000000
struct normalise_window {
	int64_t begin_us, end_us;
};
struct normalise_text {
	const char *data;
	size_t length;
	struct normalise_window window;
};
/* Appends what is left of the text when `which` have been applied in order. */
void normalise(unsigned which, const struct normalise_text *text, struct buf *ret);
/* Are the two equal when `which` are applied to both? *ret_hidden_by: a smallest set that is enough for that. */
bool normalise_equal(unsigned which, const struct normalise_text *a, const struct normalise_text *b,
		     unsigned *ret_hidden_by);

/* -------- a project's own ----------------------------------------------------------------------------- */

/*
 * From a JSON file (comments allowed):
 *
 *     {"normalisers": [
 *         {"name": "build-id", "version": 1, "pattern": "build [0-9a-f]{8}", "replacement": "[BUILD]"}
 *     ]}
 *
 * The pattern is a Perl-compatible regular expression, applied line by line; the replacement is literal text. They
 * apply in the order of the file, after the built-in ones, and are on by default. A pattern that takes more than
 * NORMALISE_FILE_STEPS steps on a line leaves that line as it is, so no pattern can hang a replay, and the result does
 * not depend on how fast a machine is.
 */
#define NORMALISE_FILE_MAX   16 /* normalisers of all files */
#define NORMALISE_FILE_STEPS 100000

/* Adds those of a file to the ones that are there: before any thread is started. */
int normalise_file_load(const char *path, struct err *err);
void normalise_file_forget(void);

/* -------- those that read what they normalise (normalise_value.c) ------------------------------------- */

/* A date, a time of day, both, or a number of seconds, ms, µs or ns since 1970; UTC where no zone is named. */
bool normalise_time_within(const char *text, size_t length, int64_t from_us, int64_t to_us);
/* "{b, a}" -> "{a, b}"; the caller's. */
char *normalise_set(const char *text, size_t length);
/* JSON with members in the order of their names: the whole, else each line that is an object or an array. */
void normalise_json(const char *data, size_t length, struct buf *ret);
/* Lines in the order of their bytes. */
void normalise_lines(const char *data, size_t length, struct buf *ret);
