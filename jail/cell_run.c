/*
 * cell_run.c - one run of a program: compile step, run step, deadlines, output, end.
 *
 * A phase is one order to init. It ends in one of three ways: init reports that the program ended (and that nothing is
 * left of it); init reports that it could not start it; or init dies, because we killed it for a limit or the kernel
 * did for lack of memory. In each case the pipes are drained and the accounts are read, and either the next phase
 * begins or the owner gets the result.
 *
 * The CPU deadline is computed: with r left of the budget and n cores to burn it on, nothing can happen before r/n from
 * now. Each look at the counter sets the next one, so a program that sleeps costs nothing and one that spins is met
 * within CPU_STEP_US.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cell_internal.h"
#include "lib/base/log.h"
#include "lib/base/util.h"

#define CPU_STEP_US     2000
#define OUTPUT_EVENT_US 250000
#define FILE_SLACK      4096 /* so that a file that fills its file system meets ENOSPC, as everywhere */

static const char *const base_env[] = {
	"PATH=/usr/local/bin:/usr/bin:/bin",
	"HOME=/tmp",
	"TMPDIR=/tmp",
	"LANG=C.UTF-8",
	"USER=user",
	"LOGNAME=user",
	NULL,
};

static bool compiles(const struct cell *cell, const struct cell_step *step)
{
	return !step->bare && cell->runner->compile.count > 0;
}

static void count_cores(struct cell *cell, int64_t now_us, int64_t used_us)
{
	int64_t cores = cell->cells->cores, share = cell->limits.cpu_percent;

	if (cell->run.phase == PHASE_RUN && share > 0)
		cores = MIN(cores, (share + 99) / 100);
	int64_t left = cell->run.cpu_limit_us - used_us;
	cell->run.cpu_check_us = now_us + MAX(left / MAX(cores, 1), CPU_STEP_US);
}

void run_ready(struct cell *cell)
{
	struct cell_run *run = &cell->run;

	run->started_us = clock_monotonic_us();
	run->wall_deadline_us = run->started_us + run->wall_limit_us;
	count_cores(cell, run->started_us, 0);
	if (!cell->cells->cgroup || cgroup_cpu_us(cell->group) < 0)
		run->cpu_check_us = INT64_MAX;
	if (!run->result.compiled) /* the first phase; compiling is not set-up */
		run->result.setup_us = run->started_us - cell->opened_us;
}

static void pipe_ready(struct cell *cell, int stream)
{
	struct cell_run *run = &cell->run;

	if (!output_pump(&run->output, stream))
		loop_remove(cell->cells->loop, &run->pipes[stream]);
	if (run->output.over && run->stop == STOP_NONE)
		run_stop(cell, STOP_OUTPUT);
}

static void stdout_ready(struct loop_watch *watch, uint32_t events)
{
	(void)events;
	pipe_ready(loop_owner(watch, struct cell, run.pipes[0]), 0);
}

static void stderr_ready(struct loop_watch *watch, uint32_t events)
{
	(void)events;
	pipe_ready(loop_owner(watch, struct cell, run.pipes[1]), 1);
}

/* -------- a phase begins ------------------------------------------------------------------------------ */
int run_limits(struct cell *cell, enum cell_phase phase)
{
	const struct jail_limits *limits = &cell->limits;
	bool compile = phase == PHASE_COMPILE;
	struct cgroup_limits group = {
		.memory_bytes = compile ? limits->compile_memory_bytes : limits->memory_bytes,
		.pids = limits->pids + 1, /* init */
		.cpu_percent = compile ? -1 : limits->cpu_percent,
	};

	if (cell->limited_for_run && !compile)
		return 0;
	cell->limited_for_run = !compile;
	return cgroup_limit(cell->group, &group, NULL);
}

static int phase_limits(struct cell *cell, struct init_limits *ret)
{
	bool compile = cell->run.phase == PHASE_COMPILE;
	const struct jail_limits *limits = &cell->limits;

	cell->run.wall_limit_us = compile ? limits->compile_wall_us : limits->wall_us;
	cell->run.cpu_limit_us = compile ? limits->compile_wall_us * 64 : limits->cpu_us;
	*ret = (struct init_limits){.file_bytes = MAX(limits->data_bytes, limits->tmp_bytes) + FILE_SLACK};
	ret->shared_id = cell->cells->identity->mode == IDENTITY_SINGLE;
	if (streq(cgroup_kind(cell->cells->cgroup), "none")) {
		ret->memory_bytes = compile ? limits->compile_memory_bytes : limits->memory_bytes;
		ret->pids = limits->pids + 1;
		ret->cpu_seconds = (cell->run.cpu_limit_us + 999999) / 1000000;
	}
	return run_limits(cell, cell->run.phase);
}

