/*
 * warm_join.c - a copy of this process becomes process 2 of a jail.
 *
 * A process cannot change its pid namespace, only choose that of its children, and from a jail's there is no way back.
 * So there are two helpers, which share the template's memory (no copy) and run while it stands still. The first
 * chooses the jail's namespace. The second, its child, is process 3 there, which it asks for; it forks, with libc's
 * fork, because libraries have handlers there. The copy is process 2, and as both helpers end at once it is a child of
 * the jail's init: as if init had made it.
 *
 * The copy then does what init did when it set the jail up, in the order that the kernel demands (init_setup.c): the
 * cgroup first, as long as it has the jailer's id, then the namespaces, then the ids, then everything that it can give
 * up.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "jail/base/sys.h"
#include "lib/base/util.h"
#include "warm.h"

#define HELPER_PID 3
#define OOM_FIRST  "1000"
#define INIT_HIGH  32 /* above those of any program; below 64 the table stays as small as one has it */
#define MAPS_MAX   (1 << 20)
#define NAP_NS     50000

/* As a program that has nothing but registers may continue behind it twice. */
static inline __attribute__((always_inline)) long clone_here(const struct clone_args *args, size_t size)
{
#if defined(__x86_64__)
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"((long)SYS_clone3), "D"(args), "S"(size)
			 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long call __asm__("x8") = SYS_clone3;
	register long result __asm__("x0") = (long)args;
	register size_t second __asm__("x1") = size;

	__asm__ volatile("svc 0" : "+r"(result) : "r"(call), "r"(second) : "memory", "cc");
	return result;
#else
	(void)args;
	(void)size;
	return -ENOSYS;
#endif
}

/* As vfork: 0 in the copy, the helper's pid in the caller, or -errno. The helper goes on to `helps`, from which the
 * copy alone returns. On the stack that all of them have, a helper writes below this frame only. */
static __attribute__((noinline)) long copy_process(const struct clone_args *args, void (*helps)(void))
{
	const long result = clone_here(args, sizeof(*args));

	if (result == 0)
		helps();
	return result;
}

static int process_ids;         /* the jail's namespace */
static struct join_answer said; /* the helpers share our memory, and so can say what failed */

static void end_helper(const char *failed, int error)
{
	if (failed) {
		said.error = error;
		snprintf(said.step, sizeof(said.step), "%s", failed);
	}
	syscall(SYS_exit, 0);
	__builtin_unreachable();
}

/* Until a helper is gone for good: left alone, it would be a child of the host's process 1, and the jail could not end
 * before that one looks for it. Signals of children are ignored, so none of them has to be asked for. */
static void await_helper(void)
{
	while (waitpid(-1, NULL, __WALL) > 0 || errno == EINTR)
		;
}

static __attribute__((noinline)) void help_second(void)
{
	const pid_t copy = fork();

	if (copy)
		end_helper(copy < 0 ? "fork" : NULL, errno);
}

static __attribute__((noinline)) void help_first(void)
{
	pid_t second = HELPER_PID;
	const struct clone_args args = {
		.flags = CLONE_VM | CLONE_VFORK,
		.exit_signal = SIGCHLD,
		.set_tid = (uintptr_t)&second,
		.set_tid_size = 1,
	};

	if (setns(process_ids, CLONE_NEWPID))
		end_helper("process ids", errno);
	const long helper = copy_process(&args, help_second);
	if (helper > 0)
		await_helper();
	if (helper)
		end_helper(helper < 0 ? "process 3" : NULL, (int)-helper);
}

int warm_join(const struct join_order *order, const int *fds, struct join_answer *ret, int *ret_init)
{
	const struct sigaction ignored = {.sa_handler = SIG_IGN}, standard = {.sa_handler = SIG_DFL};
	const struct clone_args args = {.flags = CLONE_VM | CLONE_VFORK, .exit_signal = SIGCHLD};

	said = (struct join_answer){.number = order->number};
	process_ids = fds[JOIN_PID];
	sigaction(SIGCHLD, &ignored, NULL);
	const long helper = copy_process(&args, help_first);
	if (helper > 0)
		await_helper();
	sigaction(SIGCHLD, &standard, NULL);
	if (helper == 0) {
		*ret_init = fds[JOIN_NAMESPACES];
		return 1;
	}
	*ret = said;
	if (helper < 0)
		*ret = (struct join_answer){.number = order->number, .error = (int)-helper, .step = "helper"};
	return 0;
}

static const char *give_up(bool keep_groups)
{
	if (!keep_groups && setgroups(0, NULL))
		return "groups";
	if (setresgid(INIT_ID, INIT_ID, INIT_ID) || setresuid(INIT_ID, INIT_ID, INIT_ID))
		return "ids";
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) || chdir("/data"))
		return "working directory";
	return init_drop_capabilities() ? "capabilities" : NULL;
}

const char *warm_enter(const struct join_order *order, const int *fds, int *init)
{
	static const int kinds[JOIN_NAMESPACES] = {CLONE_NEWPID, CLONE_NEWUSER, CLONE_NEWNS,
						   CLONE_NEWNET, CLONE_NEWIPC,  CLONE_NEWUTS};

	for (uint32_t i = 0; i < order->n_doors; i++)
		if (write(fds[JOIN_NAMESPACES + 1 + i], "0", 1) != 1)
			return "enter the cgroup";
	auto_close int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (score < 0 || write(score, OOM_FIRST, strlen(OOM_FIRST)) < 0)
		return "OOM score";
	for (int i = JOIN_USER; i < JOIN_NAMESPACES; i++)
		if (setns(fds[i], kinds[i]))
			return "enter the namespaces";
	/* Its root is the jail's group, as that of init's. */
	if (unshare(CLONE_NEWCGROUP))
		return "cgroup namespace";
	const char *failed = give_up(order->keep_groups);
	if (failed)
		return failed;
	/* The second helper is on its way out, and its number is that of the program's first child. */
	while (kill(HELPER_PID, 0) == 0 || errno != ESRCH)
		nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
	*init = dup3(*init, INIT_HIGH, O_CLOEXEC);
	if (*init < 0 || close_range(STDERR_FILENO + 1, INIT_HIGH - 1, 0) || close_range(INIT_HIGH + 1, ~0U, 0))
		return "close descriptors";
	return NULL;
}

/* One thread, and no memory that a copy would share with the others. */
const char *warm_unfit(void)
{
	auto_free char *maps = NULL;
	struct stat tasks;
	size_t length;

	if (stat("/proc/self/task", &tasks) ||
	    read_file_at(AT_FDCWD, "/proc/self/maps", MAPS_MAX, &maps, &length, NULL) < 0)
		return "/proc is not there";
	if (tasks.st_nlink != 2 + 1) /* a directory for each thread */
		return "it has threads";
	for (const char *line = maps; *line; line += strcspn(line, "\n") + 1) {
		const char *modes = line + strcspn(line, " ");

		if (strlen(modes) > 4 && modes[2] == 'w' && modes[4] == 's')
			return "it shares memory";
		if (!strchr(line, '\n'))
			break;
	}
	return NULL;
}
