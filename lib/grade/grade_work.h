/*
 * grade_work.h - a judge at work: between grade_judge.c (who does what next) and grade_recall.c (what need not be done
 * again).
 */
#pragma once

#include "grade_judge.h"
#include "lib/store/db/crypto.h"

enum grade_stage { STAGE_WAITING, STAGE_COMPILING, STAGE_RUNNING, STAGE_SCORING, STAGE_DONE };

struct grade_entry {
	struct grade_submission *submission;
	enum grade_stage stage;
	bool first_round; /* runs free of a limit, to find it: all of it, or `in_part` */
	bool in_part;
	struct grade_program program;
	enum grade_case_state *states;
	struct grade_outcome *outcomes;
	size_t from;               /* no case before it is left to start */
	size_t running;            /* cases */
	char key[SHA256_HEX_SIZE]; /* "": nothing is kept */
};

struct grade_work {
	struct grade_judge *judge;
	struct grade_bench bench;
	struct grade_own own;
	struct json_object *runners;
	bool first_round;
	char key[SHA256_HEX_SIZE];       /* of what results depend on, where there is a memory */
	char limit_key[SHA256_HEX_SIZE]; /* and of a time limit that comes from the submissions */

	struct grade_pool pool; /* its lock: for the rest, and for entries but what a thread works on */
	struct grade_entry *entries;
	size_t to_report; /* the next in the list */
	size_t cases_done;
};

int grade_judge_source(const struct grade_work *work, const struct grade_submission *submission,
		       struct grade_source *ret, struct err *err);

/* Before anything runs: what is known is DONE, and the time limit may be. */
int grade_recall_all(struct grade_work *work, struct err *err);
/* As soon as the time limit is known: the others. */
void grade_recall_rest(struct grade_work *work);
/* With the lock. */
void grade_recall_keep(const struct grade_work *work, const struct grade_entry *entry);
void grade_recall_keep_limit(const struct grade_work *work);
