/*
 * grade_scope.h - rules of submissions.yaml for a part of the test data: a rule's members "sample", "secret" and what
 * begins with "sample/" or "secret/" (a pattern as for submissions) hold for the cases and groups that they match. The
 * rules of folders and submissions hold for all cases, where expectations are compared case by case.
 */
#pragma once

#include "grade_expect.h"
#include "grade_score.h"

/* What a submission did; `cases` by their index. */
struct grade_scope {
	struct grade_node *root, *const *cases;
	size_t n_cases;
	const struct grade_sheet *sheet;
	const struct grade_total *total;
};
/* Does what was run agree with those rules? Cases that were not run say nothing: `required` counts only where all of a
 * part was run. The first rule that does not hold goes into `ret_why`. */
bool grade_scope_met(const struct grade_expect *expect, const struct grade_scope *scope, char ret_why[GRADE_MESSAGE]);
