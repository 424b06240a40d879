/*
 * grade_run.c - see grade_run.h.
 *
 * Threads take the samples in the order of the list (grade_pool.h); a slot each holds what came of it until all before
 * it are reported. What an earlier run found (grade_memory.h) fills its slot before any thread begins. Whether the
 * suite of a task can be split is found out once, by whichever sample of it is rejected first.
 */
#include "grade_run.h"
#include "grade_memory.h"
#include "grade_stdin.h"

#include "jail/client/client_runners.h"
#include "lib/base/util.h"
#include "lib/store/db/crypto.h"

#define AHEAD_JOBS_MAX 12 /* with more, four jails a thread may be more than a service has (jailer.jails) */

/* What is known of a task. */
enum suite { UNKNOWN, SPLITS, WHOLE };

struct slot {
	struct grade_exam_result result;
	bool done, skipped;
	char key[SHA256_HEX_SIZE]; /* "": nothing is kept */
};
struct task_state {
	enum suite suite;            /* with the pool's lock */
	pthread_mutex_t making;      /* for the rest */
	bool made;
	struct grade_program tests; /* of a language that is compiled */
};
struct work {
	const struct grade_run *run;
	struct json_object *runners;
	struct grade_pool pool;    /* its lock: for the rest */
	struct slot *slots;        /* by sample */
	struct task_state *states; /* by task */
	size_t next, finished, to_report;
};

static enum grade_choice choose(void *arg, void *ret_step)
{
	struct work *work = arg;

	while (work->next < work->run->tasks->n_samples && work->slots[work->next].done)
		work->next++;
	if (work->next == work->run->tasks->n_samples)
		return GRADE_FINISHED;
	*(size_t *)ret_step = work->next++;
	return GRADE_STEP;
}

static bool rejected(const struct grade_exam_result *result)
{
	return result->apart || (result->verdict != GRADE_AC && result->verdict != GRADE_JE &&
				 result->verdict != GRADE_SKIP && result->verdict != GRADE_TLE && !result->premature);
}

/* Can the suite of this task be split? */
static enum suite find_suite(const struct grade_exam *exam, const struct grade_sample *sample)
{
	const struct grade_sample reference = grade_task_reference(sample->task);
	struct grade_exam_result result = {.apart = true};

	if (!reference.text || !sample->task->test) /* or its tests are no program */
		return SPLITS;
	if (!streq(reference.text, sample->text))
		grade_exam_apart(exam, &reference, &result);
	if (result.leaving)
		grade_exam_leave(exam->client, &result, NULL);
	if (!rejected(&result))
		return SPLITS;
	grade_exam_alone(exam, &reference, &result);
	return result.verdict == GRADE_AC ? WHOLE : SPLITS;
}

static void examine_alone(const struct work *work, const struct grade_exam *exam, const struct grade_sample *sample,
			  struct grade_exam_result *ret)
{
	*ret = (struct grade_exam_result){.in_process = true};
	if (work->run->require_split)
		GRADE_SAY(ret, GRADE_SKIP, "the tests cannot run in a process of their own");
	else
		grade_exam_alone(exam, sample, ret);
}

/* The tests' program, which is made by the first sample of its task. */
static const struct grade_program *tests_of(struct task_state *state, const struct grade_exam *exam,
					    const struct grade_task *task)
{
	pthread_mutex_lock(&state->making);
	if (!state->made)
		grade_exam_tests(exam, task, &state->tests);
	state->made = true;
	pthread_mutex_unlock(&state->making);
	return &state->tests;
}

static void examine(struct work *work, const struct grade_exam *exam, const struct grade_sample *sample,
		    struct grade_exam_result *ret)
{
	struct task_state *state = &work->states[sample->task - work->run->tasks->tasks];
	struct grade_exam split = *exam;
	enum suite suite;

	if (!sample->text) {
		*ret = (struct grade_exam_result){0};
		return GRADE_SAY(ret, GRADE_RTE, "failed: the completion holds a NUL");
	}
	if (sample->task->cases)
		return grade_stdin_exam(exam, sample, ret);
	if (sample->task->alone)
		return examine_alone(work, exam, sample, ret);
	pthread_mutex_lock(&work->pool.lock);
	suite = state->suite;
	pthread_mutex_unlock(&work->pool.lock);
	if (grade_exam_compiles(sample->task)) {
		split.tests = tests_of(state, exam, sample->task);
		if (split.tests->verdict != GRADE_AC)
			suite = WHOLE;
	}
	if (suite != WHOLE) {
		grade_exam_apart(&split, sample, ret);
		if (!rejected(ret))
			return;
	}
	if (suite == UNKNOWN) {
		suite = find_suite(&split, sample);
		pthread_mutex_lock(&work->pool.lock);
		state->suite = suite;
		pthread_mutex_unlock(&work->pool.lock);
	}
	if (suite == WHOLE)
		examine_alone(work, exam, sample, ret);
}

