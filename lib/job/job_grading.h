/*
 * job_grading.h - a grading: one program against many cases (lib/grade/grade_batch.h) as one row of the record.
 *
 * The row is an execution with `grading` set. Its code is the program, its standard input what is asked, its output a
 * line for each case that ran. It is OK where all cases are right; RE with exit status 1 where one is not; CE; TO where
 * the time for all was over before the last case; CX where its client left; XX where the judge failed. It runs on the
 * caller's thread, with a connection to the jailer of its own: no job, and no turn in a conversation.
 */
#pragma once

#include "job.h"
#include "lib/grade/grade_batch.h"

struct job_grading {
	char id[ID_SIZE]; /* of the execution */
	enum jail_verdict verdict;
	struct grade_batch_result result;
};
void job_grading_clear(struct job_grading *grading);
#define auto_grading __attribute__((cleanup(job_grading_clear)))
/* What ends it early. */
struct job_grading_until {
	const atomic_bool *over; /* no case begins any more; NULL */
	int hangup_fd;           /* reports POLLRDHUP: what runs ends, and the verdict is CX; -1: none */
};
/* Of the request count owner, token, client, language, code and limits. An error: nothing ran, or it could not be
 * recorded. */
int job_grading_run(struct job_engine *engine, const struct job_request *request, struct json_object *asked,
		    struct job_grading_until until, struct job_grading *ret, struct err *err);
/* What came of it, as a run's end: verdict, message, usage. */
void job_grading_end(const struct grade_batch_result *graded, struct jail_result *ret);
