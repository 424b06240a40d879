/*
 * init.c - the life of a jail's process 1: see init.h.
 *
 * It blocks in two places only: for the next order, and in poll while a payload runs, until a child ended or a refused
 * call waits for its answer (init_deny.c). It is single-threaded and trusts its orders (they come from the jailer,
 * which is the same program); it trusts nothing that a guest made: the source goes to a name below /code that is opened
 * without following links.
 *
 * The payload is made with vfork: no copy of the page tables, and a failure to start comes back as a value in shared
 * memory.
 */
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jail/base/sys.h"
#include "jail/client/wire_fd.h"
#include "landlock.h"
#include "lib/base/util.h"

#define SIGNALS   65
#define OOM_FIRST "1000" /* the guest goes first when memory is out */

struct received_order {
	struct init_order head;
	const char **strings; /* ended by NULL */
	size_t n_strings;
	int fds[INIT_FDS_MAX];
	size_t n_fds;
	char *buffer;
	size_t length; /* of what came */
};

static void report(struct init_report *what)
{
	ssize_t n;

	/* Blocking: if the jailer does not read, there is nothing better to do. */
	do
		n = send(INIT_CONTROL_FD, what, sizeof(*what), MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		_exit(1);
}

static void report_failure(const char *step, int error)
{
	struct init_report failed = {.kind = INIT_FAILED, .error = error};

	snprintf(failed.step, sizeof(failed.step), "%s", step);
	report(&failed);
}

static void report_denied(int number)
{
	report(&(struct init_report){.kind = INIT_DENIED, .index = (uint32_t)number});
}

static int64_t microseconds(struct timeval time)
{
	return time.tv_sec * 1000000 + time.tv_usec;
}

static int64_t own_us(void)
{
	struct rusage self;

	getrusage(RUSAGE_SELF, &self);
	return microseconds(self.ru_utime) + microseconds(self.ru_stime);
}

/* Until an order is there. What a process that joins says meanwhile is passed on. */
static void await_order(struct init_joined *joined)
{
	struct pollfd wait[] = {{.fd = joined->fd, .events = POLLIN}, {.fd = INIT_CONTROL_FD, .events = POLLIN}};
	struct init_report said;

	while (joined->fd >= 0 && (wait[0].revents || !wait[1].revents)) {
		wait[0].fd = joined->fd;
		if (poll(wait, ARRAY_SIZE(wait), -1) < 0 && errno != EINTR)
			_exit(1);
		if (!wait[0].revents)
			continue;
		init_join_parked(joined, &said);
		said.self_us = own_us();
		report(&said);
	}
}

/* The next order; the end of the connection is the end of init, and with it of everything in the namespace. */
static void receive(struct received_order *order)
{
	size_t size = sizeof(order->head) + INIT_TAIL_MAX;
	struct wire_fds fds = {.fds = order->fds, .room = INIT_FDS_MAX};
	ssize_t n = wire_fd_receive(INIT_CONTROL_FD, order->buffer, size, 0, &fds);

	if (n < (ssize_t)sizeof(order->head))
		_exit(0);
	order->n_fds = fds.count;
	order->length = (size_t)n;
	memcpy(&order->head, order->buffer, sizeof(order->head));
	size_t count = 0;
	for (const char *p = order->buffer + sizeof(order->head); p < order->buffer + n; p += strlen(p) + 1)
		count++;
	order->strings = xcalloc(count + 2, sizeof(*order->strings));
	order->n_strings = 0;
	for (const char *p = order->buffer + sizeof(order->head); p < order->buffer + n; p += strlen(p) + 1)
		order->strings[order->n_strings++] = p;
}

static void close_fds(struct received_order *order)
{
	for (size_t i = 0; i < order->n_fds; i++)
		close(order->fds[i]);
	order->n_fds = 0;
}

static void fill(const struct received_order *order)
{
	auto_close int root = open(order->head.code ? JAIL_CODE : "/data", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct init_report answer = {.kind = INIT_FILLED};

	for (uint32_t i = 0; i < order->head.n_files && answer.kind == INIT_FILLED; i++) {
		const char *name = order->strings[i];
		int result = root < 0 ? -1
			     : order->head.verb == INIT_REMOVE
				     ? init_remove_file(root, name)
				     : init_put_file(root, name, order->head.files[i].mode,
						     order->head.files[i].mtime_us, order->fds[i]);

		if (result < 0)
			answer = (struct init_report){.kind = INIT_FILL_FAILED, .error = errno, .index = i};
	}
	report(&answer);
}

/* Programs can do without a cache, so failures are ignored; a file of that name that is there already is kept. */
static void put_cache(const struct received_order *order)
{
	auto_close int root = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (root >= 0 && order->n_fds == 1 && fstatat(root, order->strings[0], &st, AT_SYMLINK_NOFOLLOW) &&
	    errno == ENOENT)
		init_put_file(root, order->strings[0], 0644, clock_now_us(), order->fds[0]);
}

/* Kills and reaps until the namespace is empty but for us. Returns the resident size that the largest of them had, in
 * KiB. */
static long clear_namespace(void)
{
	struct rusage usage = {.ru_maxrss = 0};
	long peak = 0;

	do {
		kill(-1, SIGKILL);
		peak = MAX(peak, usage.ru_maxrss);
	} while (wait4(-1, NULL, __WALL, &usage) > 0 || errno == EINTR);
	return peak;
}

/* What must be there when it starts. NULL, or the step that failed, and errno. */
static const char *prepare_program(const struct received_order *order)
{
	if (order->head.has_code) {
		auto_close int root = open(JAIL_CODE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (root < 0 || init_put_file(root, order->strings[0], 0644, clock_now_us(), order->fds[0]))
			return "write the source";
	}
	if (order->head.shows_data)
		init_beside_show();
	return order->head.has_tools && init_listen(order->fds[order->n_fds - 1]) ? "listen for tools" : NULL;
}

/* A file is copied: the guest could write to the caller's, or move its position. A pipe is handed on. */
static int input_for_guest(int from)
{
	struct stat st;
	off_t offset = lseek(from, 0, SEEK_CUR);

	if (fstat(from, &st) || !S_ISREG(st.st_mode))
		return fcntl(from, F_DUPFD_CLOEXEC, 3);
	auto_close int copy = memfd_create("stdin", MFD_CLOEXEC);
	if (copy < 0 || init_copy(copy, from, offset) || lseek(copy, 0, SEEK_SET) < 0)
		return -1;
	return steal_fd(&copy);
}

/* argv and envp are in one array of strings: a NULL goes between them, and one behind. Returns what comes behind
 * that, for a driver. */
static const char *separate(struct received_order *order)
{
	size_t begin = 1 + order->head.n_args, end = begin + order->head.n_env;
	const char *more = order->n_strings > end ? order->strings[end] : order->buffer + order->length;

	memmove(order->strings + begin + 1, order->strings + begin, order->head.n_env * sizeof(*order->strings));
	order->strings[begin] = order->strings[end + 1] = NULL;
	return more;
}

/* In the vfork child: nothing here allocates. Returns only when a step failed: its name, and errno. */
static const char *become_payload(const struct init_start *start, const char **strings)
{
	const char *failed = init_become(start);
	char **argv, **envp;

	/* Strings of the order; exec wants them without const and does not write. */
	memcpy(&argv, &(const char **){strings + 1}, sizeof(argv));
	memcpy(&envp, &(const char **){strings + 1 + start->head->n_args + 1}, sizeof(envp));
	if (failed)
		return failed;
	execve(argv[0], argv, envp);
	return INIT_STEP_EXEC;
}

/* The program's pid, or -1 with the name of the step that failed and errno. A function of its own: what vfork may
 * clobber is few. */
static pid_t start_payload(const struct init_start *start, const char **strings, const char **ret_failed)
{
	const char *volatile failed =
		NULL; /* written by the child, in the memory that it shares with us until it execs */
	volatile int error = 0;
	pid_t pid = vfork();

	if (pid == 0) {
		failed = become_payload(start, strings);
		error = errno;
		_exit(127);
	}
	if (pid > 0 && !error)
		return pid;
	*ret_failed = pid < 0 ? "fork" : failed;
	errno = pid < 0 ? errno : error;
	return -1;
}

/* Signals of children come through a descriptor. They are blocked, else the kernel drops them: process 1 ignores what
 * it does not handle. */
static const char *watch_children(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return "block signals";
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK) == INIT_CHILD_FD ? NULL : "watch children";
}

/* What programs of a jail are made with. */
struct launcher {
	const struct init_setup *setup;
	int landlock_fd;
	struct init_joined joined;
};

/* The first program may have a process that waits for it; else it gets one. */
static pid_t launch(struct launcher *launcher, const struct init_start *start, const struct received_order *order,
		    int *ret_listener, struct init_report *ret_before, const char **ret_failed)
{
	const struct init_hand_over what = {order->buffer, order->length, launcher->setup->join_execs};
	pid_t pid = launcher->joined.pid <= 0
			    ? 0
			    : init_join_start(&launcher->joined, start, &what, ret_listener, ret_before, ret_failed);

	if (pid)
		return pid;
	*ret_failed = "OOM score";
	/* The score is inherited by the program; ours goes back. */
	pid = write(INIT_OOM_FD, OOM_FIRST, strlen(OOM_FIRST)) < 0 ? -1
								   : start_payload(start, order->strings, ret_failed);
	int error = errno;
	if (write(INIT_OOM_FD, "0", 1) < 0)
		_exit(1);
	errno = error;
	return pid;
}

/* 0, or -1 with the step that failed and errno. */
static int start_program(const struct received_order *order, struct launcher *launcher, struct init_program *ret,
			 struct init_report *ret_before, const char **ret_failed)
{
	const struct init_order *head = &order->head;
	size_t next = head->has_code;
	int pair[2], talk[2] = {-1, -1}, listener = -1;
	struct wire_fds taken = {.fds = &listener, .room = 1};
	char mark;

	*ret_failed = "standard input";
	auto_close int input = head->driven      ? memfd_create("stdin", MFD_CLOEXEC)
			       : head->has_stdin ? input_for_guest(order->fds[next])
						 : open("/dev/null", O_RDWR | O_CLOEXEC);
	if (input < 0)
		return -1;
	next += head->has_stdin;
	*ret_failed = "socket for the listener";
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -1;
	auto_close int from_payload = pair[0];
	auto_close int to_init = pair[1];
	*ret_failed = "socket for the driver";
	if (head->driven && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, talk))
		return -1;
	auto_close int to_driver = talk[0];
	auto_close int drivers = talk[1];
	const struct init_start start = {
		.head = head,
		.filter = &launcher->setup->filters[head->family],
		.fds = {input, order->fds[next], order->fds[next + 1], drivers},
		.to_init = to_init,
		.group_fd = head->live ? order->fds[next + 2] : -1,
		.landlock_fd = launcher->landlock_fd,
	};
	pid_t pid = launch(launcher, &start, order, &listener, ret_before, ret_failed);
	int error = errno;
	if (listener < 0)
		wire_fd_receive(from_payload, &mark, 1, MSG_DONTWAIT, &taken); /* nothing there: no listener */
	init_deny_prepare(listener);
	*ret = (struct init_program){.pid = pid, .listener = listener, .talk = -1, .input = -1};
	if (pid > 0 && head->driven) {
		ret->talk = steal_fd(&to_driver);
		ret->input = steal_fd(&input);
	}
	errno = error;
	return pid < 0 ? -1 : 0;
}

/* What programs used that have ended, since `before`, less what the one in `joined` used before it was a program. */
static void account(const struct received_order *order, const struct rusage *before, struct init_report *joined,
		    struct init_report *ended)
{
	struct rusage after;

	ended->warm = joined->warm;
	if (order->head.live && !ended->gone) /* it has not */
		*joined = (struct init_report){.warm = false};

	getrusage(RUSAGE_CHILDREN, &after);
	ended->user_us = microseconds(after.ru_utime) - microseconds(before->ru_utime) - joined->user_us;
	ended->system_us = microseconds(after.ru_stime) - microseconds(before->ru_stime) - joined->system_us;
	ended->switches_voluntary = after.ru_nvcsw - before->ru_nvcsw - joined->switches_voluntary;
	ended->switches_forced = after.ru_nivcsw - before->ru_nivcsw - joined->switches_forced;
	ended->self_us = own_us();
}

/* What it wrote next to itself; and of what goes with the jail, a few names. */
static void take_back(const struct received_order *order, int64_t since_us, struct init_report *ended)
{
	if (!order->head.takes_back)
		return;
	init_beside_take();
	if (!order->head.live)
		init_beside_left(since_us, ended->left, sizeof(ended->left));
}

/* What a program leaves is killed before its end is reported; not so in a live jail, where it is frozen from outside.
 */
static void run(struct received_order *order, struct launcher *launcher, struct init_program *driver)
{
	struct init_program alone = INIT_PROGRAM_NONE, *program = order->head.driven ? driver : &alone;
	struct init_report ended = {.kind = INIT_ENDED}, joined = {.warm = false};
	const int64_t since_us = clock_now_us();
	const char *failed;
	struct rusage before;

	failed = prepare_program(order);
	if (failed) {
		report_failure(failed, errno);
		return;
	}
	const char *more = separate(order);
	getrusage(RUSAGE_CHILDREN, &before);
	ended.started_us = clock_monotonic_us();
	int result = program->pid < 0 ? start_program(order, launcher, program, &joined, &failed) : 0;
	if (result == 0 && order->head.driven) {
		failed = "standard input";
		result = init_drive(program, more, (size_t)(order->buffer + order->length - more),
				    order->head.has_stdin ? order->fds[order->head.has_code] : -1);
	}
	if (result < 0) {
		int error = errno;

		clear_namespace();
		init_program_close(program);
		report_failure(failed, error);
		return;
	}
	/* Ours must go, else the pipes never end. */
	close_fds(order);
	init_wait(program, &ended, report_denied);
	if (!order->head.live || ended.gone)
		ended.peak_bytes = MAX(ended.peak_bytes, clear_namespace() * INT64_C(1024));
	if (order->head.live && !ended.gone)
		init_wait_keep(program);
	if (!order->head.driven || ended.gone)
		init_program_close(program);
	take_back(order, since_us, &ended);
	account(order, &before, &joined, &ended);
	report(&ended);
}

/* What a guest could learn from /proc/1/cmdline, and dispositions that an exec would hand on. The kernel's own struct,
 * because libc does not let its two signals be touched. */
void init_forget_jailer(const struct init_setup *setup)
{
	struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		uint64_t mask;
	} standard = {.handler = NULL};

	for (int number = 1; number < SIGNALS; number++)
		syscall(SYS_rt_sigaction, number, &standard, NULL, sizeof(standard.mask));
	explicit_bzero(setup->command_line, setup->command_line_size);
	prctl(PR_SET_NAME, "init", 0, 0, 0);
}

