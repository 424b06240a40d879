/*
 * job_run.c - the steps of a job, on the reactor: the table of job_step.h as functions.
 *
 * Each function below that returns an enum job_step does what one event demands in one step and returns the next step.
 * Where it lends the job to another thread (job_lend_io, job_lend_writer) that is the last thing that it does with
 * the job. The jail is opened while the writer writes the row: whatever the jail reports before the row exists is only
 * noted (jail_over, the verdict), and counts when the job returns.
 *
 * Once a row was begun there is one way to its end, settle(): there the job gets its verdict if it has none yet.
 */
#include "job_internal.h"
#include "job_sandbox.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* -------- the end ------------------------------------------------------------------------------------- */

/* What was recorded: the request's own files, what the program made of its folder, and the end of it. */
static void tell(const struct job *job)
{
	const struct job_engine *engine = job->engine;
	const struct job_result *result = &job->run.result;
	struct job_news news = {.owner = job->asked.row.owner, .conversation = job->asked.row.conversation};

	if (!engine->tell)
		return;
	job_tell_files(engine, &job->asked.files);
	for (size_t i = 0; *news.conversation && i < result->n_changes; i++) {
		news.name = result->changes[i].file.name;
		news.name_length = result->changes[i].file.name_length;
		if (result->changes[i].kind != JAIL_FILE_NOT_KEPT)
			engine->tell(engine->tell_arg, &news);
	}
	news.name = NULL;
	news.execution = job->asked.row.id;
	engine->tell(engine->tell_arg, &news);
}

/* The jail is given back, whatever became of the run. */
static void give_back(struct job *job)
{
	job->run.jail_over = true;
	job_jail_reap(job);
	if (job->run.has_jail)
		job->engine->running--;
	job->run.has_jail = false;
}

/* After the row's end was written, or could not be: then it is abandoned, with its output in running/, and the store
 * marks it interrupted as soon as the disk is back. */
static enum job_step end(struct job *job)
{
	const bool recorded = job->turn.error.code == ERR_NONE;

	if (recorded) {
		tell(job);
		job_metrics_end(job);
	}
	give_back(job);
	if (job->run.sandbox)
		job_sandbox_give(job);
	if (!recorded) {
		store_execution_abandon(job->engine->store, job->asked.row.id);
		return JOB_OVER;
	}
	job->engine->removing++;
	job_reference(job);
	job_lend_io(&job->turn.work_item, job_remove_running);
	return JOB_OVER;
}

static enum job_step removed(struct job *job)
{
	job->engine->removing--;
	job_release(job);
	return JOB_OVER;
}

/* Its files in parts where they are many, then the row's end. */
static enum job_step record(struct job *job)
{
	if (job->turn.work_item.code < 0 || job->run.finished_us) {
		job_note_lost_changes(job);
		return end(job);
	}
	job_lend_writer(&job->turn.work_item, job_has_many_files(job) ? job_files_work : job_finish_work);
	return JOB_RECORDING;
}

/* The last thing before the row's end. */
static enum job_step store_streams(struct job *job)
{
	struct job_work_item *work_item = &job->turn.work_item;

	/* What a row holds was written a moment ago and is in memory: reading it takes less than waking an I/O worker.
	 */
	if (!job_output_inline(job)) {
		job_lend_io(work_item, job_store_streams);
		return JOB_STORING;
	}
	work_item->code = job_store_streams(work_item, work_item->error);
	return record(job);
}

static enum job_step settle(struct job *job)
{
	struct job_run *run = &job->run;

	if (!run->jail_over || run->storing > 0)
		return JOB_COLLECTING;
	if (!run->has_verdict)
		job_set_verdict(job, JAIL_XX, "the jail ended without a result");
	job_tools_close(job);
	job_list_changes(job);
	if (run->sandbox)
		job_sandbox_note(job);
	if (!job_workspace_has(&job->turn) || run->result.n_changes + job->asked.files.count == 0)
		return store_streams(job);
	job_lend_io(&job->turn.work_item, job_workspace_write);
	return JOB_WRITING;
}

/* -------- towards the run ----------------------------------------------------------------------------- */

static enum job_step received(struct job *job)
{
	return job->turn.work_item.code < 0 ? JOB_OVER : JOB_WAITING;
}

static enum job_step over(struct job *job)
{
	(void)job;
	return JOB_OVER;
}

