/* grade_scope.c - see grade_scope.h. */
#include "grade_scope.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/util.h"

static uint32_t bit(enum grade_verdict verdict)
{
	return GRADE_BIT(verdict == GRADE_MLE ? GRADE_RTE : verdict);
}

/* MLE counts as RTE where expectations are compared. */
static uint32_t with_memory(uint32_t set)
{
	return set & GRADE_BIT(GRADE_MLE) ? set | GRADE_BIT(GRADE_RTE) : set;
}

static bool verdicts_met(const struct grade_expect_part *part, const struct grade_scope *scope,
			 char ret_why[GRADE_MESSAGE])
{
	uint32_t permitted = with_memory(part->permitted), required = with_memory(part->required), seen = 0;
	bool all = true, any = false;

	for (size_t i = 0; i < scope->n_cases; i++) {
		if (!grade_expect_glob(part->pattern, scope->cases[i]->name))
			continue;
		any = true;
		if (scope->sheet->states[i] != GRADE_DONE) {
			all = false;
			continue;
		}
		enum grade_verdict verdict = scope->sheet->outcomes[i].verdict;

		seen |= bit(verdict);
		if (!(permitted & bit(verdict))) {
			snprintf(ret_why, GRADE_MESSAGE, "%s is %s, which submissions.yaml does not permit in %s",
				 scope->cases[i]->name, grade_verdict_text(verdict), part->pattern);
			return false;
		}
	}
	if (any && all && !(seen & required)) {
		snprintf(ret_why, GRADE_MESSAGE, "no case in %s has a verdict that submissions.yaml requires",
			 part->pattern);
		return false;
	}
	return true;
}

static bool score_met(const struct grade_expect_part *part, const struct grade_scope *scope,
		      char ret_why[GRADE_MESSAGE])
{
	for (size_t i = 0; part->has_score && i < scope->total->n_groups; i++) {
		const struct grade_group_result *group = &scope->total->groups[i];

		if (!streq(group->group->name, part->pattern) || isnan(group->score))
			continue;
		if (group->score < part->least - 1e-6 || group->score > part->most + 1e-6) {
			snprintf(ret_why, GRADE_MESSAGE, "%s has %.12g points, submissions.yaml expects %.12g to %.12g",
				 part->pattern, group->score, part->least, part->most);
			return false;
		}
	}
	return true;
}

bool grade_scope_met(const struct grade_expect *expect, const struct grade_scope *scope, char ret_why[GRADE_MESSAGE])
{
	*ret_why = '\0';
	for (size_t i = 0; i < expect->n_parts; i++)
		if (!verdicts_met(&expect->parts[i], scope, ret_why) || !score_met(&expect->parts[i], scope, ret_why))
			return false;
	return true;
}
