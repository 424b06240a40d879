/*
 * output.h - a program's two streams: from pipes into the client's descriptors, at most so many bytes over both.
 *
 * The pipes never hold a run up: what is beyond the limit is thrown away, and the end of a run is the end of the
 * program, not of the pipes (a child that holds them is killed, what is in them is drained).
 *
 * A client's pipe goes to the program itself, as its standard input does: two programs talk to each other so. Nothing
 * of such a stream is seen, counted or limited here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"

struct output {
	int pipe[2]; /* read ends of stdout and stderr, -1 closed */
	int sink[2]; /* where it goes, -1: counted and thrown away */
	int direct[2]; /* the client's pipe, for the program; -1: none, or handed out */
	int64_t written[2];
	int64_t limit;
	bool over; /* the limit was reached and there was more */
	bool truncated[2];
	int error; /* a sink could not be written: errno */
};

/* Takes the sinks over. */
void output_init(struct output *output, int64_t limit, int stdout_fd, int stderr_fd);
/* A pipe: [0] for us, nonblocking, [1] for programs, which can open it again by name. After a failure both are the
 * caller's (-1 in: none). */
int output_pipe(int ret[2], struct err *err);
/* New pipes (pipe[i] stays -1 where a client's goes to the program); ret_write are the ends for the program, the
 * caller's also after a failure (-1 in: none). */
int output_pipes(struct output *output, int ret_write[2], struct err *err);
/* Reads what is there, at most a fair share. False: the stream has ended. */
bool output_pump(struct output *output, int stream);
/* All that the pipes still hold; then they are closed. */
void output_drain(struct output *output);
/* The memfds' contents go to other sinks, as if they had been written there (compile step). */
int output_copy(const struct output *from, struct output *to);
void output_clear(struct output *output);
