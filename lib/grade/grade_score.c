/*
 * grade_score.c - see grade_score.h.
 *
 * Cases may run in any order and side by side; what counts is read off in the order of the tree afterwards, so the
 * result does not depend on how many ran at a time: behind a rejection that ends its group nothing is looked at.
 */
#include "grade_score.h"

#include <math.h>
#include <string.h>

#include "lib/base/util.h"

#define ROUNDING 1e-9

/* -------- while cases run ----------------------------------------------------------------------------- */

enum known { UNKNOWN, ACCEPTED, REJECTED };

static bool ignored(const struct grade_node *group, const struct grade_node *child)
{
	/* A flag of the default grader: a custom one gets it, and the result of the sample. */
	return group->settings.ignore_sample && !group->settings.custom_grader && streq(child->name, "sample");
}

/* What is known of the nodes of a group so far. */
struct tally {
	bool all, accepted, rejected;
};

static enum known known_state(const struct grade_sheet *sheet, const struct grade_node *node);

static struct tally tally(const struct grade_sheet *sheet, const struct grade_node *group)
{
	struct tally tally = {.all = true};

	for (size_t i = 0; i < group->count; i++) {
		enum known state =
			ignored(group, group->children[i]) ? ACCEPTED : known_state(sheet, group->children[i]);

		tally.all = tally.all && state != UNKNOWN;
		tally.accepted = tally.accepted || state == ACCEPTED;
		tally.rejected = tally.rejected || state == REJECTED;
		if (state == REJECTED && group->settings.stop) {
			tally.all = true; /* nothing behind it counts */
			break;
		}
	}
	return tally;
}

static enum known known_state(const struct grade_sheet *sheet, const struct grade_node *node)
{
	const struct grade_settings *settings = &node->settings;

	if (node->is_case && sheet->states[node->index] != GRADE_DONE)
		return UNKNOWN;
	if (node->is_case)
		return sheet->outcomes[node->index].verdict == GRADE_AC ? ACCEPTED : REJECTED;
	if (settings->custom_grader)
		return UNKNOWN;
	struct tally known = tally(sheet, node);
	bool lenient = settings->always_accept || settings->accept_if_any;
	if (known.rejected && !lenient)
		return REJECTED;
	if (!known.all)
		return UNKNOWN;
	return settings->always_accept || !known.rejected || known.accepted ? ACCEPTED : REJECTED;
}

static enum grade_turn required(const struct grade_sheet *sheet, struct grade_node *root,
				const struct grade_node *group)
{
	for (char **name = group->settings.require_pass; name && *name; name++) {
		struct grade_node *other = grade_data_find(root, *name);
		enum known state = other && other != group ? known_state(sheet, other) : REJECTED;

		if (state != ACCEPTED)
			return state == REJECTED ? GRADE_NEVER : GRADE_LATER;
	}
	return GRADE_NOW;
}

enum grade_turn grade_score_turn(const struct grade_sheet *sheet, struct grade_node *root,
				 const struct grade_node *node)
{
	enum grade_turn turn = GRADE_NOW;

	for (const struct grade_node *group = node->parent; group; node = group, group = group->parent) {
		enum grade_turn by_others = node->is_case ? GRADE_NOW : required(sheet, root, node);

		if (by_others == GRADE_NEVER)
			return GRADE_NEVER;
		turn = by_others == GRADE_LATER ? GRADE_LATER : turn;
		for (size_t i = 0; group->settings.stop && group->children[i] != node; i++)
			if (!ignored(group, group->children[i]) && known_state(sheet, group->children[i]) == REJECTED)
				return GRADE_NEVER;
	}
	return turn;
}

/* -------- when all have run --------------------------------------------------------------------------- */

struct scorer {
	const struct grade_bench *bench;
	struct jail_client *client;
	const struct grade_sheet *sheet;
	struct grade_node *root;
	struct grade_total *total;
};
/* What one node is worth. */
struct worth {
	bool judged;
	enum grade_verdict verdict;
	double score; /* NAN: none was given */
};

static struct worth node_worth(struct scorer *scorer, const struct grade_node *node);

static void fault(struct scorer *scorer, const struct grade_node *node, struct worth *worth, const char *text)
{
	worth->verdict = GRADE_JE;
	worth->score = 0;
	snprintf(scorer->total->message, sizeof(scorer->total->message), "data/%.100s: %.300s", node->name, text);
}

static struct worth case_worth(struct scorer *scorer, const struct grade_node *node)
{
	const struct grade_outcome *outcome = &scorer->sheet->outcomes[node->index];
	struct grade_total *total = scorer->total;

