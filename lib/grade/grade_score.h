/*
 * grade_score.h - from the outcomes of cases to those of groups and of the whole, by the rules of the package's format.
 *
 * Legacy and 2023-07: each group's grader (flags, or a program) over what lies in it, in order; 2025-09: pass-fail, sum
 * and min with maximum scores and require_pass. Facts: "Graders" (legacy), "Result aggregation" (2025-09).
 */
#pragma once

#include "grade_case.h"

enum grade_case_state { GRADE_NOT_RUN, GRADE_RUNNING, GRADE_DONE };

/* A submission's cases, by their index. */
struct grade_sheet {
	const enum grade_case_state *states;
	const struct grade_outcome *outcomes;
};

/* May this case start now? GRADE_LATER: what decides that is not known yet; GRADE_NEVER: an earlier rejection has
 * decided. */
enum grade_turn { GRADE_NOW, GRADE_LATER, GRADE_NEVER };
enum grade_turn grade_score_turn(const struct grade_sheet *sheet, struct grade_node *root,
				 const struct grade_node *node);

struct grade_group_result {
	const struct grade_node *group;
	enum grade_verdict verdict;
	double score;
};
struct grade_total {
	enum grade_verdict verdict;
	double score, full;            /* NAN where the problem does not score; full: INFINITY where it has no bound */
	const struct grade_node *first; /* the first case that is not accepted, or NULL */
	char message[GRADE_MESSAGE];
	size_t cases_run;
	int64_t cpu_us, wall_us, memory_bytes; /* of the slowest, largest case */
	struct grade_group_result *groups; /* every group that was judged but the root, by name; the caller's */
	size_t n_groups;
};
/* When all cases that will run have. `client` is for a custom grader. */
void grade_score_total(const struct grade_bench *bench, struct jail_client *client, const struct grade_sheet *sheet,
		       struct grade_node *root, struct grade_total *ret);