static void add_text(struct buf *tail, const char *text)
{
	buf_add(tail, text, strlen(text) + 1);
}

/* `entry`: a file of /data that takes the source's place, or NULL. */
static uint32_t add_command(struct buf *tail, const struct runner *runner, const struct bind_strings *command,
			    const char *entry)
{
	auto_free char *source = xasprintf("/code/%s", runner->source),
		       *place = xasprintf("/data/%s", entry ? entry : "");

	for (size_t i = 0; i < command->count; i++) {
		auto_free char *text = runner_expand(runner, command->items[i]);

		add_text(tail, entry && streq(text, source) ? place : text);
	}
	return (uint32_t)command->count;
}

/* The caller's variables win over the runner's, those over the base. */
static bool overridden(char **env, const char *variable)
{
	size_t length = (size_t)(strchr(variable, '=') - variable) + 1;

	for (; *env; env++)
		if (strncmp(*env, variable, length) == 0)
			return true;
	return false;
}

static uint32_t add_defaults(struct buf *tail, const struct runner *runner, char **given, const char *const *defaults)
{
	uint32_t n = 0;

	for (; *defaults; defaults++) {
		bool again = overridden(given, *defaults);

		for (size_t k = 0; k < runner->env.count && !again; k++) {
			char *one[] = {NULL, NULL};

			__builtin_memcpy(&one[0], &runner->env.items[k], sizeof(one[0]));
			again = overridden(one, *defaults);
		}
		if (!again) {
			add_text(tail, *defaults);
			n++;
		}
	}
	return n;
}

