/* kernel.c - probes K01 to K15: system calls, ioctls and files that reach the kernel. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

static void user_namespaces(void)
{
	static const int flags[] = {CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,    CLONE_NEWNET,
				    CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP, 0x80};

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		struct clone_args arguments = {.flags = (unsigned)flags[i], .exit_signal = SIGCHLD};

		refused(unshare(flags[i]), "unshare(%#x)", flags[i]);
		refused(unshare(flags[i] | CLONE_NEWUSER), "unshare(%#x | NEWUSER)", flags[i]);
		long pid =
			syscall(SYS_clone, flags[i] == 0x80 ? CLONE_NEWUSER | SIGCHLD : flags[i] | SIGCHLD, 0, 0, 0, 0);
		if (pid == 0)
			_exit(0);
		refused(pid, "clone(%#x)", flags[i]);
		pid = syscall(SYS_clone3, &arguments, sizeof(arguments));
		if (pid == 0)
			_exit(0);
		refused_with(pid, ENOSYS, "clone3(%#x)", flags[i]);
	}
}

/* clang-format off */
/* Those that would end or stop this process. */
static const int unsafe[] = {
	SYS_exit, SYS_exit_group, SYS_pause, SYS_rt_sigreturn,
	SYS_vfork, SYS_fork, SYS_clone, SYS_rt_sigsuspend, SYS_kill,
	SYS_tkill, SYS_tgkill, SYS_munmap, SYS_brk, SYS_close_range,
	SYS_alarm, SYS_setitimer, SYS_write, SYS_close, SYS_read,
	SYS_dup2, SYS_dup3, SYS_select, SYS_poll, SYS_ppoll, SYS_pselect6, SYS_wait4, SYS_waitid, SYS_rt_sigtimedwait,
	SYS_mprotect, SYS_mremap, SYS_rt_sigprocmask, SYS_shmdt, SYS_set_tid_address, SYS_arch_prctl, SYS_rseq,
	SYS_restart_syscall, SYS_munlockall,
};
/* Those that no guest may reach. */
static const int never[] = {
	SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_swapon, SYS_reboot, SYS_sethostname, SYS_init_module,
	SYS_delete_module, SYS_quotactl, SYS_settimeofday, SYS_adjtimex,
	SYS_clock_settime, SYS_acct, SYS_syslog, SYS_iopl,
	SYS_ioperm, SYS_modify_ldt, SYS_ptrace, SYS_kexec_load,
	SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_add_key,
	SYS_request_key, SYS_keyctl, SYS_io_uring_setup,
	SYS_io_uring_enter, SYS_io_uring_register, SYS_setns, SYS_unshare,
	SYS_finit_module, SYS_fanotify_init, SYS_open_by_handle_at, SYS_name_to_handle_at, SYS_process_vm_readv,
	SYS_process_vm_writev, SYS_kcmp, SYS_vmsplice,
	SYS_migrate_pages, SYS_move_pages, SYS_lookup_dcookie, SYS_fsopen,
	SYS_fsconfig, SYS_fsmount, SYS_fspick, SYS_open_tree, SYS_move_mount, SYS_mount_setattr, SYS_pidfd_getfd,
	SYS_memfd_secret, SYS_seccomp, SYS_nfsservctl, SYS_uselib, SYS_ustat, SYS_sysfs, SYS_vhangup,
};
/* clang-format on */

/* Every number with bad arguments: no crash; what is not listed says EPERM or ENOSYS. */
static void all_calls(void)
{
	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		for (int with = -1; with <= 0; with++) {
			errno = 0;
			long result = syscall(never[i], with, with, with, with, with, with);
			holds(result == -1 && (errno == EPERM || errno == ENOSYS),
			      "system call %d reaches the kernel (%ld, %s)", never[i], result, strerror(errno));
		}
	for (int number = 0; number < 700; number++) {
		bool skip = false;

		for (size_t i = 0; i < sizeof(unsafe) / sizeof(unsafe[0]); i++)
			skip = skip || unsafe[i] == number;
		if (!skip && number > 450) {
			errno = 0;
			holds(syscall(number, -1, -1, -1, -1, -1, -1) == -1 && (errno == ENOSYS || errno == EPERM),
			      "system call %d is known", number);
		}
		errno = 0;
		holds(syscall(0x40000000 | number, -1, -1, -1, -1, -1, -1) == -1 && errno == ENOSYS,
		      "x32 call %d is known", number);
	}
}

static void io_uring(void)
{
	char parameters[256] = {0};

	refused_with(syscall(SYS_io_uring_setup, 8, parameters), ENOSYS, "io_uring_setup");
}

static void keys(void)
{
	refused(syscall(SYS_add_key, "user", "probe", "x", 1, -3), "add_key");
	for (long ring = -8; ring < 0; ring++) {
		refused(syscall(SYS_keyctl, 0, ring, 1), "keyctl get of ring %ld", ring);
		refused(syscall(SYS_request_key, "user", "probe", NULL, ring), "request_key of ring %ld", ring);
	}
}

