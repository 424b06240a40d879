/*
 * cell_live.c - a jail that stays between runs: frozen whenever no run is under way. See cell.h, and cgroup_freezer.c
 * for how.
 *
 * A phase of a run (compile, run) begins with thawing and ends with freezing. Only when the kernel says that everything
 * is frozen, the output is drained, the account made, the files looked at, and the result reported. Two pipes last as
 * long as the jail: they are the interpreter's, and those of processes that earlier runs left. What such processes
 * write while a later run is under way is in that run's output; while nothing runs, no process writes.
 *
 * These end the jail: a limit, a cancelled run, the driver's end, and a freeze that does not happen. The jail is killed
 * then, and the result reported when it is dead (`ended`). Its files can still be collected.
 *
 * A run begins one tick of the kernel's coarse clock after the freeze: so a file that is written again has another
 * change time, and what changed can be seen (data.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "cell_internal.h"
#include "lib/base/log.h"
#include "lib/base/util.h"

#define FREEZE_US 5000000 /* a process that sleeps in the kernel, where nothing can stop it, is waited for this long */
#define LOOK_US   200     /* the first look; the kernel reports changes only every 10 ms */

int cell_live_open(struct cell *cell, struct err *err)
{
	struct cell_live *live = &cell->live;
	int result = cgroup_freezer_make(cell->group, &live->group_fd, &live->events, err);
	for (int i = 0; i < 2 && result == 0; i++)
		result = output_pipe(live->pipes[i], err);
	live->on = result == 0;
	return result;
}

void cell_live_clear(struct cell_live *live)
{
	int *const fds[] = {&live->group_fd,    &live->events,      &live->pipes[0][0],
			    &live->pipes[0][1], &live->pipes[1][0], &live->pipes[1][1]};

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fd_close(fds[i]);
}

int cell_live_begin(struct cell *cell)
{
	cell->live.frozen_us = 0;
	cell->live.report = (struct init_report){.status = 0};
	if (cell->live.code_read_only && data_make_writable(cell->code_root))
		return -1;
	cell->live.code_read_only = false;
	return cgroup_freeze(cell->group, false);
}

int cell_live_output(struct cell *cell, int ret_write[2])
{
	for (int i = 0; i < 2; i++) {
		if (cell->run.output.direct[i] >= 0) {
			ret_write[i] = steal_fd(&cell->run.output.direct[i]);
			continue;
		}
		cell->run.output.pipe[i] = fcntl(cell->live.pipes[i][0], F_DUPFD_CLOEXEC, 3);
		ret_write[i] = fcntl(cell->live.pipes[i][1], F_DUPFD_CLOEXEC, 3);
		if (cell->run.output.pipe[i] < 0 || ret_write[i] < 0)
			return -1;
	}
	return 0;
}

/* The jail is looked at in the tick that follows the event. */
static void frozen_ready(struct loop_watch *watch, uint32_t events)
{
	(void)events;
	container_of(watch, struct cell, live.frozen)->live.look_us = 0;
}

bool cell_live_freeze(struct cell *cell, const struct init_report *report)
{
	struct cell_live *live = &cell->live;

	live->report = *report;
	cell->run.wall_deadline_us = cell->run.cpu_check_us = INT64_MAX;
	live->frozen_us = clock_monotonic_us();
	live->deadline_us = live->frozen_us + FREEZE_US;
	live->look_us = live->frozen_us + LOOK_US;
	cell_happened(cell, CELL_FREEZE);
	if (report->gone)
		live->look_us = live->deadline_us = INT64_MAX;
	if (report->gone || cgroup_freeze(cell->group, true) ||
	    loop_add(cell->cells->loop, &live->frozen, live->events, EPOLLPRI, frozen_ready)) {
		cell_kill(cell); /* cell_run_lost follows */
		return false;
	}
	if (!cgroup_is_frozen(live->events))
		return false;
	cell_live_frozen(cell);
	return true;
}

void cell_live_frozen(struct cell *cell)
{
	loop_remove(cell->cells->loop, &cell->live.frozen);
	cell->live.frozen_us = clock_monotonic_us();
}

bool cell_live_must_end(const struct cell *cell)
{
	const struct jail_result *result = &cell->run.result;
	enum jail_verdict verdict = result->verdict;

	return cell->live.report.gone || result->oom_killed || verdict == JAIL_TO || verdict == JAIL_ML ||
	       verdict == JAIL_OL || verdict == JAIL_CX || verdict == JAIL_XX;
}

/* Of the clock that stamps files: 1 to 10 ms. */
static int64_t tick_us(void)
{
	struct timespec resolution = {.tv_nsec = 10000000};

	clock_getres(CLOCK_REALTIME_COARSE, &resolution);
	return resolution.tv_nsec / 1000 + 1;
}

int64_t cell_live_deadline(const struct cell *cell)
{
	const struct cell_live *live = &cell->live;

	if (cell->state == CELL_FREEZING)
		return MIN(live->look_us, live->deadline_us);
	if (live->frozen_us && cell->state == CELL_READY && !cell->fills && cell->first &&
	    cell->first->kind == STEP_RUN)
		return live->frozen_us + tick_us();
	return INT64_MAX;
}

bool cell_live_may_run(const struct cell *cell)
{
	return !cell->live.frozen_us || clock_monotonic_us() >= cell->live.frozen_us + tick_us();
}

bool cell_live_tick(struct cell *cell)
{
	struct cell_live *live = &cell->live;
	int64_t now = clock_monotonic_us();

	if (cell->state != CELL_FREEZING)
		return false;
	if (cgroup_is_frozen(live->events)) {
		cell_live_frozen(cell);
		return true;
	}
	if (now >= live->deadline_us) {
		log_event(LOG_WARN, "a jail does not freeze and is ended", "jail", cell->label, NULL);
		live->deadline_us = live->look_us = INT64_MAX;
		cell_kill(cell);
	} else {
		live->look_us = now + 2 * (now - live->frozen_us); /* then the event reports it */
	}
	return false;
}
