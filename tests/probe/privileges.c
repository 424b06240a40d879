/* privileges.c - probes P10 to P18, R10 to R15, K04, K10, K16, K19, N07: privileges, limits, what is known of the host.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

#define ORPHANS 400

/* Orphans go to init, which must reap them while the program still runs: they count against its processes. */
static void orphans(void)
{
	int made = 0, refusals = 0;

	for (; made < ORPHANS && refusals < 1000000;) {
		pid_t pid = fork();

		if (pid == 0) {
			pid_t grandchild = fork();
			_exit(grandchild >= 0 ? 0 : 1);
		}
		int status = 1;
		if (pid > 0)
			waitpid(pid, &status, 0);
		if (status == 0)
			made++;
		else {
			refusals++;
			sched_yield();
		}
	}
	holds(made == ORPHANS, "only %d of %d orphans were made: init does not reap them", made, ORPHANS);
}

static void trace(void)
{
	refused(ptrace(PTRACE_TRACEME, 0, 0, 0), "ptrace traceme");
	pid_t pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	refused(ptrace(PTRACE_ATTACH, pid, 0, 0), "ptrace attach to a child");
	refused(ptrace(PTRACE_SEIZE, pid, 0, 0), "ptrace seize of a child");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* What keeps a core_pattern that is a program from being started on the host is a limit of exactly one byte; the file
 * system has no say. */
static void core_limit(void)
{
	struct rlimit limit = {0, 0};
	char pattern[2] = "|";
	int fd = open("/proc/sys/kernel/core_pattern", O_RDONLY);

	if (fd >= 0 && read(fd, pattern, 1) != 1)
		pattern[0] = '|';
	if (fd >= 0)
		close(fd);
	getrlimit(RLIMIT_CORE, &limit);
	holds(limit.rlim_max <= 1, "core files may have %llu bytes", (unsigned long long)limit.rlim_max);
	holds(pattern[0] != '|' || (limit.rlim_cur == 1 && limit.rlim_max == 1),
	      "a crash starts a program on the host: RLIMIT_CORE is %llu", (unsigned long long)limit.rlim_cur);
}

static void core_dump(void)
{
	int status = 0;

	core_limit();
	pid_t pid = fork();

	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		raise(SIGSEGV);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	holds(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "a child with SIGSEGV ended with status %d", status);
	holds(!WCOREDUMP(status), "the kernel dumped core");
	DIR *list = opendir("/data");
	for (struct dirent *entry; list && (entry = readdir(list));)
		holds(strncmp(entry->d_name, "core", 4) != 0, "/data/%s is there", entry->d_name);
}

static void no_gain(void)
{
	static const char *const places[] = {"/", "/usr", "/data", "/tmp", "/code", "/proc", "/dev", "/dev/shm"};
	struct statvfs fs;
	char text[4096];

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		holds(statvfs(places[i], &fs) == 0 && (fs.f_flag & ST_NOSUID), "%s honours setuid", places[i]);
	holds(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1, "no_new_privs is not set");
	holds(getuid() != 0 && geteuid() != 0 && getgid() != 0, "it is root");
	for (int cap = 0; cap < 64; cap++)
		holds(prctl(PR_CAPBSET_READ, cap, 0, 0, 0) != 1, "capability %d is in the bounding set", cap);
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	holds(n > 0, "no /proc/self/status");
	text[n > 0 ? n : 0] = '\0';
	static const char *const sets[] = {"CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"};
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		const char *at = strstr(text, sets[i]);

		holds(at && strtoull(at + 7, NULL, 16) == 0, "%s is not empty", sets[i]);
	}
}

static void machine(void)
{
	char buffer[16] = {0};

	refused((long)personality(ADDR_NO_RANDOMIZE), "personality without address randomisation");
	refused((long)personality(READ_IMPLIES_EXEC), "personality that makes memory executable");
	refused(syscall(SYS_modify_ldt, 1, buffer, sizeof(buffer)), "modify_ldt");
	refused(iopl(3), "iopl");
	refused(ioperm(0x60, 1, 1), "ioperm");
}

static void big_interfaces(void)
{
	char attributes[128] = {0};

	for (long command = 0; command < 40; command++)
		refused(syscall(SYS_bpf, command, attributes, sizeof(attributes)), "bpf %ld", command);
	refused(syscall(SYS_perf_event_open, attributes, 0, -1, -1, 0), "perf_event_open");
	refused(syscall(SYS_userfaultfd, 0), "userfaultfd");
	refused(syscall(SYS_userfaultfd, 1 /* USER_MODE_ONLY */), "userfaultfd of user mode");
	refused(syscall(SYS_kexec_load, 0, 0, NULL, 0), "kexec_load");
	refused(syscall(SYS_init_module, attributes, 0, ""), "init_module");
	refused(syscall(SYS_finit_module, 0, "", 0), "finit_module");
	refused(syscall(SYS_reboot, 0xfee1dead, 672274793, 0, NULL), "reboot");
}

