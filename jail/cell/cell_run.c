/*
 * cell_run.c - one run of a program begins: compile step, run step, its pipes.
 *
 * A phase is one order to init (cell_run_order.c) with its limits (cell_run_limits.c); how it ends: cell_run_end.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cell_internal.h"
#include "last.h"
#include "lib/base/log.h"
#include "lib/base/secret.h"
#include "lib/base/util.h"
#include "shim.h"
#include "silent.h"

static bool compiles(const struct cell *cell, const struct cell_step *step)
{
	return !step->bare && cell->runner->compile.count > 0;
}

static void pipe_ready(struct cell *cell, int stream)
{
	struct cell_run *run = &cell->run;

	if (!output_pump(&run->output, stream))
		loop_remove(cell->cells->loop, &run->pipes[stream]);
	if (run->output.over && run->stop == STOP_NONE)
		cell_run_stop(cell, STOP_OUTPUT);
}

static void stdout_ready(struct loop_watch *watch, uint32_t events)
{
	(void)events;
	pipe_ready(container_of(watch, struct cell, run.pipes[0]), 0);
}

static void stderr_ready(struct loop_watch *watch, uint32_t events)
{
	(void)events;
	pipe_ready(container_of(watch, struct cell, run.pipes[1]), 1);
}

/* -------- a phase begins ------------------------------------------------------------------------------ */
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
	if (lasting ? cell_live_output(cell, ret_write) : output_pipes(&run->output, ret_write, &err))
		return -1;
	if (run->output.pipe[0] >= 0 &&
	    loop_add(cell->cells->loop, &run->pipes[0], run->output.pipe[0], EPOLLIN, stdout_ready))
		return -1;
	return run->output.pipe[1] < 0
		       ? 0
		       : loop_add(cell->cells->loop, &run->pipes[1], run->output.pipe[1], EPOLLIN, stderr_ready);
}

/* What the runner's libraries would make again at each start. */
static void send_cache(struct cell *cell)
{
	const struct runner *runner = cell->runner;
	const struct init_order order = {.verb = INIT_CACHE, .n_files = 1};

	if (runner->cache_name && !cell->run.step->bare && cell->run.phase == PHASE_RUN)
		cell_order(cell, &order, runner->cache_name, strlen(runner->cache_name) + 1, &runner->cache_fd, 1);
}

static int put_helper(struct cell *cell)
{
	if (!cell->runner->helper || cell->run.step->bare || cell->helper_there)
		return 0;
	cell->helper_there = true;
	return init_put_file(cell->code_root, RUNNER_HELPER, 0644, clock_now_us(), cell->runner->helper_fd);
}

/* Starts programs that call tools. */
static int put_call(struct cell *cell)
{
	const struct cell_step *step = cell->run.step;

	if (!step->tools || step->bare || cell->call_there || cell->runner->call_fd < 0)
		return 0;
	cell->call_there = true;
	return init_put_file(cell->code_root, RUNNER_CALL, 0644, clock_now_us(), cell->runner->call_fd);
}

/* Where import statements find what the conversation has installed: they do not look into NODE_PATH. Without it they
 * find what they find anyway. */