static enum job_step start(struct job *job)
{
	const struct store_execution *row = &job->asked.row;
	struct job_run *run = &job->run;
	auto_json struct json_object *limits = NULL;
	auto_free char *label = xasprintf("%s%s%s", row->id, *row->request_id ? "-" : "", row->request_id);
	const struct jail_spec spec = {
		.runner = row->language,
		.limits = job->asked.limits,
		.network = row->network,
		.label = label,
		.fingerprint = true,
	};
	struct err err = ERR_INIT, *why = &job->turn.error;

	job_metrics_start(job);
	run->limits = job->asked.limits;
	int result = job->asked.live ? job_sandbox_take(job, &job_jail_events, why)
				     : jail_open(job->engine->client, &spec, &job_jail_events, job, &run->jail, why);

	if (result < 0 && !job->asked.key)
		return JOB_OVER;
	if (result < 0) { /* A call that is repeated needs no jail: its result may be there. */
		job_lend_writer(&job->turn.work_item, job_key_work);
		return JOB_BEGINNING;
	}
	run->has_jail = true;
	job->engine->running++;
	/* While the row is written. A sandbox is filled in order with what went from it. */
	if (job->asked.tools && !job->asked.live && job_tools_fill(job, &err) < 0)
		job_note_failure(job, err.text);
	limits = bind_print(jail_limits_table, &run->limits);
	run->limits_json = job_json_text(limits);
	job_lend_writer(&job->turn.work_item, job_begin_work);
	return JOB_BEGINNING;
}

static enum job_step take_turn(struct job *job)
{
	if (!job_workspace_has(&job->turn))
		return start(job);
	job_lend_io(&job->turn.work_item, job_workspace_read);
	return JOB_READING;
}

static enum job_step was_read(struct job *job)
{
	job_workspace_tell(&job->turn);
	if (job->turn.work_item.code < 0)
		return JOB_OVER;
	if (job->engine->client)
		return start(job);
	err_set(&job->turn.error, ERR_UNAVAILABLE, JOB_JAILER_AWAY); /* it went meanwhile */
	return JOB_OVER;
}

static enum job_step begun(struct job *job)
{
	if (job->turn.work_item.code == 0) {
		job_lend_io(&job->turn.work_item, job_prepare);
		return JOB_PREPARING;
	}
	if (job->turn.work_item.code > 0) {
		job_lend_writer_large(&job->turn.work_item, job_begin_work);
		return JOB_BEGINNING;
	}
	/* The first transaction did not happen: nothing was stored, so the job is refused; or it gets the result of the
	 * key's first call. */
	give_back(job);
	if (job->run.sandbox)
		job_sandbox_return(job);
	if (!*job->run.recalled)
		return JOB_OVER;
	job->turn.error = ERR_INIT;
	job_lend_io(&job->turn.work_item, job_recall);
	return JOB_RECALLING;
}

static enum job_step send_program(struct job *job)
{
	struct job_run *run = &job->run;
	struct job_tools_given tools = {.socket = -1};
	auto_free const char **env = NULL;
	struct err err = ERR_INIT;
	int result = job->asked.tools ? job_tools_give(job, &tools, &env, &err) : 0;
	const struct jail_program program = {
		.code_fd = job->asked.code_fd,
		.entry = job->asked.row.entry,
		.args = (const char *const *)job->asked.args,
		.env = env ? env : (const char *const *)run->env,
		.tools = job->asked.tools != NULL,
		.tools_fd = tools.socket,
		.stdin_fd = job->asked.stdin_fd,
		.stdout_fd = job->stdout_fd,
		.stderr_fd = job->stderr_fd,
		.display = job->asked.row.display,
		.wall_us = run->sandbox ? run->limits.wall_us : 0,
	};

	if (result == 0)
		result = jail_run(run->jail, &program, &err);
	job_wipe_env(job);
	run->started = true;
	if (run->sandbox)
		job_known_forget(&run->sandbox->known, &run->gone);
	for (size_t i = 0; run->sandbox && i < run->n_inputs; i++)
		job_known_put(&run->sandbox->known, &run->inputs[i].file);
	if (result == 0)
		result = jail_collect(run->jail, &err);
	if (result == 0)
		return JOB_RUNNING;
	job_note_failure(job, err.text);
	return settle(job);
}

