/*
 * cell_template.c - the template that jails are joined from: its start, its answers and its end. See cell_join.c.
 *
 * It is a process of the jailer's with mounts of its own (init_template.c) in a cgroup of its own. One that ends, errs
 * or does not answer is killed, with the jail that it was to join; after a pause, which doubles each time, there may be
 * a new one. One that is old, has joined many jails, or whose interpreter has been replaced on the host, makes way for
 * a new one when a jail is to be joined.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cell_internal.h"
#include "jail/base/sys.h"
#include "jail/client/wire_fd.h"
#include "jail/init/join.h"
#include "lib/base/embed.h"
#include "lib/base/log.h"
#include "lib/base/util.h"

#define START_US     10000000 /* until it serves */
#define PAUSE_US     100000   /* before a new one; doubled each time */
#define PAUSE_MAX_US 60000000
#define RUNS_PRIVATE 2                  /* of its language, before a private jailer has a template */
#define RENEW_US     INT64_C(600000000) /* a template's age at its last join */
#define MEMORY_BYTES (INT64_C(512) << 20)
#define PROCESSES    8
#define CODE_BYTES   (INT64_C(16) << 20)
#define DATA_BYTES   4096
#define INODES       64

#ifndef WARM_LIBRARY /* the Makefile says it */
#define WARM_LIBRARY "build/warm.so"
#endif
EMBED(warm_library, WARM_LIBRARY);

void cell_join_init(struct cells *cells, struct runner *runner, bool service)
{
	struct template *template = &cells->template;

	*template = TEMPLATE_INIT;
	/* A jail without a range of ids shares the template's: not there. A root of its own: nor there. */
	if (streq(cells->config->jailer.warm, "off") || cells->identity->mode == IDENTITY_SINGLE || !runner ||
	    runner->root.path[0])
		return;
	template->runner = runner;
	template->asked = service ? RUNS_PRIVATE : 0;
	pool_init(&cells->pool, CELLS_PARKED, (size_t)cells->config->jailer.jails,
		  cells->config->jailer.warm_mb << 20);
}

void cell_template_asked(struct cells *cells, const struct runner *runner)
{
	cells->template.asked += runner == cells->template.runner;
}

bool cell_template_possible(const struct cells *cells)
{
	return cells->template.runner != NULL;
}

bool cells_join_wanted(const struct cells *cells)
{
	return cells->template.runner && cells->template.asked >= RUNS_PRIVATE;
}

/* Whether a file of that name is still the one that it was: an upgrade puts another in its place. */
static uint64_t interpreter_key(const struct cells *cells)
{
	auto_free char *path = xasprintf("%s%s", cells->root->path, cells->template.runner->interpreter);
	struct stat st;

	if (stat(path, &st))
		return 0;
	const int64_t seen[] = {(int64_t)st.st_ino, st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec};
	return fnv1a(FNV1A_BEGIN, seen, sizeof(seen));
}

bool cell_template_current(const struct cells *cells, uint64_t key)
{
	return key == interpreter_key(cells);
}

bool cell_template_renew(struct cells *cells)
{
	struct template *template = &cells->template;
	const bool old = template->number - template->first >= TEMPLATE_JOINS ||
			 clock_monotonic_us() - template->started_us >= RENEW_US ||
			 !cell_template_current(cells, template->key);

	if (!old)
		return false;
	template->serves = false;
	template->again_us = clock_monotonic_us();
	pidfd_send_signal(template->pidfd_fd, SIGKILL, NULL, 0);
	return true;
}

struct cell *cell_template_joining(const struct cells *cells)
{
	struct cell *cell = cells->first;

	while (cell && cell->state != CELL_JOINING)
		cell = cell->next;
	return cell;
}