static uint32_t add_env(struct buf *tail, const struct cell *cell, char **given)
{
	const struct runner *runner = cell->runner;
	uint32_t n = add_defaults(tail, runner, given, base_env);

	if (cell->net)
		n += add_defaults(tail, runner, given, egress_env);
	for (size_t k = 0; k < runner->env.count; k++)
		if (!overridden(given, runner->env.items[k])) {
			add_text(tail, runner->env.items[k]);
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
	add_text(tail, count);
	for (char **arg = step->argv; *arg; arg++)
		add_text(tail, *arg);
	for (char **variable = step->env; *variable; variable++)
		add_text(tail, *variable);
}

static void build_order(struct cell *cell, struct init_order *order, struct buf *tail)
{
	const struct cell_step *step = cell->run.step;
	const struct runner *runner = cell->runner;
	bool compile = cell->run.phase == PHASE_COMPILE;
	char *nothing[] = {NULL};

	order->verb = INIT_RUN;
	order->has_code = step->fds[0] >= 0 && !cell->run.result.compiled;
	order->has_stdin = step->fds[1] >= 0 && !compile;
	add_text(tail, runner->source);
	order->live = cell->live.on;
	order->driven = cell_driven(cell);
	order->family = compile ? runner->family_compile : runner->family;
	if (order->driven) {
		order->n_args = add_command(tail, runner, &runner->live, NULL);
		order->n_env = add_env(tail, cell, nothing);
		add_driver_order(tail, runner, step);
		return;
	}
	if (!step->bare)
		order->n_args = add_command(tail, runner, compile ? &runner->compile : &runner->run, step->entry);
	for (char **arg = step->argv; *arg && !compile; arg++, order->n_args++)
		add_text(tail, *arg);
	order->n_env = add_env(tail, cell, step->env);
}

static int phase_output(struct cell *cell, int ret_write[2])
{
	struct cell_run *run = &cell->run;
	struct err err = ERR_INIT;

	if (run->phase == PHASE_COMPILE) {
		/* Its output is the run's only if it fails; until then it is kept here. */
		int out = memfd_create("compile", MFD_CLOEXEC), error = memfd_create("compile", MFD_CLOEXEC);

		output_init(&run->output, cell->limits.output_bytes, out, error);
	} else {
		output_init(&run->output, cell->limits.output_bytes, steal_fd(&run->step->fds[2]),
			    steal_fd(&run->step->fds[3]));
	}
	bool lasting = cell->live.on && run->phase == PHASE_RUN;
	if (lasting ? live_output(cell, ret_write) : output_pipes(&run->output, ret_write, &err))
		return -1;
	if (loop_add(cell->cells->loop, &run->pipes[0], run->output.pipe[0], EPOLLIN, stdout_ready))
		return -1;
	return loop_add(cell->cells->loop, &run->pipes[1], run->output.pipe[1], EPOLLIN, stderr_ready);
}

/* What the runner's libraries would make again at each start. */
static void send_cache(struct cell *cell)
{
	const struct runner *runner = cell->runner;
	const struct init_order order = {.verb = INIT_CACHE, .n_files = 1};

	if (runner->cache_name && !cell->run.step->bare && cell->run.phase == PHASE_RUN)
		cell_order(cell, &order, runner->cache_name, strlen(runner->cache_name) + 1, &runner->cache_fd, 1);
}

static void begin_phase(struct cell *cell, enum cell_phase phase)
{
	struct cell_run *run = &cell->run;
	struct init_order order = {.verb = INIT_RUN};
	int fds[5], ends[2] = {-1, -1};
	size_t n = 0;

	run->phase = phase;
	if (cell->live.on && live_begin(cell)) {
		run_failed(cell, "thaw the jail", errno);
		return;
	}
	if (phase_limits(cell, &order.limits)) {
		run_failed(cell, "cgroup limits", errno);
		return;
	}
	int failed = phase_output(cell, ends);
	auto_close int out = ends[0];
	auto_close int error = ends[1];
	if (failed) {
		run_failed(cell, "pipes", errno);
		return;
	}
	auto_buf struct buf tail;
	buf_init(&tail, INIT_TAIL_MAX);
	build_order(cell, &order, &tail);
	run->result.warm = order.driven && cell->live.driver_runs;
	cell->live.driver_runs |= order.driven;
	if (order.has_code)
		fds[n++] = run->step->fds[0];
	if (order.has_stdin)
		fds[n++] = run->step->fds[1];
	fds[n++] = out;
	fds[n++] = error;
	if (order.live)
		fds[n++] = cell->live.door;
	cgroup_reset_peak(cell->group);
	send_cache(cell);
	/* The socket is empty here: the last order was answered, or this is the first. */
	int result = tail.overflow ? -ERR_LIMIT : cell_order(cell, &order, tail.data, tail.length, fds, n);
	explicit_bzero(tail.data, tail.length);
	if (result == -ERR_LIMIT || result == -ERR_BUSY) {
		run_failed(cell, "order to init", E2BIG);
		return;
	}
	/* Any other failure: init is dead, and its pidfd will say so. */
	run->sent = true;
	if (cell->ready_us)
		run_ready(cell);
}

void run_begin(struct cell *cell, struct cell_step *step)
{
	struct cell_run *run = &cell->run;

	*run = (struct cell_run){.step = step, .cpu_check_us = INT64_MAX, .wall_deadline_us = INT64_MAX};
	run->pipes[0] = run->pipes[1] = LOOP_WATCH_INIT;
	output_init(&run->output, 0, -1, -1);
	run->result = (struct jail_result){.verdict = JAIL_XX, .exit_code = -1};
	snprintf(run->result.runner, sizeof(run->result.runner), "%s", cell->runner->name);
	snprintf(run->result.fingerprint, sizeof(run->result.fingerprint), "%s", cell->runner->fingerprint);
	cell->state = CELL_RUNNING;
	begin_phase(cell, compiles(cell, step) ? PHASE_COMPILE : PHASE_RUN);
}

/* -------- a phase ends -------------------------------------------------------------------------------- */
static void close_pipes(struct cell *cell)
{
	struct cell_run *run = &cell->run;

	loop_remove(cell->cells->loop, &run->pipes[0]);
	loop_remove(cell->cells->loop, &run->pipes[1]);
	output_drain(&run->output);
	if (run->output.over && run->stop == STOP_NONE)
		run->stop = STOP_OUTPUT;
}

static void deliver(struct cell *cell)
{
	struct cell_run *run = &cell->run;

	if (cell->net) {
		run->result.network = net_report(cell->net);
		if (!cell->live.on || cell->state == CELL_DEAD)
			net_end(cell->net); /* an interpreter that stays keeps its connections */
	}
	struct jail_result result = run->result;
	struct cell_events events = cell->events;
	void *arg = cell->arg;

	result.stdout_bytes = run->output.written[0];
	result.stderr_bytes = run->output.written[1];
	result.stdout_truncated = run->output.truncated[0];
	result.stderr_truncated = run->output.truncated[1];
	if (run->output.error && result.verdict != JAIL_XX)
		verdict_sandbox(&result, "write the output", run->output.error);
	verdict_mention(&result);
	output_clear(&run->output);
	bool bare = run->step->bare;
	cell_step_free(steal(&run->step));
	if (cell->state == CELL_RUNNING)
		cell->state = CELL_READY;
	cell->has_files = true;
	result.ended = cell->live.on && cell->state == CELL_DEAD;
	log_event(bare ? LOG_DEBUG : LOG_INFO, "run done", "jail", cell->label, "runner", cell->runner->name, "verdict",
		  jail_verdict_text(result.verdict), "message", result.message, NULL);
	run->result.denied = run->result.network = NULL; /* the copy has them */
	if (events.done)
		events.done(arg, &result); /* the cell may be gone after it */
	jail_result_clear(&result);
}

/* The compile step's output is what the client sees when nothing was run. */
static void show_compile_output(struct cell *cell)
{
	struct cell_run *run = &cell->run;
	struct output kept = run->output;

	output_init(&run->output, cell->limits.output_bytes, steal_fd(&run->step->fds[2]),
		    steal_fd(&run->step->fds[3]));
	output_copy(&kept, &run->output);
	output_clear(&kept);
}

/* In a live jail that must end now: when it is dead. */
static void tell(struct cell *cell)
{
	if (!cell->live.on || cell->state == CELL_DEAD || !live_must_end(cell)) {
		deliver(cell);
		return;
	}
	cell->run.decided = true;
	cell_kill(cell);
}

/* A phase is over. In a live jail everything stands still now, else nothing is left. `report` NULL: init is dead. */
void run_settled(struct cell *cell, const struct init_report *report)
{
	struct cell_run *run = &cell->run;

	close_pipes(cell);
	run_account(cell, report);
	verdict_decide(&run->result, cell, run->stop, report ? &report->status : NULL);
	if (run->phase == PHASE_COMPILE) {
		run->result.compiled = true;
		if (run->result.verdict == JAIL_OK) {
			/* What was built is not the program's to change. */
			output_clear(&run->output);
			cell->live.code_frozen = true;
			if (cell->state == CELL_DEAD)
				run_failed(cell, "freeze the jail", ETIMEDOUT);
			else if (data_freeze(cell->code_root))
				run_failed(cell, "freeze /code", errno);
			else
				begin_phase(cell, PHASE_RUN);
			return;
		}
		show_compile_output(cell);
	}
	tell(cell);
}

void run_ended(struct cell *cell, const struct init_report *report)
{
	const bool late = report->ended_us - report->started_us >=
			  cell->run.wall_limit_us; /* whether we came to stop it or not */

	if (late && cell->run.stop == STOP_NONE)
		cell->run.stop = STOP_WALL;
	(cell->live.on ? live_settle : run_settled)(cell, report);
}

void run_lost(struct cell *cell)
{
	if (cell->run.decided)
		deliver(cell);
	else if (live_lost(cell))
		return;
	else if (cell->broken_step[0])
		run_failed(cell, cell->broken_step, cell->broken_errno);
	else
		run_settled(cell, NULL);
}

void run_failed(struct cell *cell, const char *step, int error)
{
	struct cell_run *run = &cell->run;

	/* Others may be running in there, and write: first it dies. */
	if (cell->live.on && cell->state != CELL_DEAD) {
		snprintf(cell->broken_step, sizeof(cell->broken_step), "%s", step);
		cell->broken_errno = error;
		cell_kill(cell);
		return;
	}
	close_pipes(cell);
	if (run->phase == PHASE_COMPILE)
		show_compile_output(cell);
	verdict_sandbox(&run->result, step, error);
	deliver(cell);
}

/* -------- limits -------------------------------------------------------------------------------------- */
void run_stop(struct cell *cell, enum cell_stop why)
{
	if (cell->run.stop == STOP_NONE)
		cell->run.stop = why;
	cell->run.wall_deadline_us = cell->run.cpu_check_us = INT64_MAX;
	cell_kill(cell);
}

static int64_t bytes_now(const struct cell *cell)
{
	return cell->run.phase == PHASE_RUN ? cell->run.output.written[0] + cell->run.output.written[1] : 0;
}

int64_t run_deadline(const struct cell *cell)
{
	const struct cell_run *run = &cell->run;
	int64_t next = MIN(run->wall_deadline_us, run->cpu_check_us);

	if (cell->state != CELL_RUNNING)
		return INT64_MAX;
	if (cell->events.output && bytes_now(cell) != run->told_bytes)
		next = MIN(next, run->told_us + OUTPUT_EVENT_US);
	return next;
}

void run_tick(struct cell *cell, int64_t now_us)
{
	struct cell_run *run = &cell->run;

	if (cell->events.output && bytes_now(cell) != run->told_bytes && now_us >= run->told_us + OUTPUT_EVENT_US) {
		run->told_us = now_us;
		run->told_bytes = bytes_now(cell);
		cell->events.output(cell->arg, run->output.written[0], run->output.written[1]);
	}
	if (now_us >= run->wall_deadline_us) {
		run_stop(cell, STOP_WALL);
	} else if (now_us >= run->cpu_check_us) {
		int64_t used = cgroup_cpu_us(cell->group) - cell->base.cpu_user_us - cell->base.cpu_system_us;

		if (used >= run->cpu_limit_us)
			run_stop(cell, STOP_CPU);
		else
			count_cores(cell, now_us, used);
	}
}
