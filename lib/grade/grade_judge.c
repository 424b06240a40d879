/*
 * grade_judge.c - see grade_judge.h.
 *
 * One lock over everything but what a thread works on. A submission goes WAITING -> COMPILING -> RUNNING -> SCORING ->
 * DONE; a case of it NOT_RUN -> RUNNING -> DONE, or stays NOT_RUN where an earlier rejection has decided
 * (grade_score_turn). The thread that finds that a submission's last case is through takes it to SCORING. There are two
 * rounds where the time limit is not known: the first with the accepted submissions only, free of a limit, the second
 * with the others.
 */
#include "grade_judge.h"

#include <math.h>
#include <string.h>

#include "grade_own.h"
#include "grade_scope.h"

#include "lib/base/util.h"

enum stage { WAITING, COMPILING, RUNNING, SCORING, DONE };

struct entry {
	struct grade_submission *submission;
	enum stage stage;
	bool first_round; /* runs free of a limit, to find it */
	struct grade_program program;
	enum grade_case_state *states;
	struct grade_outcome *outcomes;
	size_t from;    /* no case before it is left to start */
	size_t running; /* cases */
};

struct work {
	struct grade_judge *judge;
	struct grade_bench bench;
	struct grade_own own;
	struct json_object *runners;
	bool first_round;

	struct grade_crew crew; /* its lock: for the rest, and for entries but what a thread works on */
	struct entry *entries;
	size_t to_report; /* the next in the list */
	size_t cases_done;
};

/* -------- what is to do ------------------------------------------------------------------------------- */

struct step {
	struct entry *entry;
	enum stage stage;  /* COMPILING, RUNNING or SCORING */
	size_t case_index; /* RUNNING */
};

