/*
 * cell.c - the life of a jail after it was opened: reports of its init, its death, taking it down. See cell.h.
 *
 * Destroying a cell frees nothing: callbacks of a cell may destroy it, and the code that called them still relies on
 * it. It becomes DYING and is killed, and cells_reap, called by the main loop between events, frees it once its init
 * is dead.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cell_internal.h"
#include "jail/client/wire_fd.h"
#include "lib/base/log.h"
#include "lib/base/util.h"

#define MEMINFO_MAX 65536
#define SETUP_US 60000000 /* as much as a machine needs that has a hundred jails and other things to do */

static void cell_free(struct cell *cell)
{
	struct cells *cells = cell->cells;
	struct cell **link = &cells->first;

	while (*link != cell)
		link = &(*link)->next;
	*link = cell->next;
	fd_close(&cell->data_root);
	fd_close(&cell->code_root);
	net_detach(cell->net);
	cell_join_forget(cell);
	cell_live_clear(&cell->live);
	if (cell->group)
		cgroup_give(cells->cgroup, cell->group);
	for (struct cell_step *step = cell->first, *next; step; step = next) {
		next = step->next;
		cell_step_free(step);
	}
	cell_forget_trees(cell);
	jail_result_clear(&cell->run.result);
	cells->slots[cell->slot] = false;
	free(cell);
}

/* -------- orders and reports -------------------------------------------------------------------------- */
static void fill_failed(struct cell *cell, const struct init_report *report)
{
	struct err why = ERR_INIT;

	errno = report->error;
	if (errno == ENOSPC || errno == EDQUOT)
		err_set(&why, ERR_LIMIT, "the files do not fit into /data: at most %lld MiB and %lld files",
			(long long)(cell->limits.data_bytes >> 20), (long long)cell->limits.data_inodes);
	else if (errno == ENOTDIR || errno == EISDIR || errno == ENOTEMPTY || errno == EACCES || errno == ELOOP ||
		 errno == ENAMETOOLONG)
		err_set(&why, ERR_INVALID, "file %u cannot be put there: %s", report->index, strerror(errno));
	else
		err_errno(&why, "filling /data");
	cell_fail(cell, &why);
}

static void handle_report(struct cell *cell, const struct init_report *report)
{
	switch (report->kind) {
	case INIT_READY:
		cell->ready_us = clock_monotonic_us();
		cell_happened(cell, CELL_SET_UP);
		if (cell->state == CELL_RUNNING)
			cell_run_ready(cell);
		break;
	case INIT_FILLED:
		cell->fills--;
		break;
	case INIT_FILL_FAILED:
		fill_failed(cell, report);
		break;
	case INIT_ENDED:
		if (cell->state == CELL_RUNNING)
			cell_run_ended(cell, report);
		break;
	case INIT_DENIED:
		if (cell_has_run(cell))
			cell_verdict_denied(cell, (int)report->index);
		break;
	case INIT_JOINED:
		if (!cell_join_report(cell, report))
			cell_destroy(cell);
		break;
	case INIT_FAILED:
		/* Setting up: init is about to end, and cell_run_lost will say it. */
		if (cell->ready_us && cell->state == CELL_RUNNING) {
			cell_run_failed(cell, report->step, report->error);
			break;
		}
		cell_break(cell, report->step, report->error);
		break;
	}
}

/* wire_fd_receive, because an init that ended with an order unread is reported as a reset before its last report. */
static void read_reports(struct cell *cell)
{
	struct init_report report;
	struct wire_fds none = {.room = 0};

	while (cell->state != CELL_DYING && cell->control.fd >= 0 &&
	       wire_fd_receive(cell->control.fd, &report, sizeof(report), MSG_DONTWAIT, &none) ==
		       (ssize_t)sizeof(report))
		handle_report(cell, &report);
}

static void close_control(struct cell *cell)
{
	int fd = cell->control.fd;

	loop_remove(cell->cells->loop, &cell->control);
	fd_close(&fd);
}

void cell_control_ready(struct loop_watch *watch, uint32_t events)
{
	struct cell *cell = container_of(watch, struct cell, control);

	loop_change(cell->cells->loop, watch, EPOLLIN);
	read_reports(cell);
	if (events & EPOLLHUP)
		close_control(cell); /* the pidfd reports the rest */
	cell_advance(cell);
}

/* Init is dead, and with it everything in its namespace. */
void cell_pidfd_ready(struct loop_watch *watch, uint32_t events)
{
	struct cell *cell = container_of(watch, struct cell, pidfd);

	(void)events;
	read_reports(cell); /* what it said last */
	close_control(cell);
	loop_remove(cell->cells->loop, watch);
	waitid(P_PIDFD, (id_t)cell->pidfd_fd, &(siginfo_t){0}, WEXITED);
	fd_close(&cell->pidfd_fd);
	if (cell->state == CELL_DYING)
		return;
	if (cell->state == CELL_JOINING) {
		cell_destroy(cell); /* cell_join.c has said why */
		return;
	}
	if (cell->state == CELL_PARKED) {
		log_event(LOG_WARN, "a prepared jail ended", "step", cell->broken.step, "why",
			  strerror(cell->broken.error), NULL);
		cell->cells->parking_failed = true;
		cell_destroy(cell);
		return;
	}
	enum cell_state before = cell->state;
	bool had_run = cell_has_run(cell);
	cell_happened(cell, CELL_DIED);
	if (had_run)
		cell_run_lost(cell, before);
	cell_advance(cell);
}

