/*
 * init.h - process 1 of a jail: sets the jail up, fills /data, runs programs, and lets nothing survive them.
 *
 * The jailer clones it into all the namespaces; it is a copy of the jailer, never of a program on disk, and makes
 * itself undumpable before a guest exists, so /proc/1 shows a guest nothing. Orders and reports are packets on a socket
 * pair; both ends are this program, so they are plain structs.
 *
 * A live jail (jail_spec.live) has many runs. What they leave is not killed but stays, in a cgroup of its own that the
 * jailer freezes between runs; process 1 is not in it and fills /data meanwhile. Where the runner has a driver, the
 * first run starts it and each run is an order to it (init_live.c).
 *
 * A run: write the source to /code, vfork a payload, wait, and when the payload has ended kill every other process of
 * the namespace and reap until none is left: only then the report goes out. What a limit ends is ended from outside by
 * killing this process, with which the kernel takes the whole namespace down.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "jail/cgroup/cgroup.h"
#include "jail/client/jail.h"
#include "jail/root/root_mount.h"
#include "lib/base/err.h"
#include "seccomp.h"

#define INIT_ID        1000 /* the guest's uid and gid as it sees them */
#define INIT_STEP_SIZE 32
#define INIT_LEFT_SIZE 192 /* names of files that a run left in /tmp */
#define INIT_FDS_MAX   JAIL_BATCH_FILES
#define INIT_TAIL_MAX  (JAIL_WIRE_MAX * 2) /* strings of one order: what came over the wire and what the runner adds */

/* Everything that init needs to know when it is made; it has a copy. */
struct init_setup {
	int control;                 /* its end of the socket pair */
	int data_mount, code_mount;  /* detached tmpfs mounts */
	int group_fds[CGROUP_TREES]; /* cgroup_fds */
	size_t n_group_doors;
	int64_t tmp_bytes;
	const struct root_mount *root;
	const struct bind_strings *folders, *binds; /* upstream.binds; which of them are shown, NULL: all */
	int layers; /* the slot whose set of layers.h is the jail's; -1: it makes its own */
	int landlock_abi;
	bool network;                         /* the hosts of network.allow in /etc/hosts */
	bool small_buffers;                   /* of TCP: the cgroup does not count all of them */
	bool keep_groups;                     /* the kernel forbids setgroups (single-id) */
	const struct seccomp_filter *filters; /* by enum seccomp_family */
	char *command_line;                   /* the jailer's, to be wiped */
	size_t command_line_size;
	int oom_score;   /* -1 until its step has opened it */
	bool join_execs; /* a joined process becomes another program, whatever it is given */
};

enum init_verb { INIT_GO = 1, INIT_FILL, INIT_REMOVE, INIT_CACHE, INIT_JOIN, INIT_RUN };
/* Core files of a program: one byte, not none. Where the kernel's core_pattern is a program (apport, systemd-coredump),
 * it is started as the host's root for every crash whatever the limit, but for exactly this limit (core(5), do_coredump
 * of the kernel); no core file fits it. */
