/*
 * replay_work.c - runs one recorded execution as often as it takes to say what became of it.
 *
 * Once, if it comes out as recorded. Where it does not it runs twice more: runs of today that differ from each other
 * say that the program is flaky, and nothing about what changed. Of processor time and memory a single run only gives a
 * suspicion, which the median of five confirms. Where there is an old side (--runner), it runs five times as well, each
 * time between two runs of the new one, and its median takes the place of what was recorded. With real servers (--live)
 * nothing is repeated unasked. A sandbox that fails is tried again with a new connection, and never counts against the
 * program.
 */
#include <string.h>

#include "lib/base/util.h"
#include "lib/job/job_runtime.h"
#include "lib/store/record/store_baseline.h"
#include "lib/store/record/store_runtime.h"
#include "replay.h"
#include "replay_tools.h"

#define ATTEMPTS      3
#define REPEAT_DIFFER 3
#define REPEAT_SLOW   5
#define SUSPECT       1.3 /* by how much the first run must be slower (or faster), and by SUSPECT_US … */
#define SUSPECT_US    5000
#define CONFIRMED     1.2 /* … and the median of REPEAT_SLOW */
#define MEMORY_MORE   1.05
#define MEMORY_BYTES  (1 << 20)

/* -------- one run ------------------------------------------------------------------------------------- */

struct comparison {
	const struct replay_runner *runner;
	const struct store_execution *execution; /* a sandbox's earlier runs come before it */
	struct replay_report *report;
	int64_t reached; /* the last run's number */
	bool done;
};

/* What is expected of an earlier run of the sandbox. */
static int compare_earlier(const struct comparison *comparison, const struct store_execution *execution,
			   const struct job_replay *now, struct err *err)
{
	const struct replay_runner *runner = comparison->runner;
	struct store_execution expected = {0};
	int result;

	if (execution->generation <= 1)
		return replay_compare_earlier(runner->store, runner->settings, execution, now, comparison->report, err);
	result = store_execution_find(runner->store, execution->id, &expected, err);
	if (result == 0)
		result = store_baseline_apply(runner->store, &expected, err);
	if (result == 0)
		result = replay_compare_earlier(runner->store, runner->settings, &expected, now, comparison->report,
						err);
	store_execution_clear(&expected);
	return result;
}

/* Every run: the one that is asked for, and those of its sandbox before it. */
static int compare_run(void *arg, const struct store_execution *execution, const struct job_replay *now,
		       struct err *err)
{
	struct comparison *comparison = arg;
	const struct replay_runner *runner = comparison->runner;
	struct replay_report *report = comparison->report;
	auto_free char *why = execution->generation > 1 ? NULL : replay_incomparable_with(execution, &runner->secrets);

	comparison->done = streq(execution->id, comparison->execution->id);
	comparison->reached = execution->sandbox_seq;
	if (why && !comparison->done) {
		report->reason = xasprintf("run %lld of its sandbox cannot be repeated: %s",
					   (long long)execution->sandbox_seq, why);
		return err_set(err, ERR_CANCELLED, "not comparable");
	}
	if (now->jail.verdict == JAIL_XX)
		return err_set(err, ERR_SYSTEM, "the sandbox failed: %s", now->jail.message);
	if (!comparison->done)
		return compare_earlier(comparison, execution, now, err);
	snprintf(report->fingerprint, sizeof(report->fingerprint), "%s", now->jail.fingerprint);
	int result = runner->bless ? replay_candidate_take(&report->candidate, execution->id, now, err) : 0;

	if (runner->bless && runner->bless->record)
		store_tools_copy(&now->tools, &report->candidate.tools);
	if (report->deterministic) /* its next run is at the same time */
		report->candidate.outcome.created_us = execution->created_us;
	report->candidate.outcome.deterministic = report->deterministic;

	if (result == 0)
		result = replay_tools_compare(runner->store, execution, now, runner->upstream != NULL, report, err);
	return result < 0 ? result : replay_compare(runner->store, runner->settings, execution, now, report, err);
}

static int run_once(struct replay_runner *runner, const struct store_execution *execution, struct replay_report *report,
		    struct err *err)
{
	struct comparison comparison = {.runner = runner, .execution = execution, .report = report};
	int result = runner->client ? 0 : cli_open_jailer(runner->config, &runner->client, 1, err);