_Noreturn void init_main(struct init_setup *setup)
{
	struct init_report ready = {.kind = INIT_READY};
	struct received_order order = {.buffer = NULL};
	struct init_program driver = INIT_PROGRAM_NONE; /* of a live jail: it stays from run to run */
	struct launcher launcher = {.setup = setup, .landlock_fd = -1, .joined = INIT_JOINED_NONE};
	bool live = false;

	init_forget_jailer(setup);
	const char *failed = init_setup_jail(setup);
	if (!failed)
		failed = watch_children();
	if (!failed)
		failed = init_make_landlock(setup, false, &launcher.landlock_fd);
	if (failed) {
		struct init_report broken = {.kind = INIT_FAILED, .error = errno};

		snprintf(broken.step, sizeof(broken.step), "%s", failed);
		/* The descriptor may not have moved yet. */
		if (send(setup->control, &broken, sizeof(broken), MSG_NOSIGNAL) < 0)
			send(INIT_CONTROL_FD, &broken, sizeof(broken), MSG_NOSIGNAL);
		_exit(1);
	}
	report(&ready);
	order.buffer = xmalloc(sizeof(order.head) + INIT_TAIL_MAX);
	for (;;) {
		await_order(&launcher.joined);
		receive(&order);
		if (order.head.verb == INIT_FILL || order.head.verb == INIT_REMOVE) {
			fill(&order);
		} else if (order.head.verb == INIT_CACHE) {
			put_cache(&order);
		} else if (order.head.verb == INIT_JOIN && order.n_fds == 1) {
			init_join_close(&launcher.joined);
			launcher.joined.fd = order.fds[--order.n_fds];
		} else if (order.head.verb == INIT_RUN) {
			failed = NULL;
			if (order.head.live && !live) {
				fd_close(&launcher.landlock_fd);
				failed = init_make_landlock(setup, true, &launcher.landlock_fd);
			}
			if (failed) {
				report_failure(failed, errno);
			} else {
				live = order.head.live;
				run(&order, &launcher, &driver);
			}
		}
		close_fds(&order);
		explicit_bzero(order.buffer, order.length); /* the rest has never been touched, and is not there */
		free(order.strings);
	}
}
