/*
 * worker.h - between the files of `sallyport worker`: what is to be started, and the services of one worker.
 */
#pragma once

#include "cli.h"
#include "lib/base/host.h"

struct worker_address {
	char host[HOST_SIZE]; /* "": all of this machine's */
	uint16_t port;
};
/* As nginx's `listen` and `server` want it; the caller's. */
char *worker_address_text(const struct worker_address *address);

struct worker {
	const char *config; /* --config; NULL: found by each program itself */
	struct worker_address listen;
	const char *dir;    /* absolute: data/ is the record, log/ what the services say */
	const char *trusted; /* of doors.trusted; NULL: the configuration's */
	const char *announce, *name; /* a file in that folder says NAME:PORT while it serves; NULL: none */
};
/* Serves until a signal comes. ERR_UNAVAILABLE: a service did not start, or ended by itself. */
int worker_serve(const struct worker *worker, struct err *err);
/* A file of nginx/ with each @NAME@ replaced by what stands behind the name in `values` (ended by NULL); the
 * caller's. */
char *worker_fill(const char *text, const char *const *values);
