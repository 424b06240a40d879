/*
 * tool_park.h - runs whose request was answered with a question (modern era): the program waits, the job lives on, and
 * the client comes back with the answer.
 *
 * requestState names the run, the call's digest and the last question put, signed for owner and tool. The retry finds
 * the run here; one that comes after the run was forgotten gets the recorded result. What is kept here is in memory
 * only: with the process the runs end, too. Thread-safe.
 */
#pragma once

#include "cgi/mcp/tools.h"
#include "lib/bridge/bridge_progress.h"
#include "lib/bridge/bridge_question.h"

#define TOOL_PARKED_MAX 4 /* of an owner: each of them holds a jail */

struct job;
struct job_tools;
struct tool_parked;
struct tool_parked *tool_parked_new(void);
/* Nobody will answer any more: what waits is refused. When the server stops, before the engine drains. */
void tool_parked_stop(struct tool_parked *parked);
void tool_parked_free(struct tool_parked *parked); /* NULL is fine */

/* A run whose client is, or was, asked. */
struct tool_run {
	struct job *job;
	struct bridge_questions *questions; /* NULL: its programs call nothing */
	struct bridge_progress *progress;   /* NULL: they call nothing, or nobody wants to hear of it */
	char hash[65];                      /* of the call (tool_hash) */
	const char *who;                    /* wants to call, in questions: "A program" */
	struct tool_run *next;              /* the rest is tool_park.c's */
	_Atomic int references;
	bool parked;
	char owner[STORE_OWNER_MAX + 1];
	int64_t until_us;
};
/* `tools` NULL: its programs call nothing. Takes over the reference of `job`. */
struct tool_run *tool_run_new(struct job *job, struct job_tools *tools, const char *hash);
void tool_run_release(struct tool_run *run); /* NULL is fine */
/* Makes the question the answer of `call`. ERR_BUSY: the owner has too many such runs. */
int tool_park(struct tool_call *call, struct tool_run *run, struct err *err);
/* What the request's requestState names. 0: it has none, or the era knows none; 1: *ret_run (answers were given, it is
 * the caller's to release), or NULL and ret_id: it is not here any more. ERR_INVALID. */
int tool_unpark(struct tool_call *call, const char *hash, struct tool_run **ret_run, char ret_id[ID_SIZE],
		struct err *err);
