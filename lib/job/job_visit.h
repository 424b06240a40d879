/*
 * job_visit.h - what takes its turn of a conversation without being a job: uploads, other changes of its files, resets.
 * Part of the engine.
 *
 * The caller's thread waits. The reactor gives the turn and calls `begin`, then the writer does `work` in a
 * transaction, then the reactor reports the files in `files` as news and ends the turn.
 */
#pragma once

#include <semaphore.h>

#include "job_internal.h"

struct job_visit {
	struct job_turn turn;
	const struct job_request *who; /* the caller's, who waits */
	char place[SHA256_HEX_SIZE];   /* the conversation's hash */
	sem_t over;                    /* not the engine's: that may be gone when the caller wakes */
	struct job_files files;        /* that are put, or were changed by `work`: for the news */
	store_work work;               /* its argument is the turn's work item */
	void (*begin)(struct job_visit *visit); /* NULL: nothing */
	bool again;                    /* the key's first call did it, nothing was done now */
};
struct job_visit *job_visit_of(struct job_work_item *work_item);
/* Before all else; `who` needs a conversation. */
int job_visit_init(struct job_visit *visit, struct job_engine *engine, const struct job_request *who, store_work work,
		   struct err *err);
/* Takes a place in the order, or refuses (job_turn_enter). */
int job_visit_enter(struct job_visit *visit, struct err *err);
/* Behind job_visit_enter: what was to be done before the turn is done, with this code and turn.error; waits until the
 * turn is over. */
int job_visit_wait(struct job_visit *visit, int code, struct err *err);
/* In the transaction, first: 1: a call with this key was made, 0: none was (job_visit_keep claims it), negative. */
int job_visit_recall(struct store_txn *txn, struct job_visit *visit, struct err *err);
int job_visit_keep(struct store_txn *txn, struct job_visit *visit, struct err *err);
