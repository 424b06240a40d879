/*
 * job_grading.c - see job_grading.h.
 *
 * The row is written as that of a job: `running` before anything runs, the end before the caller gets its result. Where
 * the end cannot be written the row ends as interrupted as soon as the disk is back.
 */
#include "job_grading.h"

#include <string.h>
#include <unistd.h>

#include "jail/client/client_runners.h"
#include "job_internal.h"
#include "job_runtime.h"
#include "lib/store/record/store_runtime.h"

struct record {
	struct job_engine *engine;
	struct store_execution row;
	const struct store_runtime *runtime;
};

static void record_clear(struct record *record)
{
	store_execution_clear(&record->row);
}

static int begin_work(struct store_txn *txn, void *arg, struct err *err)
{
	return store_txn_execution_begin(txn, &((struct record *)arg)->row, err);
}

static int finish_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct record *record = arg;
	int result = store_txn_execution_finish(txn, &record->row, NULL, 0, err);

	return result == 0 && record->runtime ? store_txn_runtime(txn, record->row.id, record->runtime, err) : result;
}

static int keep_text(struct store *store, const char *data, size_t length, struct store_text *ret, struct err *err)
{
	auto_close int fd = -1;

	return job_store_text(store, &(struct bind_text){data, length}, ret, &fd, err);
}

/* What was asked, as a row. */
static int ask(struct record *record, const struct job_request *request, struct json_object *asked,
	       const struct jail_limits *limits, struct err *err)
{
	struct store *store = record->engine->store;
	struct store_execution *row = &record->row;
	auto_json struct json_object *limits_object = bind_print(jail_limits_table, limits);
	auto_free char *text = job_json_text(asked);

	row->grading = true;
	row->exit_code = -1;
	row->created_us = clock_now_us();
	row->limits_json = job_json_text(limits_object);
	snprintf(row->owner, sizeof(row->owner), "%s", request->owner);
	snprintf(row->token_id, sizeof(row->token_id), "%s", request->token_id ? request->token_id : "");
	if (request->client)
		job_take_client(request->client, row);
	int result = keep_text(store, request->code.data, request->code.length, &row->code, err);

	return result < 0 ? result : keep_text(store, text, strlen(text), &row->stdin_text, err);
}

/* How the grader's word is recorded. */
static enum jail_verdict verdict_of(const struct grade_batch_result *graded)
{
	if (graded->left)
		return JAIL_CX;
	switch (graded->verdict) {
	case GRADE_AC:
		return JAIL_OK;
	case GRADE_CE:
		return JAIL_CE;
	case GRADE_JE:
	case GRADE_SKIP:
		return graded->late ? JAIL_TO : JAIL_XX;
	default:
		return JAIL_RE;
	}
}

void job_grading_end(const struct grade_batch_result *graded, struct jail_result *ret)
{
	ret->verdict = verdict_of(graded);
	ret->exit_code = ret->verdict == JAIL_OK ? 0 : ret->verdict == JAIL_RE || ret->verdict == JAIL_CE ? 1 : -1;
	ret->compiled = graded->compiled;
	ret->compile.wall_us = graded->compiled ? graded->make_us : 0;
	if (ret->verdict == JAIL_CE)
		snprintf(ret->message, sizeof(ret->message), "the program does not compile");
	else if (graded->left)
		snprintf(ret->message, sizeof(ret->message), "cancelled: its client left");
	else if (ret->exit_code < 0)
		snprintf(ret->message, sizeof(ret->message), "not judged: %.200s", graded->message);
	else
		snprintf(ret->message, sizeof(ret->message), "%s: %zu of %zu cases are right",
			 ret->verdict == JAIL_OK ? "accepted" : "rejected", graded->passed, graded->count);
	for (size_t i = 0; i < graded->count; i++) {
		const struct grade_batch_case *one = &graded->cases[i];

		ret->run.wall_us += one->wall_us;
		ret->run.cpu_us += one->cpu_us;
		ret->run.memory_peak_bytes = MAX(ret->run.memory_peak_bytes, one->memory_bytes);
	}
	ret->run.cpu_user_us = ret->run.cpu_us;
}

