/*
 * last.h - shows the value of a program's last expression without a second file: by what is put behind that expression.
 *
 * What a runner preloads to show values (runner.h, "show_run") costs bun 3 ms. A program whose last statement is an
 * expression is instead started as it is, with `instanceof` and the runner's "tail" behind that expression, on lines of
 * their own: the left side of instanceof is handed to a function of ours. No line that the program has changes, so
 * that errors quote what they did, at the same line and column.
 *
 * The text is not parsed, but cut into tokens (last_token.h). Where that leaves a doubt, the runner's show_run decides:
 * - where the last statement begins, and whether it is an expression;
 * - operators that bind less than instanceof (a === b, a ? b : c, a = b): the left side would be a part of it;
 * - a semicolon behind it has to go, and is missing where that line is quoted: so nothing on that line may fail, which
 *   is sure of names that the program has declared, of literals, and of calls of its own functions with these;
 * - names with which a program sees its own text, or changes how the value is shown.
 *
 * Two errors still look different: behind some mistakes of syntax the engine goes on, and names the tail, too (those of
 * the last statement and the usual ones before it are looked for); and a name that is not there, in an array or object
 * that is the last value, has its column at its end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/buf.h"

/* A longer program is not looked at: this one takes the jailer, which all jails share, up to 5 ms. */
#define LAST_TEXT_MAX 16384

/* Adds the program, which has a NUL behind it, to `ret` as it can be continued: without semicolons behind its last
 * expression. False: it is left alone, and nothing is added. */
bool last_open(const char *text, size_t length, struct buf *ret);
/* As a descriptor: the program of `code`, `instanceof`, the tail; -1: neither, or an error. The offsets stay. */
int last_file(int code, int tail);