	if (result == 0) {
		struct replay_tools tools = {.config = runner->config,
					     .store = runner->store,
					     .upstream = runner->upstream,
					     .id = execution->id};
		const struct job_replay_from from = {
			runner->store, runner->client, &runner->secrets, replay_tools, &tools, report->deterministic};

		result = job_replay(&from, execution, compare_run, &comparison, err);
		if (result == -ERR_INVALID) /* an earlier run of its sandbox had a secret; a row of somebody else */
			report->reason = xstrdup(err->text);
		bridge_stop(tools.bridge);
	}
	if (result < 0) {
		jail_client_free(runner->client);
		runner->client = NULL;
	}
	if (result == 0 && !comparison.done)
		replay_differ(
			report, REPLAY_VERDICT,
			(struct replay_difference){xstrdup("sandbox"), 0, xstrdup("it was still there for this run"),
						   xasprintf("it ended with run %lld", (long long)comparison.reached),
						   NULL});
	return report->reason ? 0 : result;
}

/* Until the sandbox does not fail. */
static void run_surely(struct replay_runner *runner, const struct store_execution *execution,
		       struct replay_report *report)
{
	struct err err = ERR_INIT;
	int result = -1;

	/* Real servers may have acted: what was sent to them once is not sent again. */
	const int attempts = runner->settings->live ? 1 : ATTEMPTS;

	for (int i = 0; i < attempts && result < 0; i++) {
		replay_report_clear(report);
		replay_report_init(report);
		report->deterministic = runner->settings->deterministic || execution->deterministic;
		err = (struct err)ERR_INIT;
		result = run_once(runner, execution, report, &err);
	}
	if (report->reason) {
		report->class = REPLAY_NOT_REPLAYABLE;
	} else if (result < 0) {
		report->class = REPLAY_SANDBOX_ERROR;
		report->reason = xstrdup(err.text);
	}
}

/* -------- several ------------------------------------------------------------------------------------- */

struct trials {
	struct replay_report first, other;
	int64_t count;
	int64_t cpu_us[REPLAY_REPEAT_MAX], memory_bytes[REPLAY_REPEAT_MAX];
	int64_t n_old, old_cpu_us[REPLAY_REPEAT_MAX], old_memory_bytes[REPLAY_REPEAT_MAX];
	bool flaky;
};

static int by_number(const void *a, const void *b)
{
	int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;

	return (one > other) - (one < other);
}

static int64_t median(int64_t *numbers, int64_t count)
{
	qsort(numbers, (size_t)count, sizeof(*numbers), by_number);
	return numbers[count / 2];
}

static bool over(int64_t more, int64_t less, double ratio, int64_t least)
{
	return (double)more > ratio * (double)less && more - less > least;
}

static bool suspect(const struct replay_settings *settings, const struct store_execution *execution,
		    const struct replay_report *report)
{
	int64_t then = execution->run.cpu_user_us + execution->run.cpu_system_us;

	return ((settings->by & REPLAY_BY_CPU) &&
		(over(report->cpu_us, then, SUSPECT, SUSPECT_US) || over(then, report->cpu_us, SUSPECT, SUSPECT_US))) ||
	       ((settings->by & REPLAY_BY_MEMORY) &&
		over(report->memory_bytes, execution->run.memory_peak_bytes, MEMORY_MORE, MEMORY_BYTES));
}

static void note(struct trials *trials, const struct replay_report *report)
{
	const struct buf *one = &trials->first.outcome, *other = &report->outcome;

	trials->cpu_us[trials->count] = report->cpu_us;
	trials->memory_bytes[trials->count++] = report->memory_bytes;
	trials->flaky = trials->flaky || one->length != other->length ||
			(one->length > 0 && memcmp(one->data, other->data, one->length) != 0);
}

static void numbers_differ(struct replay_report *report, enum replay_class class, const char *what, int64_t then,
			   int64_t now)
{
	replay_differ(report, class,
		      (struct replay_difference){xstrdup(what), 0, xasprintf("%lld", (long long)then),
						 xasprintf("%lld", (long long)now), NULL});
}