void cell_destroy(struct cell *cell)
{
	if (cell->state == CELL_DYING)
		return;
	if (cell->state != CELL_PARKED && cell->state != CELL_JOINING)
		cell->cells->count -= !cell->extra;
	cell->callbacks = (struct cell_callbacks){.done = NULL};
	if (cell_has_run(cell) && cell->run.step) {
		loop_remove(cell->cells->loop, &cell->run.pipes[0]);
		loop_remove(cell->cells->loop, &cell->run.pipes[1]);
		loop_remove(cell->cells->loop, &cell->live.frozen);
		output_clear(&cell->run.output);
		cell_step_free(steal(&cell->run.step));
	}
	net_detach(steal(&cell->net));
	cell_kill(cell);
	cell_happened(cell, CELL_DESTROYED);
}

/* -------- all of them --------------------------------------------------------------------------------- */
void cells_reap(struct cells *cells)
{
	for (struct cell *cell = cells->first, *next; cell; cell = next) {
		next = cell->next;
		if (cell->state == CELL_DYING && cell->pidfd_fd < 0)
			cell_free(cell);
	}
}

/* Setting up takes milliseconds; a kernel that never comes back from it must not hold a client for ever. */
static int64_t setup_deadline(const struct cell *cell)
{
	return cell->ready_us || cell->state == CELL_DEAD ? INT64_MAX : cell->opened_us + SETUP_US;
}

int64_t cells_deadline(const struct cells *cells)
{
	int64_t next = MIN(cell_template_deadline(cells), pool_deadline(&cells->pool));

	for (const struct cell *cell = cells->first; cell; cell = cell->next)
		if (cell->state != CELL_DYING)
			next = MIN(next,
				   MIN(MIN(cell_run_deadline(cell), setup_deadline(cell)), cell_live_deadline(cell)));
	return next;
}

void cells_advance(struct cells *cells)
{
	for (struct cell *cell = cells->first, *next; cell; cell = next) {
		next = cell->next;
		if (cell->state != CELL_DYING)
			cell_advance(cell);
	}
}

/* Of the machine; -1: it does not say. */
static int64_t free_memory(void)
{
	static const char name[] = "\nMemAvailable:";
	auto_free char *text = NULL;
	size_t length;

	if (read_file_at(AT_FDCWD, "/proc/meminfo", MEMINFO_MAX, &text, &length, NULL) < 0)
		return -1;
	const char *line = strstr(text, name);
	return line ? strtoll(line + strlen(name), NULL, 10) * 1024 : -1;
}

/* What was made for busier times, or for more memory, gives way. */
static void shrink_pool(struct cells *cells, int64_t now)
{
	size_t kept = 0;

	pool_turn(&cells->pool, now, free_memory());
	for (struct cell *cell = cells->first, *next; cell; cell = next) {
		next = cell->next;
		if (cell->state == CELL_PARKED && ++kept > pool_target(&cells->pool))
			cell_destroy(cell);
	}
}

void cells_tick(struct cells *cells)
{
	int64_t now = clock_monotonic_us();

	cell_template_tick(cells, now);
	if (now >= pool_deadline(&cells->pool))
		shrink_pool(cells, now);
	for (struct cell *cell = cells->first, *next; cell; cell = next) {
		next = cell->next;
		bool overdue = now >= setup_deadline(cell) ||
			       (cell->state == CELL_RUNNING && now >= cell->run.wall_deadline_us);
		/* It may have said in time that it is ready, or at its end: others, here or elsewhere, had their turn
		 * since. */
		if (cell->state != CELL_DYING && overdue) {
			read_reports(cell);
			cell_advance(cell);
		}
		if (cell->state != CELL_DYING && now >= setup_deadline(cell)) {
			cell_break(cell, "set-up took too long", 0);
			cell->ready_us = now;
			cell_kill(cell);
		}
		if (cell->state != CELL_DYING && now >= cell_run_deadline(cell))
			cell_run_tick(cell, now);
		if (cell->state != CELL_DYING && now >= cell_live_deadline(cell)) {
			if (cell_live_tick(cell))
				cell_run_settled(cell, &cell->live.report);
			cell_advance(cell);
		}
	}
}

void cells_clear(struct cells *cells)
{
	for (struct cell *cell = cells->first, *next; cell; cell = next) {
		next = cell->next;
		cell_destroy(cell);
	}
	for (cells_reap(cells); cells->first && loop_once(cells->loop, INT64_MAX) >= 0;)
		cells_reap(cells);
	cell_template_clear(cells);
	free(cells->slots);
	for (size_t i = 0; i < SECCOMP_FAMILIES; i++)
		free(cells->filters[i].program.filter);
}