/* Sends the batch that was opened. */
static int send_batch(struct job_run *run, struct err *err)
{
	struct jail_file files[JAIL_BATCH_FILES];
	int result = 0;

	for (size_t i = 0; i < run->n_input_fds; i++) {
		const struct store_file *file = &run->inputs[run->inputs_sent + i].file;

		files[i] = (struct jail_file){
			.name = file->name, .mode = file->mode, .mtime_us = file->mtime_us, .fd = run->input_fds[i]};
	}
	if (run->inputs_sent == 0) /* first: a name that went may be a directory now */
		result = jail_remove(run->jail, run->gone.files, run->gone.count, err);
	if (result == 0 && run->n_input_fds > 0)
		result = jail_fill(run->jail, files, run->n_input_fds, err);
	run->inputs_sent += run->n_input_fds;
	for (size_t i = 0; i < run->n_input_fds; i++)
		fd_close(&run->input_fds[i]);
	run->n_input_fds = 0;
	return result;
}

static enum job_step fill(struct job *job)
{
	struct job_run *run = &job->run;
	struct err err = ERR_INIT;

	if (!run->jail_over && atomic_load(&job->turn.cancelled)) {
		job_set_verdict(job, JAIL_CX, "cancelled before the program was started");
		run->jail_over = true;
	}
	if (run->jail_over)
		return settle(job);
	/* While messages queue up the batch waits: its descriptors count against this process. */
	if (jail_client_poll_events(job->engine->client) & POLLOUT)
		return JOB_FILLING;
	if (send_batch(run, &err) < 0) {
		job_note_failure(job, err.text);
		return settle(job);
	}
	if (run->inputs_sent == run->n_inputs)
		return send_program(job);
	job_lend_io(&job->turn.work_item, job_open_batch);
	return JOB_PREPARING;
}

static enum job_step prepared(struct job *job)
{
	if (job->turn.work_item.code < 0) {
		if (!job->run.jail_over)
			job_note_failure(job, job->turn.error.text);
		job->turn.error = ERR_INIT; /* the run has a result: this */
	}
	return fill(job);
}

static enum job_step has_verdict(struct job *job)
{
	(void)job;
	return JOB_COLLECTING;
}

/* -------- job_step.h's table -------------------------------------------------------------------------- */

typedef enum job_step transition(struct job *job);

static transition *const transitions[JOB_STEPS][JOB_EVENTS] = {
	[JOB_RECEIVING] = {[JOB_RETURNED] = received},
	[JOB_WAITING] = {[JOB_TURN] = take_turn, [JOB_TURNED_AWAY] = over},
	[JOB_READING] = {[JOB_RETURNED] = was_read},
	[JOB_BEGINNING] = {[JOB_RETURNED] = begun},
	[JOB_RECALLING] = {[JOB_RETURNED] = over},
	[JOB_PREPARING] = {[JOB_RETURNED] = prepared},
	[JOB_FILLING] = {[JOB_ROOM] = fill, [JOB_JAIL_OVER] = settle},
	[JOB_RUNNING] = {[JOB_VERDICT] = has_verdict, [JOB_JAIL_OVER] = settle},
	[JOB_COLLECTING] = {[JOB_FILE_STORED] = settle, [JOB_JAIL_OVER] = settle},
	[JOB_WRITING] = {[JOB_RETURNED] = store_streams},
	[JOB_STORING] = {[JOB_RETURNED] = record},
	[JOB_RECORDING] = {[JOB_RETURNED] = record},
	[JOB_OVER] = {[JOB_RETURNED] = removed},
};

void job_advance(struct job_turn *turn, enum job_event event)
{
	struct job *job = turn->job;
	const enum job_step step = turn->step;
	transition *due = transitions[step][event];
	const uint64_t one = 1;

	if (!due)
		return;
	job_reference(job);
	enum job_step next = due(job);

	if (next == JOB_OVER && step != JOB_OVER) { /* publishes the end and wakes who waits for it */
		job_turn_over(turn);
		job->end = (struct job_end){.error = turn->error, .result = job->run.result};
		job->run.result = (struct job_result){0};
		atomic_store(&job->over, true);
		if (write(job->wake_fd, &one, sizeof(one)) < 0)
			log_event(LOG_ERROR, "job wake failed", "id", job->asked.row.id, NULL);
		job_release(job);
	} else if (next != step) {
		job_turn_step(turn, next);
	}
	job_release(job);
}
