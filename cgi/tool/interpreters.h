/*
 * interpreters.h - which sandbox of the tool set "interpreter" a client has: initialize_sandbox, execute_code and
 * stop_sandbox name none.
 *
 * A client is its legacy session, or (revisions without sessions) its token; it has one sandbox at a time. The sandbox
 * is a conversation that initialize_sandbox names, in which execute_code runs live; what is kept here is that name and
 * the language, in memory only. A client that initialises more than INTERPRETERS_PER_OWNER at once (each in a session
 * of its own) loses the one that it used least lately. Thread-safe.
 */
#pragma once

#include <pthread.h>

#include "lib/base/err.h"
#include "lib/store/record/store_file.h"

#define INTERPRETERS_PER_OWNER 16

struct interpreter {
	char owner[STORE_OWNER_MAX + 1], client[ID_SIZE];
	char conversation[STORE_CONVERSATION_MAX + 1], language[32];
};
struct interpreters {
	pthread_mutex_t lock;
	struct interpreter *items; /* the one that was used last is last */
	size_t count;
};
struct interpreters *interpreters_new(void);
void interpreters_free(struct interpreters *interpreters); /* NULL is fine */
/* Replaces what the client had. */
void interpreters_put(struct interpreters *interpreters, const struct interpreter *interpreter);
/* ERR_NOT_FOUND: the client has none. `take`: it has none from now on. */
int interpreters_find(struct interpreters *interpreters, const char *owner, const char *client, bool take,
		      struct interpreter *ret, struct err *err);
