/*
 * job_run.c - one job's way through its jail, on the reactor.
 *
 *     job_start      jail_open, and at the same time the first transaction (files, row `running`)        -> writer
 *       begun          the row is there                                                                 -> keeper:
 * job_prepare prepared       jail_fill for each batch of blobs (-> keeper: job_open_batch), then jail_run and
 * jail_collect on_done        the verdict on_file        a changed file -> keeper: job_keep_output on_collected   and
 * once all files are kept                                (-> keeper: long output) -> writer: job_record_work recorded
 * waiters wake; running/ID.* go                                                      -> keeper: job_remove_running
 *
 * While a keeper or the writer holds the job (`awaiting_task`) the jail may fail or its jailer may be lost: that is
 * only noted, and acted on when the job is back. Whatever happens after the row was begun ends in one place, finish():
 * there the row gets its verdict.
 */
#include "job_internal.h"
#include "job_sandbox.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/utf8.h"

static void recorded(struct job_task *task);

static struct job *job_of(struct job_task *task)
{
	return container_of(task, struct job, task);
}

static void prepare_task(struct job *job, void (*work)(struct job_task *task), void (*done)(struct job_task *task))
{
	job->awaiting_task = true;
	job->task.work = work;
	job->task.done = done;
}

/* Hands the job to a keeper. */
static void keep(struct job *job, void (*work)(struct job_task *task), void (*done)(struct job_task *task))
{
	prepare_task(job, work, done);
	job_keep(job->engine, &job->task);
}

/* The verdict of a job whose program did not come to an end that could be reported. */
static void set_outcome(struct job *job, enum jail_verdict verdict, const char *message)
{
	struct jail_result *result = &job->result.jail;

	jail_result_clear(result);
	*result = (struct jail_result){.verdict = verdict, .exit_code = -1};
	snprintf(result->message, sizeof(result->message), "%.*s",
		 (int)utf8_cut(message, strlen(message), sizeof(result->message) - 1), message);
	snprintf(result->runner, sizeof(result->runner), "%s", job->record.language);
	job->has_result = true;
}

/* Goes on to the record once the jail is through and every file is kept. */
static void finish(struct job *job)
{
	if (!job->jail_over || job->keeping > 0 || job->awaiting_task)
		return;
	if (!job->has_result)
		set_outcome(job, JAIL_XX, "the jail ended without a result");
	/* What a row holds was written a moment ago and is in memory: reading it takes less than waking a keeper. */
	if (!job_output_inline(job)) {
		keep(job, job_record_work, recorded);
		return;
	}
	prepare_task(job, job_record_work, recorded);
	job_record_work(&job->task);
}

/* -------- what the jail tells ------------------------------------------------------------------------- */

static void on_done(void *arg, const struct jail_result *result)
{
	struct job *job = arg;

	job->result.jail = *result;
	jail_result_share(&job->result.jail);
	job->has_result = true;
}

static void kept(struct job_task *task)
{
	struct job_output *output = container_of(task, struct job_output, task);
	struct job *job = output->job;

	job->keeping--;
	job->engine->keeping--;
	finish(job);
}

static void on_file(void *arg, const struct jail_change *change)
{
	struct job *job = arg;
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
	*job->outputs_tail = output;
	job->outputs_tail = &output->next;
	job->n_outputs++;
	if (change->fd < 0)
		return;
	job->keeping++;
	job->engine->keeping++;
	if (job->engine->keeping >= JOB_KEEP_BACKLOG)
		jail_client_hold(job->engine->client);
	output->task.work = job_keep_output;
	output->task.done = kept;
	job_keep(job->engine, &output->task);
}

static void on_collected(void *arg)
{
	struct job *job = arg;

	job->jail_over = true;
	finish(job);
}

/* Opening, filling or collecting failed: the program's own verdict, if there is one, is not the whole truth any more.
 */
static void on_failed(void *arg, const struct err *err)
{
	struct job *job = arg;

	if (!job->has_result || job->result.jail.verdict != JAIL_XX)
		set_outcome(job, JAIL_XX, err->text);
	job->jail_over = true;
	finish(job);
}

