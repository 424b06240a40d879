/*
 * cell_state.c - the states of a jail, and what all parts of it ask or do whatever its state is. Calls no other part of
 * it. See cell_internal.h.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "cell_internal.h"
#include "jail/client/wire_fd.h"
#include "lib/base/log.h"
#include "lib/base/secret.h"
#include "lib/base/util.h"

enum cell_state cell_next(enum cell_state state, enum cell_event event)
{
#define NEXT(state, event, next) [CELL_##state][CELL_##event] = CELL_##next,
	static const unsigned char transitions[CELL_STATES][CELL_EVENTS] = {CELL_TRANSITIONS(NEXT)};

	return (enum cell_state)transitions[state][event];
}

void cell_happened(struct cell *cell, enum cell_event event)
{
	enum cell_state next = cell_next(cell->state, event);

	if (next != CELL_IMPOSSIBLE) {
		cell->state = next;
		return;
	}
	auto_free char *what = xasprintf("event %d in state %d", event, cell->state);
	log_event(LOG_ERROR, "a jail is ended: its state does not allow this event", "jail", cell->label, "what", what,
		  NULL);
	cell_kill(cell);
}

bool cell_has_run(const struct cell *cell)
{
	return cell->state == CELL_RUNNING || cell->state == CELL_FREEZING || cell->state == CELL_FAILED ||
	       cell->state == CELL_DECIDED;
}

void cell_break(struct cell *cell, const char *step, int error)
{
	snprintf(cell->broken.step, sizeof(cell->broken.step), "%s", step);
	cell->broken.error = error;
}

void cell_kill(struct cell *cell)
{
	if (cell->pidfd_fd < 0)
		return;
	pidfd_send_signal(cell->pidfd_fd, SIGKILL, NULL, 0);
	if (cell_has_run(cell))
		cgroup_lift_cpu(cell->group);
}

void cell_fail(struct cell *cell, const struct err *why)
{
	struct cell_callbacks callbacks = cell->callbacks;
	void *arg = cell->arg;

	cell->callbacks = (struct cell_callbacks){.done = NULL};
	if (callbacks.failed)
		callbacks.failed(arg, why);
}

int cell_order(struct cell *cell, const struct init_order *order, const char *tail, size_t tail_length, const int *fds,
	       size_t n_fds)
{
	auto_secret char *packet = secret_alloc(sizeof(*order) + tail_length);

	memcpy(packet, order, sizeof(*order));
	if (tail_length)
		memcpy(packet + sizeof(*order), tail, tail_length);
	int result = wire_fd_send(cell->control.fd, packet, sizeof(*order) + tail_length, fds, n_fds);
	if (result < 0)
		return errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS ? -ERR_BUSY : -ERR_SYSTEM;
	return 0;
}

void cell_step_free(struct cell_step *step)
{
	if (!step)
		return;
	for (size_t i = 0; i < step->n_fds; i++)
		fd_close(&step->fds[i]);
	secret_free(step->argv);
	secret_free(step->env);
	free(step->entry);
	free(step->cwd);
	free(step->tail);
	free(step);
}

int cell_data(const struct cell *cell)
{
	return cell->data_root;
}

bool cell_lasts(const struct cell *cell)
{
	return cell->live.on;
}

bool cell_driven(const struct cell *cell)
{
	return cell->live.on && cell->runner->live.count > 0;
}

size_t cell_held_fds(const struct cell *cell)
{
	return cell->n_fds;
}
