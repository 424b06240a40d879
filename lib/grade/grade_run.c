/* grade_run.c - see grade_run.h. */
#include "grade_run.h"

#include "lib/base/util.h"

/* What is known of a task. */
enum suite { UNKNOWN, SPLITS, WHOLE };

struct slot {
	struct grade_exam_result result;
	bool done;
};
struct work {
	const struct grade_run *run;
	struct json_object *runners;
	struct grade_crew crew; /* its lock: for the rest */
	struct slot *slots;     /* by sample */
	enum suite *suites;     /* by task */
	size_t next, finished, to_report;
};

static enum grade_choice choose(void *arg, void *ret_step)
{
	struct work *work = arg;

	if (work->next == work->run->tasks->n_samples)
		return GRADE_FINISHED;
	*(size_t *)ret_step = work->next++;
	return GRADE_STEP;
}

static bool rejected(const struct grade_exam_result *result)
{
	return result->apart ||
	       (result->verdict != GRADE_AC && result->verdict != GRADE_JE && result->verdict != GRADE_SKIP &&
		result->verdict != GRADE_TLE &&
		!result->premature);
}

/* Can the suite of this task be split? */
static enum suite find_suite(const struct grade_exam *exam, const struct grade_sample *sample)
{
	const char *reference = grade_task_reference(sample->task);
	struct grade_exam_result result = {.apart = true};

	if (!reference)
		return SPLITS;
	if (!streq(reference, sample->text))
		grade_exam_apart(exam, sample->task, reference, &result);
	if (!rejected(&result))
		return SPLITS;
	grade_exam_alone(exam, sample->task, reference, &result);
	return result.verdict == GRADE_AC ? WHOLE : SPLITS;
}

static void examine(struct work *work, const struct grade_exam *exam, const struct grade_sample *sample,
		    struct grade_exam_result *ret)
{
	enum suite *place = &work->suites[sample->task - work->run->tasks->tasks], suite;

	if (!sample->text) {
		*ret = (struct grade_exam_result){0};
		return grade_exam_say(ret, GRADE_RTE, "failed: the completion holds a NUL");
	}
	if (!grade_exam_splits(sample->task))
		return grade_exam_alone(exam, sample->task, sample->text, ret);
	pthread_mutex_lock(&work->crew.lock);
	suite = *place;
	pthread_mutex_unlock(&work->crew.lock);
	if (suite != WHOLE) {
		grade_exam_apart(exam, sample->task, sample->text, ret);
		if (!rejected(ret))
			return;
	}
	if (suite == UNKNOWN) {
		suite = find_suite(exam, sample);
		pthread_mutex_lock(&work->crew.lock);
		*place = suite;
		pthread_mutex_unlock(&work->crew.lock);
	}
	if (suite == WHOLE)
		grade_exam_alone(exam, sample->task, sample->text, ret);
}

static void act(void *arg, struct jail_client *client, void **own, const void *step)
{
	struct work *work = arg;
	const struct grade_run *run = work->run;
	size_t index = *(const size_t *)step;
	struct grade_examiner *examiner = *own;
	const struct grade_exam exam = {client, work->runners, run->cache, run->time_limit, &examiner};
	struct grade_exam_result result;

	examine(work, &exam, &run->tasks->samples[index], &result);
	*own = examiner;
	pthread_mutex_lock(&work->crew.lock);
	work->slots[index] = (struct slot){result, true};
	work->finished++;
	for (; work->to_report < run->tasks->n_samples && work->slots[work->to_report].done; work->to_report++)
		run->done(run->arg, &run->tasks->samples[work->to_report], &work->slots[work->to_report].result);
	if (run->progress)
		run->progress(run->arg, work->finished, run->tasks->n_samples);
	pthread_mutex_unlock(&work->crew.lock);
}

int grade_run(const struct grade_run *run, struct err *err)
{
	auto_client struct jail_client *client = NULL;
	struct work work = {
		.run = run,
		.crew = {.dial = &run->dial,
			 .jobs = run->jobs,
			 .choose = choose,
			 .act = act,
			 .leave = grade_examiner_free,
			 .arg = &work,
			 .lock = PTHREAD_MUTEX_INITIALIZER,
			 .changed = PTHREAD_COND_INITIALIZER},
		.slots = xcalloc(run->tasks->n_samples, sizeof(*work.slots)),
		.suites = xcalloc(run->tasks->n_tasks, sizeof(*work.suites)),
	};
	int result = run->dial.connect(run->dial.arg, &client, err);

	if (result == 0)
		result = jail_client_runners(client, &work.runners, err);
	if (result == 0)
		result = grade_crew_run(&work.crew, err);
	json_object_put(work.runners);
	free(work.slots);
	free(work.suites);
	return result;
}