const struct jail_events job_jail_events = {
	.done = on_done,
	.file = on_file,
	.collected = on_collected,
	.failed = on_failed,
};

void job_jail_lost(struct job *job, const char *why)
{
	if (!job->jail)
		return;
	if (!job->jail_over) {
		if (!job->has_result || job->result.jail.verdict != JAIL_XX)
			set_outcome(job, JAIL_XX, why);
		job->jail_over = true;
	}
	job_jail_sweep(job);
	finish(job);
}

void job_jail_sweep(struct job *job)
{
	if (!job->jail || !job->jail_over)
		return;
	if (!job->sandbox) /* else it is the sandbox's */
		jail_close(job->jail);
	job->jail = NULL;
}

/* -------- towards the run ----------------------------------------------------------------------------- */

static void send_program(struct job *job)
{
	const struct jail_program program = {
		.code_fd = job->code_fd,
		.entry = job->record.entry,
		.args = (const char *const *)job->args,
		.env = (const char *const *)job->env,
		.stdin_fd = job->stdin_fd,
		.stdout_fd = job->stdout_fd,
		.stderr_fd = job->stderr_fd,
	};
	struct err err = ERR_INIT;
	int result = jail_run(job->jail, &program, &err);

	job_wipe_env(job);
	job->run_started = true;
	if (job->sandbox)
		job_known_forget(&job->sandbox->known, &job->gone);
	for (size_t i = 0; job->sandbox && i < job->n_inputs; i++)
		job_known_put(&job->sandbox->known, &job->inputs[i].file);
	if (result == 0)
		result = jail_collect(job->jail, &err);
	if (result < 0)
		on_failed(job, &err);
}

/* Is there a reason to run it no more? Then the row ends here. */
static bool given_up(struct job *job)
{
	if (!job->jail_over && job->error.code != ERR_NONE) {
		set_outcome(job, JAIL_XX, job->error.text);
		job->jail_over = true;
	} else if (!job->jail_over && atomic_load(&job->cancelled)) {
		set_outcome(job, JAIL_CX, "cancelled before the program was started");
		job->jail_over = true;
	}
	if (!job->jail_over)
		return false;
	job->error = ERR_INIT;
	finish(job);
	return true;
}

static void batch_opened(struct job_task *task)
{
	struct job *job = job_of(task);

	job->awaiting_task = false;
	if (given_up(job))
		return;
	job->batch_ready = true;
	job_fill_next(job);
}

void job_fill_next(struct job *job)
{
	struct jail_file files[JAIL_BATCH_FILES];
	struct err err = ERR_INIT;
	int result = 0;

	/* While messages queue up the next batch waits: its descriptors count against this process. */
	if (!job->batch_ready || job->awaiting_task || given_up(job) ||
	    (jail_client_poll_events(job->engine->client) & POLLOUT))
		return;
	for (size_t i = 0; i < job->n_input_fds; i++) {
		const struct store_file *file = &job->inputs[job->inputs_sent + i].file;

		files[i] = (struct jail_file){
			.name = file->name, .mode = file->mode, .mtime_us = file->mtime_us, .fd = job->input_fds[i]};
	}
	if (job->inputs_sent == 0) /* first: a name that went may be a directory now */
		result = jail_remove(job->jail, job->gone.files, job->gone.count, &err);
	if (result == 0 && job->n_input_fds > 0)
		result = jail_fill(job->jail, files, job->n_input_fds, &err);
	job->inputs_sent += job->n_input_fds;
	for (size_t i = 0; i < job->n_input_fds; i++)
		close_pointer(&job->input_fds[i]);
	job->n_input_fds = 0;
	job->batch_ready = false;
	if (result < 0)
		on_failed(job, &err);
	else if (job->inputs_sent < job->n_inputs)
		keep(job, job_open_batch, batch_opened);
	else
		send_program(job);
}

/* The first transaction did not happen: nothing was stored, so this is a refusal and no result. */
static void refused(struct job_task *task)
{
	struct job *job = job_of(task);

	job->awaiting_task = false;
	job->jail_over = true;
	job_jail_sweep(job);
	if (job->sandbox)
		job_sandbox_return(job);
	job->engine->running--;
	job_over(job);
}