	if (scorer->sheet->states[node->index] != GRADE_DONE)
		return (struct worth){0};
	total->cases_run++;
	total->cpu_us = MAX(total->cpu_us, outcome->cpu_us);
	total->wall_us = MAX(total->wall_us, outcome->wall_us);
	total->memory_bytes = MAX(total->memory_bytes, outcome->memory_bytes);
	/* A fault of the judge makes the verdict wherever it is: its case and message are shown. */
	bool fault = outcome->verdict == GRADE_JE && total->first &&
		     scorer->sheet->outcomes[total->first->index].verdict != GRADE_JE;
	if (fault || (outcome->verdict != GRADE_AC && !total->first)) {
		total->first = node;
		snprintf(total->message, sizeof(total->message), "%s", outcome->message);
	}
	return (struct worth){.judged = true, .verdict = outcome->verdict, .score = outcome->score};
}

/* Legacy: flags of the default grader. */
static void default_grader(const struct grade_settings *settings, const struct worth *list, size_t count,
			   struct worth *ret)
{
	bool any = false;
	double score = 0;

	ret->verdict = GRADE_AC;
	for (size_t i = 0; i < count; i++) {
		double own = list[i].score;

		any = any || list[i].verdict == GRADE_AC;
		if (list[i].verdict != GRADE_AC && (ret->verdict == GRADE_AC || !settings->first_error))
			ret->verdict = ret->verdict == GRADE_AC ? list[i].verdict
								: grade_verdict_worse(ret->verdict, list[i].verdict);
		if (i == 0)
			score = own;
		else if (settings->aggregation == GRADE_MIN)
			score = MIN(score, own);
		else if (settings->aggregation == GRADE_MAX_SCORE)
			score = MAX(score, own);
		else
			score += own;
	}
	if (settings->aggregation == GRADE_AVG && count > 0)
		score /= (double)count;
	if (settings->always_accept || (settings->accept_if_any && any))
		ret->verdict = GRADE_AC;
	ret->score = score;
}

static void custom_grader(struct scorer *scorer, const struct grade_node *group, const struct worth *list, size_t count,
			  struct worth *ret)
{
	auto_buf struct buf lines = {0};
	struct err err = ERR_INIT;

	if (!scorer->bench->grader)
		return fault(scorer, group, ret, "grading is custom, and there is no grader");
	buf_init(&lines, 64 * count + 64);
	for (size_t i = 0; i < count; i++) {
		enum grade_verdict verdict = list[i].verdict;

		/* A grader knows AC, WA, RTE and TLE. */
		verdict = verdict == GRADE_PE ? GRADE_WA
			  : verdict == GRADE_MLE || verdict == GRADE_OLE ? GRADE_RTE
									 : verdict;
		buf_printf(&lines, "%s %.15g\n", grade_verdict_text(verdict), list[i].score);
	}
	struct grade_outcome outcome;
	if (grade_check_grader(scorer->bench, scorer->client, lines.data, group->settings.grader_flags, &outcome,
			       &err) < 0)
		return fault(scorer, group, ret, err.text);
	ret->verdict = outcome.verdict;
	ret->score = outcome.score;
}

static struct worth legacy_group(struct scorer *scorer, const struct grade_node *group)
{
	const struct grade_settings *settings = &group->settings;
	auto_free struct worth *list = xcalloc(group->count + 1, sizeof(*list));
	struct worth worth = {.judged = group->count == 0, .verdict = GRADE_AC};
	size_t count = 0;

	for (size_t i = 0; i < group->count; i++) {
		struct worth one = node_worth(scorer, group->children[i]);

		if (!one.judged)
			continue;
		worth.judged = true;
		if (isnan(one.score))
			one.score = one.verdict == GRADE_AC ? settings->accept_score : settings->reject_score;
		if (one.verdict == GRADE_JE)
			worth.verdict = GRADE_JE;
		/* The sample counts for nothing here, neither its verdict nor its score. */
		if (ignored(group, group->children[i]))
			continue;
		list[count++] = one;
		if (one.verdict != GRADE_AC && settings->stop)
			break;
	}
	if (!worth.judged || worth.verdict == GRADE_JE)
		return worth;
	if (settings->custom_grader && count > 0)
		custom_grader(scorer, group, list, count, &worth);
	else
		default_grader(settings, list, count, &worth);
	return worth;
}

/* 2025-09: a case's score in a group that sums or takes the least. */
static void case_score(struct scorer *scorer, const struct grade_node *node, double most, struct worth *worth)
{
	const struct grade_outcome *outcome = &scorer->sheet->outcomes[node->index];

	if (worth->verdict != GRADE_AC) {
		worth->score = 0;
		return;
	}
	if (!isnan(outcome->score) && !isnan(outcome->multiplier))
		fault(scorer, node, worth, "the validator gave a score and a multiplier");
	else if (!isnan(outcome->multiplier) && (isinf(most) || outcome->multiplier < 0 || outcome->multiplier > 1))
		fault(scorer, node, worth, "score_multiplier.txt must be from 0 to 1, in a group with a maximum score");
	else if (!isnan(outcome->multiplier))
		worth->score = outcome->multiplier * most;
	else if (isnan(outcome->score) && isinf(most))
		fault(scorer, node, worth, "the validator gave no score, and the group has no maximum");
	else if (isnan(outcome->score))
		worth->score = most;
	else if (outcome->score < 0 || outcome->score > most + ROUNDING)
		fault(scorer, node, worth, "the validator's score is out of range");
}

