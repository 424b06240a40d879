/*
 * cell_run.c - a run of a program: how a phase of it (compile step, run step) begins, how it ends, and what its owner
 * gets.
 *
 * A phase is one order to init (cell_run_order.c) with its limits (cell_run_limits.c). It ends in one of three ways:
 * init reports that the program ended (and that nothing is left of it); init reports that it could not start it; or
 * init dies, because we killed it for a limit or the kernel did for lack of memory. In each case the pipes are drained
 * and the accounts are read, and either the next phase begins or the owner gets the result.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cell_internal.h"
#include "lib/base/log.h"
#include "lib/base/secret.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "shim.h"

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

static int put_once(struct cell *cell, bool *there, const char *name, int fd)
{
	if (*there || fd < 0)
		return 0;
	*there = true;
	return init_put_file(cell->code_root, name, 0644, clock_now_us(), fd);
}

/* The files that the runner names, once in a jail. They belong to the jailer: what runs can remove them, which is its
 * own loss, but not write to them. */
static int put_files(struct cell *cell)
{
	unlinkat(cell->code_root, RUNNER_VALUE, 0); /* of a live jail's last run */
	return put_once(cell, &cell->starter_there, RUNNER_STARTER, cell->runner->starter_fd) ||
	       put_once(cell, &cell->helper_there, RUNNER_HELPER, cell->runner->helper_fd);
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

/* The step that failed, and errno; NULL: none did. */
static const char *prepare(struct cell *cell, struct init_order *order)
{
	const struct cell_step *step = cell->run.step;

	if (cell->live.on && cell_live_begin(cell))
		return "thaw the jail";
	if (step->clock_us && !cell->shim_there) {
		if (shim_put(cell->code_root, step->clock_us))
			return "the library of deterministic runs";
		cell->shim_there = true;
	}
	if (!step->bare && put_files(cell))
		return "the runner's files";
	if (cell->runner->family == SECCOMP_JAVASCRIPT && !cell->live.on && !step->tools)
		link_packages(cell);
	if (cell->run.phase == PHASE_RUN && step->read_only && data_make_read_only(cell->data_root))
		return "make /data read-only";
	return cell_run_limits(cell, &order->limits) ? "cgroup limits" : NULL;
}

static void begin_phase(struct cell *cell, enum cell_phase phase)
{
	struct cell_run *run = &cell->run;
	const struct init_order cache = {.verb = INIT_CACHE, .n_files = 1};
	const struct runner *runner = cell->runner;
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
	/* What the runner's libraries would make again at each start. */
	if (runner->cache_name && !run->step->bare && phase == PHASE_RUN)
		cell_order(cell, &cache, runner->cache_name, strlen(runner->cache_name) + 1, &runner->cache_fd, 1);
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

void cell_run_begin(struct cell *cell, struct cell_step *step)
{
	struct cell_run *run = &cell->run;

	*run = (struct cell_run){.step = step, .cpu_check_us = INT64_MAX, .wall_deadline_us = INT64_MAX};
	run->pipes[0] = run->pipes[1] = LOOP_WATCH_INIT;
	output_init(&run->output, 0, -1, -1);
	run->result = (struct jail_result){.verdict = JAIL_XX, .exit_code = -1, .parked = cell->parked};
	cell->parked = false;
	snprintf(run->result.runner, sizeof(run->result.runner), "%s", cell->runner->name);
	snprintf(run->result.fingerprint, sizeof(run->result.fingerprint), "%s", cell->runner->fingerprint);
	begin_phase(cell, !step->bare && cell->runner->compile.count > 0 ? PHASE_COMPILE : PHASE_RUN);
}

/* -------- a phase ends -------------------------------------------------------------------------------- */
/* What a phase used, by difference to the end of the last phase: the counters of the jail's cgroup, and what init saw
 * when it reaped. The CPU time is without what init itself used. Its sum comes from the cgroup, which misses no
 * process; how it is split comes from what was reaped, because v1 splits by ticks of 10 ms. */
static void account(struct cell *cell, const struct init_report *report)
{
	struct cell_run *run = &cell->run;
	struct jail_usage *usage = run->phase == PHASE_COMPILE ? &run->result.compile : &run->result.run;
	struct cgroup_usage now = cell->base;

	cgroup_read(cell->group, &now, NULL);
	int64_t user = now.cpu_user_us - cell->base.cpu_user_us, system = now.cpu_system_us - cell->base.cpu_system_us;
	int64_t sum = user + system;
	if (report) {
		sum -= report->self_us - cell->init_cpu_us;
		cell->init_cpu_us = report->self_us;
	}
	/* In a live jail, what was reaped has also what it used in earlier runs, and lacks what is alive. */
	if (report && !cell->live.on) {
		sum = MAX(sum, report->user_us + report->system_us);
		user = report->user_us;
		system = report->system_us;
	}
	sum = MAX(sum, 0);
	user = MAX(user, 0);
	system = MAX(system, 0);
	usage->cpu_user_us = user + system > 0 ? (int64_t)((double)sum * (double)user / (double)(user + system)) : sum;
	usage->cpu_system_us = sum - usage->cpu_user_us;
	usage->cpu_us = sum;
	usage->memory_peak_bytes = now.memory_peak_bytes;
	usage->pids_peak = MAX(now.pids_peak - 1, 0);
	usage->wall_us = run->started_us ? clock_monotonic_us() - run->started_us : 0;
	if (report) {
		usage->wall_us = report->ended_us - report->started_us;
		usage->rss_peak_bytes = report->peak_bytes;
		if (!usage->memory_peak_bytes)
			usage->memory_peak_bytes = report->peak_bytes;
		usage->switches_voluntary = report->switches_voluntary;
		usage->switches_forced = report->switches_forced;
	}
	run->result.oom_killed = now.oom_kills > cell->base.oom_kills;
	usage->pids_hits = now.pids_hits - cell->base.pids_hits;
	run->result.pids_limit_hit = usage->pids_hits > 0;
	cell->base = now; /* the next phase begins here */
}

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
	struct cell_callbacks callbacks = cell->callbacks;
	void *arg = cell->arg;

	result.stdout_bytes = run->output.written[0];
	result.stderr_bytes = run->output.written[1];
	result.stdout_truncated = run->output.truncated[0];
	result.stderr_truncated = run->output.truncated[1];
	if (run->output.error && result.verdict != JAIL_XX)
		cell_verdict_sandbox(&result, "write the output", run->output.error);
	cell_verdict_mention(&result);
	output_clear(&run->output);
	bool bare = run->step->bare;
	cell_step_free(steal(&run->step));
	cell_happened(cell, CELL_DELIVER);
	cell->has_files = true;
	result.ended = cell->live.on && cell->state == CELL_DEAD;
	log_event(bare ? LOG_DEBUG : LOG_INFO, "run done", "jail", cell->label, "runner", cell->runner->name, "verdict",
		  jail_verdict_text(result.verdict), "message", result.message, NULL);
	run->result.denied = run->result.network = run->result.value = NULL; /* the copy has them */
	run->result.warnings = run->result.left_in_tmp = NULL;
	if (callbacks.done)
		callbacks.done(arg, &result); /* the cell may be gone after it */
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

/* The beginning of what a compile step printed that succeeded. */
static struct json_object *warnings_of(const struct output *output)
{
	char text[JAIL_WARNINGS_MAX];
	size_t length = 0;

	for (int i = 1; i >= 0; i--) {
		ssize_t n = pread(output->sink[i], text + length, sizeof(text) - length, 0);

		length += n > 0 ? (size_t)n : 0;
	}
	for (size_t i = 0; i < length; i++)
		text[i] = text[i] ? text[i] : '?'; /* no string on the wire has a NUL */
	return length > 0 ? json_new_safe(text, utf8_cut(text, length, length)) : NULL;
}

/* What the starter wrote of its last value. The guest can write there, too: it is as much the program's word as its
 * output is. */
static struct json_object *value_of(const struct cell *cell)
{
	auto_close int fd = openat(cell->code_root, RUNNER_VALUE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[JAIL_VALUE_MAX];
	struct stat st;
	ssize_t n = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? pread(fd, text, sizeof(text), 0) : 0;
	size_t length = n > 0 ? (size_t)n : 0;
	for (size_t i = 0; i < length; i++)
		text[i] = text[i] ? text[i] : '?'; /* no string on the wire has a NUL */
	struct json_object *value = json_new_safe(text, length);

	for (; strlen(json_object_to_json_string(value)) > JAIL_VALUE_WIRE_MAX; length /= 2) {
		json_object_put(value);
		value = json_new_safe(text, utf8_cut(text, length, length / 2));
	}
	return value;
}

/* A phase is over. In a live jail everything is frozen now, else nothing is left. `report` NULL: init is dead. */
void cell_run_settled(struct cell *cell, const struct init_report *report)
{
	struct cell_run *run = &cell->run;

	close_pipes(cell);
	account(cell, report);
	run->result.warm |= report && report->warm;
	cell_verdict_decide(&run->result, cell, run->stop, report ? &report->status : NULL);
	if (run->step->display && run->phase == PHASE_RUN)
		run->result.value = value_of(cell);
	if (report && report->left[0])
		run->result.left_in_tmp = json_new_safe(report->left, strnlen(report->left, INIT_LEFT_SIZE - 1));
	if (run->phase == PHASE_COMPILE) {
		run->result.compiled = true;
		if (run->result.verdict == JAIL_OK) {
			/* What was built is not the program's to change. */
			run->result.warnings = warnings_of(&run->output);
			output_clear(&run->output);
			cell->live.code_read_only = true;
			if (cell->state == CELL_DEAD)
				cell_run_failed(cell, "freeze the jail", ETIMEDOUT);
			else if (data_make_read_only(cell->code_root))
				cell_run_failed(cell, "make /code read-only", errno);
			else
				begin_phase(cell, PHASE_RUN);
			return;
		}
		show_compile_output(cell);
	}
	if (!cell->live.on || cell->state == CELL_DEAD || !cell_live_must_end(cell)) {
		deliver(cell);
		return;
	}
	/* The owner gets it when the jail is dead. */
	cell_happened(cell, CELL_DECIDE);
	cell_kill(cell);
}

void cell_run_ended(struct cell *cell, const struct init_report *report)
{
	const bool late =
		report->ended_us - report->started_us >= cell_run_allowed(cell); /* whether we came to stop it or not */

	if (late && cell->run.stop == STOP_NONE)
		cell->run.stop = STOP_WALL;
	if (!cell->live.on || cell_live_freeze(cell, report))
		cell_run_settled(cell, report);
}

void cell_run_lost(struct cell *cell, enum cell_state before)
{
	if (before == CELL_DECIDED)
		deliver(cell);
	else if (before == CELL_FREEZING) {
		cell_live_frozen(cell);
		cell_run_settled(cell, &cell->live.report);
	} else if (cell->broken.step[0])
		cell_run_failed(cell, cell->broken.step, cell->broken.error);
	else
		cell_run_settled(cell, NULL);
}

void cell_run_failed(struct cell *cell, const char *step, int error)
{
	struct cell_run *run = &cell->run;

	/* Others may be running in there, and write: first it dies. */
	if (cell->live.on && cell->state != CELL_DEAD) {
		cell_break(cell, step, error);
		cell_happened(cell, CELL_FAIL);
		cell_kill(cell);
		return;
	}
	close_pipes(cell);
	if (run->phase == PHASE_COMPILE)
		show_compile_output(cell);
	cell_verdict_sandbox(&run->result, step, error);
	deliver(cell);
}
