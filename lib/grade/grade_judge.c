/*
 * grade_judge.c - see grade_judge.h.
 *
 * One lock over everything but what a thread works on. A submission goes WAITING -> COMPILING -> RUNNING -> SCORING ->
 * DONE; a case of it NOT_RUN -> RUNNING -> DONE, or stays NOT_RUN where an earlier rejection has decided
 * (grade_score_turn). The thread that finds that a submission's last case is through takes it to SCORING. There are two
 * rounds where the time limit is not known: the first with what the limit comes from only, free of a limit (accepted
 * submissions, and those cases of others that may not be too slow), the second with the rest.
 */
#include "grade_judge.h"

#include <math.h>
#include <string.h>

#include "grade_work.h"

#include "lib/base/util.h"

#define AHEAD_CASES 8 /* where a package has fewer, jails made ahead would be thrown away too often */

/* -------- what is to do ------------------------------------------------------------------------------- */

struct step {
	struct grade_entry *entry;
	enum grade_stage stage; /* COMPILING, RUNNING or SCORING */
	size_t case_index;      /* RUNNING */
};

/* A case of this submission that can start; else, are any left? */
static bool next_case(struct grade_work *work, struct grade_entry *entry, size_t *ret, bool *ret_left)
{
	const struct grade_sheet sheet = {entry->states, entry->outcomes};
	struct grade_judge *judge = work->judge;

	*ret_left = false;
	for (size_t i = entry->from; i < judge->n_cases; i++) {
		if (entry->states[i] != GRADE_NOT_RUN) {
			entry->from += i == entry->from;
			continue;
		}
		if (work->first_round && entry->in_part &&
		    !grade_expect_lower(&entry->submission->expect, judge->cases[i]->name))
			continue;
		switch (grade_score_turn(&sheet, judge->root, judge->cases[i])) {
		case GRADE_NOW:
			*ret = i;
			return true;
		case GRADE_LATER:
			*ret_left = true;
			break;
		case GRADE_NEVER:
			break;
		}
	}
	return false;
}

static bool choose(struct grade_work *work, struct step *ret)
{
	for (size_t i = 0; i < work->judge->count; i++) {
		struct grade_entry *entry = &work->entries[i];
		bool left;

		if (entry->first_round != work->first_round || entry->stage == STAGE_DONE)
			continue;
		if (entry->stage == STAGE_WAITING) {
			entry->states = xcalloc(work->judge->n_cases, sizeof(*entry->states));
			entry->outcomes = xcalloc(work->judge->n_cases, sizeof(*entry->outcomes));
			*ret = (struct step){entry, entry->stage = STAGE_COMPILING, 0};
			return true;
		}
		if (entry->stage != STAGE_RUNNING)
			continue;
		if (next_case(work, entry, &ret->case_index, &left)) {
			entry->states[ret->case_index] = GRADE_RUNNING;
			entry->running++;
			*ret = (struct step){entry, STAGE_RUNNING, ret->case_index};
			return true;
		}
		/* What waits for others waits for cases that run. Without any, nothing will decide: a group that needs
		 * itself. */
		if (entry->running == 0 && work->first_round && entry->in_part) {
			entry->first_round = false; /* the rest of it, in the second */
		} else if (entry->running == 0) {
			*ret = (struct step){entry, entry->stage = STAGE_SCORING, 0};
			return true;
		}
	}
	return false;
}

static enum grade_choice choose_step(void *arg, void *ret_step)
{
	struct grade_work *work = arg;

	if (choose(work, ret_step))
		return GRADE_STEP;
	for (size_t i = 0; i < work->judge->count; i++)
		if (work->entries[i].first_round == work->first_round && work->entries[i].stage != STAGE_DONE)
			return GRADE_WAIT;
	return GRADE_FINISHED;
}

/* -------- doing it ------------------------------------------------------------------------------------ */

static void compile(struct grade_work *work, struct jail_client *client, struct grade_entry *entry)
{
	struct grade_submission *submission = entry->submission;
	struct grade_judge *judge = work->judge;
	const struct grade_maker maker = {client, work->runners, judge->package, judge->cache, .own = false};
	auto_source struct grade_source source = {0};
	struct err err = ERR_INIT;
	int result = grade_judge_source(work, submission, &source, &err);

	if (result == 0) {
		grade_expect_comment(&source, &submission->expect);
		if (source.runner)
			result = grade_source_include(judge->package, &source, &err);
	}
	if (result < 0) {
		entry->program.verdict = result == -ERR_NOT_FOUND ? GRADE_SKIP : GRADE_JE;
		snprintf(entry->program.message, sizeof(entry->program.message), "%s", err.text);
		return;
	}
	grade_program_make(&maker, &source, &entry->program);
	snprintf(submission->language, sizeof(submission->language), "%s", entry->program.language);
	submission->compiled = entry->program.compiled && !entry->program.from_cache;
	submission->from_cache = entry->program.from_cache;
}

