/*
 * run_text.h - what a model reads of a run: text of a bounded size.
 *
 * All text blocks together have limits.answer_kb, or what the token has instead: there are clients that cut a longer
 * answer at its end, and clients that put it into a file. The blocks of the plain form, each only if there is something
 * in it:
 *
 *     RUN_MARK and our own lines: how it ended if not well, files with their addresses, what was refused, and where the
 *     rest of an output is; and the title of the output that follows: "[stdout]" or "[stderr]"
 *     of a program that failed: what it printed to stderr (if it is cut: its end, where the reason is)
 *     what it printed to stdout, unchanged (if it is cut: its beginning, how much is left out, its end)
 *     of a program that did not fail: stderr, in the same way
 *
 * with the title of the second stream between the two. A program cannot forge our lines, also for clients that join the
 * blocks. An answer that begins with RUN_MARK begins with our lines, which end at the first "[stdout]" or "[stderr]":
 * nothing of the program's stands before that, and what it prints like our lines or these two stands behind. If the
 * output contains the mark, our lines are there, at least with a sentence. Names of files, which a program chooses, are
 * quoted unless they are plain.
 */
#pragma once

#include "lib/job/job.h"
#include "run_streams.h"
#include "tool_common.h"

#define RUN_MARK      TOOL_MARK
#define RUN_NOTES_MAX (16 * 1024) /* bytes of our own lines, where answers are long */
#define RUN_FILES_SHOWN 20        /* files that are named */

/* Bytes of the text of an answer: all blocks together. */
size_t run_text_room(const struct server *server, const struct store_token *token);
/* Beginning, a line about what is left out, end: for forms of other systems, which have one block. So that a program
 * forges no line of ours there, a line of its output that begins like one gets a backslash in front. */
enum run_text_place {
	RUN_TEXT_ALONE, /* nothing else of ours is in this text */
	RUN_TEXT_AMONG  /* the other stream, how it ended, files */
};
/* Of an answer's room, the part that the streams of such a form have: the rest is for marks and for our lines. */
size_t run_text_streams_room(size_t room, size_t ours);
void run_text_stream(struct buf *text, const struct run_shown *shown, enum run_text_place place);
/* The value that was shown; "": none. */
const char *run_text_value(const struct job_result *result);
/* The blocks of the plain form. `pictures`: lines about those that are not shown as they are. */
void run_text_add(const struct tool_call *call, const struct job_result *result, const char *pictures,
		  struct json_object *content);
/* One block in place of all, for those forms: both streams, what was refused, how it ended; and the lines of files. */
void run_text_block(struct buf *text, const struct job_result *result, const struct run_streams *streams);
/* At most `room` bytes. */
void run_text_files(struct server *server, const struct job_result *result, size_t room, struct buf *text);
/* A file's name: what is plain stays as it is, everything else is between quotes, with its own quotes escaped. */
void run_text_name(struct buf *text, const char *name, size_t length);
/* What the relay refused, one line each. */
void run_text_network(struct buf *text, const struct jail_result *jail);
void run_text_end_line(struct buf *text);
/* A text that a program or a client wrote, which may look like a line of ours. */
bool run_text_has_mark(const char *data, size_t length);