/* On the writer's thread. */
static void begun(void *arg, int result, const struct err *err)
{
	struct job *job = arg;

	if (result < 0 && *job->recalled) {
		job->error = ERR_INIT;
		job->task.work = job_recall_work;
		job->task.done = refused; /* its jail is not needed */
		job_keep(job->engine, &job->task);
		return;
	}
	if (result < 0) {
		job->error = *err;
		job->task.done = refused;
		job_post(job->engine, &job->task);
		return;
	}
	job->task.work = job_prepare;
	job->task.done = batch_opened;
	job_keep(job->engine, &job->task);
}

static void uploaded(void *arg, int result, const struct err *err)
{
	struct job *job = arg;

	if (result < 0)
		job->error = *err;
	job_post(job->engine, &job->task);
}

/* What was recorded: the request's own files, what the program made of its folder, and the end of it. */
static void tell(const struct job *job)
{
	const struct job_engine *engine = job->engine;
	struct job_news news = {.owner = job->record.owner, .conversation = job->record.conversation};

	if (!engine->tell || job->error.code != ERR_NONE)
		return;
	for (size_t i = 0; i < job->n_files; i++) {
		news.name = job->files[i].file.name;
		news.name_length = job->files[i].file.name_length;
		engine->tell(engine->tell_arg, &news);
	}
	for (size_t i = 0; *news.conversation && i < job->result.n_changes; i++) {
		const struct job_change *change = &job->result.changes[i];

		news.name = change->file.name;
		news.name_length = change->file.name_length;
		if (change->kind != JAIL_FILE_NOT_KEPT)
			engine->tell(engine->tell_arg, &news);
	}
	news.name = NULL;
	news.execution = job->record.id;
	if (!job->upload)
		engine->tell(engine->tell_arg, &news);
}

static void upload_over(struct job_task *task)
{
	tell(job_of(task));
	job_over(job_of(task));
}

static void reset_over(struct job_task *task)
{
	job_over(job_of(task));
}

void job_start(struct job *job)
{
	struct job_engine *engine = job->engine;
	struct jail_spec spec = {
		.runner = job->record.language,
		.limits = job->limits,
		.network = job->record.network,
		.label = job->record.id,
		.fingerprint = true,
	};

	job->awaiting_task = true;
	if (job->reset) {
		job->n_reset = job_sandboxes_reset(engine, job->result.conversation_hash, job->record.language);
		job->task.done = reset_over;
		store_commit_async(engine->store, job_reset_work, job, true, uploaded);
		return;
	}
	if (job->upload) {
		job->task.done = upload_over;
		store_commit_async(engine->store, job_upload_work, job, true, uploaded);
		return;
	}
	engine->running++;
	if (job->live ? job_sandbox_take(job, &job->error) < 0
		      : jail_open(engine->client, &spec, &job_jail_events, job, &job->jail, &job->error) < 0) {
		/* A call that is repeated needs no jail: its result may be there. */
		if (job->key) {
			store_commit_async(engine->store, job_key_work, job, false, begun);
			return;
		}
		engine->running--;
		job_over(job);
		return;
	}
	store_commit_async(engine->store, job_begin_work, job, false, begun);
}

/* -------- the end ------------------------------------------------------------------------------------- */

static void removed(struct job_task *task)
{
	struct job *job = job_of(task);

	job->engine->removing--;
	job_release(job);
}

static void recorded(struct job_task *task)
{
	struct job *job = job_of(task);
	struct job_engine *engine = job->engine;

	tell(job);
	job_jail_sweep(job);
	if (job->sandbox)
		job_sandbox_give(job);
	engine->running--;
	engine->removing++;
	job_reference(job);
	job->awaiting_task = false;
	/* A result that could not be recorded stays `running` with its output in running/: the next start marks it
	 * interrupted. */
	if (job->error.code == ERR_NONE)
		keep(job, job_remove_running, removed);
	job_over(job);
	if (job->error.code != ERR_NONE)
		removed(task);
}
