/*
 * store_task.h - runs that outlive the request which began them, so that clients find their results later.
 *
 * A task is an owner's: the id of another owner answers exactly like an unknown one, and so does one whose time is up.
 * Its row is durable before anybody learns of it. While it is `working` the row names the instance that works on it;
 * the end is written once and is final. The result of a run is not kept twice: it is made again out of the execution's
 * row (job_result_load), only a result that has none is kept here.
 *
 * When an instance is gone its tasks end with it: as `completed` where the run was recorded before, else as `failed`,
 * with a message.
 */
#pragma once

#include "lib/store/store.h"

#define STORE_TASK_TOOL_MAX 64

enum store_task_state { STORE_TASK_WORKING, STORE_TASK_COMPLETED, STORE_TASK_FAILED, STORE_TASK_CANCELLED };
struct store_task {
	char id[ID_SIZE];
	char owner[STORE_OWNER_MAX + 1], token_id[ID_SIZE], session_id[ID_SIZE]; /* the ids "": none */
	char tool[STORE_TASK_TOOL_MAX + 1];
	char execution[ID_SIZE]; /* "": none */
	enum store_task_state state;
	bool is_error;               /* completed, and the result says that it is an error */
	char message[ERR_TEXT_SIZE]; /* a sentence about the state, or "" */
	char *result;                /* JSON; NULL: none, or made of the execution */
	int64_t created_us, updated_us, ttl_ms;
};
void store_task_clear(struct store_task *task);

/* A new one, working; id and times are filled in. ERR_BUSY: the owner has `most` already, with a message. Durable. */
int store_task_add(struct store *store, struct store_task *task, int64_t most, struct err *err);
/* Ends a task that is working: state, is_error, message, execution ("": as it was) and result (NULL: none) count.
 * ERR_CONFLICT: it has ended before, and stays as it was. Durable. */
int store_task_end(struct store *store, const struct store_task *task, struct err *err);
/* Takes back a task that nobody knows of. */
int store_task_drop(struct store *store, const char *id, struct err *err);
/* ERR_NOT_FOUND: unknown, expired, or another owner's. */
int store_task_find(struct store *store, const char *id, const char *owner, struct store_task *ret, struct err *err);

struct store_task_page {
	const char *owner, *before; /* an id: only older ones; STORE_ID_ABOVE: all */
	int64_t limit;
};
/* Newest first. */
int store_task_list(struct store *store, const struct store_task_page *page,
		    int (*each)(void *arg, const struct store_task *task), void *arg, struct err *err);