/* How far a program may go over the time limit: one that has to be too slow shows by how much. */
static double patience(const struct grade_work *work, const struct grade_entry *entry, const struct grade_node *node)
{
	bool upper = work->judge->derived && grade_expect_upper(&entry->submission->expect, node->name);

	return upper ? work->judge->package->too_slow : 1;
}

/* Slow programs exceed the limit by less than the package wants: no limit fits all of its programs. */
static void note_margin(const struct grade_work *work, const struct grade_entry *entry)
{
	struct grade_total *total = &entry->submission->total;
	const struct grade_judge *judge = work->judge;
	int64_t slowest_us = 0;

	if (!total->first || !entry->outcomes[total->first->index].late)
		return;
	for (size_t i = 0; i < judge->n_cases; i++)
		if (entry->states[i] == GRADE_DONE &&
		    grade_expect_upper(&entry->submission->expect, judge->cases[i]->name))
			slowest_us = MAX(slowest_us, entry->outcomes[i].cpu_us);
	double seconds = (double)slowest_us * 1e-6, wanted = judge->time_limit * patience(work, entry, total->first);
	if (seconds < wanted)
		snprintf(total->message, sizeof(total->message),
			 "%.3g s; time_limit_to_tle wants at least %g s of what is too slow: no time limit fits the "
			 "package's submissions here",
			 seconds, wanted);
}

static void score(struct grade_work *work, struct jail_client *client, struct grade_entry *entry)
{
	const struct grade_sheet sheet = {entry->states, entry->outcomes};
	struct grade_total *total = &entry->submission->total;

	if (entry->program.verdict == GRADE_AC) {
		const struct grade_scope scope = {work->judge->root, work->judge->cases, work->judge->n_cases, &sheet,
						  total};
		struct grade_expect *expect = &entry->submission->expect;

		grade_score_total(&work->bench, client, &sheet, work->judge->root, total);
		expect->by_case = expect->n_rules > 0 && !expect->partial && work->judge->package->scoring &&
				  work->judge->package->format == GRADE_2025_09 && total->verdict != GRADE_JE;
		grade_expect_all_met(expect, &scope, entry->submission->unmet);
		note_margin(work, entry);
	} else {
		*total = (struct grade_total){.verdict = entry->program.verdict, .score = NAN, .full = NAN};
		memcpy(total->message, entry->program.message, sizeof(total->message));
	}
	grade_program_clear(&entry->program);
	free(steal(&entry->states));
	free(steal(&entry->outcomes));
}

/* Hands over what is complete, in order. With the lock. */
static void report(struct grade_work *work)
{
	struct grade_judge *judge = work->judge;

	while (!work->pool.over && work->to_report < judge->count &&
	       work->entries[work->to_report].stage == STAGE_DONE) {
		const struct grade_submission *submission = &judge->submissions[work->to_report++];

		if (submission->reported)
			work->pool.over = !judge->done(judge->arg, submission);
	}
}

static void finish(struct grade_work *work, struct grade_entry *entry)
{
	entry->stage = STAGE_DONE;
	grade_recall_keep(work, entry);
}

static void do_step(void *arg, struct jail_client *client, void **own, const void *taken)
{
	const struct step *step = taken;
	struct grade_work *work = arg;
	struct grade_entry *entry = step->entry;
	struct grade_judge *judge = work->judge;
	struct grade_bench bench = work->bench;
	struct grade_outcome outcome = {0};
	struct grade_ahead *ahead = *own;

	if (step->stage == STAGE_COMPILING) {
		compile(work, client, entry);
	} else if (step->stage == STAGE_SCORING) {
		score(work, client, entry);
	} else {
		bench.patience = patience(work, entry, judge->cases[step->case_index]);
		grade_case_run(&bench, client, &entry->program, judge->cases[step->case_index],
			       judge->n_cases >= AHEAD_CASES ? &ahead : NULL, &outcome);
	}
	*own = ahead;
	pthread_mutex_lock(&work->pool.lock);
	if (step->stage == STAGE_COMPILING) {
		entry->stage = entry->program.verdict == GRADE_AC ? STAGE_RUNNING : STAGE_SCORING;
		if (entry->stage == STAGE_SCORING) {
			score(work, client, entry);
			finish(work, entry);
		}
	} else if (step->stage == STAGE_SCORING) {
		finish(work, entry);
	} else {
		entry->outcomes[step->case_index] = outcome;
		entry->states[step->case_index] = GRADE_DONE;
		entry->running--;
		work->cases_done++;
	}
	report(work);
	if (judge->progress)
		judge->progress(judge->arg, work->cases_done, judge->n_cases * judge->count);
	pthread_mutex_unlock(&work->pool.lock);
}

/* -------- the time limit ------------------------------------------------------------------------------ */