static void link_packages(struct cell *cell)
{
	const char *modules = JAIL_PACKAGES_NPM "/lib/node_modules";
	struct stat st;

	if (fstatat(cell->data_root, modules + strlen("/data/"), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    symlinkat(modules, cell->code_root, "node_modules"))
		log_event(LOG_WARN, "no link to installed packages", "error", strerror(errno), NULL);
}

/* What only the program itself needs, not the compiler: as prepare. */
static const char *prepare_program(struct cell *cell)
{
	if (cell_run_shows(cell) && cell_live_put_driver(cell))
		return "files of the display";
	if (put_call(cell))
		return "the file that starts programs which call tools";
	return cell->run.step->read_only && data_make_read_only(cell->data_root) ? "make /data read-only" : NULL;
}

/* The step that failed, and errno; NULL: none did. */
static const char *prepare(struct cell *cell, struct init_order *order)
{
	if (cell->live.on && cell_live_begin(cell))
		return "thaw the jail";
	if (cell->run.step->clock_us && !cell->shim_there) {
		if (shim_put(cell->code_root, cell->run.step->clock_us))
			return "the library of deterministic runs";
		cell->shim_there = true;
	}
	if (put_helper(cell))
		return "the runner's helper";
	if (cell->runner->family == SECCOMP_JAVASCRIPT && !cell->live.on && !cell->run.step->tools)
		link_packages(cell);
	const char *failed = cell->run.phase == PHASE_RUN ? prepare_program(cell) : NULL;

	return failed ? failed : cell_run_limits(cell, &order->limits) ? "cgroup limits" : NULL;
}

void cell_run_phase(struct cell *cell, enum cell_phase phase)
{
	struct cell_run *run = &cell->run;
	struct init_order order = {.verb = INIT_RUN};
	int fds[6], ends[2] = {-1, -1};
	size_t n = 0;

	cell_happened(cell, CELL_RUN);
	run->phase = phase;
	const char *failed = prepare(cell, &order);
	if (failed) {
		cell_run_failed(cell, failed, errno);
		return;
	}
	int result = phase_output(cell, ends);
	auto_close int out = ends[0];
	auto_close int error = ends[1];
	if (result < 0) {
		cell_run_failed(cell, "pipes", errno);
		return;
	}
	auto_secret char *room = secret_alloc(INIT_TAIL_MAX + 1);
	struct buf tail;
	buf_init_room(&tail, room, INIT_TAIL_MAX + 1);
	cell_run_order(cell, &order, &tail);
	run->result.warm = order.driven && cell->live.driver_runs;
	cell->live.driver_runs |= order.driven;
	if (order.has_code)
		fds[n++] = run->step->fds[0];
	if (order.has_stdin)
		fds[n++] = run->step->fds[1];
	fds[n++] = out;
	fds[n++] = error;
	if (order.live)
		fds[n++] = cell->live.group_fd;
	if (order.has_tools)
		fds[n++] = run->step->fds[4];
	cgroup_reset_peak(cell->group);
	send_cache(cell);
	/* The socket is empty here: the last order was answered, or this is the first. */
	result = tail.overflow ? -ERR_LIMIT : cell_order(cell, &order, tail.data, tail.length, fds, n);
	if (result == -ERR_LIMIT || result == -ERR_BUSY) {
		cell_run_failed(cell, "order to init", E2BIG);
		return;
	}
	/* Any other failure: init is dead, and its pidfd will say so. */
	if (cell->ready_us)
		cell_run_ready(cell);
}

/* The code of a program whose value is to be shown: is there one, and can it be had at less cost? */
static void look_at_code(const struct cell *cell, struct cell_step *step)
{
	if (silent_file(cell->runner, step->fds[0], cell->data_root)) {
		step->display = false;
		return;
	}
	int file = last_file(step->fds[0], cell->runner->tail_fd);
	if (file < 0)
		return;
	close(step->fds[0]);
	step->fds[0] = file;
	step->continued = true;
}

void cell_run_begin(struct cell *cell, struct cell_step *step)
{
	struct cell_run *run = &cell->run;

	*run = (struct cell_run){.step = step, .cpu_check_us = INT64_MAX, .wall_deadline_us = INT64_MAX};
	run->pipes[0] = run->pipes[1] = LOOP_WATCH_INIT;
	output_init(&run->output, 0, -1, -1);
	if (cell_run_shows(cell) && !step->entry)
		look_at_code(cell, step);
	run->result = (struct jail_result){.verdict = JAIL_XX, .exit_code = -1, .parked = cell->parked};
	cell->parked = false;
	snprintf(run->result.runner, sizeof(run->result.runner), "%s", cell->runner->name);
	snprintf(run->result.fingerprint, sizeof(run->result.fingerprint), "%s", cell->runner->fingerprint);
	cell_run_phase(cell, compiles(cell, step) ? PHASE_COMPILE : PHASE_RUN);
}