/* -------- what an earlier run found ------------------------------------------------------------------- */

static char *name_of(const struct grade_sample *sample)
{
	return xasprintf("%s #%zu", sample->task->id, sample->number);
}

static void recall_all(struct work *work)
{
	const struct grade_run *run = work->run;
	auto_buf struct buf about = {0};
	char common[SHA256_HEX_SIZE];

	buf_init(&about, SIZE_MAX / 2);
	if (run->memory->common) {
		snprintf(common, sizeof(common), "%s", run->memory->common);
	} else {
		buf_printf(&about, "%.17g ", run->time_limit);
		jail_runners_versions(work->runners, &about);
		sha256_hex(about.data, about.length, common);
	}
	if (run->memory->begins)
		run->memory->begins(run->memory->arg, common);
	for (size_t i = 0; i < run->tasks->n_samples; i++) {
		const struct grade_sample *sample = &run->tasks->samples[i];
		struct slot *slot = &work->slots[i];
		auto_free char *name = name_of(sample);
		auto_json struct json_object *found = NULL;

		buf_reset(&about);
		buf_printf(&about, "%s %d %d %d %s ", common, (int)sample->task->tongue, sample->whole,
			   run->require_split, sample->text ? sample->text : "");
		json_print(&about, sample->task->line);
		sha256_hex(about.data, about.length, slot->key);
		bool known = run->memory->recall(run->memory->arg, name, slot->key, &found);

		slot->skipped = run->memory->skips && run->memory->skips(run->memory->arg, found);
		slot->done = slot->skipped;
		work->finished += slot->skipped;
		if (!known || run->memory->skips)
			continue;
		const char *verdict = json_get_string(found, "verdict"), *text = json_get_string(found, "text");
		struct grade_exam_result result = {
			.premature = json_object_get_boolean(json_get(found, "premature", json_type_boolean)),
			.in_process = json_object_get_boolean(json_get(found, "in_process", json_type_boolean)),
			.cpu_us = json_object_get_int64(json_get(found, "cpu", json_type_int)),
			.tests = json_object_get_int64(json_get(found, "tests", json_type_int)),
			.passed = json_object_get_int64(json_get(found, "passed", json_type_int)),
			.base_tests = json_object_get_int64(json_get(found, "base_tests", json_type_int)),
			.base_passed = json_object_get_int64(json_get(found, "base_passed", json_type_int)),
			.wall_us = json_object_get_int64(json_get(found, "wall", json_type_int)),
		};
		if (!verdict || !text || grade_verdict_parse(verdict, &result.verdict))
			continue;
		snprintf(result.message, sizeof(result.message), "%s", text);
		slot->result = result;
		slot->done = true;
		work->finished++;
	}
}

/* -------- the work ------------------------------------------------------------------------------------ */

/* Hands over what is complete, in order. With the lock. */
static void report(struct work *work)
{
	const struct grade_run *run = work->run;

	while (!work->pool.over && work->to_report < run->tasks->n_samples &&
	       (work->slots[work->to_report].done || (run->memory && run->memory->common))) {
		size_t next = work->to_report++;

		if (work->slots[next].skipped || !work->slots[next].done)
			continue;
		work->pool.over = !run->done(run->arg, &run->tasks->samples[next], &work->slots[next].result);
	}
	if (run->progress)
		run->progress(run->arg, work->finished, run->tasks->n_samples);
}

