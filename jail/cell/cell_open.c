/*
 * cell_open.c - a new jail: slot, group, file systems, clone. See cell.h.
 *
 * Opening clones init and returns at once: the maps are written and the group attached while init waits, then it sets
 * itself up while the jailer already puts its first orders into the socket. No round trip is waited for that is not
 * needed.
 *
 * A few jails are made ahead, set up as far as they can be without knowing the program, and given to the next that
 * opens one: set-up costs a millisecond and, on an idle machine, ten more for the kernel to move init into its cgroup.
 * Made ahead or not, they are the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cell_internal.h"
#include "jail/base/sys.h"
#include "lib/base/log.h"
#include "lib/base/util.h"

#define SLOTS_PER_JAIL 4           /* dying jails keep their id for a moment */
#define EXTRA_SLOTS    RUNNERS_MAX /* of the jailer's own jails (versions.h) */
#define CODE_INODES    4096
#define CODE_BYTES     (INT64_C(1) << 30) /* what is built; the memory limit counts it too */
#define NAMESPACES     (CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)

void cells_init(struct cells *cells, int loop, const struct config *config, const struct identity *identity,
		struct cgroup *cgroup)
{
	*cells = (struct cells){.loop = loop,
				.config = config,
				.identity = identity,
				.cgroup = cgroup,
				.template = TEMPLATE_INIT,
				.cores = sysconf(_SC_NPROCESSORS_ONLN)};
	cells->n_slots = (size_t)config->jailer.jails * SLOTS_PER_JAIL + EXTRA_SLOTS;
	/* Ids 0 and the last two are the jailer's, the relay's and the id-map helper's. */
	if (identity->mode != IDENTITY_SINGLE)
		cells->n_slots = MIN(cells->n_slots, identity->ids - 3);
	cells->slots = xcalloc(cells->n_slots, sizeof(*cells->slots));
	pool_init(&cells->pool, CELLS_PARKED, 0, 0);
}

/* Outer id of a slot: its own where there is a range. */
static uid_t slot_id(const struct cell *cell)
{
	return cell->cells->identity->mode == IDENTITY_SINGLE ? 0 : (uid_t)cell->slot + 1;
}