#define INIT_CORE_BYTES 1
struct init_limits {
	int64_t file_bytes;
	bool shared_id;                          /* the guest has the id of who started the jailer */
	int64_t memory_bytes, pids, cpu_seconds; /* 0: the cgroup has them */
	int64_t stack_bytes;                     /* -1: none of its own */
	int64_t signals;                         /* that may wait, and timers */
};
struct init_order {
	enum init_verb verb;
	/* INIT_FILL: strings are the names, descriptors the contents, `code`: below /code; INIT_REMOVE: names only.
	 * Both are answered with INIT_FILLED. */
	bool code;
	uint32_t n_files;
	struct {
		uint32_t mode;
		int64_t mtime_us;
	} files[JAIL_BATCH_FILES];
	/* INIT_CACHE: one file, as of INIT_FILL, below /tmp; no report */
	/* INIT_JOIN: a process is about to join (join.h), the descriptor is the socket to it; INIT_JOINED follows */
	/* INIT_RUN: strings are the source's file name, then n_args arguments (the program first), then n_env
	 * variables; descriptors are [code] [stdin] stdout stderr */
	uint32_t n_args, n_env;
	bool has_code, has_stdin;
	/* In a live jail: nothing is killed at the end, and one more descriptor: the cgroup descriptor of what can be
	 * frozen. */
	bool live;
	bool has_tools; /* the last descriptor: a socket that is to listen at JAIL_SOCKET (init_listen) */
	/* Arguments and environment are those of the driver that keeps the interpreter's state; what follows them is
	 * for the driver. */
	bool driven;
	bool deterministic;          /* init_be_deterministic */
	bool shows_data, takes_back; /* init_beside.c, before and after it */
	char cwd[JAIL_NAME_MAX + 1]; /* where the program starts; "": /data */
	enum seccomp_family family;  /* of the program */
	struct init_limits limits;
};

enum init_kind {
	INIT_READY,
	INIT_FILLED,      /* a batch is in place */
	INIT_FILL_FAILED, /* file `index`, `error` */
	INIT_ENDED,       /* the payload ended and nothing is left of it */
	INIT_DENIED,      /* the program called `index`, which is refused: once for each number */
	INIT_JOINED,      /* a process waits for the first program; or (`error`) does not, or not any more */
	INIT_FAILED,      /* `step` failed with `error`: setting up, or starting the payload */
};
#define INIT_STEP_CWD  "working directory"
#define INIT_STEP_EXEC "start the program" /* the last step; ENOENT means that it was not there */
struct init_report {
	enum init_kind kind;
	int status; /* as of waitpid(2) */
	bool warm;  /* the program ran in the interpreter that waited */
	bool gone;  /* the driver ended, and with it everything: nothing can run any more */
	int error;
	char step[INIT_STEP_SIZE];
	char left[INIT_LEFT_SIZE]; /* in /tmp; "": nothing */
	uint32_t index;
	int64_t started_us, ended_us; /* monotonic */
	int64_t switches_voluntary, switches_forced;
	int64_t user_us, system_us; /* of the program's processes, as far as they were reaped */
	int64_t peak_bytes;         /* of the largest of its processes; for where no cgroup measures it */
	int64_t self_us;            /* CPU time of init itself, since it was made */
};

/* The cloned child's life; does not return. */
_Noreturn void init_main(struct init_setup *setup);

#define INIT_TALK_FD 3 /* the driver's end */
/* init_become.c: what a fresh process of the jail goes through before it is a program, in the child. Nothing allocates.
 * NULL, or the name of the step that failed, and errno. */
struct init_start {
	const struct init_order *head;
	const struct seccomp_filter *filter;
	int fds[INIT_TALK_FD + 1]; /* the last one for a driver; -1 */
	int to_init;               /* takes the listener */
	int group_fd;              /* to what can be frozen, or -1 */
	int landlock_fd;           /* or -1 */
};
const char *init_become(const struct init_start *start);
/* All of them, of all sets, for ever: -1 and errno. */
int init_drop_capabilities(void);
/* init_limits.c, in the child: -1 and errno. */
int init_apply_limits(const struct init_limits *limits);
/* No address is random any more, and one processor is all there is; also in the child. */
int init_be_deterministic(void);
/* init_fill.c: puts one file below directory `root`. 0 or -1 and errno. */
int init_put_file(int root, const char *name, uint32_t mode, int64_t mtime_us, int from_fd);
int init_remove_file(int root, const char *name); /* 0 also when there is no such file */
/* Copies all of a file from an offset; the position of `from` does not change. */
int init_copy(int to, int from, off_t offset);
/* File locks of a jail. The kernel keeps them in memory that it charges to no cgroup. */
#define INIT_LOCKS_MAX 1000
/* init_beside.c: what /data has is seen next to the program, too; what the run has written there since then moves to
 * /data. */