static void put(struct work *work, size_t index, const struct grade_exam_result *result)
{
	const struct grade_memory *memory = work->run->memory;
	auto_free char *name = name_of(&work->run->tasks->samples[index]);
	auto_json struct json_object *object = json_object_new_object();

	json_add_string(object, "verdict", grade_verdict_text(result->verdict));
	json_add_bool(object, "premature", result->premature);
	json_add_bool(object, "in_process", result->in_process);
	json_add_string(object, "text", result->message);
	json_add_int(object, "cpu", result->cpu_us);
	json_add_int(object, "wall", result->wall_us);
	json_add_int(object, "tests", result->tests);
	json_add_int(object, "passed", result->passed);
	json_add_int(object, "base_tests", result->base_tests);
	json_add_int(object, "base_passed", result->base_passed);
	pthread_mutex_lock(&work->pool.lock);
	work->slots[index].result = *result;
	work->slots[index].done = true;
	work->finished++;
	if (memory && result->verdict != GRADE_JE)
		memory->keep(memory->arg, name, work->slots[index].key, object);
	report(work);
	pthread_mutex_unlock(&work->pool.lock);
}

/* What a thread has: the jail for tests, and the last sample, whose jail may still be ending. */
struct hand {
	struct work *work;
	struct jail_client *client;
	struct grade_examiner *examiner;
	struct grade_exam_result last;
	size_t last_index;
};

static struct grade_exam exam_of(struct hand *hand, bool more)
{
	const struct grade_run *run = hand->work->run;

	return (struct grade_exam){.client = hand->client,
				   .runners = hand->work->runners,
				   .cache = run->cache,
				   .time_limit = run->time_limit,
				   .examiner = &hand->examiner,
				   .more = more};
}

static void finish_last(struct hand *hand)
{
	const struct grade_exam exam = exam_of(hand, false);
	struct grade_exam_result result = hand->last;

	if (!result.leaving)
		return;
	for (int try = 1; result.leaving; try++) {
		struct err err = ERR_INIT;

		if (grade_exam_leave(hand->client, &result, &err) == 0)
			break;
		if (try < GRADE_TRIES)
			examine(hand->work, &exam, &hand->work->run->tasks->samples[hand->last_index], &result);
		else
			GRADE_SAY(&result, GRADE_JE, "the sandbox failed: %s", err.text);
	}
	hand->last.leaving = NULL;
	put(hand->work, hand->last_index, &result);
}

static void act(void *arg, struct jail_client *client, void **own, const void *step)
{
	struct work *work = arg;
	const struct grade_run *run = work->run;
	size_t index = *(const size_t *)step;
	struct grade_exam_result result;
	struct hand *hand = *own;

	if (!hand) {
		*own = hand = xcalloc(1, sizeof(*hand));
		*hand = (struct hand){.work = work, .client = client};
	}
	pthread_mutex_lock(&work->pool.lock);
	const struct grade_exam exam = exam_of(hand, run->jobs <= AHEAD_JOBS_MAX && work->next < run->tasks->n_samples);
	pthread_mutex_unlock(&work->pool.lock);

	examine(work, &exam, &run->tasks->samples[index], &result);
	finish_last(hand);
	if (result.leaving) {
		hand->last = result;
		hand->last_index = index;
	} else {
		put(work, index, &result);
	}
}

static void leave(void *own)
{
	struct hand *hand = own;

	finish_last(hand);
	grade_examiner_free(hand->examiner);
	free(hand);
}

int grade_run(const struct grade_run *run, struct err *err)
{
	struct work work = {
		.run = run,
		.pool = {.dial = &run->dial,
			 .jobs = (int)MIN((size_t)run->jobs, run->tasks->n_samples),
			 .choose = choose,
			 .act = act,
			 .leave = leave,
			 .arg = &work,
			 .lock = PTHREAD_MUTEX_INITIALIZER,
			 .changed = PTHREAD_COND_INITIALIZER},
		.slots = xcalloc(run->tasks->n_samples, sizeof(*work.slots)),
		.states = xcalloc(run->tasks->n_tasks, sizeof(*work.states)),
	};
	int result = 0;

	for (size_t i = 0; i < run->tasks->n_tasks; i++)
		pthread_mutex_init(&work.states[i].making, NULL);
	const bool runs = !run->memory || !run->memory->common;
	if (runs)
		result = grade_pool_dial(&work.pool, err);
	if (runs && result == 0)
		result = jail_client_runners(work.pool.clients[0], &work.runners, err);
	if (result == 0 && run->memory)
		recall_all(&work);
	if (result == 0)
		report(&work);
	if (runs && result == 0)
		result = grade_pool_run(&work.pool, err);
	grade_pool_clear(&work.pool);
	json_object_put(work.runners);
	free(work.slots);
	for (size_t i = 0; i < run->tasks->n_tasks; i++)
		grade_program_clear(&work.states[i].tests);
	free(work.states);
	return result;
}