/* A child of a group, with its score in it; not judged where a required group did not pass. */
static struct worth later_child(struct scorer *scorer, const struct grade_node *group, const struct grade_node *child)
{
	const struct grade_settings *settings = &group->settings;
	struct worth one = node_worth(scorer, child);
	double most = settings->max_score;

	if (settings->aggregation == GRADE_SUM)
		most /= (double)group->count;
	if (!one.judged)
		one.score = 0;
	else if (child->is_case && settings->aggregation != GRADE_PASS_FAIL)
		case_score(scorer, child, most, &one);
	else if (child->is_case && !isnan(one.score))
		fault(scorer, child, &one, "the validator gave a score in a pass-fail group");
	return one;
}

static double add_score(enum grade_aggregation aggregation, bool first, double sum, double score)
{
	return aggregation == GRADE_MIN && !first ? MIN(sum, score) : sum + score;
}

static struct worth later_group(struct scorer *scorer, const struct grade_node *group)
{
	const struct grade_settings *settings = &group->settings;
	struct worth worth = {.verdict = GRADE_AC};
	bool pass_fail = settings->aggregation == GRADE_PASS_FAIL, missing = false;

	for (size_t i = 0; i < group->count; i++) {
		struct worth one = later_child(scorer, group, group->children[i]);
		bool rejected = one.judged && one.verdict != GRADE_AC;

		missing = missing || !one.judged;
		worth.judged = worth.judged || one.judged;
		/* The first rejection counts, but a fault of the judge's always. */
		if (worth.verdict == GRADE_AC || one.verdict == GRADE_JE)
			worth.verdict = one.verdict;
		if (!pass_fail)
			worth.score = add_score(settings->aggregation, i == 0, worth.score, one.score);
		if (rejected && settings->stop)
			break;
	}
	bool full = pass_fail && worth.verdict == GRADE_AC && !missing;
	if (full && isfinite(settings->max_score))
		worth.score = settings->max_score;
	if (worth.score > settings->max_score + ROUNDING)
		fault(scorer, group, &worth, "the score is above max_score");
	return worth;
}

static struct worth node_worth(struct scorer *scorer, const struct grade_node *node)
{
	struct grade_total *total = scorer->total;

	if (node->is_case)
		return case_worth(scorer, node);
	struct worth worth = scorer->bench->package->format == GRADE_2025_09 ? later_group(scorer, node)
									     : legacy_group(scorer, node);
	if (!worth.judged || !node->parent || !node->count)
		return worth;
	total->groups = xrealloc(total->groups, total->n_groups + 1, sizeof(*total->groups));
	total->groups[total->n_groups++] = (struct grade_group_result){node, worth.verdict, worth.score};
	return worth;
}

static int by_group(const void *a, const void *b)
{
	const struct grade_group_result *left = a, *right = b;

	return strcmp(left->group->name, right->group->name);
}

static double full_score(const struct grade_package *package, struct grade_node *root)
{
	const struct grade_node *secret = grade_data_find(root, "secret");

	if (package->format == GRADE_2025_09)
		return secret ? secret->settings.max_score : 0;
	if (package->minimize)
		return isfinite(root->settings.least) || !secret ? root->settings.least : secret->settings.least;
	return isfinite(root->settings.most) || !secret ? root->settings.most : secret->settings.most;
}

void grade_score_total(const struct grade_bench *bench, struct jail_client *client, const struct grade_sheet *sheet,
		       struct grade_node *root, struct grade_total *ret)
{
	struct grade_total total = {.score = NAN, .full = NAN};
	struct scorer scorer = {.bench = bench, .client = client, .sheet = sheet, .root = root, .total = &total};
	struct worth worth = node_worth(&scorer, root);
	const struct grade_package *package = bench->package;

	total.verdict = worth.verdict;
	if (package->scoring) {
		if (package->format == GRADE_2025_09) {
			worth.score = 0;
			for (size_t i = 0; i < total.n_groups; i++)
				if (streq(total.groups[i].group->name, "secret"))
					worth.score = total.groups[i].score;
			/* A score instead of a verdict: any is better than none. */
			if (total.verdict != GRADE_JE && worth.score > 0)
				total.verdict = GRADE_AC;
		}
		total.score = total.verdict == GRADE_AC ? worth.score : 0;
		total.full = full_score(package, root);
	}
	if (total.verdict == GRADE_AC && !total.first)
		*total.message = '\0';
	if (total.groups)
		qsort(total.groups, total.n_groups, sizeof(*total.groups), by_group);
	*ret = total;
}
