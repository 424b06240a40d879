/* processes.c - probes P05 to P18, D01, E01: other processes, what is inherited. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "probe.h"

extern char **environ;

static void kill_supervisor(void)
{
	signal(SIGTERM, SIG_IGN);
	/* Init ignores what it has no handler for; the rest of the host is not there. */
	kill(1, SIGTERM);
	kill(1, SIGKILL);
	kill(1, SIGSTOP);
	kill(-1, SIGTERM);
	holds(kill(1, 0) == 0 || errno == EPERM, "init is gone"); /* EPERM: Landlock, from ABI 6 on */
	for (pid_t pid = 2; pid < 32768; pid++)
		if (pid != getpid())
			refused_with(kill(pid, SIGKILL), ESRCH, "kill %d", pid);
	int fd = (int)syscall(SYS_pidfd_open, 1, 0);
	syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
	holds(kill(1, 0) == 0 || errno == EPERM, "init is gone after pidfd_send_signal");
	refused(syscall(SYS_pidfd_getfd, fd, 3, 0), "pidfd_getfd of init");
}

static void into_init(void)
{
	char byte = 0;
	struct iovec local = {&byte, 1}, remote = {(void *)0x400000, 1};

	refused(open("/proc/1/mem", O_RDWR), "open /proc/1/mem for writing");
	refused(open("/proc/1/mem", O_RDONLY), "open /proc/1/mem");
	refused(ptrace(PTRACE_ATTACH, 1, 0, 0), "ptrace attach to init");
	refused(ptrace(PTRACE_SEIZE, 1, 0, 0), "ptrace seize of init");
	refused(syscall(SYS_process_vm_readv, 1, &local, 1, &remote, 1, 0), "process_vm_readv of init");
	refused(syscall(SYS_process_vm_writev, 1, &local, 1, &remote, 1, 0), "process_vm_writev of init");
	refused(syscall(SYS_kcmp, getpid(), 1, 0, 0, 0), "kcmp with init");
	struct rlimit limit = {0, 0};
	refused(syscall(SYS_prlimit64, 1, RLIMIT_NOFILE, &limit, NULL), "prlimit of init");
}

static void about_init(void)
{
	static const char *const files[] = {"environ", "maps",      "auxv",  "fd/0",    "exe", "root",
					    "cwd",     "map_files", "stack", "syscall", "io"};
	char path[64], text[4096];

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "/proc/1/%s", files[i]);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		refused(fd >= 0 ? read(fd, text, 1) : -1, "read %s", path);
	}
	int fd = open("/proc/1/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text));
	for (ssize_t i = 0; i < n; i++)
		holds(text[i] == '\0', "/proc/1/cmdline tells something");
}

static void proc_roots(void)
{
	DIR *list = opendir("/proc");
	int n = 0;

	for (struct dirent *entry; list && (entry = readdir(list));)
		n += entry->d_name[0] >= '0' && entry->d_name[0] <= '9';
	holds(n == 2, "%d processes are seen instead of init and this one", n);
}

static void descriptors(void)
{
	struct stat st;

	for (int fd = 3; fd < 65536; fd++)
		refused(fstat(fd, &st), "descriptor %d is open", fd);
	for (int fd = 0; fd < 3; fd++)
		holds(fstat(fd, &st) == 0 && (S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode)),
		      "descriptor %d is of an odd type", fd);
}

static void environment(void)
{
	static const char *const allowed[] = {"PATH=", "HOME=", "TMPDIR=", "LANG=", "USER=", "LOGNAME="};

	for (char **variable = environ; *variable; variable++) {
		bool known = false;

		for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
			known = known || strncmp(*variable, allowed[i], strlen(allowed[i])) == 0;
		holds(known, "environment: %s", *variable);
	}
}

static void real_time(void)
{
	struct sched_param_ {
		int priority;
	} parameter = {1};

	refused(setpriority(PRIO_PROCESS, 0, -1), "nice -1");
	refused(syscall(SYS_sched_setscheduler, 0, 1 /* SCHED_FIFO */, &parameter), "SCHED_FIFO");
	struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
	refused(setrlimit(RLIMIT_CORE, &limit), "raise RLIMIT_CORE");
	refused(setrlimit(RLIMIT_NOFILE, &limit), "raise RLIMIT_NOFILE");
	/* Whose turn never comes cannot end the run: init is not the guest's to put last. */
	static const long inits[] = {1, 1 | 1L << 32};
	unsigned attributes[14] = {sizeof(attributes), 5 /* SCHED_IDLE */};
	unsigned long processors[16] = {0};
	holds(syscall(SYS_sched_getaffinity, 0L, sizeof(processors), processors) > 0,
	      "its processors cannot be asked for");
	parameter.priority = 0;
	for (int i = 0; i < 2; i++) {
		refused_with(syscall(SYS_sched_setscheduler, inits[i], 5, &parameter), EPERM, "init made idle");
		refused_with(syscall(SYS_sched_setparam, inits[i], &parameter), EPERM, "init's priority set");
		refused_with(syscall(SYS_sched_setattr, inits[i], attributes, 0), EPERM,
			     "init made idle, by attributes");
		refused_with(syscall(SYS_sched_setaffinity, inits[i], sizeof(processors), processors), EPERM,
			     "init bound to a processor");
		refused_with(syscall(SYS_setpriority, (long)PRIO_PROCESS, inits[i], 19), EPERM, "nice 19 for init");
		refused_with(syscall(SYS_setpriority, PRIO_USER | (inits[i] & 1L << 32), 0L, 19L), EPERM,
			     "nice 19 for all of this id");
		refused_with(syscall(SYS_ioprio_set, 1L, inits[i], 3L << 13), EPERM, "idle input and output for init");
		refused_with(syscall(SYS_ioprio_set, 3 | (inits[i] & 1L << 32), 0L, 3L << 13), EPERM,
			     "idle input and output for all");
	}
	holds(syscall(SYS_sched_setaffinity, getpid(), sizeof(processors), processors) == 0,
	      "cannot bind itself to a processor");
	// Nicer than what the jailer was started with, which may be more than 0.
	holds(setpriority(PRIO_PROCESS, getpid(), 19) == 0, "cannot be nice");
}

const struct probe probes_processes[] = {
	PROBE("P05a", "kill init and everybody", kill_supervisor),
	PROBE("P06", "reach into init", into_init),
	PROBE("P07", "what /proc/1 tells", about_init),
	PROBE("P16", "priorities and limits", real_time),
	PROBE("F15", "processes that are seen", proc_roots),
	PROBE("D01", "descriptors", descriptors),
	PROBE("E01", "environment", environment),
	{0},
};
