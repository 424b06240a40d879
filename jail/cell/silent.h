/*
 * silent.h - programs that have nothing to show, told by their text.
 *
 * A program whose last value and figures are to be shown is started by the runner's "show_run" and costs 2 ms more: the
 * interpreter has to make the classes of its syntax tree. Most programs end with a call of print, or in a block,
 * and import nothing that draws, so they are started as they are. The text is not parsed: where it leaves a doubt, the
 * program is not silent. So does the name of a silent call that is not called there (the program may give the name to
 * something else), and a module of that list where /data holds one of the same name, or packages of the conversation:
 * those are found first. Languages whose imports draw nothing have a list of ends alone (runner->silent_ends).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "runner.h"

#define SILENT_TEXT_MAX 65536 /* a longer program is not looked at */

/* Its last line is a call that begins as one of runner->silent_ends; or it ends with a call of one of
 * runner->silent_calls, or in a block that begins as one of runner->silent_blocks, and imports only what
 * runner->silent_imports names. `data`: descriptor of /data; -1: it is empty. */
bool silent_text(const struct runner *runner, const char *text, size_t length, int data);
/* The text is what the descriptor holds, whose offset stays; -1: no. */
bool silent_file(const struct runner *runner, int fd, int data);