/* Its end is what pidfd_ready sees, and that of the jail what cell.c sees. */
void cell_template_end(struct cells *cells, const char *step, int error)
{
	struct template *template = &cells->template;
	struct cell *cell = cell_template_joining(cells);

	log_event(LOG_WARN, "an interpreter that waits for jails is ended", "runner", template->runner->name, "step",
		  step, "why", error ? strerror(error) : "it did not answer", NULL);
	template->serves = false;
	template->deadline_us = INT64_MAX;
	template->pause_us = template->pause_us ? MIN(template->pause_us * 2, PAUSE_MAX_US) : PAUSE_US;
	template->again_us = clock_monotonic_us() + template->pause_us;
	if (template->pidfd_fd >= 0)
		pidfd_send_signal(template->pidfd_fd, SIGKILL, NULL, 0);
	if (cell) {
		cell->join.lost = true;
		cell_kill(cell);
	}
}

static void answered(struct cells *cells, const struct join_answer *answer)
{
	struct template *template = &cells->template;

	if (answer->error) {
		cell_template_end(cells, answer->step, answer->error);
	} else if (answer->serves) {
		template->serves = true;
		template->deadline_us = INT64_MAX;
	} /* else the rest comes from the jail's init */
}

static void socket_ready(struct loop_watch *watch, uint32_t events)
{
	struct cells *cells = container_of(watch, struct cells, template.socket);
	struct join_answer answer;
	struct wire_fds none = {.room = 0};
	const ssize_t n = wire_fd_receive(watch->fd, &answer, sizeof(answer), MSG_DONTWAIT, &none);

	(void)events;
	if (n == (ssize_t)sizeof(answer)) {
		answer.step[sizeof(answer.step) - 1] = '\0';
		answered(cells, &answer);
		return;
	}
	if (n < 0 && errno == EAGAIN)
		return;
	int fd = watch->fd;
	loop_remove(cells->loop, watch); /* the pidfd says the rest */
	close(fd);
}

static void forget_template(struct cells *cells)
{
	struct template *template = &cells->template;
	int socket = template->socket.fd;

	loop_remove(cells->loop, &template->socket);
	fd_close(&socket);
	loop_remove(cells->loop, &template->pidfd);
	fd_close(&template->pidfd_fd);
	if (template->group)
		cgroup_give(cells->cgroup, steal(&template->group));
}

static void pidfd_ready(struct loop_watch *watch, uint32_t events)
{
	struct cells *cells = container_of(watch, struct cells, template.pidfd);

	(void)events;
	if (cells->template.again_us == 0)
		cell_template_end(cells, "it ended", ECHILD);
	waitid(P_PIDFD, (id_t)cells->template.pidfd_fd, &(siginfo_t){0}, WEXITED);
	forget_template(cells);
}

/* Its command is that of a program of nobody, with a value to show. */
static void command_of(struct cells *cells, struct buf *tail, struct init_order *order)
{
	static char *nothing[] = {NULL};
	struct cell_step step = {.argv = nothing, .env = nothing, .display = true};
	const struct cell cell = {
		.cells = cells, .runner = cells->template.runner, .run = {.step = &step, .phase = PHASE_RUN}};

	for (size_t i = 0; i < INIT_FDS_MAX; i++)
		step.fds[i] = -1;
	cell_run_order(&cell, order, tail);
}

static int put_files(const struct runner *runner, int code, struct err *err)
{
	const int64_t now = clock_now_us();
	auto_close int library =
		memfd_with("warm", warm_library, (size_t)((uintptr_t)warm_library_end - (uintptr_t)warm_library));

	if (library < 0 || init_put_file(code, ".warm.so", 0644, now, library) ||
	    init_put_file(code, RUNNER_STARTER, 0644, now, runner->warm_fd) ||
	    init_put_file(code, ".python", 0644, now, runner->starter_fd))
		return err_errno(err, "putting the starter into its place");
	return 0;
}

static int clone_template(struct cells *cells, const struct init_setup *setup, int ours, struct err *err)
{
	struct template *template = &cells->template;
	auto_buf struct buf tail;
	struct init_order order = {.verb = INIT_RUN};
	int pidfd = -1;
	struct clone_args args = {
		.flags = CLONE_NEWNS | CLONE_PIDFD, .pidfd = (uintptr_t)&pidfd, .exit_signal = SIGCHLD};

	buf_init(&tail, INIT_TAIL_MAX);
	command_of(cells, &tail, &order);
	const pid_t pid = sys_clone3(&args);
	if (pid == 0) {
		struct init_setup copy = *setup;

		close(ours);
		init_template_main(&copy, &order, tail.data);
	}
	if (pid < 0)
		return err_errno(err, "making its process");
	template->pidfd_fd = pidfd;
	return loop_add(cells->loop, &template->pidfd, pidfd, EPOLLIN, pidfd_ready) ? err_errno(err, "watching it") : 0;
}

