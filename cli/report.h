/*
 * report.h - reports of replay and grade as files, for people and for other programs: --report FORMAT=FILE.
 *
 *     text    the matrix expected × now first, what is not as expected after it
 *     jsonl   the lines of --json
 *     junit   JUnit XML
 *     tap     TAP 14
 *     evalplus, bigcode   for samples of tasks: the result files of these harnesses
 *     html    one page with everything in it: a chart, the matrix, what is not as expected; no script, nothing loaded
 *
 * Names, messages and outputs are somebody else's text: each format escapes them, and none shows a control character.
 * A file is written next to its place and renamed when it is complete, so one that is there is a whole report.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "cli.h"

struct report_wanted {
	struct bind_strings files; /* FORMAT=FILE */
};
extern const struct cli_option report_options[];

enum report_state { REPORT_PASS, REPORT_FAIL, REPORT_ERROR, REPORT_SKIP, REPORT_STATES };
struct report_case {
	const char *group, *name;   /* what it belongs to; what it is */
	const char *label;          /* a class of replay, a verdict of grade */
	const char *expected, *now; /* rows and columns of the matrix */
	enum report_state state;
	const char *message; /* one sentence; "" where there is nothing to say */
	const char *details; /* more lines, of a diff where they begin so; NULL: none */
	const char *json;    /* the line of --json */
	const char *code;    /* the program that was judged or ran; NULL */
	const char *conversation; /* that it ran in; NULL */
	int64_t wall_us;     /* -1: not known */
};

struct report;
/* NULL where none is wanted. ERR_INVALID: no such format; a file that cannot be written is an error now. */
int report_open(const struct report_wanted *wanted, const char *title, struct report **ret, struct err *err);
/* Copies everything. NULL is fine, as below. */
void report_add(struct report *report, const struct report_case *one);
/* `summary`: the last line of --json. */
int report_finish(struct report *report, const char *summary, double seconds, struct err *err);
void report_free(struct report *report);

/* Says how many results could not be kept for --resume; `status`, or CLI_INCOMPLETE where they were asked for. */
struct store_results;
int report_kept(struct store_results *results, bool wanted, int status);

/* -------- between report.c and the formats in report_*.c ----------------------------------------------- */
struct report_item { /* as report_case; owned */
	char *group, *name, *label, *expected, *now, *message, *details, *json, *code, *conversation;
	enum report_state state;
	int64_t wall_us;
};
struct report_all {
	const char *title, *summary;
	const struct report_item *items;
	size_t count, states[REPORT_STATES];
	double seconds;
};
void report_text(const struct report_all *all, FILE *out);
void report_jsonl(const struct report_all *all, FILE *out);
void report_junit(const struct report_all *all, FILE *out);
void report_tap(const struct report_all *all, FILE *out);
void report_html(const struct report_all *all, FILE *out);
void report_evalplus(const struct report_all *all, FILE *out);
void report_bigcode(const struct report_all *all, FILE *out);
/* For XML and HTML, inside of elements and of attributes in quotes; lines stay lines. */
void report_escaped(FILE *out, const char *text);
/* The different values of a member in the order of their first appearance, at most `max`; the rest counts as the last.
 */
#define REPORT_VALUES_MAX 32
struct report_values {
	const char *names[REPORT_VALUES_MAX];
	size_t count;
};
size_t report_value(struct report_values *values, const char *name);
/* How many have the value `row` of `expected` and `column` of `now`; both lists are filled in. */
struct report_matrix {
	struct report_values rows, columns;
	size_t cells[REPORT_VALUES_MAX][REPORT_VALUES_MAX];
};
void report_matrix(const struct report_all *all, struct report_matrix *ret);
