/*
 * syscalls.c - the allowlist, in groups. See syscalls.h.
 *
 * What decides: does a normal program in one of the runners' languages call it, and does the kernel then act on the caller alone?
 * Left out on purpose, with the reason where it is not plain:
 *   vmsplice            page-cache write bugs (Dirty Pipe and its kin)
 *   ptrace, process_vm_*, pidfd_getfd, kcmp   other processes; debuggers do not run in here
 *   mount family, pivot_root, chroot, unshare, setns   namespaces are the jail
 *   add_key, request_key, keyctl   keyrings outlive a run
 *   open_by_handle_at, name_to_handle_at   reach files without a path
 *   io_uring_*          a second system call surface that filters do not see
 *   memfd_secret, userfaultfd, perf_event_open, bpf, fanotify_init, quotactl, acct, syslog, modules, kexec, reboot, swap, clocks
 */
#include "syscalls.h"

#include <stddef.h>

const char *const syscalls_allowed[] = {
	/* files and directories */
	"access", "chdir", "chmod", "chown", "close", "close_range", "copy_file_range", "creat", "dup", "dup2", "dup3", "faccessat", "faccessat2",
	"fadvise64", "fallocate", "fchdir", "fchmod", "fchmodat", "fchown", "fchownat", "fcntl", "fdatasync", "fgetxattr", "flistxattr", "flock",
	"fremovexattr", "fsetxattr", "fstat", "fstatfs", "fsync", "ftruncate", "futimesat", "getcwd", "getdents", "getdents64", "getxattr",
	"lchown", "lgetxattr", "link", "linkat", "listxattr", "llistxattr", "lremovexattr", "lseek", "lsetxattr", "lstat", "mkdir", "mkdirat",
	"mknod", "mknodat", "newfstatat", "open", "openat", "openat2", "pread64", "preadv", "preadv2", "pwrite64", "pwritev", "pwritev2", "read",
	"readahead", "readlink", "readlinkat", "readv", "removexattr", "rename", "renameat", "renameat2", "rmdir", "sendfile", "setxattr",
	"splice", "stat", "statfs", "statx", "symlink", "symlinkat", "sync", "sync_file_range", "syncfs", "tee", "truncate", "umask", "unlink",
	"unlinkat", "utime", "utimensat", "utimes", "write", "writev",
	/* waiting and events */
	"epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait", "eventfd", "eventfd2", "inotify_add_watch",
	"inotify_init", "inotify_init1", "inotify_rm_watch", "pipe", "pipe2", "poll", "ppoll", "pselect6", "select", "signalfd", "signalfd4",
	"timerfd_create", "timerfd_gettime", "timerfd_settime", "io_cancel", "io_destroy", "io_getevents", "io_pgetevents", "io_setup",
	"io_submit",
	/* memory */
	"brk", "get_mempolicy", "madvise", "mbind", "membarrier", "memfd_create", "mincore", "mlock", "mlock2", "mlockall", "mmap", "mprotect",
	"mremap", "msync", "munlock", "munlockall", "munmap", "pkey_alloc", "pkey_free", "pkey_mprotect", "remap_file_pages", "set_mempolicy",
	/* processes, threads, scheduling of one's own */
	"arch_prctl", "execve", "execveat", "exit", "exit_group", "fork", "futex", "futex_waitv", "get_robust_list", "getcpu", "getpgid",
	"getpgrp", "getpid", "getppid", "getpriority", "getrlimit", "getrusage", "getsid", "gettid", "kill", "pidfd_open", "pidfd_send_signal",
	"rseq", "sched_get_priority_max", "sched_get_priority_min", "sched_getaffinity", "sched_getattr", "sched_getparam",
	"sched_getscheduler", "sched_rr_get_interval", "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler",
	"sched_yield", "set_robust_list", "set_tid_address", "setpgid", "setpriority", "setrlimit", "setsid", "tgkill", "times", "tkill",
	"vfork", "wait4", "waitid", "waitpid", "ioprio_get", "ioprio_set", "getitimer", "setitimer", "alarm", "pause", "restart_syscall",
	/* signals */
	"rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigqueueinfo", "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait",
	"rt_tgsigqueueinfo", "sigaltstack",
	/* ids: the kernel refuses what the guest must not become */
	"capget", "capset", "getegid", "geteuid", "getgid", "getgroups", "getresgid", "getresuid", "getuid", "setfsgid", "setfsuid", "setgid",
	"setgroups", "setregid", "setresgid", "setresuid", "setreuid", "setuid",
	/* time */
	"clock_getres", "clock_gettime", "clock_nanosleep", "gettimeofday", "nanosleep", "time", "timer_create", "timer_delete",
	"timer_getoverrun", "timer_gettime", "timer_settime",
	/* sockets; which families is decided at socket() */
	"accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt", "listen", "recvfrom", "recvmmsg", "recvmsg",
	"sendmmsg", "sendmsg", "sendto", "setsockopt", "shutdown",
	/* System V and POSIX IPC: the jail has a namespace of its own */
	"mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive", "mq_timedsend", "mq_unlink", "msgctl", "msgget", "msgrcv", "msgsnd", "semctl",
	"semget", "semop", "semtimedop", "shmat", "shmctl", "shmdt", "shmget",
	/* the machine */
	"getrandom", "sysinfo", "uname", "landlock_add_rule", "landlock_create_ruleset", "landlock_restrict_self",
	NULL,
};

const char *const syscalls_absent[] = {
	"clone3",        "io_uring_setup",     "io_uring_enter", "io_uring_register", "memfd_secret", "process_mrelease", "set_mempolicy_home_node",
	"cachestat",     "fchmodat2",          "map_shadow_stack", "futex_wake",      "futex_wait",   "futex_requeue",    "process_madvise",
	"quotactl_fd",   NULL,
};
