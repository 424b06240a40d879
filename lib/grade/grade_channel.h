/*
 * grade_channel.h - the judge's ends of the pipes that are a program's standard input and output, without waiting: the
 * caller polls `in` and `out`.
 */
#pragma once

#include "jail/client/jail.h"
#include "lib/base/buf.h"

#define GRADE_LINE_MAX (64 << 20) /* bytes of a line, and of all that waits in one direction */

struct grade_channel {
	int in, out; /* to the program's standard input, from its standard output; -1: closed */
	struct buf to, from;
	size_t sent, taken;
};
#define GRADE_CHANNEL_INIT                                                                                             \
	{                                                                                                              \
		.in = -1, .out = -1                                                                                    \
	}

/* Pipes for a program; its ends go into `program`, and are the caller's to close after begin. */
int grade_channel_open(struct grade_channel *channel, struct jail_program *program, struct err *err);
void grade_channel_clear(struct grade_channel *channel);
/* Sends what can be sent of `to`. */
void grade_channel_send(struct grade_channel *channel);
/* Receives what is there. The caller looks for lines afterwards: nothing else wakes its loop for them. */
void grade_channel_receive(struct grade_channel *channel);
/* The next whole line with its newline, which stays valid until the next grade_channel_receive; NULL: not yet. */
const char *grade_channel_line(struct grade_channel *channel, size_t *ret_length);
