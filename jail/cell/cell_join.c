/*
 * cell_join.c - jails in which an interpreter waits for the first program.
 *
 * An interpreter takes ten milliseconds to start, and a copy of one that has started takes one. So the jailer keeps a
 * template: an interpreter of its own, in a mount namespace that looks like a jail's, that runs nothing but its starter
 * (jail/guest/python_warm.py) and never sees a program, a file or a variable of anybody. For each jail that was made
 * ahead it leads a copy of itself into the jail (jail/warm), where the copy gives up all that a guest must not have and
 * waits until the jail's init hands it the first program (jail/init/join.h). The copy runs what the template's own
 * command runs; for any other order it becomes the program that was asked for, as if init had started that.
 *
 *     PARKED --(JOIN: packet to the template)--> JOINING --(JOINED: init says that it waits)--> PARKED, `joined`
 *
 * A jail that is being joined is given to nobody: its init would end while the copy is made. One join at a time. When
 * the template ends, answers with an error or not at all, it is killed and with it the jail that is being joined; after
 * a pause there is a new one. Jails that it does not join are given out as they are: nobody waits for a template.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cell_internal.h"
#include "jail/client/wire_fd.h"
#include "jail/init/join.h"
#include "lib/base/util.h"

#define ANSWER_US 2000000 /* until a jail is joined */

size_t cells_joined(const struct cells *cells)
{
	size_t n = 0;

	for (const struct cell *cell = cells->first; cell; cell = cell->next)
		n += cell->state == CELL_PARKED && cell->join.joined;
	return n;
}

int cell_join_keep(struct cell *cell, pid_t pid, struct err *err)
{
	static const char *const names[JOIN_NAMESPACES] = {"pid", "user", "mnt", "net", "ipc", "uts"};
	char path[64];

	for (int i = 0; i < JOIN_NAMESPACES; i++) {
		snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, names[i]);
		cell->join.namespaces[i] = open(path, O_RDONLY | O_CLOEXEC);
		if (cell->join.namespaces[i] < 0)
			return err_errno(err, "opening the jail's namespaces");
	}
	return 0;
}

void cell_join_forget(struct cell *cell)
{
	for (int i = 0; i < JOIN_NAMESPACES; i++)
		fd_close(&cell->join.namespaces[i]);
}

static int send_join(struct cell *cell)
{
	struct template *template = &cell->cells->template;
	const struct init_order awaits = {.verb = INIT_JOIN};
	struct join_order order = {.number = ++template->number,
				   .keep_groups = cell->cells->identity->mode == IDENTITY_SINGLE};
	int fds[JOIN_FDS_MAX], doors[CGROUP_TREES], pair[2];
	size_t n_doors = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -1;
	auto_close int inits = pair[0];
	auto_close int theirs = pair[1];
	if (cgroup_fds(cell->group, doors, &n_doors, NULL) < 0)
		return -1;
	for (int i = 0; i < JOIN_NAMESPACES; i++)
		fds[i] = cell->join.namespaces[i];
	fds[JOIN_NAMESPACES] = theirs;
	for (size_t i = 0; i < n_doors; i++)
		fds[JOIN_NAMESPACES + 1 + i] = doors[i];
	order.n_doors = (uint32_t)n_doors;
	int result = cell_order(cell, &awaits, NULL, 0, &inits, 1);
	if (result == 0)
		result = wire_fd_send(template->socket.fd, &order, sizeof(order), fds, JOIN_NAMESPACES + 1 + n_doors);
	for (size_t i = 0; i < n_doors; i++)
		close(doors[i]);
	cell_join_forget(cell);
	return result < 0 ? -1 : 0;
}

static struct cell *find_candidate(const struct cells *cells)
{
	struct cell *cell = cells->first;

	while (cell && (cell->state != CELL_PARKED || !cell->ready_us || cell->join.namespaces[0] < 0))
		cell = cell->next;
	return cell;
}

bool cell_join_possible(const struct cells *cells)
{
	const struct template *template = &cells->template;

	return template->runner && template->runner->interpreter && template->serves &&
	       !cell_template_joining(cells) && find_candidate(cells);
}

bool cell_join_due(const struct cells *cells)
{
	const struct template *template = &cells->template;

	return template->runner && template->runner->interpreter &&
	       (cell_template_may_start(cells) || cell_join_possible(cells));
}

void cell_join_prepare(struct cells *cells)
{
	struct template *template = &cells->template;
	struct cell *cell = find_candidate(cells);

	if (cell_template_may_start(cells)) {
		cell_template_start(cells);
		return;
	}
	if (cell_template_renew(cells))
		return;
	template->deadline_us = clock_monotonic_us() + ANSWER_US;
	cell->join.key = template->key;
	cell_happened(cell, CELL_JOIN);
	if (send_join(cell))
		cell_template_end(cells, "order", errno);
}

bool cell_join_report(struct cell *cell, const struct init_report *report)
{
	struct template *template = &cell->cells->template;

	cell->join.joined = !report->error && cell->state == CELL_JOINING && !cell->join.lost;
	if (report->error && cell->state == CELL_JOINING && !cell->join.lost)
		cell_template_end(cell->cells, report->step, report->error);
	if (!cell->join.joined)
		return cell->state != CELL_PARKED;
	template->deadline_us = INT64_MAX;
	template->pause_us = 0;
	template->joined++;
	cell_happened(cell, CELL_JOINED);
	/* What it took is nobody's. */
	cgroup_read(cell->group, &cell->base, NULL);
	cell->init_cpu_us = report->self_us;
	return true;
}
