/* job_tools.c - see job_tools.h. */
#include "job_tools.h"

#include <string.h>

void job_tools_release(struct job_tools **tools)
{
	if (*tools && --(*tools)->references == 0)
		(*tools)->free(*tools);
	*tools = NULL;
}

/* Nothing more is called; what was is in the result. */
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

static void veil_calls(const struct mask *mask, struct store_tools *tools)
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

void job_tools_close(struct job *job)
{
	if (job->run.tools_open)
		job->asked.tools->close(job->asked.tools, &job->run.result.tools);
	if (job->run.tools_open)
		veil_calls(job->cover.mask, &job->run.result.tools);
	job->run.tools_open = false;
}

/* What goes into the jail with a program that calls tools. *ret_env is to be freed, not its strings. */
int job_tools_give(struct job *job, struct job_tools_given *ret, const char ***ret_env, struct err *err)
{
	struct job_run *run = &job->run;
	size_t own = 0, n = 0;
	int result = job->asked.tools->open(job->asked.tools, job->asked.row.id, ret, err);

	if (result < 0)
		return result;
	run->tools_open = true;
	while (run->env && run->env[own])
		own++;
	const char **env = xcalloc(own + 8, sizeof(*env));
	for (size_t i = 0; i < own; i++)
		env[n++] = run->env[i];
	for (size_t i = 0; ret->env[i] && n < own + 7; i++) {
		size_t length = (size_t)(strchr(ret->env[i], '=') - ret->env[i]) + 1;
		bool given = false;

		for (size_t k = 0; k < own; k++)
			given = given || strncmp(run->env[k], ret->env[i], length) == 0;
		if (!given)
			env[n++] = ret->env[i];
	}
	*ret_env = env;
	return jail_fill_code(run->jail, ret->files, ret->n_files, err);
}
