/* cell_internal.h - what cell*.c (a jail, its queue, its runs) and verdict.c (what to say of a run) share. */
#pragma once

#include "cell.h"

enum cell_state { CELL_BUILDING, CELL_READY, CELL_RUNNING, CELL_COLLECTING, CELL_DEAD };
enum cell_phase { PHASE_COMPILE, PHASE_RUN };
/* Why a run was ended from outside. */
enum cell_stop { STOP_NONE, STOP_CANCEL, STOP_WALL, STOP_CPU, STOP_OUTPUT, STOP_CLOSE };

struct cell_step {
	struct cell_step *next;
	enum { STEP_FILL, STEP_RUN, STEP_COLLECT } kind;
	struct init_order order; /* STEP_FILL */
	char *tail;
	size_t tail_length;
	int fds[INIT_FDS_MAX]; /* STEP_FILL: files; STEP_RUN: code, stdin, stdout, stderr */
	size_t n_fds;
	char **argv, **env; /* STEP_RUN: behind the runner's, ended by NULL */
	char *entry;        /* STEP_RUN: or NULL */
	bool bare;          /* argv is the whole command */
	bool cancelled;
};

/* What makes a jail a live one: cell_live.c. */
struct cell_live {
	bool on;
	bool dirty;          /* there was a run since the last collection */
	bool code_read_only; /* a compile step's result is in /code */
	bool driver_there;   /* its program is in /code */
	bool driver_runs;    /* a run was sent to it */
	int door, events; /* cgroup_freezer_make */
	int pipes[2][2];  /* of the standard streams, both ends */
	bool freezing;    /* until deadline_us; then `report` counts */
	int64_t deadline_us, look_us, frozen_us;
	struct init_report report;
	struct loop_watch frozen;
};
#define CELL_LIVE_INIT                                                                                                 \
	((struct cell_live){.door = -1, .events = -1, .pipes = {{-1, -1}, {-1, -1}}, .frozen = LOOP_WATCH_INIT})

struct cell_run {
	struct cell_step *step; /* what was asked, while it runs */
	enum cell_phase phase;
	enum cell_stop stop;
	bool sent;            /* the order is with init */
	bool decided;         /* live: the result is known and waits for the jail's death */
	struct output output; /* of the phase */
	struct loop_watch pipes[2];
	int64_t wall_limit_us, cpu_limit_us;
	int64_t started_us, wall_deadline_us, cpu_check_us;
	int64_t told_us, told_bytes; /* last output event */
	struct jail_result result;
};

struct cell {
	struct cell *next;
	struct cells *cells;
	struct runner *runner;
	struct jail_limits limits;
	const struct root_mount *root;
	char label[CELL_LABEL];
	struct cell_events events;
	void *arg;
	enum cell_state state;
	bool parked;             /* made ahead, belongs to nobody */
	bool dying;              /* destroyed; waits for its init */
	bool fingerprint, extra; /* as of struct cell_request */
	size_t slot;
	int pidfd_fd;
	struct loop_watch control, pidfd;
	struct cgroup_group *group;
	bool network;
	struct net_jail *net;     /* with network */
	struct cgroup_usage base; /* at the end of the last phase */
	int64_t init_cpu_us;
	bool limited_for_run; /* the group has the run's limits */
	int data_root, code_root;
	int64_t opened_us, ready_us;
	char broken_step[INIT_STEP_SIZE];
	int broken_errno;
	struct cell_step *first, **last;
	size_t n_steps, n_fds;
	size_t fills;   /* sent and not answered */
	bool has_files; /* something may be in /data before the next run */
	struct data_tree before, after;
	struct data_change *changes;
	struct cell_run run;
	struct cell_live live;
};

/* cell.c */
void cell_kill(struct cell *cell);
void cell_fail(struct cell *cell, const struct err *why); /* tells the owner, for the last time */
void cell_control_ready(struct loop_watch *watch, uint32_t events);
void cell_pidfd_ready(struct loop_watch *watch, uint32_t events);

/* cell_queue.c */
void cell_advance(
	struct cell *cell); /* works off the queue as far as it goes; its owner may destroy the cell meanwhile */
void cell_step_free(struct cell_step *step);
void cell_forget_trees(struct cell *cell);
/* Sends an order; ERR_BUSY: the socket is full, try again when it is writable. */
int cell_order(struct cell *cell, const struct init_order *order, const char *tail, size_t tail_length, const int *fds,
	       size_t n_fds);

/* cell_run.c */
void cell_run_begin(struct cell *cell, struct cell_step *step);
void cell_run_phase(struct cell *cell, enum cell_phase phase); /* begins it */

/* cell_run_order.c */
void cell_run_order(const struct cell *cell, struct init_order *order, struct buf *tail);

/* cell_run_limits.c */
int cell_run_limit_group(struct cell *cell, enum cell_phase phase); /* sets the group's; -1 and errno */
int cell_run_limits(struct cell *cell, struct init_limits *ret);    /* of the phase that begins: the same, and init's */
void cell_run_ready(struct cell *cell);                             /* the clock starts */
int64_t cell_run_deadline(const struct cell *cell);
void cell_run_tick(struct cell *cell, int64_t now_us);
void cell_run_stop(struct cell *cell, enum cell_stop why);

/* cell_run_end.c */
void cell_run_ended(struct cell *cell, const struct init_report *report); /* by itself */
void cell_run_failed(struct cell *cell, const char *step, int error);     /* could not be started */
void cell_run_lost(struct cell *cell);                                    /* init is dead */
/* A phase is over; NULL: init is dead. */
void cell_run_settled(struct cell *cell, const struct init_report *report);

/* cell_account.c */
void cell_run_account(struct cell *cell,
		      const struct init_report *report); /* into the result; the next phase begins here */

/* cell_live.c */
int cell_live_open(struct cell *cell, struct err *err);
void cell_live_clear(struct cell_live *live);
int cell_live_begin(struct cell *cell);                    /* thaws; -1 and errno */
int cell_live_output(struct cell *cell, int ret_write[2]); /* as output_pipes */
void cell_live_settle(struct cell *cell,
		      const struct init_report *report); /* a phase ended: freezes, then cell_run_settled */
bool cell_live_lost(struct cell *cell);                  /* init is dead; true: that was cell_run_settled */
bool cell_live_must_end(const struct cell *cell);        /* for what became of the run */
bool cell_live_may_run(const struct cell *cell);
int64_t cell_live_deadline(const struct cell *cell);
void cell_live_tick(struct cell *cell);

/* verdict.c */
void verdict_denied(struct cell *cell, int number); /* a refused system call */
void verdict_decide(struct jail_result *result, const struct cell *cell, enum cell_stop stop, const int *status);
void verdict_mention(struct jail_result *result); /* adds the refused system calls to the sentence */
void verdict_sandbox(struct jail_result *result, const char *step, int error);