static void settings(void)
{
	static const char *const files[] = {"/proc/sys/kernel/core_pattern",
					    "/proc/sys/kernel/hostname",
					    "/proc/sys/net/ipv4/ip_forward",
					    "/proc/sys/net/ipv4/ping_group_range",
					    "/proc/sys/kernel/yama/ptrace_scope",
					    "/proc/sys/kernel/shmmax",
					    "/proc/sys/vm/drop_caches",
					    "/proc/sysrq-trigger",
					    "/proc/self/oom_score_adj",
					    "/proc/self/uid_map",
					    "/proc/self/setgroups",
					    "/proc/self/attr/current"};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		refused(open(files[i], O_WRONLY | O_CLOEXEC), "open %s for writing", files[i]);
}

static void whose_host(void)
{
	static const char *const files[] = {"/etc/machine-id",
					    "/var/lib/dbus/machine-id",
					    "/sys/class/dmi/id/product_uuid",
					    "/etc/resolv.conf",
					    "/etc/ssh",
					    "/etc/fstab"};
	struct utsname name;

	holds(uname(&name) == 0 && strcmp(name.nodename, "jail") == 0, "the host is called %s", name.nodename);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		refused(access(files[i], F_OK), "%s is there", files[i]);
}

static void many_files(void)
{
	int n = 0;

	while (n < 100000 && open("/", O_PATH | O_DIRECTORY) >= 0)
		n++;
	holds(n < 2000 && errno == EMFILE, "%d files can be open", n);
	refused(dup2(0, 1000000000), "dup2 to a huge number");
}

static void locked_memory(void)
{
	size_t size = 1 << 20;
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	refused(mlock(memory, size), "mlock of a megabyte");
	refused(mlockall(MCL_CURRENT | MCL_FUTURE), "mlockall");
}

static void own_cgroup(void)
{
	char text[8192];
	int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	holds(n > 0, "no /proc/self/cgroup");
	text[n > 0 ? n : 0] = '\0';
	/* What is frozen between runs is a part of its own, without a number. */
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		holds((strlen(line) >= 2 && strcmp(line + strlen(line) - 2, ":/") == 0) ||
			      strcmp(line, "0::/runs") == 0 ||
			      (strncmp(line, "0::/runs-", 9) == 0 && strlen(line) == 9 + 16),
		      "the place in the cgroups is told: %s", line);
	fd = open("/proc/self/mounts", O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	holds(n > 0, "no /proc/self/mounts");
	text[n > 0 ? n : 0] = '\0';
	holds(!strstr(text, " cgroup") && !strstr(text, " sysfs ") && !strstr(text, " debugfs "),
	      "cgroups or /sys are mounted");
}

/* Of a descriptor that is not open, so that only a kernel that was not asked says that it worked. */
static void host_sync(void)
{
	int usr = open("/usr/bin/env", O_RDONLY | O_CLOEXEC);

	holds(syscall(SYS_syncfs, -1) == 0, "syncfs reaches the kernel");
	sync();
	holds(syscall(SYS_fsync, -1) == 0 && fsync(usr) == 0, "fsync reaches the kernel");
	holds(syscall(SYS_fdatasync, -1) == 0 && fdatasync(usr) == 0, "fdatasync reaches the kernel");
	holds(syscall(SYS_sync_file_range, -1, 0L, 0L, 7L) == 0, "sync_file_range reaches the kernel");
	refused_with(syscall(SYS_pwritev2, -1, NULL, 0L, 0L, 0L, 2L /* RWF_DSYNC */), EOPNOTSUPP,
		     "a write that flushes");
	close(usr);
}

static void other_sockets(void)
{
	static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		refused(socket(AF_VSOCK, types[i] | SOCK_CLOEXEC, 0), "vsock type %d", types[i]);
		refused(socket(AF_PACKET, types[i] | SOCK_CLOEXEC, 0x0300), "packet socket type %d", types[i]);
		refused(socket(44 /* AF_XDP */, types[i] | SOCK_CLOEXEC, 0), "XDP socket type %d", types[i]);
		int pair[2];
		refused(socketpair(AF_INET, types[i] | SOCK_CLOEXEC, 0, pair), "socket pair of INET");
	}
}

const struct probe probes_privileges[] = {
	PROBE("P10", "orphans that nobody waits for", orphans),
	PROBE("P13", "trace a child", trace),
	PROBE("P17", "dump core", core_dump),
	PROBE("P18", "gain by setuid, capabilities", no_gain),
	PROBE("R10", "open files without end", many_files),
	PROBE("R11", "lock memory", locked_memory),
	PROBE("R14", "see or leave the cgroup", own_cgroup),
	PROBE("R15", "flush the host's disks", host_sync),
	/* 47 refusals that init tells, each a turn of two processes: where jails get little of a busy machine a hundred
	   milliseconds. */
	PROBE_TERMS("K04", "bpf, perf, userfaultfd, kexec, modules", big_interfaces, "wall_ms=60000"),
	PROBE("K10", "personality, segments, ports", machine),
	PROBE("K16", "write settings of the kernel", settings),
	PROBE("K19", "whose host this is", whose_host),
	PROBE("N07", "vsock, packet and XDP sockets", other_sockets),
	{0},
};
