/*
 * job_sandbox.h - live sandboxes of the job engine: jails that stay open between the runs of a conversation. Part of
 * the engine.
 *
 * One per conversation and language. It is opened by the first run that asks for it and belongs to one run at a time
 * (runs of one conversation are in order anyway); between runs it is idle, and the jailer keeps it frozen. It ends when
 * somebody resets it, when nobody used it for limits.sandbox_idle_seconds, with a run that ended its jail, that was
 * cancelled, or whose sandbox failed, and with the jailer or this process. Nothing of it survives but the
 * conversation's files, and the next run gets a sentence about what became of the state that it may count on.
 *
 * All of this belongs to the reactor; the job that has a sandbox may read it on whatever thread holds the job, and say
 * what is known there.
 */
#pragma once

#include "job_internal.h"
#include "lib/store/record/store_sandbox.h"

struct job_sandbox {
	struct job_sandbox *next;
	struct job_engine *engine;
	char id[ID_SIZE], owner[STORE_OWNER_MAX + 1], language[32];
	char place[SHA256_HEX_SIZE]; /* the conversation's hash, which says the owner too */
	struct jail *jail;           /* NULL: the jailer is gone */
	struct job *job;             /* the run that has it; NULL: idle */
	const struct jail_events *events; /* what the run wants to hear of its jail */
	int64_t runs, idle_since_us;
	struct jail_limits limits;
	bool network;
	bool placed; /* bounded by who opened it (job_request.placed): not counted, and it gives way to no other */
	bool over;         /* nothing can run in it any more */
	const char *cause; /* for the record */
	struct job_known known;
	struct job_secrets secrets; /* of all its runs */
};

/* Gives the job its sandbox, a new one if there is none: ERR_LIMIT where there may be no more, ERR_INVALID where it
 * asks for other limits than the sandbox has. `events` get the job as their argument. */
int job_sandbox_take(struct job *job, const struct jail_events *events, struct err *err);
/* The run's row was never written: as if it had not been asked for. */
void job_sandbox_return(struct job *job);
/* The run is over and recorded: the sandbox waits for the next one, or ends. */
void job_sandbox_give(struct job *job);
/* What the caller must know of the state of its sandbox; once the verdict is known. */
void job_sandbox_note(struct job *job);
/* Could it run although no jail is free? */
bool job_sandbox_waits(const struct job *job);
size_t job_sandboxes_idle(const struct job_engine *engine);
/* Ends those of a conversation, of one language or ("") all; returns how many. None of them has a run. */
size_t job_sandboxes_reset(struct job_engine *engine, const char *place, const char *language);
int64_t job_sandboxes_deadline(const struct job_engine *engine); /* of the monotonic clock; INT64_MAX: none */
void job_sandboxes_expire(struct job_engine *engine);            /* ends the idle ones whose time or jail is over */
void job_sandboxes_lost(struct job_engine *engine);              /* the connection to the jailer is */
void job_sandboxes_free(struct job_engine *engine);