/* A case of this submission that can start; else, are any left? */
static bool next_case(struct work *work, struct entry *entry, size_t *ret, bool *ret_left)
{
	const struct grade_sheet sheet = {entry->states, entry->outcomes};
	struct grade_judge *judge = work->judge;

	*ret_left = false;
	for (size_t i = entry->from; i < judge->n_cases; i++) {
		if (entry->states[i] != GRADE_NOT_RUN) {
			entry->from += i == entry->from;
			continue;
		}
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

static bool choose(struct work *work, struct step *ret)
{
	for (size_t i = 0; i < work->judge->count; i++) {
		struct entry *entry = &work->entries[i];
		bool left;

		if (entry->first_round != work->first_round || entry->stage == DONE)
			continue;
		if (entry->stage == WAITING) {
			entry->states = xcalloc(work->judge->n_cases, sizeof(*entry->states));
			entry->outcomes = xcalloc(work->judge->n_cases, sizeof(*entry->outcomes));
			*ret = (struct step){entry, entry->stage = COMPILING, 0};
			return true;
		}
		if (entry->stage != RUNNING)
			continue;
		if (next_case(work, entry, &ret->case_index, &left)) {
			entry->states[ret->case_index] = GRADE_RUNNING;
			entry->running++;
			*ret = (struct step){entry, RUNNING, ret->case_index};
			return true;
		}
		/* What waits for others waits for cases that run. Without any, nothing will decide: a group that needs
		 * itself. */
		if (entry->running == 0) {
			*ret = (struct step){entry, entry->stage = SCORING, 0};
			return true;
		}
	}
	return false;
}

static bool all_done(const struct work *work)
{
	for (size_t i = 0; i < work->judge->count; i++)
		if (work->entries[i].first_round == work->first_round && work->entries[i].stage != DONE)
			return false;
	return true;
}

static enum grade_choice choose_step(void *arg, void *ret_step)
{
	struct work *work = arg;

	if (all_done(work))
		return GRADE_FINISHED;
	return choose(work, ret_step) ? GRADE_STEP : GRADE_WAIT;
}

/* -------- doing it ------------------------------------------------------------------------------------ */

static void compile(struct work *work, struct jail_client *client, struct entry *entry)
{
	struct grade_submission *submission = entry->submission;
	struct grade_judge *judge = work->judge;
	const struct grade_maker maker = {client, work->runners, judge->package, judge->cache};
	auto_source struct grade_source source = {0};
	struct err err = ERR_INIT;
	bool inside = str_starts(submission->path, judge->package->path);
	int result = grade_source_read(inside ? judge->package : NULL, work->runners, submission->path,
				        &submission->expect.hint, &source, &err);

	if (result == 0) {
		grade_expect_comment(&source, &submission->expect);
		if (source.runner)
			result = grade_source_include(judge->package, &source, &err);
	}
	if (result < 0) {
		entry->program.verdict = GRADE_JE;
		snprintf(entry->program.message, sizeof(entry->program.message), "%.*s", GRADE_MESSAGE - 1, err.text);
		return;
	}
	grade_program_make(&maker, &source, &entry->program);
	snprintf(submission->language, sizeof(submission->language), "%s", entry->program.language);
	submission->compiled = entry->program.compiled && !entry->program.from_cache;
	submission->from_cache = entry->program.from_cache;
}

static void score(struct work *work, struct jail_client *client, struct entry *entry)
{
	const struct grade_sheet sheet = {entry->states, entry->outcomes};
	struct grade_total *total = &entry->submission->total;

	if (entry->program.verdict == GRADE_AC) {
		const struct grade_scope scope = {work->judge->cases, work->judge->n_cases, &sheet, total};

		grade_score_total(&work->bench, client, &sheet, work->judge->root, total);
		grade_scope_met(&entry->submission->expect, &scope, entry->submission->unmet);
	} else {
		*total = (struct grade_total){.verdict = entry->program.verdict, .score = NAN, .full = NAN};
		memcpy(total->message, entry->program.message, sizeof(total->message));
	}
	grade_program_clear(&entry->program);
	free(steal(&entry->states));
	free(steal(&entry->outcomes));
}

/* Hands over what is complete, in order. With the lock. */
static void report(struct work *work)
{
	struct grade_judge *judge = work->judge;

	for (; work->to_report < judge->count && work->entries[work->to_report].stage == DONE; work->to_report++)
		if (judge->submissions[work->to_report].reported)
			judge->done(judge->arg, &judge->submissions[work->to_report]);
}

static void do_step(void *arg, struct jail_client *client, void **own, const void *taken)
{
	const struct step *step = taken;
	struct work *work = arg;
	struct entry *entry = step->entry;
	struct grade_judge *judge = work->judge;
	struct grade_bench bench = work->bench;
	struct grade_outcome outcome = {0};

	(void)own;
	if (step->stage == COMPILING)
		compile(work, client, entry);
	else if (step->stage == SCORING)
		score(work, client, entry);
	else
		grade_case_run(&bench, client, &entry->program, judge->cases[step->case_index], &outcome);
	pthread_mutex_lock(&work->crew.lock);
	if (step->stage == COMPILING) {
		entry->stage = entry->program.verdict == GRADE_AC ? RUNNING : SCORING;
		if (entry->stage == SCORING) {
			score(work, client, entry);
			entry->stage = DONE;
		}
	} else if (step->stage == SCORING) {
		entry->stage = DONE;
	} else {
		entry->outcomes[step->case_index] = outcome;
		entry->states[step->case_index] = GRADE_DONE;
		entry->running--;
		work->cases_done++;
	}
	report(work);
	if (judge->progress)
		judge->progress(judge->arg, work->cases_done, judge->n_cases * judge->count);
	pthread_mutex_unlock(&work->crew.lock);
}

/* The package's own programs. */
static int make_own(struct work *work, struct err *err)
{
	auto_client struct jail_client *client = NULL;
	int result = work->judge->dial.connect(work->judge->dial.arg, &client, err);

	if (result < 0 || (result = jail_client_runners(client, &work->runners, err)) < 0)
		return result;
	const struct grade_maker maker = {client, work->runners, work->judge->package, work->judge->cache};

	result = grade_own_make(&maker, &work->own, err);
	work->bench.validators = work->own.validators;
	work->bench.n_validators = work->own.n_validators;
	work->bench.grader = work->own.has_grader ? &work->own.grader : NULL;
	return result;
}

/* -------- the time limit ------------------------------------------------------------------------------ */

static int find_time_limit(struct work *work, struct err *err)
{
	struct grade_judge *judge = work->judge;
	const struct grade_package *package = judge->package;
	int64_t slowest_us = -1;
	bool any = false;
	int result;

	for (size_t i = 0; i < judge->count; i++) {
		const struct grade_expect *expect = &judge->submissions[i].expect;

		work->entries[i].first_round = expect->verdicts == GRADE_BIT(GRADE_AC) && !expect->no_lower_limit;
		any = any || work->entries[i].first_round;
	}
	if (!any)
		return err_set(
			err, ERR_INVALID,
			"the package has neither a time limit nor accepted submissions: give one with --time-limit");
	work->first_round = true;
	work->bench.time_limit = GRADE_FREE_SECONDS;
	if ((result = grade_crew_run(&work->crew, err)) < 0)
		return result;
	for (size_t i = 0; i < judge->count; i++)
		if (work->entries[i].first_round && judge->submissions[i].total.verdict == GRADE_AC)
			slowest_us = MAX(slowest_us, judge->submissions[i].total.cpu_us);
	if (slowest_us < 0) /* none was accepted: what ran at all has to do */
		for (size_t i = 0; i < judge->count; i++)
			slowest_us = MAX(slowest_us, judge->submissions[i].total.cpu_us);
	double steps = ceil((double)slowest_us * 1e-6 * package->time_multiplier / package->time_resolution);
	judge->time_limit = MIN(MAX(steps, 1) * package->time_resolution, GRADE_TIME_LIMIT_MAX);
	work->first_round = false;
	return 0;
}

static void entries_clear(struct work *work)
{
	for (size_t i = 0; i < work->judge->count; i++) {
		grade_program_clear(&work->entries[i].program);
		free(work->entries[i].states);
		free(work->entries[i].outcomes);
	}
	free(work->entries);
	grade_own_clear(&work->own);
	json_object_put(work->runners);
}

int grade_judge_run(struct grade_judge *judge, struct err *err)
{
	struct work work = {
		.judge = judge,
		.bench = {.package = judge->package},
		.crew = {.dial = &judge->dial,
			 .jobs = judge->jobs,
			 .choose = choose_step,
			 .act = do_step,
			 .arg = &work,
			 .lock = PTHREAD_MUTEX_INITIALIZER,
			 .changed = PTHREAD_COND_INITIALIZER},
		.entries = xcalloc(judge->count, sizeof(*work.entries)),
	};

	for (size_t i = 0; i < judge->count; i++)
		work.entries[i].submission = &judge->submissions[i];
	int result = make_own(&work, err);
	if (result == 0 && !judge->time_limit)
		result = find_time_limit(&work, err);
	if (result == 0) {
		work.bench.time_limit = judge->time_limit;
		result = grade_crew_run(&work.crew, err);
	}
	entries_clear(&work);
	return result;
}