static int write_map(pid_t pid, const char *file, uid_t outer, struct err *err)
{
	char path[64], text[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	snprintf(text, sizeof(text), "%d %u 1\n", INIT_ID, outer);
	auto_close int fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd < 0 || write(fd, text, strlen(text)) < 0 ? err_errno(err, "writing %s of the jail", file) : 0;
}

/* What the kernel has run out of, and which setting raises it. */
static int cannot_clone(struct err *err)
{
	if (errno == EAGAIN)
		return err_set(err, ERR_BUSY,
			       "no more processes can be made: the jailer has reached its limit (systemd's TasksMax, "
			       "pids.max of its cgroup, ulimit -u, kernel.pid_max). Raise it, or lower jailer.jails");
	if (errno == ENOSPC || errno == EUSERS)
		return err_set(
			err, ERR_BUSY,
			"no more namespaces can be made: raise user.max_user_namespaces and, where they are lower, "
			"user.max_pid_namespaces, max_mnt_, max_net_, max_ipc_ and max_uts_namespaces, "
			"or lower jailer.jails");
	return err_errno(err, "making the jail's namespaces");
}

/* The relay died. The program was promised a network: the run ends. */
static void network_lost(void *arg)
{
	struct cell *cell = arg;

	cell_break(cell, "network relay", ECONNRESET);
	cell_kill(cell);
}

/* Before init changes its ids, which makes it undumpable: then its namespaces are closed to us. */
static int reach_namespaces(struct cell *cell, const struct cell_request *request, pid_t pid, struct err *err)
{
	if (request->ahead && cell_template_possible(cell->cells))
		return cell_join_keep(cell, pid, err);
	if (!cell->network)
		return 0;
	int result = net_attach(cell->cells->net, cell->pidfd_fd, request->hosts, &cell->net, err);
	if (result == 0)
		net_on_lost(cell->net, network_lost, cell);
	return result;
}

/* Kills an init whose end would not be noticed. It has done nothing yet, so it ends at once. */
static void bury(struct cell *cell)
{
	pidfd_send_signal(cell->pidfd_fd, SIGKILL, NULL, 0);
	waitid(P_PIDFD, (id_t)cell->pidfd_fd, &(siginfo_t){0}, WEXITED);
	close(steal_fd(&cell->pidfd_fd));
}

/* Whose set of layers.h is the jail's; -1: it makes its own. */
static int layers_of(const struct cell *cell)
{
	return cell->root == cell->cells->root && cell->slot < LAYERS_SLOTS ? (int)cell->slot : -1;
}

static int renew_layers(const struct cell *cell, struct err *err)
{
	return layers_of(cell) >= 0 ? layers_renew(&cell->cells->layers, cell->root, cell->slot, err) : 0;
}

/* Everything that init needs; after it the child is on its own. */
static int clone_init(struct cell *cell, const struct cell_request *request, struct err *err)
{
	struct cells *cells = cell->cells;
	int pair[2], pidfd = -1;
	auto_close int data_mount = -1;
	auto_close int code_mount = -1;

	const struct data_size data = {cell->limits.data_bytes, cell->limits.data_inodes},
			       code = {CODE_BYTES, CODE_INODES};
	if (data_make(&data, slot_id(cell), &data_mount, &cell->data_root, err) < 0 ||
	    data_make(&code, slot_id(cell), &code_mount, &cell->code_root, err))
		return -ERR_SYSTEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return err_errno(err, "making a socket for the jail");
	auto_close int ours = pair[0];
	auto_close int theirs = pair[1];
	struct init_setup setup = {
		.folders = &cells->config->upstream.binds,
		.binds = request->binds,
		.network = cell->network,
		.control = theirs,
		.data_mount = data_mount,
		.code_mount = code_mount,
		.tmp_bytes = cell->limits.tmp_bytes,
		.root = cell->root,
		.layers = layers_of(cell),
		.landlock_abi = cells->landlock_abi,
		.small_buffers = !cgroup_counts_tcp(cells->cgroup),
		.keep_groups = cells->identity->mode == IDENTITY_SINGLE,
		.filters = cells->filters,
		.command_line = cells->command_line,
		.command_line_size = cells->command_line_size,
		.oom_score = -1,
		.join_execs = streq(cells->config->jailer.warm, "exec"),
	};
	int result = cgroup_fds(cell->group, setup.group_fds, &setup.n_group_doors, err);
	if (result < 0)
		return result;
	struct clone_args args = {
		.flags = NAMESPACES | CLONE_PIDFD, .pidfd = (uintptr_t)&pidfd, .exit_signal = SIGCHLD};
	pid_t pid = sys_clone3(&args);
	if (pid == 0) {
		close(ours);
		init_main(&setup);
	}
	int error = errno;
	for (size_t i = 0; i < setup.n_group_doors; i++)
		close(setup.group_fds[i]);
	errno = error;
	if (pid < 0)
		return cannot_clone(err);
	cell->pidfd_fd = pidfd;
	if (loop_add(cells->loop, &cell->pidfd, pidfd, EPOLLIN, cell_pidfd_ready)) {
		result = err_errno(err, "watching the jail");
		bury(cell);
		return result;
	}
	if (loop_add(cells->loop, &cell->control, ours, EPOLLIN, cell_control_ready))
		return err_errno(err, "watching the jail");
	steal_fd(&ours);
	result = reach_namespaces(cell, request, pid, err);
	if (result < 0)
		return result;
	if (write_map(pid, "gid_map", slot_id(cell), err) < 0 || write_map(pid, "uid_map", slot_id(cell), err) < 0)
		return -ERR_SYSTEM;
	struct init_order go = {.verb = INIT_GO};
	return cell_order(cell, &go, NULL, 0, NULL, 0) ? err_errno(err, "starting the jail") : 0;
}

/* A jail without an owner yet. */
static int build(struct cells *cells, const struct jail_limits *limits, const struct root_mount *root,
		 const struct cell_request *request, struct cell **ret, struct err *err)
{
	unsigned families = 0;
	size_t slot = 0;

	while (slot < cells->n_slots && cells->slots[slot])
		slot++;
	if (slot == cells->n_slots)
		return err_set(err, ERR_BUSY, "all jails are in use or being taken down: try again later");
	cells->slots[slot] = true;
	/* Its init has copies of the filters that are there now. */
	for (size_t i = 0; i < SECCOMP_FAMILIES; i++)
		families |= cells->filters[i].program.filter ? 1U << i : 0;
	struct cell *cell = xcalloc(1, sizeof(*cell));
	*cell = (struct cell){
		.next = cells->first,
		.cells = cells,
		.limits = *limits,
		.root = root,
		.network = request->network,
		.background = request->background,
		.every_host = !request->hosts || request->hosts->count == 0,
		.slot = slot,
		.families = families,
		.state = CELL_PARKED,
		.pidfd_fd = -1,
		.control = LOOP_WATCH_INIT,
		.pidfd = LOOP_WATCH_INIT,
		.data_root = -1,
		.code_root = -1,
		.live = CELL_LIVE_INIT,
		.join = {.namespaces = {-1, -1, -1, -1, -1, -1}},
		.opened_us = clock_monotonic_us(),
	};
	cell->last = &cell->first;
	cells->first = cell;
	int result = cgroup_take(cells->cgroup, &cell->group, err);
	if (result == 0 && cell_run_limit_group(cell, PHASE_RUN))
		result = err_errno(err, "limiting the jail");
	if (result == 0)
		result = renew_layers(cell, err);
	if (result == 0)
		result = clone_init(cell, request, err);
	if (result < 0)
		cell_destroy(cell);
	else
		*ret = cell;
	return result;
}

void cells_census(const struct cells *cells, struct jail_census *ret)
{
	static const enum jail_state states[CELL_STATES] = {
		[CELL_PARKED] = JAIL_STATE_PARKED,         [CELL_JOINING] = JAIL_STATE_PARKED,
		[CELL_BUILDING] = JAIL_STATE_BUILDING,     [CELL_READY] = JAIL_STATE_READY,
		[CELL_RUNNING] = JAIL_STATE_RUNNING,       [CELL_FREEZING] = JAIL_STATE_RUNNING,
		[CELL_FAILED] = JAIL_STATE_RUNNING,        [CELL_DECIDED] = JAIL_STATE_RUNNING,
		[CELL_COLLECTING] = JAIL_STATE_COLLECTING, [CELL_DEAD] = JAIL_STATE_COLLECTING,
		[CELL_DYING] = JAIL_STATE_ENDING,
	};

	*ret = (struct jail_census){.count = {0}};
	for (const struct cell *cell = cells->first; cell; cell = cell->next)
		ret->count[cell->state == CELL_READY && cell->live.on ? JAIL_STATE_FROZEN : states[cell->state]]++;
}

/* -------- jails made ahead ---------------------------------------------------------------------------- */
static bool enough_parked(const struct cells *cells)
{
	size_t parked = 0;

	for (const struct cell *cell = cells->first; cell; cell = cell->next)
		parked += cell->state == CELL_PARKED || cell->state == CELL_JOINING;
	return cells->parking_failed || parked >= pool_target(&cells->pool);
}

bool cells_owed(const struct cells *cells)
{
	return pool_owes(&cells->pool) && !cells_prepared(cells);
}

bool cells_prepared(const struct cells *cells)
{
	return enough_parked(cells) && !cell_join_due(cells);
}

int64_t cells_awaited(const struct cells *cells)
{
	int64_t until = cells->opened ? 0 : cells->first_us;

	for (const struct cell *cell = cells->first; cell; cell = cell->next) {
		bool before = cell->state == CELL_BUILDING || (cell->state == CELL_READY && !cell->run.started_us);

		if (before)
			until = MAX(until, cell->opened_us + CELLS_AWAIT_US);
	}
	return until;
}

int cells_make_filter(struct cells *cells, enum seccomp_family family, struct err *err)
{
	struct seccomp_filter *filter = &cells->filters[family];

	return filter->program.filter ? 0 : seccomp_build(family, filter, err);
}

void cells_prepare(struct cells *cells)
{
	static const struct cell_request ahead = {.ahead = true};
	const struct jail_limits none = {.wall_us = 0};
	struct jail_limits limits;
	struct err err = ERR_INIT;
	struct cell *cell;
	size_t missing = 0;
	int result;

	pool_made(&cells->pool);
	/* One that is there is joined before others are made: in busy times there are never enough. */
	if (enough_parked(cells) ? cell_join_due(cells) : cell_join_possible(cells)) {
		cell_join_prepare(cells);
		return;
	}
	if (enough_parked(cells))
		return;
	while (missing < SECCOMP_FAMILIES && (cells->opened || cells->filters[missing].program.filter))
		missing++;
	if (missing < SECCOMP_FAMILIES)
		result = cells_make_filter(cells, (enum seccomp_family)missing, &err);
	else if ((result = limits_resolve(&cells->config->limits, &none, &limits, &err)) == 0)
		result = build(cells, &limits, cells->root, &ahead, &cell, &err);
	/* The next that opens a jail gets the reason; until that works, no more is tried ahead. */
	if (result < 0) {
		log_event(LOG_WARN, "cannot prepare a jail", "why", err.text, NULL);
		cells->parking_failed = true;
	}
}

/* Its init has the filters, and since it was joined no other interpreter was installed. */
static bool may_be_given(const struct cell *cell, unsigned families)
{
	return (cell->families & families) == families &&
	       (!cell->join.joined || cell_template_current(cell->cells, cell->join.key));
}

/* Those that nobody can be given any more give way to others. A jail's /tmp belongs to its own namespace and stays as
 * it is. `joined`: rather one in which an interpreter waits; else rather another. NULL: none. */
static struct cell *find_parked(struct cells *cells, int64_t tmp_bytes, unsigned families, bool joined)
{
	struct cell *found = NULL;

	for (struct cell *cell = cells->first; cell && !(found && found->join.joined == joined); cell = cell->next) {
		if (cell->state != CELL_PARKED || cell->limits.tmp_bytes != tmp_bytes)
			continue;
		if (!may_be_given(cell, families))
			cell_destroy(cell);
		else if (!found || cell->join.joined == joined)
			found = cell;
	}
	return found;
}

/* One that was made ahead, with other limits if need be; NULL: none. */
static struct cell *take_parked(struct cells *cells, const struct jail_limits *limits, const struct runner *runner)
{
	const unsigned families = 1U << runner->family | (runner->compile.count ? 1U << runner->family_compile : 0);
	struct cell *cell = find_parked(cells, limits->tmp_bytes, families, runner->warm != NULL);

	if (!cell)
		return NULL;
	const struct jail_limits made = cell->limits;
	cell->limits = *limits;
	cell->parked = true;
	const struct data_size size = {limits->data_bytes, limits->data_inodes};
	bool resize = made.data_bytes != size.bytes || made.data_inodes != size.inodes;
	if (cell_run_limit_group(cell, PHASE_RUN) || (resize && data_resize(cell->data_root, &size)) ||
	    renew_layers(cell, NULL) < 0) {
		cell_destroy(cell);
		return NULL;
	}
	cell->opened_us = clock_monotonic_us();
	return cell;
}

/* A jail of these limits without an owner yet: made ahead or now. Those made ahead have the usual root and no
 * network, and are kept for others than batch work. */
static int take(struct cells *cells, const struct cell_request *request, struct cell **ret, struct err *err)
{
	bool own_root = request->runner->root.path[0] != '\0';
	const struct root_mount *root = own_root ? &request->runner->root : cells->root;

	if (!own_root && !request->network && !request->background &&
	    (*ret = take_parked(cells, request->limits, request->runner)))
		return 0;
	int result = cells_make_filter(cells, request->runner->family, err);
	if (result == 0 && request->runner->compile.count)
		result = cells_make_filter(cells, request->runner->family_compile, err);
	return result < 0 ? result : build(cells, request->limits, root, request, ret, err);
}

int cell_open(struct cells *cells, const struct cell_request *request, struct cell **ret, struct err *err)
{
	if (!request->extra && cells->count >= (size_t)cells->config->jailer.jails)
		return err_set(err, ERR_BUSY, "all %lld jails are in use: try again later",
			       (long long)cells->config->jailer.jails);
	const char *why = request->live ? cgroup_cannot_freeze(cells->cgroup) : NULL;
	if (why)
		return err_set(err, ERR_UNAVAILABLE, "live sandboxes are not available on this server, because %s",
			       why);
	struct cell *cell;
	int result = take(cells, request, &cell, err);
	if (result < 0)
		return result;
	result = request->live ? cell_live_open(cell, err) : 0;
	if (result < 0) {
		cell_destroy(cell);
		return result;
	}
	cells->parking_failed = false;
	cells->opened = true;
	if (!request->extra)
		pool_opened(&cells->pool, clock_monotonic_us());
	cell_template_asked(cells, request->runner);
	cell_join_forget(cell);
	cell_happened(cell, CELL_OPENED);
	if (cell->ready_us)
		cell_happened(cell, CELL_SET_UP);
	cell->runner = request->runner;
	cell->callbacks = *request->callbacks;
	cell->arg = request->arg;
	snprintf(cell->label, sizeof(cell->label), "%s", request->label ? request->label : "");
	cell->fingerprint = request->fingerprint;
	cell->extra = request->extra;
	cells->count += !cell->extra;
	*ret = cell;
	return 0;
}
