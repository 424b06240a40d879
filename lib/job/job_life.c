/* job_life.c - a job as an object: made, referenced and freed. */
#include "job_internal.h"

#include <malloc.h>
#include <string.h>
#include <sys/eventfd.h>

#define MANY_FILES 1000 /* of a run: behind it memory goes back to the system, where glibc would keep it */

struct job *job_new(struct job_engine *engine, job_turn_advance *advance)
{
	struct job *job = xcalloc(1, sizeof(*job));

	atomic_init(&job->references, 1);
	job->engine = engine;
	job_turn_init(&job->turn, engine, advance);
	job->turn.job = job;
	job->asked.code_fd = job->asked.stdin_fd = job->stdout_fd = job->stderr_fd = -1;
	job_cover_init(&job->cover);
	job->run.outputs_tail = &job->run.outputs;
	job->run.result.jail.exit_code = -1;
	job->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return job;
}

void job_reference(struct job *job)
{
	atomic_fetch_add(&job->references, 1);
}

void job_wipe_env(struct job *job)
{
	for (char **variable = job->run.env; variable && *variable; variable++) {
		explicit_bzero(*variable, strlen(*variable));
		free(*variable);
	}
	free(job->run.env);
	job->run.env = NULL;
}

void job_release(struct job *job)
{
	if (!job || atomic_fetch_sub(&job->references, 1) != 1)
		return;
	struct job_asked *asked = &job->asked;
	struct job_run *run = &job->run;
	const bool many = run->n_inputs + run->n_outputs > MANY_FILES;

	job_wipe_env(job);
	for (char **argument = asked->args; argument && *argument; argument++)
		free(*argument);
	free(asked->args);
	free(asked->key);
	job_tools_release(&asked->tools);
	job_inputs_free(asked->files.items, asked->files.count);
	fd_close(&asked->code_fd);
	fd_close(&asked->stdin_fd);
	store_execution_clear(&asked->row);
	job_secrets_clear(&run->secrets);
	free(run->limits_json);
	job_inputs_free(run->inputs, run->n_inputs);
	job_gone_clear(&run->gone);
	for (size_t i = 0; i < run->n_input_fds; i++)
		fd_close(&run->input_fds[i]);
	for (struct job_output *output = run->outputs, *next; output; output = next) {
		next = output->next;
		fd_close(&output->fd);
		free(output->copy);
		free(output->change.name);
		free(output);
	}
	free(run->changes);
	free(run->stdout_text.data);
	free(run->stderr_text.data);
	free(run->result_json);
	job_result_clear(&run->result);
	job_result_clear(&job->end.result);
	fd_close(&job->stdout_fd);
	fd_close(&job->stderr_fd);
	fd_close(&job->wake_fd);
	job_cover_clear(&job->cover);
	free(job);
	if (many)
		malloc_trim(0);
}
