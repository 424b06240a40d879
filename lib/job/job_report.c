/* job_report.c - what the jailer reports of a job's jail, as events for job_run.c; on the reactor. */
#include "job_internal.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/utf8.h"

#define COPY_MOST   (256 * 1024) /* bytes of a file that waits in memory … */
#define COPIES_MOST (64u << 20)  /* … and of all of them */

/* The verdict of a job whose program did not come to an end that could be reported. */
void job_set_verdict(struct job *job, enum jail_verdict verdict, const char *message)
{
	struct jail_result *result = &job->run.result.jail;

	jail_result_clear(result);
	*result = (struct jail_result){.verdict = verdict, .exit_code = -1};
	snprintf(result->message, sizeof(result->message), "%.*s",
		 (int)utf8_cut(message, strlen(message), sizeof(result->message) - 1), message);
	snprintf(result->runner, sizeof(result->runner), "%s", job->asked.row.language);
	job->run.has_verdict = true;
}

/* Nothing more comes from the jail, and something went wrong: the program's own verdict, if there is one, is not the
 * whole truth any more. */
void job_note_failure(struct job *job, const char *why)
{
	if (!job->run.has_verdict || job->run.result.jail.verdict != JAIL_XX)
		job_set_verdict(job, JAIL_XX, why);
	job->run.jail_over = true;
}

void job_jail_reap(struct job *job)
{
	struct job_run *run = &job->run;

	if (!run->jail || !run->jail_over)
		return;
	if (!run->sandbox) /* else it is the sandbox's */
		jail_close(run->jail);
	run->jail = NULL;
}

static void advance(struct job *job, enum job_event event)
{
	job->turn.advance(&job->turn, event);
}

static void on_done(void *arg, const struct jail_result *result)
{
	struct job *job = arg;

	if (job->run.jail_over)
		return;
	job->run.result.jail = *result;
	jail_result_share(&job->run.result.jail);
	job_tools_close(job);
	job->run.has_verdict = true;
	advance(job, JOB_VERDICT);
}

static void output_stored(struct job_work_item *work_item)
{
	struct job_output *output = container_of(work_item, struct job_output, work_item);
	struct job *job = output->job;

	job->run.storing--;
	if (output->copy)
		job->engine->copied -= output->copied;
	else
		job->engine->storing--;
	free(steal(&output->copy));
	advance(job, JOB_FILE_STORED);
}

/* Where many files wait, small ones wait in memory: while the jailer is not read, all other runs wait, too. */
static bool copy_small(struct job_output *output, int64_t size)
{
	struct job_engine *engine = output->job->engine;

	if (engine->storing < engine->backlog / 2 || size < 0 || size > COPY_MOST ||
	    engine->copied + (size_t)size > COPIES_MOST)
		return false;
	auto_free char *copy = xmalloc((size_t)size + 1);

	if (pread(output->fd, copy, (size_t)size + 1, 0) != size)
		return false;
	fd_close(&output->fd);
	output->copy = steal(&copy);
	output->copied = (size_t)size;
	engine->copied += output->copied;
	return true;
}

static void on_file(void *arg, const struct jail_change *change)
{
	struct job *job = arg;
	struct job_engine *engine = job->engine;
	struct job_output *output = xcalloc(1, sizeof(*output));
	struct store_file *file = &output->change.file;

	output->job = job;
	output->fd = change->fd;
	output->change.kind = change->kind;
	snprintf(output->change.reason, sizeof(output->change.reason), "%s", change->reason ? change->reason : "");
	file->name = output->change.name = xstrdup(change->name);
	file->name_length = strlen(change->name);
	file->mode = change->mode;
	file->mtime_us = change->mtime_us;
	file->size = change->size;
	*job->run.outputs_tail = output;
	job->run.outputs_tail = &output->next;
	job->run.n_outputs++;
	if (change->fd < 0)
		return;
	job->run.storing++;
	if (!copy_small(output, change->size) && ++engine->storing >= engine->backlog)
		jail_client_hold(engine->client);
	output->work_item = (struct job_work_item){.engine = engine, .work = job_store_output, .back = output_stored};
	job_lend_file(output);
}

static void on_collected(void *arg)
{
	struct job *job = arg;

	job->run.jail_over = true;
	advance(job, JOB_JAIL_OVER);
}

/* Opening, filling or collecting failed. A live sandbox may fail when its run is over and being recorded: that is the
 * next run's affair. */
static void on_failed(void *arg, const struct err *err)
{
	struct job *job = arg;

	if (!job->run.jail_over)
		job_note_failure(job, err->text);
	advance(job, JOB_JAIL_OVER);
}

const struct jail_events job_jail_events = {
	.done = on_done,
	.file = on_file,
	.collected = on_collected,
	.failed = on_failed,
};

void job_jail_lost(struct job *job, const char *why)
{
	if (!job->run.jail)
		return;
	if (!job->run.jail_over)
		job_note_failure(job, why);
	job_jail_reap(job);
	advance(job, JOB_JAIL_OVER);
}
