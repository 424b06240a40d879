/*
 * cell_run_limits.c - the limits of a run: what the cgroup and init enforce, the two deadlines, and being stopped.
 *
 * The CPU deadline is computed: with r left of the budget and n cores to burn it on, nothing can happen before r/n from
 * now. Each look at the counter sets the next one, so a program that sleeps costs nothing and one that spins is met
 * within CPU_STEP_US.
 */
#include <sys/resource.h>

#include "cell_internal.h"
#include "lib/base/util.h"

#define CPU_STEP_US     2000
#define OUTPUT_EVENT_US 250000
#define FILE_SLACK      4096 /* so that a file that fills its file system meets ENOSPC, as everywhere */
#define SIGNALS_LEAST   INT64_C(32)
#define SIGNALS_MOST    INT64_C(512)

int cell_run_limit_group(struct cell *cell, enum cell_phase phase)
{
	const struct jail_limits *limits = &cell->limits;
	bool compile = phase == PHASE_COMPILE;
	struct cgroup_limits group = {
		.memory_bytes = compile ? limits->compile_memory_bytes : limits->memory_bytes,
		.pids = limits->pids + 1, /* init */
		.cpu_percent = compile ? -1 : limits->cpu_percent,
		.background = cell->background,
	};

	return cgroup_limit(cell->group, &group, NULL);
}

int cell_run_limits(struct cell *cell, struct init_limits *ret)
{
	bool compile = cell->run.phase == PHASE_COMPILE;
	const struct jail_limits *limits = &cell->limits;
	struct rlimit signals = {.rlim_cur = 0};

	cell->run.wall_limit_us = compile ? limits->compile_wall_us : limits->wall_us;
	cell->run.cpu_limit_us = compile ? limits->compile_wall_us * 64 : limits->cpu_us;
	if (!compile && cell->run.step->wall_us)
		cell->run.wall_limit_us = cell->run.cpu_limit_us = cell->run.step->wall_us;
	*ret = (struct init_limits){.file_bytes = MAX(limits->data_bytes, limits->tmp_bytes) + FILE_SLACK};
	/* The kernel counts signals that wait up the chain of user namespaces: all jails together have the jailer's
	 * limit, which leaves the account that started it as much (start.c). Of that each has its part. */
	getrlimit(RLIMIT_SIGPENDING, &signals);
	int64_t part = (int64_t)MIN(signals.rlim_cur, (rlim_t)INT32_MAX) / cell->cells->config->jailer.jails;
	ret->signals = MAX(SIGNALS_LEAST, MIN(SIGNALS_MOST, part));
	ret->stack_bytes = limits->stack_bytes;
	ret->shared_id = cell->cells->identity->mode == IDENTITY_SINGLE;
	if (streq(cgroup_kind(cell->cells->cgroup), "none")) {
		ret->memory_bytes = compile ? limits->compile_memory_bytes
					    : limits->memory_bytes + cell->runner->reserves_mb * LIMIT_MEBI;
		ret->pids = limits->pids + 1;
		ret->cpu_seconds = (cell->run.cpu_limit_us + 999999) / 1000000;
	}
	return cell_run_limit_group(cell, cell->run.phase);
}

static void count_cores(struct cell *cell, int64_t now_us, int64_t used_us)
{
	int64_t cores = cell->cells->cores, share = cell->limits.cpu_percent;

	if (cell->run.phase == PHASE_RUN && share > 0)
		cores = MIN(cores, (share + 99) / 100);
	int64_t left = cell->run.cpu_limit_us - used_us;
	cell->run.cpu_check_us = now_us + MAX(left / MAX(cores, 1), CPU_STEP_US);
}

void cell_run_ready(struct cell *cell)
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

int64_t cell_run_allowed(const struct cell *cell)
{
	const struct cell_run *run = &cell->run;
	int64_t waiting = run->waits_since_us ? clock_monotonic_us() - run->waits_since_us : 0;

	return run->wall_limit_us + run->waited_us + waiting;
}

void cell_wait(struct cell *cell, bool waits, int64_t credit_us)
{
	struct cell_run *run = &cell->run;

	if (cell->state != CELL_RUNNING || run->phase != PHASE_RUN || run->started_us == 0 || run->stop != STOP_NONE)
		return;
	run->waited_us = cell_run_allowed(cell) - run->wall_limit_us + credit_us;
	run->waits_since_us = waits ? clock_monotonic_us() : 0;
	run->wall_deadline_us = waits ? INT64_MAX : run->started_us + cell_run_allowed(cell);
}

void cell_run_stop(struct cell *cell, enum cell_stop why)
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

int64_t cell_run_deadline(const struct cell *cell)
{
	const struct cell_run *run = &cell->run;
	int64_t next = MIN(run->wall_deadline_us, run->cpu_check_us);

	if (!cell_has_run(cell))
		return INT64_MAX;
	if (cell->callbacks.output && bytes_now(cell) != run->reported_bytes)
		next = MIN(next, run->reported_us + OUTPUT_EVENT_US);
	return next;
}

void cell_run_tick(struct cell *cell, int64_t now_us)
{
	struct cell_run *run = &cell->run;

	if (cell->callbacks.output && bytes_now(cell) != run->reported_bytes &&
	    now_us >= run->reported_us + OUTPUT_EVENT_US) {
		run->reported_us = now_us;
		run->reported_bytes = bytes_now(cell);
		cell->callbacks.output(cell->arg, run->output.written[0], run->output.written[1]);
	}
	if (now_us >= run->wall_deadline_us) {
		cell_run_stop(cell, STOP_WALL);
	} else if (now_us >= run->cpu_check_us) {
		int64_t used = cgroup_cpu_us(cell->group) - cell->base.cpu_user_us - cell->base.cpu_system_us;

		if (used >= run->cpu_limit_us)
			cell_run_stop(cell, STOP_CPU);
		else
			count_cores(cell, now_us, used);
	}
}