/* What came of it, into the row. */
static int tell(struct record *record, const struct grade_batch_result *graded, const struct jail_result *jail,
		struct err *err)
{
	struct store *store = record->engine->store;
	struct store_execution *row = &record->row;
	auto_json struct json_object *more = bind_print_view(jail_result_table, jail, JAIL_RECORD);
	auto_buf struct buf text = {0};
	const char *said = graded->count == 0 ? graded->message : "";

	row->state = STORE_FINISHED;
	row->finished_us = clock_now_us();
	snprintf(row->verdict, sizeof(row->verdict), "%s", jail_verdict_text(jail->verdict));
	snprintf(row->message, sizeof(row->message), "%s", jail->message);
	row->exit_code = jail->exit_code;
	row->run = job_usage(&jail->run);
	row->compile = job_usage(&jail->compile);
	row->result_json = job_json_text(more);
	buf_init(&text, SIZE_MAX / 2);
	grade_batch_print(graded, &text);
	int result = keep_text(store, text.data, text.length, &row->stdout_text, err);

	return result < 0 ? result : keep_text(store, said, strlen(said), &row->stderr_text, err);
}

static void grade(struct record *record, const struct job_request *request, const struct grade_batch *batch,
		  int hangup_fd, struct grade_batch_result *ret)
{
	auto_json struct json_object *runners = NULL; /* with those that compile, which the engine's list leaves out */
	struct grade_batch mine = *batch;
	struct err err = ERR_INIT;
	int result = jail_client_dial(record->engine->config, &mine.client, 1, &err);
	auto_free char *code = xstrndup(request->code.data, request->code.length);

	mine.code = code;
	if (result == 0)
		jail_client_guard(mine.client, hangup_fd);
	if (result == 0)
		result = jail_client_runners_known(mine.client, &runners, &err);
	mine.runners = runners;
	if (result == 0)
		result = grade_batch(&mine, ret, &err);
	if (result < 0)
		GRADE_SAY(ret, GRADE_JE, "%s", err.text);
	jail_client_free(mine.client);
}

int job_grading_run(struct job_engine *engine, const struct job_request *request, struct json_object *asked,
		    struct job_grading_until until, struct job_grading *ret, struct err *err)
{
	__attribute__((cleanup(record_clear))) struct record record = {.engine = engine};
	auto_json struct json_object *runners = job_engine_runners(engine);
	struct store_execution *row = &record.row;
	struct grade_batch batch = {.language = row->language, .asked = asked, .over = until.over};
	struct jail_result jail = {0};
	int result = job_take_language(runners, request->language, row->language, err);

	if (result == 0)
		result = limits_resolve(&engine->config->limits, request->limits, &batch.limits, err);
	batch.limits.cpu_percent = -1; /* a share of a processor would make verdicts of time */
	if (result == 0 && strnlen(request->code.data, request->code.length) < request->code.length)
		result = err_set(err, ERR_INVALID, "the program holds a NUL");
	if (result == 0)
		result = ask(&record, request, asked, &batch.limits, err);
	if (result < 0)
		return result;
	id_new(row->id);
	memcpy(ret->id, row->id, sizeof(ret->id));
	result = store_commit(engine->store, begin_work, &record, err);
	if (result < 0)
		return result;
	grade(&record, request, &batch, until.hangup_fd, &ret->result);
	const char *version = json_get_string(jail_runner_named(runners, row->language), "version");

	job_grading_end(&ret->result, &jail);
	ret->verdict = jail.verdict;
	snprintf(row->fingerprint, sizeof(row->fingerprint), "%s", version ? version : "");
	record.runtime = job_runtime_of(engine, row->language, row->fingerprint);
	result = tell(&record, &ret->result, &jail, err);
	if (result == 0)
		result = store_commit(engine->store, finish_work, &record, err);
	if (result < 0)
		store_execution_abandon(engine->store, row->id);
	else
		job_metrics_row(row, jail.verdict);
	return result;
}

void job_grading_clear(struct job_grading *grading)
{
	grade_batch_clear(&grading->result);
}
