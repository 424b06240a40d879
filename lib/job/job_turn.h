/*
 * job_turn.h - the order of everything that acts on conversations, and work that is lent to other threads. Part of the
 * engine.
 *
 * A turn is a place in that order: of a job, an upload or a reset. Turns of one conversation are taken one after the
 * other, in order of arrival. The fields of a turn are the reactor's; `step` changes under the engine's lock, so that
 * other threads can read it there.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job_step.h"
#include "lib/base/err.h"
#include "lib/store/db/crypto.h"
#include "lib/store/store.h"
#include "workspace.h"

struct job;
struct job_engine;

/* Work of one thread for another. `code` and `error` are the worker's to write, until the work item is back. */
struct job_work_item {
	struct job_work_item *next;
	struct job_engine *engine;
	int (*work)(struct job_work_item *work_item, struct err *err); /* on an I/O worker */
	void (*back)(struct job_work_item *work_item);                 /* on the reactor; never changes */
	struct err *error;                                       /* NULL: of no interest */
	int code;
};
struct job_work_items {
	struct job_work_item *head, *tail;
};
void job_work_items_add(struct job_work_items *work_items, struct job_work_item *work_item);
struct job_work_item *job_work_items_take(struct job_work_items *work_items);
/* `work` on an I/O worker, or in a transaction on the writer's thread (its argument is the work item; a roll-back may
 * repeat it); then `back`. */
void job_lend_io(struct job_work_item *work_item, int (*work)(struct job_work_item *work_item, struct err *err));
void job_lend_writer(struct job_work_item *work_item, store_work work);
void job_lend_writer_large(struct job_work_item *work_item, store_work work); /* store_commit_large */
void job_post(struct job_work_item *work_item); /* the work is done: `back` */

/* The turns of one conversation that are not over. */
struct job_queue {
	struct job_queue *next;
	char hash[SHA256_HEX_SIZE];
	size_t count;
	const struct job_turn *holder; /* whose turn it is; NULL: nobody's */
	uint64_t scan;                 /* the last scan that had to leave one of them waiting */
};

struct job_turn;
typedef void job_turn_advance(struct job_turn *turn, enum job_event event);
struct job_turn {
	struct job_turn *next, *previous; /* engine->turns, in order of arrival */
	struct job_queue *queue;          /* NULL: no conversation */
	enum job_step step;
	int64_t since_us; /* of the monotonic clock: when `step` began */
	atomic_bool cancelled;
	bool placed;     /* job_request.placed */
	struct job *job; /* NULL: an upload or a reset; they need no jail */
	job_turn_advance *advance;
	struct job_work_item work_item;
	struct workspace_names read; /* files that were found changed in the workspace's folder */
	struct err error; /* why it could not be done; code ERR_NONE: it could, so far */
	/* Whose it is; unchanged after job_turn_enter. `place`: the conversation's hash or "". */
	const char *owner, *token_id, *place;
	const char *key, *key_hash; /* NULL: no idempotency key */
};
void job_turn_init(struct job_turn *turn, struct job_engine *engine, job_turn_advance *advance);
/* Takes a place in the order, in step `receiving`, or refuses. Under the engine's lock. */
int job_turn_enter(struct job_turn *turn, struct err *err);
void job_turn_step(struct job_turn *turn, enum job_step step);
/* Leaves the order: step `over`. The caller wakes what waits. */
void job_turn_over(struct job_turn *turn);
bool job_turn_active(const struct job_turn *turn); /* it has begun and is not over */
