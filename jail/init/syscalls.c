/*
 * syscalls.c - the allowlist, in groups. See syscalls.h.
 *
 * What decides: does a normal program in one of the runners' languages call it, and does the kernel then act on the
 * caller alone? What only some of the languages' programs call, with more of the kernel behind it than most, is allowed
 * to their families. Left out on purpose, with the reason where it is not plain:
 *   vmsplice            page-cache write bugs (Dirty Pipe and its kin)
 *   ptrace, process_vm_*, pidfd_getfd, kcmp   other processes; debuggers do not run in here
 *   mount family, pivot_root, chroot, unshare, setns   namespaces are the jail
 *   add_key, request_key, keyctl   keyrings outlive a run
 *   open_by_handle_at, name_to_handle_at   reach files without a path
 *   inotify_*           shows which files of /usr others open at this moment, the host and other runs: what they do.
 *                       fcntl's F_NOTIFY, too
 *   io_uring_*          a second system call surface that filters do not see
 *   memfd_secret, userfaultfd, perf_event_open, bpf, fanotify_init, quotactl, acct, syslog, modules, kexec, reboot,
 *   swap, clocks
 */
#include "syscalls.h"

#include <stddef.h>

#include "seccomp.h"

#define NATIVE     (1U << SECCOMP_NATIVE)
#define PYTHON     (1U << SECCOMP_PYTHON)
#define JAVASCRIPT (1U << SECCOMP_JAVASCRIPT)
#define GO         (1U << SECCOMP_GO)

const char *const syscalls_allowed[] = {
	/* files and directories */
	"access", "chdir", "chmod", "chown", "close", "close_range", "copy_file_range", "creat", "dup", "dup2", "dup3",
	"faccessat", "faccessat2", "fallocate", "fchdir", "fchmod", "fchmodat", "fchown", "fchownat", "fgetxattr",
	"flistxattr", "flock", "fremovexattr", "fstat", "fstatfs", "ftruncate", "futimesat", "getcwd", "getdents",
	"getdents64", "getxattr", "lchown", "lgetxattr", "link", "linkat", "listxattr", "llistxattr", "lremovexattr",
	"lseek", "lstat", "mkdir", "mkdirat", "mknod", "mknodat", "newfstatat", "open", "openat", "openat2", "pread64",
	"preadv", "preadv2", "pwrite64", "pwritev", "pwritev2", "read", "readahead", "readlink", "readlinkat", "readv",
	"removexattr", "rename", "renameat", "renameat2", "rmdir", "sendfile", "stat", "statfs", "statx", "symlink",
	"symlinkat", "truncate", "umask", "unlink", "unlinkat", "utime", "utimensat", "utimes", "write", "writev",
	/* waiting and events */
	"epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait", "eventfd",
	"eventfd2", "pipe", "pipe2", "poll", "ppoll", "pselect6", "select", "signalfd", "signalfd4", "timerfd_create",
	"timerfd_gettime", "timerfd_settime",
	/* memory */
	"brk", "madvise", "mincore", "mlock", "mlock2", "mmap", "mprotect", "mremap", "msync", "munlock", "munlockall",
	"munmap",
	/* processes, threads, scheduling of one's own */
	"arch_prctl", "execve", "exit", "exit_group", "fork", "futex", "get_robust_list", "getcpu", "getpgid",
	"getpgrp", "getpid", "getppid", "getpriority", "getrlimit", "getrusage", "getsid", "gettid", "kill",
	"pidfd_open", "pidfd_send_signal", "rseq", "sched_get_priority_max", "sched_get_priority_min",
	"sched_getaffinity", "sched_getattr", "sched_getparam", "sched_getscheduler", "sched_rr_get_interval",
	"sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler", "sched_yield", "set_robust_list",
	"set_tid_address", "setpgid", "setpriority", "setrlimit", "setsid", "tgkill", "times", "tkill", "vfork",
	"wait4", "waitid", "waitpid", "ioprio_get", "ioprio_set", "getitimer", "setitimer", "alarm", "pause",
	"restart_syscall",
	/* signals */
	"rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigqueueinfo", "rt_sigreturn", "rt_sigsuspend",
	"rt_sigtimedwait", "rt_tgsigqueueinfo", "sigaltstack",
	/* ids: the kernel refuses what the guest must not become */
	"capget", "capset", "getegid", "geteuid", "getgid", "getgroups", "getresgid", "getresuid", "getuid", "setfsgid",
	"setfsuid", "setgid", "setgroups", "setregid", "setresgid", "setresuid", "setreuid", "setuid",
	/* time */
	"clock_getres", "clock_gettime", "clock_nanosleep", "gettimeofday", "nanosleep", "time", "timer_create",
	"timer_delete", "timer_getoverrun", "timer_gettime", "timer_settime",
	/* sockets; which families is decided at socket() */
	"accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt", "listen", "recvfrom",
	"recvmmsg", "recvmsg", "sendmmsg", "sendmsg", "sendto", "setsockopt", "shutdown",
	/* the machine */
	"getrandom", "sysinfo", "uname", "landlock_add_rule", "landlock_create_ruleset", "landlock_restrict_self",
	NULL,
};