static void compare_numbers(const struct replay_settings *settings, const struct store_execution *execution,
			    struct trials *trials)
{
	int64_t then = execution->run.cpu_user_us + execution->run.cpu_system_us;
	int64_t cpu = median(trials->cpu_us, trials->count);
	int64_t memory = median(trials->memory_bytes, trials->count), memory_then = execution->run.memory_peak_bytes;

	if (trials->n_old > 0) {
		then = median(trials->old_cpu_us, trials->n_old);
		memory_then = median(trials->old_memory_bytes, trials->n_old);
	}

	if ((settings->by & REPLAY_BY_CPU) && over(cpu, then, CONFIRMED, SUSPECT_US))
		numbers_differ(&trials->first, REPLAY_SLOWER, "CPU time in µs", then, cpu);
	if ((settings->by & REPLAY_BY_CPU) && over(then, cpu, CONFIRMED, SUSPECT_US))
		numbers_differ(&trials->first, REPLAY_FASTER, "CPU time in µs", then, cpu);
	if ((settings->by & REPLAY_BY_MEMORY) && over(memory, memory_then, MEMORY_MORE, MEMORY_BYTES))
		numbers_differ(&trials->first, REPLAY_MEMORY, "memory in bytes", memory_then, memory);
}

/* Once under the old side. A failure goes into *report. */
static bool run_old(struct replay_runner *runner, const struct store_execution *execution, struct trials *trials,
		    struct replay_report *report)
{
	struct replay_runner old = *runner;
	struct replay_report own;
	struct err err = ERR_INIT;

	replay_report_init(&own);
	own.deterministic = report->deterministic;
	old.bless = NULL;
	pthread_mutex_lock(&runner->old->lock);
	old.client = steal(&runner->old->client);
	int result = old.client ? run_once(&old, execution, &own, &err)
				: err_set(&err, ERR_UNAVAILABLE, "its jailer has ended");
	runner->old->client = old.client;
	pthread_mutex_unlock(&runner->old->lock);
	if (result == 0 && !own.reason) {
		trials->old_cpu_us[trials->n_old] = own.cpu_us;
		trials->old_memory_bytes[trials->n_old++] = own.memory_bytes;
	} else {
		report->class = REPLAY_SANDBOX_ERROR;
		report->reason = xasprintf("under the old runner: %s", own.reason ? own.reason : err.text);
	}
	replay_report_clear(&own);
	return report->class < REPLAY_FLAKY;
}

static int64_t wanted_runs(const struct replay_settings *settings, const struct replay_report *first, bool slow)
{
	int64_t wanted = MAX(settings->repeat, 1);

	if (settings->repeat == 0 && !settings->live && first->class > REPLAY_EQUAL)
		wanted = REPEAT_DIFFER;
	return slow && !settings->live ? MAX(wanted, REPEAT_SLOW) : wanted;
}

/* Once more, and then the old side if it is under way. False: that failed, and is what became of the execution. */
static bool run_again(struct replay_runner *runner, const struct store_execution *execution, struct trials *trials)
{
	struct replay_report *first = &trials->first, *other = &trials->other;

	run_surely(runner, execution, other);
	if (other->class >= REPLAY_FLAKY) {
		struct replay_report swap = *first;

		*first = *other;
		*other = swap;
		return false;
	}
	if (first->class == REPLAY_EQUAL || other->class == REPLAY_EQUAL)
		first->class = MAX(first->class, other->class);
	first->hidden_by |= other->hidden_by;
	note(trials, other);
	return trials->n_old == 0 || run_old(runner, execution, trials, first);
}

/* Fills trials->first. */
static void run_trials(struct replay_runner *runner, const struct store_execution *execution, struct trials *trials)
{
	struct replay_report *first = &trials->first;

	run_surely(runner, execution, first);
	if (first->class >= REPLAY_FLAKY)
		return;
	note(trials, first);
	bool slow = suspect(runner->settings, execution, first);
	int64_t wanted = wanted_runs(runner->settings, first, slow);

	if (slow && runner->old && !run_old(runner, execution, trials, first))
		return;
	while (trials->count < wanted)
		if (!run_again(runner, execution, trials))
			return;
	if (slow)
		compare_numbers(runner->settings, execution, trials);
	if (trials->flaky)
		first->class = REPLAY_FLAKY;
}