void init_beside_show(void);
void init_beside_take(void);
/* Names of what a run since then left in /tmp, which goes with the jail. */
void init_beside_left(int64_t since_us, char *ret, size_t size);
/* Binds the socket at JAIL_SOCKET, in the place of what is there, and listens. 0 or -1 and errno. */
#define INIT_BACKLOG 16
int init_listen(int socket);
/* init_deny.c: answers one call that waits at a seccomp listener. The number of one that is refused for the first time
 * is reported before that, because the program may end us with what it does next. */
#define INIT_CALLS_MAX 512
struct init_denied {
	uint64_t seen[INIT_CALLS_MAX / 64];
	int locks_left;        /* that may be taken before they are counted again */
	int64_t full_until_us; /* none was left: they are not counted before */
};
void init_deny_prepare(int listener); /* once, before the first call */
void init_deny(int listener, struct init_denied *denied, void (*tell)(int number));
/* A program that was started; descriptors -1: none. */
struct init_program {
	pid_t pid;
	int listener; /* refused calls */
	int talk;     /* to the driver */
	int input;    /* the driver's standard input */
};
#define INIT_PROGRAM_NONE ((struct init_program){.pid = -1, .listener = -1, .talk = -1, .input = -1})
void init_program_close(struct init_program *program);
/* init_join.c: a process that waits for the jail's first program. */
struct init_joined {
	int fd;    /* -1: none */
	pid_t pid; /* -1: it is on its way */
};
#define INIT_JOINED_NONE ((struct init_joined){.fd = -1, .pid = -1})
/* It said something: what the jailer is to hear. False: it is not there any more. */
bool init_join_parked(struct init_joined *joined, struct init_report *ret);
void init_join_close(struct init_joined *joined);
struct init_hand_over {
	const char *order; /* as it came */
	size_t length;
	bool exec; /* whatever it is */
};
/* Gives it the program: its pid, -1 as start_program, 0: it has ended. *ret_before: what it used until then. */
pid_t init_join_start(struct init_joined *joined, const struct init_start *start, const struct init_hand_over *what,
		      int *ret_listener, struct init_report *ret_before, const char **ret_failed);
/* init_wait.c: waits for the end of the program, or for what its driver says, and fills in how it ended. Orphans are
 * reaped on the way, refused calls answered. */
void init_wait(struct init_program *program, struct init_report *ended, void (*tell)(int number));
/* What the program left, in a live jail, is served in later runs; takes its listener. */
void init_wait_keep(struct init_program *program);
/* init_live.c: gives the driver its input (-1: none) and an order; a driver that does not take it is killed. -1 and
 * errno: the input cannot be given. */
int init_drive(const struct init_program *driver, const char *order, size_t length, int input);
/* Its answer. True: the run has ended, with *ret_status as of waitpid(2). False: not yet, or it said something else and
 * is killed. */
bool init_driver_answer(struct init_program *driver, int *ret_status);
/* init_setup.c: from a fresh clone to a jail, in the kernel's order. NULL, or the name of the step that failed (errno
 * says why). */
const char *init_setup_jail(struct init_setup *setup);
const char *init_setup_template(struct init_setup *setup);
void init_forget_jailer(const struct init_setup *setup); /* what its copy has of it */
/* init_template.c: the life of a template until it is an interpreter. `order`, `strings`: its command. */
_Noreturn void init_template_main(struct init_setup *setup, const struct init_order *order, const char *strings);
/* Descriptors of init that stay open. */
enum { INIT_CONTROL_FD = 3, INIT_OOM_FD, INIT_LOCKS_FD, INIT_FIRST_FREE_FD, INIT_CHILD_FD = INIT_FIRST_FREE_FD };
/* Landlock's rules for programs, made when the jail is set up; -1: this kernel has none. */
const char *init_make_landlock(const struct init_setup *setup, bool live, int *ret_fd);
