/* job_tools.c - see job_tools.h, and job_internal.h for the engine's part. */
#include "job_internal.h"

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

void job_tools_release(struct job_tools **tools)
{
	if (*tools && --(*tools)->references == 0)
		(*tools)->free(*tools);
	*tools = NULL;
}

/* Arguments and results may hold what the run was given as a secret. */
static void veil(const struct mask *mask, char **text, size_t *length)
{
	auto_buf struct buf shown = {0};

	if (!*text)
		return;
	buf_init(&shown, SIZE_MAX);
	if (mask_bytes(mask, *text, *length, &shown) == 0)
		return;
	free(*text);
	*text = xmemdup(shown.data, shown.length);
	*length = shown.length;
}

void job_tools_veil(const struct mask *mask, struct store_tools *tools)
{
	for (size_t i = 0; mask && i < tools->n_calls; i++) {
		struct store_tool_call *call = &tools->calls[i];
		char **const texts[] = {&call->server, &call->tool, &call->arguments};

		for (size_t k = 0; k < ARRAY_SIZE(texts); k++) {
			size_t length = strlen(*texts[k]);

			veil(mask, texts[k], &length);
		}
		veil(mask, &call->result, &call->result_length);
	}
}

/* Nothing more is called; what was is in the result, and may hold secrets until job_store_streams. */
void job_tools_close(struct job *job)
{
	if (job->run.tools_open)
		job->asked.tools->close(job->asked.tools, &job->run.result.tools);
	job->run.tools_open = false;
}

const char **job_tools_environment(char *const *own, const char *const *given)
{
	size_t n_own = 0, n_given = 0, n = 0;

	while (own && own[n_own])
		n_own++;
	while (given && given[n_given])
		n_given++;
	const char **env = xcalloc(n_own + n_given + 1, sizeof(*env));
	for (size_t i = 0; i < n_own; i++)
		env[n++] = own[i];
	for (size_t i = 0; i < n_given; i++) {
		size_t length = (size_t)(strchr(given[i], '=') - given[i]) + 1;
		bool named = false;

		for (size_t k = 0; k < n_own; k++)
			named = named || strncmp(own[k], given[i], length) == 0;
		if (!named)
			env[n++] = given[i];
	}
	return env;
}

/* On the thread that serves the calls. */
static void note_waits(void *arg, bool waits, int64_t credit_us)
{
	struct job *job = arg;

	atomic_fetch_add(&job->run.waits.credit_us, credit_us);
	atomic_store(&job->run.waits.waits, waits);
	atomic_store(&job->run.waits.changed, true);
	job_wake_reactor(job->engine);
}

void job_tools_tell(struct job *job)
{
	if (job->run.jail && job->run.tools_open && atomic_exchange(&job->run.waits.changed, false))
		jail_wait(job->run.jail, atomic_load(&job->run.waits.waits),
			  atomic_exchange(&job->run.waits.credit_us, 0));
}

int job_tools_fill(struct job *job, struct err *err)
{
	const struct job_tools *tools = job->asked.tools;

	job->run.tools_filled = true;
	return jail_fill_code(job->run.jail, tools->files, tools->n_files, err);
}

int job_tools_give(struct job *job, struct job_tools_given *ret, const char ***ret_env, struct err *err)
{
	struct job_run *run = &job->run;
	const struct job_tools_run opened = {job->asked.row.id, note_waits, job, job->cover.mask};
	int result = job->asked.tools->open(job->asked.tools, &opened, ret, err);

	if (result < 0)
		return result;
	run->tools_open = true;
	*ret_env = job_tools_environment(run->env, ret->env);
	return run->tools_filled ? 0 : job_tools_fill(job, err);
}

/* -------- outside of the engine ----------------------------------------------------------------------- */

int job_tools_wait_begin(struct job_tools_wait *wait, struct err *err)
{
	wait->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return wait->event < 0 ? err_errno(err, "eventfd") : 0;
}

void job_tools_wait_note(void *arg, bool waits, int64_t credit_us)
{
	struct job_tools_wait *wait = arg;
	uint64_t one = 1;

	atomic_fetch_add(&wait->waits.credit_us, credit_us);
	atomic_store(&wait->waits.waits, waits);
	atomic_store(&wait->waits.changed, true);
	if (write(wait->event, &one, sizeof(one)) < 0)
		return; /* it is readable already */
}

void job_tools_wait_step(struct job_tools_wait *wait, struct jail *jail)
{
	uint64_t count;

	if (read(wait->event, &count, sizeof(count)) < 0)
		return;
	if (jail && atomic_exchange(&wait->waits.changed, false))
		jail_wait(jail, atomic_load(&wait->waits.waits), atomic_exchange(&wait->waits.credit_us, 0));
}

void job_tools_wait_clear(struct job_tools_wait *wait)
{
	fd_close(&wait->event);
}