/* The slowest case of what counts for the limit; -1: nothing of it was as expected. */
static int64_t slowest(const struct grade_work *work, const struct grade_entry *entry)
{
	const struct grade_submission *submission = entry->submission;
	const struct grade_judge *judge = work->judge;
	int64_t slowest_us = -1;

	if (grade_judge_bounds(judge->package, submission) &&
	    grade_expect_allows(submission->expect.verdicts, submission->total.verdict))
		return submission->total.cpu_us;
	for (size_t i = 0; entry->in_part && entry->stage == STAGE_RUNNING && i < judge->n_cases; i++) {
		const struct grade_expect_part *rule = grade_expect_lower(&submission->expect, judge->cases[i]->name);

		if (rule && entry->states[i] == GRADE_DONE &&
		    grade_expect_allows(rule->permitted, entry->outcomes[i].verdict))
			slowest_us = MAX(slowest_us, entry->outcomes[i].cpu_us);
	}
	return slowest_us;
}

static int find_time_limit(struct grade_work *work, struct err *err)
{
	struct grade_judge *judge = work->judge;
	const struct grade_package *package = judge->package;
	int64_t slowest_us = -1;
	bool any = false;
	int result;

	for (size_t i = 0; i < judge->count; i++) {
		struct grade_entry *entry = &work->entries[i];

		entry->first_round = grade_judge_makes_limit(package, entry->submission);
		entry->in_part = entry->first_round && !grade_judge_bounds(package, entry->submission);
		any = any || entry->first_round;
	}
	if (!any)
		return err_set(
			err, ERR_INVALID,
			"the package has neither a time limit nor accepted submissions: give one with --time-limit");
	work->first_round = true;
	work->bench.time_limit = GRADE_FREE_SECONDS;
	if ((result = grade_pool_run(&work->pool, err)) < 0)
		return result;
	for (size_t i = 0; i < judge->count; i++)
		slowest_us = MAX(slowest_us, slowest(work, &work->entries[i]));
	if (slowest_us < 0) /* none was accepted: what ran at all has to do */
		for (size_t i = 0; i < judge->count; i++)
			slowest_us = MAX(slowest_us, judge->submissions[i].total.cpu_us);
	double steps = ceil((double)slowest_us * 1e-6 * package->time_multiplier / package->time_resolution);
	double wanted = MAX(steps, 1) * package->time_resolution, slow;
	judge->time_limit = MIN(wanted, GRADE_TIME_LIMIT_MAX);
	slow = judge->time_limit * package->too_slow;
	if (judge->warning && slow > GRADE_TIME_LIMIT_MAX) {
		auto_free char *text = xasprintf("the time limit would be %g s, and what must be too slow would run "
						 "for %g s; no more than %g s is a limit here",
						 wanted, wanted * package->too_slow, GRADE_TIME_LIMIT_MAX);

		judge->warning(judge->arg, text);
	}
	work->first_round = false;
	judge->derived = true;
	grade_recall_keep_limit(work);
	grade_recall_rest(work);
	return 0;
}

int grade_judge_run(struct grade_judge *judge, struct err *err)
{
	struct grade_work work = {
		.judge = judge,
		.bench = {.package = judge->package},
		.pool = {.dial = &judge->dial,
			 .jobs = judge->jobs,
			 .choose = choose_step,
			 .act = do_step,
			 .leave = grade_ahead_free,
			 .arg = &work,
			 .lock = PTHREAD_MUTEX_INITIALIZER,
			 .changed = PTHREAD_COND_INITIALIZER},
		.entries = xcalloc(judge->count, sizeof(*work.entries)),
	};

	for (size_t i = 0; i < judge->count; i++)
		work.entries[i].submission = &judge->submissions[i];
	int result = grade_pool_dial(&work.pool, err);
	struct jail_client *client = work.pool.clients[0];
	if (result == 0)
		result = jail_client_runners(client, &work.runners, err);
	if (result == 0) {
		const struct grade_maker maker = {client, work.runners, judge->package, judge->cache, .own = true};

		result = grade_own_make(&maker, judge->root, &work.own, err);
		work.bench.validators = work.own.validators;
		work.bench.n_validators = work.own.n_validators;
		work.bench.grader = work.own.has_grader ? &work.own.grader : NULL;
	}
	if (result == 0)
		result = grade_recall_all(&work, err);
	if (result == 0)
		report(&work);
	if (result == 0 && !judge->time_limit)
		result = find_time_limit(&work, err);
	if (result == 0) { /* does nothing where the first round said that it is over */
		work.bench.time_limit = judge->time_limit;
		result = grade_pool_run(&work.pool, err);
	}
	for (size_t i = 0; i < judge->count; i++) {
		grade_program_clear(&work.entries[i].program);
		free(work.entries[i].states);
		free(work.entries[i].outcomes);
	}
	free(work.entries);
	grade_own_clear(&work.own);
	json_object_put(work.runners);
	grade_pool_clear(&work.pool);
	return result;
}
