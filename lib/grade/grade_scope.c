/* grade_scope.c - see grade_scope.h. */
#include "grade_scope.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/util.h"

/* Behind what ended its group a case may have run at the same time: it is as if it had not. */
static bool counts(const struct grade_scope *scope, size_t i)
{
	return scope->sheet->states[i] == GRADE_DONE &&
	       grade_score_turn(scope->sheet, scope->root, scope->cases[i]) != GRADE_NEVER;
}

/* `whose`: who says so, and of what: "submissions.yaml" and " in secret/1". */
static bool verdicts_met(const struct grade_expect_part *part, const struct grade_scope *scope,
			 const char *const whose[2], char ret_why[GRADE_MESSAGE])
{
	bool all = true, any = false, seen = false, said = !part->message;

	for (size_t i = 0; i < scope->n_cases; i++) {
		if (!grade_expect_glob(part->pattern, scope->cases[i]->name))
			continue;
		any = true;
		if (!counts(scope, i)) {
			all = false;
			continue;
		}
		enum grade_verdict verdict = scope->sheet->outcomes[i].verdict;

		said = said || strstr(scope->sheet->outcomes[i].message, part->message);
		seen = seen || grade_expect_allows(part->required, verdict);
		if (!grade_expect_allows(part->permitted, verdict)) {
			snprintf(ret_why, GRADE_MESSAGE, "%s is %s, which %s does not permit%s", scope->cases[i]->name,
				 grade_verdict_text(verdict), whose[0], whose[1]);
			return false;
		}
	}
	if (any && all && !seen) {
		snprintf(ret_why, GRADE_MESSAGE, "no case%s has a verdict that %s requires", whose[1], whose[0]);
		return false;
	}
	if (any && all && !said) {
		snprintf(ret_why, GRADE_MESSAGE, "no judge's message%s has \"%.100s\"", whose[1], part->message);
		return false;
	}
	return true;
}

static bool part_met(const struct grade_expect_part *part, const struct grade_scope *scope, char ret_why[GRADE_MESSAGE])
{
	auto_free char *where = xasprintf(" in %s", part->pattern);
	const char *const whose[] = {"submissions.yaml", where};

	return verdicts_met(part, scope, whose, ret_why);
}

static size_t slashes(const char *name)
{
	size_t count = 0;

	while ((name = strchr(name, '/'))) {
		count++;
		name++;
	}
	return count;
}

/* Is it this group, not one that it is in? */
static bool is_group(const char *pattern, const char *name)
{
	return slashes(pattern) == slashes(name) && grade_expect_glob(pattern, name);
}

static bool score_met(const struct grade_expect_part *part, const struct grade_scope *scope,
		      char ret_why[GRADE_MESSAGE])
{
	for (size_t i = 0; part->has_score && i < scope->total->n_groups; i++) {
		const struct grade_group_result *group = &scope->total->groups[i];

		if (!is_group(part->pattern, group->group->name) || isnan(group->score))
			continue;
		if (group->score < part->least - 1e-6 || group->score > part->most + 1e-6) {
			snprintf(ret_why, GRADE_MESSAGE, "%s has %.12g points, submissions.yaml expects %.12g to %.12g",
				 group->group->name, group->score, part->least, part->most);
			return false;
		}
	}
	return true;
}

/* The groups in secret against the list of the source's comment; one that was not judged says nothing. */
static bool grades_met(const struct grade_expect *expect, const struct grade_scope *scope, char ret_why[GRADE_MESSAGE])
{
	const struct grade_node *secret = grade_data_find(scope->root, "secret");
	size_t number = 0, groups = 0;
	for (size_t i = 0; secret && i < secret->count; i++)
		groups += !secret->children[i]->is_case;
	for (size_t i = 0; secret && groups == expect->n_grades && i < secret->count; i++) {
		const struct grade_node *group = secret->children[i];

		if (group->is_case)
			continue;
		uint32_t wanted = expect->grades[number++];
		for (size_t k = 0; k < scope->total->n_groups; k++) {
			enum grade_verdict verdict = scope->total->groups[k].verdict;

			if (scope->total->groups[k].group != group || grade_expect_allows(wanted, verdict))
				continue;
			snprintf(ret_why, GRADE_MESSAGE, "%s is %s, which is not what @EXPECTED_GRADES@ says",
				 group->name, grade_verdict_text(verdict));
			return false;
		}
	}
	return true;
}

bool grade_scope_met(const struct grade_expect *expect, const struct grade_scope *scope, char ret_why[GRADE_MESSAGE])
{
	static const char *const whole[] = {"its folder or submissions.yaml", ""};

	*ret_why = '\0';
	for (size_t i = 0; i < expect->n_parts; i++)
		if (!part_met(&expect->parts[i], scope, ret_why) || !score_met(&expect->parts[i], scope, ret_why))
			return false;
	for (size_t i = 0; expect->by_case && i < expect->n_rules; i++)
		if (!verdicts_met(&expect->rules[i], scope, whole, ret_why))
			return false;
	return grades_met(expect, scope, ret_why);
}