static int start_template(struct cells *cells, struct err *err)
{
	struct template *template = &cells->template;
	const struct data_size data = {DATA_BYTES, INODES}, code = {CODE_BYTES, INODES};
	const struct cgroup_limits limits = {.memory_bytes = MEMORY_BYTES, .pids = PROCESSES, .cpu_percent = -1};
	auto_close int data_mount = -1;
	auto_close int data_root = -1;
	auto_close int code_mount = -1;
	auto_close int code_root = -1;
	int pair[2];

	if (data_make(&data, 0, &data_mount, &data_root, err) < 0 ||
	    data_make(&code, 0, &code_mount, &code_root, err) < 0 || put_files(template->runner, code_root, err) < 0)
		return -ERR_SYSTEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return err_errno(err, "making its socket");
	auto_close int ours = pair[0];
	auto_close int theirs = pair[1];
	struct init_setup setup = {
		.control = theirs,
		.data_mount = data_mount,
		.code_mount = code_mount,
		.tmp_bytes = CODE_BYTES,
		.root = cells->root,
		.layers = -1,
		.command_line = cells->command_line,
		.command_line_size = cells->command_line_size,
		.oom_score = -1,
	};
	int result = cgroup_take(cells->cgroup, &template->group, err);
	if (result == 0)
		result = cgroup_limit(template->group, &limits, err);
	if (result == 0)
		result = cgroup_fds(template->group, setup.group_fds, &setup.n_group_doors, err);
	if (result < 0)
		return result;
	result = clone_template(cells, &setup, ours, err);
	for (size_t i = 0; i < setup.n_group_doors; i++)
		close(setup.group_fds[i]);
	if (result == 0 && loop_add(cells->loop, &template->socket, ours, EPOLLIN, socket_ready))
		result = err_errno(err, "watching it");
	if (result == 0)
		steal_fd(&ours);
	template->again_us = 0;
	template->started++;
	template->started_us = clock_monotonic_us();
	template->first = template->number;
	template->key = interpreter_key(cells);
	template->deadline_us = clock_monotonic_us() + START_US;
	return result;
}

void cell_template_start(struct cells *cells)
{
	struct err err = ERR_INIT;

	if (start_template(cells, &err) == 0)
		return;
	cell_template_end(cells, err.text, 0);
	if (cells->template.pidfd.fd >= 0)
		return; /* its end will be seen */
	if (cells->template.pidfd_fd >= 0)
		waitid(P_PIDFD, (id_t)cells->template.pidfd_fd, &(siginfo_t){0}, WEXITED);
	forget_template(cells);
}

bool cell_template_may_start(const struct cells *cells)
{
	const struct template *template = &cells->template;

	return template->pidfd_fd < 0 && template->asked >= RUNS_PRIVATE && clock_monotonic_us() >= template->again_us;
}

int64_t cell_template_deadline(const struct cells *cells)
{
	const struct template *template = &cells->template;
	const bool pauses = template->runner && template->again_us && template->asked >= RUNS_PRIVATE &&
			    template->pidfd_fd < 0 && template->again_us > clock_monotonic_us();

	return pauses ? template->again_us : template->deadline_us;
}

void cell_template_tick(struct cells *cells, int64_t now_us)
{
	if (now_us >= cells->template.deadline_us)
		cell_template_end(cells, cells->template.serves ? "join" : "start", 0);
}

void cell_template_clear(struct cells *cells)
{
	struct template *template = &cells->template;

	if (template->pidfd_fd < 0)
		return;
	pidfd_send_signal(template->pidfd_fd, SIGKILL, NULL, 0);
	waitid(P_PIDFD, (id_t) template->pidfd_fd, &(siginfo_t){0}, WEXITED);
	forget_template(cells);
}
