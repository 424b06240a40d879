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

#include "grade_memory.h"
#include "grade_own.h"
#include "grade_scope.h"
#include "grade_yaml.h"

#include "lib/base/util.h"

#define AHEAD_CASES 8 /* where a package has fewer, jails made ahead would be thrown away too often */

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
	char key[SHA256_HEX_SIZE]; /* "": nothing is kept */
};

struct work {
	struct grade_judge *judge;
	struct grade_bench bench;
	struct grade_own own;
	struct json_object *runners;
	bool first_round;
	char key[SHA256_HEX_SIZE];       /* of what results depend on, where there is a memory */
	char limit_key[SHA256_HEX_SIZE]; /* and of a time limit that comes from the submissions */

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

static int read_source(const struct work *work, const struct grade_submission *submission, struct grade_source *ret,
		       struct err *err)
{
	const struct grade_package *package = work->judge->package;
	bool inside = str_starts(submission->path, package->path);

	return grade_source_read(inside ? package : NULL, work->runners, submission->path, &submission->expect.hint,
				 ret, err);
}

static void compile(struct work *work, struct jail_client *client, struct entry *entry)
{
	struct grade_submission *submission = entry->submission;
	struct grade_judge *judge = work->judge;
	const struct grade_maker maker = {client, work->runners, judge->package, judge->cache, .own = false};
	auto_source struct grade_source source = {0};
	struct err err = ERR_INIT;
	int result = read_source(work, submission, &source, &err);

	if (result == 0) {
		grade_expect_comment(&source, &submission->expect);
		if (source.runner)
			result = grade_source_include(judge->package, &source, &err);
	}
	if (result < 0) {
		entry->program.verdict = result == -ERR_NOT_FOUND ? GRADE_SKIP : GRADE_JE;
		snprintf(entry->program.message, sizeof(entry->program.message), "%.*s", GRADE_MESSAGE - 1, err.text);
		return;
	}
	grade_program_make(&maker, &source, &entry->program);
	snprintf(submission->language, sizeof(submission->language), "%s", entry->program.language);
	submission->compiled = entry->program.compiled && !entry->program.from_cache;
	submission->from_cache = entry->program.from_cache;
}

/* How far a program may go over the time limit: one that has to be too slow shows by how much. */
static double patience(const struct work *work, const struct entry *entry)
{
	return work->judge->derived && entry->submission->expect.upper_bound ? work->judge->package->too_slow : 1;
}

/* Slow programs exceed the limit by less than the package wants: no limit fits all of its programs. */
static void note_margin(const struct work *work, const struct entry *entry)
{
	struct grade_total *total = &entry->submission->total;
	double seconds = (double)total->cpu_us * 1e-6, limit = work->judge->time_limit;

	if (total->first && entry->outcomes[total->first->index].late && seconds < limit * patience(work, entry))
		snprintf(total->message, sizeof(total->message),
			 "%.3g s; time_limit_to_tle wants at least %g s of what is too slow: no time limit fits the "
			 "package's submissions here",
			 seconds, limit * patience(work, entry));
}

static void score(struct work *work, struct jail_client *client, struct entry *entry)
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
		grade_scope_met(expect, &scope, entry->submission->unmet);
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
static void report(struct work *work)
{
	struct grade_judge *judge = work->judge;

	while (!work->crew.over && work->to_report < judge->count && work->entries[work->to_report].stage == DONE) {
		const struct grade_submission *submission = &judge->submissions[work->to_report++];

		if (submission->reported)
			work->crew.over = !judge->done(judge->arg, submission);
	}
}

/* With the lock. */
static void keep(const struct work *work, const struct entry *entry)
{
	const struct grade_memory *memory = work->judge->memory;
	auto_json struct json_object *result = NULL;

	if (!memory || !*entry->key || entry->submission->total.verdict == GRADE_JE)
		return;
	result = grade_memory_print(entry->submission);
	memory->keep(memory->arg, entry->submission->name, entry->key, result);
}

static void finish(struct work *work, struct entry *entry)
{
	entry->stage = DONE;
	keep(work, entry);
}

static void do_step(void *arg, struct jail_client *client, void **own, const void *taken)
{
	const struct step *step = taken;
	struct work *work = arg;
	struct entry *entry = step->entry;
	struct grade_judge *judge = work->judge;
	struct grade_bench bench = work->bench;
	struct grade_outcome outcome = {0};
	struct grade_ahead *ahead = *own;

	bench.patience = patience(work, entry);
	if (step->stage == COMPILING)
		compile(work, client, entry);
	else if (step->stage == SCORING)
		score(work, client, entry);
	else
		grade_case_run(&bench, client, &entry->program, judge->cases[step->case_index],
			       judge->n_cases >= AHEAD_CASES ? &ahead : NULL, &outcome);
	*own = ahead;
	pthread_mutex_lock(&work->crew.lock);
	if (step->stage == COMPILING) {
		entry->stage = entry->program.verdict == GRADE_AC ? RUNNING : SCORING;
		if (entry->stage == SCORING) {
			score(work, client, entry);
			finish(work, entry);
		}
	} else if (step->stage == SCORING) {
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
	pthread_mutex_unlock(&work->crew.lock);
}

/* The package's own programs. */
static int make_own(struct work *work, struct jail_client *client, struct err *err)
{
	int result;

	if ((result = jail_client_runners(client, &work->runners, err)) < 0)
		return result;
	const struct grade_maker maker = {client, work->runners, work->judge->package, work->judge->cache, .own = true};

	result = grade_own_make(&maker, &work->own, err);
	work->bench.validators = work->own.validators;
	work->bench.n_validators = work->own.n_validators;
	work->bench.grader = work->own.has_grader ? &work->own.grader : NULL;
	return result;
}

/* -------- what an earlier run found ------------------------------------------------------------------- */

#define LIMIT_NAME "time limit"

static void recall(struct work *work, struct entry *entry)
{
	const struct grade_judge *judge = work->judge;
	struct grade_submission *submission = entry->submission;
	auto_source struct grade_source source = {0};
	auto_json struct json_object *result = NULL;

	if (read_source(work, submission, &source, NULL) < 0)
		return; /* it cannot be judged, and is no work */
	grade_memory_program(work->key, &source, entry->key);
	if (judge->memory->recall(judge->memory->arg, submission->name, entry->key, &result) &&
	    grade_memory_parse(judge, result, submission)) {
		grade_expect_comment(&source, &submission->expect);
		entry->stage = DONE;
	}
}

/* The limit that an earlier run took from the same submissions. */
static void recall_limit(struct work *work)
{
	struct grade_judge *judge = work->judge;
	struct sha256 *digest = sha256_new();
	auto_json struct json_object *found = NULL;
	double limit;

	for (size_t i = 0; i < judge->count; i++)
		if (grade_judge_bounds(judge->package, &judge->submissions[i]))
			sha256_add(digest, work->entries[i].key, SHA256_HEX_SIZE);
	sha256_finish(digest, work->limit_key);
	if (!judge->memory->recall(judge->memory->arg, LIMIT_NAME, work->limit_key, &found) ||
	    grade_yaml_number(found, "seconds", 0, &limit, NULL) < 0 || !(limit > 0))
		return;
	judge->time_limit = limit;
	judge->derived = true;
}

static int recall_all(struct work *work, struct err *err)
{
	struct grade_judge *judge = work->judge;
	int result = judge->memory ? grade_memory_package(judge, work->runners, work->key, err) : 0;

	if (!judge->memory || result < 0)
		return result;
	for (size_t i = 0; i < judge->count; i++)
		recall(work, &work->entries[i]);
	if (!judge->time_limit)
		recall_limit(work);
	report(work);
	return 0;
}

static void keep_limit(const struct work *work)
{
	const struct grade_memory *memory = work->judge->memory;
	auto_json struct json_object *limit = json_object_new_object();
	char text[40];

	if (!memory)
		return;
	snprintf(text, sizeof(text), "%.17g", work->judge->time_limit);
	json_add_string(limit, "seconds", text);
	memory->keep(memory->arg, LIMIT_NAME, work->limit_key, limit);
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
		work->entries[i].first_round = grade_judge_bounds(package, &judge->submissions[i]);
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
		if (work->entries[i].first_round &&
		    grade_expect_allows(judge->submissions[i].expect.verdicts, judge->submissions[i].total.verdict))
			slowest_us = MAX(slowest_us, judge->submissions[i].total.cpu_us);
	if (slowest_us < 0) /* none was accepted: what ran at all has to do */
		for (size_t i = 0; i < judge->count; i++)
			slowest_us = MAX(slowest_us, judge->submissions[i].total.cpu_us);
	double steps = ceil((double)slowest_us * 1e-6 * package->time_multiplier / package->time_resolution);
	judge->time_limit = MIN(MAX(steps, 1) * package->time_resolution, GRADE_TIME_LIMIT_MAX);
	work->first_round = false;
	judge->derived = true;
	keep_limit(work);
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
			 .leave = grade_ahead_free,
			 .arg = &work,
			 .lock = PTHREAD_MUTEX_INITIALIZER,
			 .changed = PTHREAD_COND_INITIALIZER},
		.entries = xcalloc(judge->count, sizeof(*work.entries)),
	};

	for (size_t i = 0; i < judge->count; i++)
		work.entries[i].submission = &judge->submissions[i];
	int result = grade_crew_dial(&work.crew, err);
	if (result == 0)
		result = make_own(&work, work.crew.clients[0], err);
	if (result == 0)
		result = recall_all(&work, err);
	if (result == 0 && !judge->time_limit)
		result = find_time_limit(&work, err);
	if (result == 0) { /* does nothing where the first round said that it is over */
		work.bench.time_limit = judge->time_limit;
		result = grade_crew_run(&work.crew, err);
	}
	entries_clear(&work);
	grade_crew_clear(&work.crew);
	return result;
}
