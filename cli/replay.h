/* replay.h - is what a recorded execution did once the same as what it does now? Between cmd_replay.c and
 * replay_compare.c. */
#pragma once

#include <stdio.h>

#include "cli.h"
#include "lib/job/job.h"
#include "lib/store/store_execution.h"

enum replay_outcome {
	REPLAY_IDENTICAL,
	REPLAY_DIFFERENT,
	REPLAY_INCOMPARABLE, /* it cannot be the same run again; `reason` says why */
	REPLAY_FAILED,       /* the sandbox or the store failed; nothing can be said */
	REPLAY_OUTCOMES
};

struct replay_difference {
	char *what;           /* "stdout", "file \"chart.png\"" */
	size_t line;          /* of a stream: the first that differs; 0: the whole is compared */
	char *recorded, *now; /* printable */
};

struct replay_report {
	char id[ID_SIZE];
	char language[32];
	enum replay_outcome outcome;
	char *reason; /* INCOMPARABLE, FAILED */
	struct replay_difference *differences;
	size_t n_differences;
};
void replay_report_clear(struct replay_report *report);
/* Why it makes no sense to run this one again; NULL: it does. The caller's. */
char *replay_incomparable(const struct store_execution *execution);
/* Fills differences and outcome. An error is the store's. */
int replay_compare(struct store *store, const struct store_execution *execution, const struct job_replay *now,
		   struct replay_report *report, struct err *err);
/* What is said of run `seq` of a live sandbox, of which a later one is reported on; takes the differences over. */
void replay_report_earlier(struct replay_report *report, struct replay_report *earlier, int64_t seq);
/* The sandbox ended with run `seq`, and so the run that is reported on was not reached. */
void replay_report_unreached(struct replay_report *report, int64_t seq);
void replay_report_print(FILE *out, const struct replay_report *report);
struct json_object *replay_report_json(const struct replay_report *report);