static void add_member(void *arg, const char *member, const char *recorded, const char *now)
{
	struct json_object *object = json_object_new_object();

	json_add_string(object, "what", member);
	json_add_string(object, "recorded", recorded);
	json_add_string(object, "now", now);
	json_object_array_add(arg, object);
}

/* Where something differs: does what it runs on differ, too? Later generations were made on something else. */
static void compare_runtime(const struct replay_runner *runner, const struct store_execution *execution,
			    struct replay_report *report)
{
	auto_json struct json_object *recorded = NULL, *now = NULL;
	auto_free char *text = NULL;

	if (!runner->runners || runner->instead || execution->generation > 1 || report->class <= REPLAY_EQUAL ||
	    report->class >= REPLAY_FLAKY || store_runtime_of(runner->store, execution->id, &text, NULL) < 0 || !text ||
	    json_parse(text, strlen(text), &recorded, NULL) < 0)
		return;
	now = job_runtime(runner->runners, execution->language, report->fingerprint);
	report->runtime = json_object_new_array();
	job_runtime_compare(recorded, now, add_member, report->runtime);
}

/* What became of it is expected from now on, unless it is what was expected, or not sure. */
static void bless(const struct replay_runner *runner, bool new, struct replay_report *report)
{
	struct err err = ERR_INIT;

	if (report->class <= REPLAY_EQUAL || report->class >= REPLAY_FLAKY)
		return;
	if (replay_bless(runner->store, runner->bless, &report->candidate, &report->blessed, &err) < 0) {
		report->class = REPLAY_SANDBOX_ERROR;
		report->reason = xstrdup(err.text);
	} else if (new) {
		report->class = REPLAY_NEW;
	}
}

/* Why it cannot be run; NULL: it can. The caller's. */
static char *obstacle(const struct replay_runner *runner, const struct store_execution *execution)
{
	if (runner->instead && *execution->sandbox_id)
		return xstrdup("it ran in a live sandbox, after other runs: no other code can take its place");
	if (execution->network && runner->config->network.allow.count == 0)
		return xstrdup("it had network, which this server does not allow: network.allow is empty");
	if (runner->bless && replay_without_outcome(execution))
		return NULL;
	return replay_incomparable_with(execution, &runner->secrets);
}

void replay_one(struct replay_runner *runner, const char *id, struct store_result *ret)
{
	struct store_execution execution = {0};
	struct trials trials = {0};
	struct err err = ERR_INIT;
	int result = store_execution_find(runner->store, id, &execution, &err);

	if (result == 0)
		result = store_baseline_apply(runner->store, &execution, &err);
	if (result == 0) {
		/* What runs of this owner can be given: what the command line names goes before the folder. */
		const struct job_secrets *given = runner->settings->secrets;
		result = job_secrets_folder(runner->config->tools.secrets_dir, execution.owner, &runner->secrets, &err);

		for (size_t i = 0; given && i < given->count; i++)
			job_secrets_add(&runner->secrets, given->names[i], given->values[i]);
	}
	replay_report_init(&trials.first);
	replay_report_init(&trials.other);
	if (result < 0) {
		trials.first.class = REPLAY_SANDBOX_ERROR;
		trials.first.reason = xstrdup(err.text);
	} else if ((trials.first.reason = obstacle(runner, &execution)) != NULL) {
		trials.first.class = REPLAY_NOT_REPLAYABLE;
	} else {
		if (runner->instead) {
			const struct replay_instead *instead = runner->instead;

			free(execution.code.data);
			free(steal(&execution.entry));
			execution.code =
				(struct store_text){xmemdup(instead->code, instead->length), instead->length, ""};
			snprintf(execution.language, sizeof(execution.language), "%s", instead->language);
		}
		run_trials(runner, &execution, &trials);
		compare_runtime(runner, &execution, &trials.first);
		if (runner->bless)
			bless(runner, replay_without_outcome(&execution), &trials.first);
	}
	replay_result(&trials.first, id, execution.language, result == 0 ? &execution : NULL, ret);
	replay_report_clear(&trials.first);
	replay_report_clear(&trials.other);
	store_execution_clear(&execution);
	job_secrets_clear(&runner->secrets);
}