/* Found by tracing: interpreters, compilers and their libraries at work (2026-11), and the interpreters' own
 * documentation. */
const struct syscalls_choice syscalls_by_family[] = {
	/* a program without a name: os.execve of a descriptor, os.memfd_create, children of bun */
	{"execveat", NATIVE | PYTHON},
	{"memfd_create", NATIVE | PYTHON | JAVASCRIPT},
	/* libnuma asks when it is loaded; no program may set one: policies of pages of files are uncounted memory */
	{"get_mempolicy", NATIVE | PYTHON},
	/* V8 locks its code with them where the processor can */
	{"pkey_alloc", NATIVE | JAVASCRIPT},
	{"pkey_free", NATIVE | JAVASCRIPT},
	{"pkey_mprotect", NATIVE | JAVASCRIPT},
	/* half of the page-cache write bugs; os.splice, and what Go copies sockets with */
	{"splice", NATIVE | PYTHON | GO},
	{"tee", NATIVE},
	/* System V IPC: the jail has a namespace of its own */
	{"msgctl", NATIVE},
	{"msgget", NATIVE},
	{"msgrcv", NATIVE},
	{"msgsnd", NATIVE},
	{"semctl", NATIVE},
	{"semget", NATIVE},
	{"semop", NATIVE},
	{"semtimedop", NATIVE},
	{"shmat", NATIVE},
	{"shmctl", NATIVE},
	{"shmdt", NATIVE},
	{"shmget", NATIVE},
	/* databases and other large programs in C */
	{"futex_waitv", NATIVE},
	{"membarrier", NATIVE},
	{"mlockall", NATIVE},
	{"remap_file_pages", NATIVE},
	{NULL, 0},
};

/* What a program means when it calls one of these is worth a word in the result. Not here: what libraries try at every
 * start. */
const char *const syscalls_reported[] = {
	"acct", "add_key", "adjtimex", "bpf", "chroot", "clock_adjtime", "clock_settime", "delete_module",
	"fanotify_init", "finit_module", "fsconfig", "fsmount", "fsopen", "fspick", "init_module", "inotify_init",
	"inotify_init1", "ioperm", "iopl", "kcmp", "kexec_file_load", "kexec_load", "keyctl", "migrate_pages",
	"modify_ldt", "mount", "mount_setattr", "move_mount", "move_pages", "name_to_handle_at", "open_by_handle_at",
	"open_tree", "perf_event_open", "pidfd_getfd", "pivot_root", "process_vm_readv", "process_vm_writev", "ptrace",
	"quotactl", "reboot", "request_key", "setdomainname", "sethostname", "setns", "settimeofday", "swapoff",
	"swapon", "syslog", "umount2", "unshare", "userfaultfd", "vmsplice", NULL
};

/* The first five would make the host write to its disks, and the jail has nothing on one. The last would give pages of
 * /usr back, which all use: a guest that reads them again learns by the time it takes whether another has. */
const char *const syscalls_idle[] = {"sync", "syncfs", "fsync", "fdatasync", "sync_file_range", "fadvise64", NULL};

/* tmpfs keeps them in memory that no limit counts: lists of access rights in every kernel, 64 KiB a file, and
 * "security." in older ones. Nothing collects them from /data. */
const char *const syscalls_unsupported[] = {"setxattr", "lsetxattr", "fsetxattr", NULL};

/* Asynchronous I/O takes from one number for the whole host (fs.aio-max-nr). Landlock refuses to open a message queue,
 * which is a file of a file system without a path; so there are none on any kernel. */
const char *const syscalls_absent[] = {
	"io_setup", "io_destroy", "io_submit", "io_cancel", "io_getevents", "io_pgetevents", "mq_open", "mq_unlink",
	"mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr", "clone3", "io_uring_setup", "io_uring_enter",
	"io_uring_register", "memfd_secret", "process_mrelease", "set_mempolicy_home_node", "cachestat", "fchmodat2",
	"map_shadow_stack", "futex_wake", "futex_wait", "futex_requeue", "process_madvise", "quotactl_fd", NULL
};
