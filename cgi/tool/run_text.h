/*
 * run_text.h - what a model reads of a run: text of a bounded size.
 *
 * The blocks of the plain form, each only if there is something in it:
 *
 *     RUN_MARK and our own lines: how it ended if not well, files with their addresses, what was refused or cut; and
 *     the title of the output that follows: "[stdout]" or "[stderr]"
 *     what the program printed to stdout, unchanged (if it is cut: its beginning, how much is left out, its end)
 *     "[stderr]", if there is stdout, too
 *     what it printed to stderr, in the same way
 *
 * A program cannot forge our lines, also for clients that join the blocks. An answer that begins with RUN_MARK begins
 * with our lines, which end at the first "[stdout]" or "[stderr]": nothing of the program's stands before that, and
 * what it prints like our lines or these two stands behind. If the output contains the mark, our lines are there, at
 * least with a sentence. Names of files, which a program chooses, are quoted unless they are plain. First also means
 * that clients that shorten an answer at its end keep our lines.
 */
#pragma once

#include "lib/job/job.h"
#include "tool_common.h"

#define RUN_MARK        "[sallyport]"
#define RUN_TEXT_MAX    (128 * 1024)                          /* bytes of all text blocks together */
#define RUN_NOTES_MAX   (16 * 1024)                           /* … of which our own lines have this much */
/* … and the output that, of which each line of eight bytes may get a ninth (run_text_stream) */
#define RUN_STREAMS_MAX (RUN_TEXT_MAX - RUN_NOTES_MAX - 8 * 1024)
#define RUN_FILES_SHOWN 20                                    /* files that are named */

/* What is shown of a stream: all of it, or its beginning and its end. */
struct run_shown {
	const char *head; /* the result's */
	size_t head_length;
	struct job_stream tail;
	int64_t hidden; /* bytes between the two */
	int64_t size;   /* of the whole stream */
};
struct run_streams {
	struct run_shown out, error;
};
/* At most `room` bytes of both together. Never fails: an end that cannot be read is not shown. */
void run_streams_take(struct server *server, const struct job_result *result, size_t room, struct run_streams *ret);
void run_streams_clear(struct run_streams *streams);
/* How many bytes from the beginning become at most `room` bytes of text; not a part of a character. */
size_t run_text_part(const char *data, size_t length, size_t room);
/* Beginning, a line about what is left out, end: for forms of other systems, which have one block. So that a program
 * forges no line of ours there, a line of its output that begins like one gets a backslash in front. */
enum run_text_place {
	RUN_TEXT_ALONE, /* nothing else of ours is in this text */
	RUN_TEXT_AMONG  /* the other stream, how it ended, files */
};
void run_text_stream(struct buf *text, const struct run_shown *shown, enum run_text_place place);
/* The blocks of the plain form. `images_hidden`: images that the answer does not show. */
void run_text_add(const struct tool_call *call, const struct job_result *result, size_t images_hidden,
		  struct json_object *content);
/* One block in place of all, for those forms: both streams, what was refused, how it ended; and the lines of files. */
void run_text_block(struct buf *text, const struct job_result *result, const struct run_streams *streams);
void run_text_files(struct server *server, const struct job_result *result, struct buf *text);
/* A file's name: what is plain stays as it is, everything else is between quotes, with its own quotes escaped. */
void run_text_name(struct buf *text, const char *name, size_t length);
/* What the relay refused, one line each. */
void run_text_network(struct buf *text, const struct jail_result *jail);
void run_text_end_line(struct buf *text);
/* A text that a program or a client wrote, which may look like a line of ours. */
bool run_text_has_mark(const char *data, size_t length);
