/*
 * cell_run_order.c - a run as the order that init gets: command line, environment, what the driver of a live jail
 * reads.
 */
#include <string.h>

#include "cell_internal.h"
#include "lib/base/util.h"
#include "shim.h"

static const char *const base_env[] = {
	"PATH=/usr/local/bin:/usr/bin:/bin",
	"HOME=/tmp",
	"TMPDIR=/tmp",
	"LANG=C.UTF-8",
	"USER=user",
	"LOGNAME=user",
	NULL,
};

/* What programs with network install is kept with the conversation's files, where later programs find it. Links are not
 * kept, so npm makes none. */
static const char *const packages_env[] = {
	"PIP_TARGET=" JAIL_PACKAGES_PYTHON,
	"PIP_NO_CACHE_DIR=1",
	"PIP_DISABLE_PIP_VERSION_CHECK=1",
	"PIP_NO_INPUT=1",
	"PIP_NO_COMPILE=0", /* 0 switches compiling off */
	"npm_config_prefix=" JAIL_PACKAGES_NPM,
	"npm_config_location=global",
	"npm_config_bin_links=false",
	"npm_config_cache=/tmp/.npm",
	"npm_config_audit=false",
	"npm_config_fund=false",
	"npm_config_update_notifier=false",
	NULL,
};

static void add_text(struct buf *tail, const char *text)
{
	buf_add(tail, text, strlen(text) + 1);
}

static int64_t memory(const struct cell *cell)
{
	return cell->run.phase == PHASE_COMPILE ? cell->limits.compile_memory_bytes : cell->limits.memory_bytes;
}

/* `entry`: a file of /data that takes the source's place, or NULL. */
static uint32_t add_command(struct buf *tail, const struct cell *cell, const struct bind_strings *command,
			    const char *entry)
{
	const struct runner *runner = cell->runner;
	auto_free char *source = xasprintf("/code/%s", runner->source),
		       *place = xasprintf("/data/%s", entry ? entry : "");

	for (size_t i = 0; i < command->count; i++) {
		auto_free char *text = runner_expand(runner, command->items[i], memory(cell));

		add_text(tail, entry && streq(text, source) ? place : text);
	}
	return (uint32_t)command->count;
}

/* The caller's variables win over the runner's, those over the base. */
static bool overridden(const char *const *env, const char *variable)
{
	size_t length = (size_t)(strchr(variable, '=') - variable) + 1;

	for (; *env; env++)
		if (strncmp(*env, variable, length) == 0)
			return true;
	return false;
}

static uint32_t add_defaults(struct buf *tail, const struct runner *runner, const char *const *given,
			     const char *const *defaults)
{
	uint32_t n = 0;

	for (; *defaults; defaults++) {
		bool again = overridden(given, *defaults);

		for (size_t k = 0; k < runner->env.count && !again; k++) {
			const char *const one[] = {runner->env.items[k], NULL};

			again = overridden(one, *defaults);
		}
		if (!again) {
			add_text(tail, *defaults);
			n++;
		}
	}
	return n;
}

static uint32_t add_env(struct buf *tail, const struct cell *cell, const char *const *given)
{
	const struct runner *runner = cell->runner;
	uint32_t n = add_defaults(tail, runner, given, base_env);

	if (cell->run.step->clock_us)
		n += add_defaults(tail, runner, given, shim_env);
	if (cell->net)
		n += add_defaults(tail, runner, given, packages_env);
	if (cell->net && cell->every_host) /* else there is no proxy */
		n += add_defaults(tail, runner, given, egress_env);
	for (size_t k = 0; k < runner->env.count; k++)
		if (!overridden(given, runner->env.items[k])) {
			auto_free char *text = runner_expand(runner, runner->env.items[k], memory(cell));

			add_text(tail, text);
			n++;
		}
	for (; *given; given++, n++)
		add_text(tail, *given);
	return n;
}

/* What the driver of a live jail is to run: see init_live.c. */
static void add_driver_order(struct buf *tail, const struct runner *runner, const struct cell_step *step)
{
	auto_free char *path = step->entry ? xasprintf("/data/%s", step->entry) : xasprintf("/code/%s", runner->source);
	unsigned n_args = 0;

	for (char **arg = step->argv; *arg; arg++)
		n_args++;
	auto_free char *count = xasprintf("%u", n_args);
	add_text(tail, path);
	add_text(tail, step->display ? "1" : "0");
	add_text(tail, count);
	for (char **arg = step->argv; *arg; arg++)
		add_text(tail, *arg);
	for (char **variable = step->env; *variable; variable++)
		add_text(tail, *variable);
}

static const struct bind_strings *command_of(const struct cell *cell)
{
	const struct cell_step *step = cell->run.step;
	const struct runner *runner = cell->runner;

	if (cell->run.phase == PHASE_COMPILE)
		return &runner->compile;
	if (step->tools && runner->tools_run.count)
		return &runner->tools_run;
	return step->display && !step->tools && runner->show_run.count ? &runner->show_run : &runner->run;
}

void cell_run_order(const struct cell *cell, struct init_order *order, struct buf *tail)
{
	const struct cell_step *step = cell->run.step;
	const struct runner *runner = cell->runner;
	bool compile = cell->run.phase == PHASE_COMPILE;
	const char *const nothing[] = {NULL};

	order->verb = INIT_RUN;
	order->has_code = step->fds[0] >= 0 && !cell->run.result.compiled;
	order->has_stdin = step->fds[1] >= 0 && !compile;
	order->has_tools = step->tools && !cell->run.result.compiled;
	add_text(tail, runner->source);
	order->live = cell->live.on;
	order->driven = cell_driven(cell);
	order->deterministic = step->clock_us != 0;
	order->shows_data = !step->bare && !runner->internal;
	order->takes_back = order->shows_data && !compile && !step->read_only;
	order->family = compile ? runner->family_compile : runner->family;
	if (order->driven) {
		order->n_args = add_command(tail, cell, &runner->live, NULL);
		order->n_env = add_env(tail, cell, nothing);
		add_driver_order(tail, runner, step);
		return;
	}
	if (step->cwd && !compile)
		snprintf(order->cwd, sizeof(order->cwd), "%s", step->cwd);
	if (!step->bare)
		order->n_args = add_command(tail, cell, command_of(cell), step->entry);
	for (char **arg = step->argv; *arg && !compile; arg++, order->n_args++)
		add_text(tail, *arg);
	order->n_env = add_env(tail, cell, (const char *const *)step->env);
}
