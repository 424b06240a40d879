/*
 * join.h - what jailer, template, joined process and a jail's init say to each other about processes that join jails.
 * All of them are this program, so packets are plain structs; only init hears from the joined process, and before it
 * has run anything of a guest's.
 *
 *     jailer    -> template   join_order: enter this jail           (jail/cell/template.h)
 *     template  -> jailer     join_answer: I serve; it is on its way, or what failed
 *     joined    -> init       join_word: PARKED, then after the program's order LISTENER, STARTS, or at any time FAILED
 *     init      -> joined     join_program, the order of the run (init_order and its strings), the seccomp filter
 *
 * The end of the connection to init says that the program runs.
 */
#pragma once

#include "init.h"

#define JOIN_TEMPLATE_FD 3 /* the template's end of its socket to the jailer */

/* In the order in which they are entered, behind the process ids', which only the template can enter for it. */
enum join_namespace { JOIN_PID, JOIN_USER, JOIN_MOUNT, JOIN_NET, JOIN_IPC, JOIN_UTS, JOIN_NAMESPACES };
/* Descriptors: the namespaces, the socket to init, then the doors of the jail's cgroup. */
struct join_order {
	uint32_t number;
	uint32_t n_doors;
	bool keep_groups; /* as of init_setup */
};
#define JOIN_FDS_MAX (JOIN_NAMESPACES + 1 + CGROUP_TREES)

struct join_answer {
	bool serves; /* the first one: its interpreter is ready */
	uint32_t number;
	int error;
	char step[INIT_STEP_SIZE];
};

enum join_kind { JOIN_PARKED = 1, JOIN_LISTENER, JOIN_STARTS, JOIN_FAILED };
struct join_word {
	enum join_kind kind;
	int pid; /* JOIN_PARKED: in the jail */
	int error;
	char step[INIT_STEP_SIZE]; /* JOIN_FAILED */
	/* JOIN_STARTS */
	bool warm;                  /* in the interpreter that is there; else it becomes another program */
	int64_t user_us, system_us; /* what it used before */
	int64_t switches_voluntary, switches_forced;
};

/* Descriptors: standard input, output, error, then those that are there: the driver's socket, the cgroup that can be
 * frozen, Landlock's rules. */
struct join_program {
	bool has_talk, has_group, has_landlock;
	bool exec; /* whatever the order is */
	uint32_t order_length, n_filter, n_notify;
};
#define JOIN_PROGRAM_MAX (sizeof(struct join_program) + sizeof(struct init_order) + INIT_TAIL_MAX + JOIN_FILTER_MAX)
#define JOIN_FILTER_MAX  (4096 * sizeof(struct sock_filter)) /* BPF_MAXINSNS */