static void mount_family(void)
{
	refused(syscall(SYS_fsopen, "tmpfs", 0), "fsopen");
	refused(syscall(SYS_open_tree, AT_FDCWD, "/", 1 /* CLONE */), "open_tree");
	refused(syscall(SYS_fspick, AT_FDCWD, "/tmp", 0), "fspick");
	refused(syscall(SYS_move_mount, AT_FDCWD, "/tmp", AT_FDCWD, "/data", 0), "move_mount");
	refused(syscall(SYS_pivot_root, ".", "."), "pivot_root");
	refused(mount("cgroup", "/tmp", "cgroup", 0, "memory"), "mount of cgroup");
	refused(mount("proc", "/tmp", "proc", 0, NULL), "mount of proc");
	refused(mount("overlay", "/tmp", "overlay", 0, "lowerdir=/usr,upperdir=/data,workdir=/tmp"),
		"mount of overlay");
}

static void set_namespace(void)
{
	static const char *const names[] = {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time"};
	char path[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "/proc/self/ns/%s", names[i]);
		refused(setns(open(path, O_RDONLY | O_CLOEXEC), 0), "setns %s", names[i]);
		snprintf(path, sizeof(path), "/proc/1/ns/%s", names[i]);
		refused(open(path, O_RDONLY | O_CLOEXEC), "open %s", path);
	}
}

static void crypto_sockets(void)
{
	char data[16] = "x";
	struct iovec vector = {data, sizeof(data)};
	int ends[2];

	refused(syscall(SYS_socket, 38 /* AF_ALG */, 5, 0), "AF_ALG");
	if (pipe(ends) == 0)
		refused(syscall(SYS_vmsplice, ends[1], &vector, 1, 0), "vmsplice");
}

static void controls(void)
{
	static const unsigned long requests[] = {0x5412 /* TIOCSTI */,
						 0x541c /* TIOCLINUX */,
						 0x40086602 /* FS_IOC_SETFLAGS */,
						 0x40049409 /* FICLONE */,
						 0x4c00 /* LOOP_SET_FD */,
						 0x5401 ^ 0x1000,
						 0x540e /* TIOCSCTTY */,
						 0x5423 /* TIOCSETD */};
	static const long high[] = {0, 1L << 32, (long)0xffffffff00000000};
	char byte = 'x';
	int fd = open("/tmp/ioctl", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		for (size_t k = 0; k < sizeof(high) / sizeof(high[0]); k++)
			for (int on = 0; on < 2; on++)
				refused_with(syscall(SYS_ioctl, on ? fd : 0, (long)requests[i] | high[k], &byte), EPERM,
					     "ioctl %#lx", requests[i]);
}

static int count_writable(const char *path, int depth)
{
	DIR *list = opendir(path);
	int n = 0;

	for (struct dirent *entry; list && (entry = readdir(list));) {
		char name[512];
		struct stat st;

		if (entry->d_name[0] == '.' ||
		    (size_t)snprintf(name, sizeof(name), "%s/%s", path, entry->d_name) >= sizeof(name) ||
		    lstat(name, &st))
			continue;
		if (S_ISDIR(st.st_mode) && depth < 8)
			n += count_writable(name, depth + 1);
		if (!S_ISREG(st.st_mode))
			continue;
		int fd = open(name, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
		refused(fd, "open %s for writing", name);
		if (fd >= 0)
			close(fd);
	}
	if (list)
		closedir(list);
	return n;
}

static void proc_writes(void)
{
	count_writable("/proc", 0);
	refused(access("/proc/sys/kernel/core_pattern", W_OK), "core_pattern is writable");
	refused(access("/sys", F_OK), "/sys is there");
}

static void kernel_messages(void)
{
	char text[16];
	static const char *const files[] = {"/proc/kmsg",       "/proc/kcore",    "/proc/keys",
					    "/proc/timer_list", "/proc/slabinfo", "/proc/vmallocinfo",
					    "/proc/locks"};

	refused(syscall(SYS_syslog, 3, text, sizeof(text)), "syslog");
	holds(flock(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), LOCK_SH) == 0, "no lock"); /* that would be listed */
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		int fd = open(files[i], O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		holds(fd < 0 || read(fd, text, sizeof(text)) <= 0, "%s can be read", files[i]);
	}
}

const struct probe probes_kernel[] = {
	PROBE("K01", "namespaces of its own", user_namespaces),
	PROBE("K02a", "system calls that are not listed", all_calls),
	PROBE("K03", "io_uring", io_uring),
	PROBE("K05", "keys", keys),
	PROBE("K06", "mounts", mount_family),
	PROBE("K07", "other namespaces", set_namespace),
	PROBE("K08", "AF_ALG and vmsplice", crypto_sockets),
	PROBE("K09", "ioctls, with high bits too", controls),
	PROBE("K13", "write below /proc", proc_writes),
	PROBE("K15", "the kernel's messages and tables", kernel_messages),
	{0},
};
