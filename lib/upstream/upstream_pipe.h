/*
 * upstream_pipe.h - the transport over the standard input and output of a program.
 *
 * Who starts the program is a launcher: upstream_bare.c where the entry says "jail": false, else upstream_jail.c.
 */
#pragma once

#include <poll.h>

#include "upstream_connection.h"

struct pipe_wire;
struct launcher {
	/* The three descriptors are the program's ends; they stay the caller's. Answers by pipe_started, or fails. */
	int (*start)(struct pipe_wire *wire, const struct upstream_server *server, const int fds[3], struct err *err);
	void (*terminate)(struct pipe_wire *wire, bool kill); /* ask it to end; then: make it */
	bool (*ended)(struct pipe_wire *wire);                /* has it? Then nothing of it is left */
};
/* A program and its pipes; it may outlive its connection, until it has ended. */
struct pipe_wire {
	struct pipe_wire *next;
	struct upstream_connection *connection; /* NULL: it is to end */
	struct connection_loop *loop;
	const struct launcher *launcher;
	void *process;      /* the launcher's */
	int in, out, error; /* our ends */
	struct buf outgoing, line;
	struct reading *reading; /* of a line; NULL: none; else nothing is read */
	struct buf ahead;        /* what was read behind that line */
	size_t written;
	bool skipping; /* the line is too long: its rest is passed over */
	char *errors;  /* the end of what it wrote to its standard error */
	size_t n_errors;
	int64_t rubbish;  /* lines that were not JSON */
	int64_t since_us; /* since when it is to end */
	int asked;        /* how urgently it was asked to end */
};

extern const struct transport pipe_transport;
int pipes_open(struct connection_loop *loop, const struct launcher *bare, const struct launcher *jailed);
void pipes_close(struct connection_loop *loop);                              /* makes what is left end */
void pipes_turn(struct connection_loop *loop); /* after the poll: reads, writes, and ends what is to end */
int64_t pipes_wake(const struct connection_loop *loop);
bool pipes_leaving(const struct connection_loop *loop);
/* Descriptors to wait for; the count, at most `room`. */
size_t pipes_poll(const struct connection_loop *loop, struct pollfd *ret, size_t room);

/* Of entries that say "jail": false: children of this process, with its account, PATH, HOME and LANG, each in a process
 * group of its own, which ends as a whole. */
extern const struct launcher bare_launcher;

/* From launchers. */
void pipe_started(struct pipe_wire *wire);
void pipe_failed(struct pipe_wire *wire, const char *why);
