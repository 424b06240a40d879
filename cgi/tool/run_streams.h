/*
 * run_streams.h - how much of a program's output an answer shows, and which parts of it.
 *
 * Bounds are of what the client gets: a byte that is not UTF-8 becomes four. What does not fit loses its middle, or,
 * where the end is what counts (an exception), its beginning. Of a line that was written over by \r only the last state
 * is shown, as a terminal would: a progress bar is one line. The record has every byte.
 */
#pragma once

#include "lib/job/job.h"
#include "tool_common.h"

/* What is shown of a stream: all of it, or its beginning and its end. The parts are NUL-terminated. */
struct run_shown {
	struct job_stream head, tail;
	int64_t hidden; /* bytes between the two */
	int64_t from;   /* where these begin in the stream */
	int64_t size;   /* of the whole stream */
};
struct run_streams {
	struct run_shown out, error;
};
/* At most `room` bytes of both together; of stderr only the end (`error_ends`), or both ends. Never fails: an end that
 * cannot be read is not shown. */
void run_streams_take(struct server *server, const struct job_result *result, size_t room, bool error_ends,
		      struct run_streams *ret);
void run_streams_clear(struct run_streams *streams);
#define auto_streams __attribute__((cleanup(run_streams_clear)))
bool run_shown_has(const struct run_shown *shown, const char *word);
/* How many bytes from the beginning become at most `room` bytes of text; not a part of a character. */
size_t run_text_part(const char *data, size_t length, size_t room);
