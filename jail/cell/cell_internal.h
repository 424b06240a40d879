/* cell_internal.h - a jail's states, and what cell*.c (a jail, its queue, its runs) share. */
#pragma once

#include "cell.h"
#include "jail/init/join.h"

/* All that can happen to a jail: its state, an event, its next state. What is not here does not happen; cell_happened()
 * is the only function that changes the state.
 *
 * PARKED: made ahead, or about to be opened: has no owner. JOINING: the same, and being joined. BUILDING: init sets
 * itself up; orders may already wait in its socket, so that a run can begin now. RUNNING: a phase of a run. FREEZING,
 * FAILED, DECIDED: still the run, in a live jail. FREEZING: its phase has ended and the rest of the jail is being
 * frozen. FAILED: it cannot continue, which is reported when the jail is dead. DECIDED: its result is known, and
 * reported when the jail is dead. DEAD: init has ended; /data is still there. DYING: destroyed by its owner, waits for
 * init's end. */
#define CELL_TRANSITIONS(ROW)                                                                                          \
	ROW(PARKED, SET_UP, PARKED)                                                                                    \
	ROW(PARKED, OPENED, BUILDING) /* SET_UP follows where init has reported already */                             \
	ROW(PARKED, JOIN, JOINING)    /* cell_join.c: nobody gets it */                                                \
	ROW(PARKED, DESTROYED, DYING) /* also when init has ended */                                                   \
	ROW(JOINING, JOINED, PARKED)                                                                                   \
	ROW(JOINING, DESTROYED, DYING) /* as PARKED */                                                                 \
	ROW(BUILDING, SET_UP, READY)                                                                                   \
	ROW(BUILDING, RUN, RUNNING)                                                                                    \
	ROW(BUILDING, DIED, DEAD)                                                                                      \
	ROW(BUILDING, DESTROYED, DYING)                                                                                \
	ROW(READY, SET_UP, READY) /* its first run failed before init got the order */                                 \
	ROW(READY, RUN, RUNNING)                                                                                       \
	ROW(READY, COLLECT, COLLECTING)                                                                                \
	ROW(READY, DIED, DEAD)                                                                                         \
	ROW(READY, DESTROYED, DYING)                                                                                   \
	ROW(RUNNING, SET_UP, RUNNING) /* the clock starts */                                                           \
	ROW(RUNNING, RUN, RUNNING)    /* compiled; the program's phase begins */                                       \
	ROW(RUNNING, FREEZE, FREEZING)                                                                                 \
	ROW(RUNNING, FAIL, FAILED)                                                                                     \
	ROW(RUNNING, DELIVER, READY)                                                                                   \
	ROW(RUNNING, DIED, DEAD)                                                                                       \
	ROW(RUNNING, DESTROYED, DYING)                                                                                 \
	ROW(FREEZING, RUN, RUNNING) /* as above */                                                                     \
	ROW(FREEZING, FAIL, FAILED)                                                                                    \
	ROW(FREEZING, DECIDE, DECIDED)                                                                                 \
	ROW(FREEZING, DELIVER, READY)                                                                                  \
	ROW(FREEZING, DIED, DEAD)                                                                                      \
	ROW(FREEZING, DESTROYED, DYING)                                                                                \
	ROW(FAILED, SET_UP, FAILED)                                                                                    \
	ROW(FAILED, DIED, DEAD)                                                                                        \
	ROW(FAILED, DESTROYED, DYING)                                                                                  \
	ROW(DECIDED, DIED, DEAD)                                                                                       \
	ROW(DECIDED, DESTROYED, DYING)                                                                                 \
	ROW(COLLECTING, SET_UP, COLLECTING) /* as in READY */                                                          \
	ROW(COLLECTING, COLLECTED, READY)                                                                              \
	ROW(COLLECTING, DIED, DEAD)                                                                                    \
	ROW(COLLECTING, DESTROYED, DYING)                                                                              \
	ROW(DEAD, DELIVER, DEAD)                                                                                       \
	ROW(DEAD, COLLECT, DEAD)                                                                                       \
	ROW(DEAD, COLLECTED, DEAD)                                                                                     \
	ROW(DEAD, DESTROYED, DYING)
enum cell_state {
	CELL_IMPOSSIBLE,
	CELL_PARKED,
	CELL_JOINING,
	CELL_BUILDING,
	CELL_READY,
	CELL_RUNNING,
	CELL_FREEZING,
	CELL_FAILED,
	CELL_DECIDED,
	CELL_COLLECTING,
	CELL_DEAD,
	CELL_DYING,
	CELL_STATES
};
enum cell_event {
	CELL_SET_UP,  /* init reports that its set-up is complete */
	CELL_OPENED,  /* the jail has an owner */
	CELL_JOIN,    /* a process is led into it */
	CELL_JOINED,  /* which waits for a program */
	CELL_RUN,     /* a phase of a run begins */
	CELL_FREEZE,  /* live: the phase has ended, what is left is to be frozen */
	CELL_FAIL,    /* live: the run cannot continue, the jail was killed */
	CELL_DECIDE,  /* live: the result is known, the jail was killed */
	CELL_DELIVER, /* the owner gets the result */
	CELL_COLLECT,
	CELL_COLLECTED, /* the owner has all files */
	CELL_DIED,      /* init has ended */
	CELL_DESTROYED, /* the owner is done with it */
	CELL_EVENTS
};
enum cell_phase { PHASE_COMPILE, PHASE_RUN };
/* Why a run was ended from outside. */
enum cell_stop { STOP_NONE, STOP_CANCEL, STOP_WALL, STOP_CPU, STOP_OUTPUT, STOP_CLOSE };

struct cell_step {
	struct cell_step *next;
	enum { STEP_FILL, STEP_RUN, STEP_COLLECT } kind;
	struct init_order order; /* STEP_FILL */
	char *tail;
	size_t tail_length;
	int fds[INIT_FDS_MAX]; /* STEP_FILL: files; STEP_RUN: code, stdin, stdout, stderr, tools */
	size_t n_fds;
	char **argv, **env;    /* STEP_RUN: behind the runner's, ended by NULL */
	char *entry, *cwd;     /* STEP_RUN: or NULL */
	bool bare, cancelled;  /* bare: argv is the whole command */
	bool tools, read_only; /* fds[4] is to listen, the runner's command is that for tools; /data is read-only */
	bool display;          /* the runner's show_run, if it has one */
	int64_t clock_us;      /* deterministic; 0: not */
	int64_t wall_us;       /* 0: the jail's */
};

/* What makes a jail a live one: cell_live.c. */
struct cell_live {
	bool on;
	bool dirty;                   /* there was a run since the last collection */
	bool code_read_only;          /* a compile step's result is in /code */
	bool driver_runs;             /* a run was sent to it */
	int group_fd, events;         /* cgroup_freezer_make */
	int pipes[2][2];              /* of the standard streams, both ends */
	int64_t deadline_us, look_us; /* FREEZING: it is killed; it is looked at again */
	int64_t frozen_us;
	struct init_report report; /* FREEZING: of the phase that has ended */
	struct loop_watch frozen;
};
#define CELL_LIVE_INIT                                                                                                 \
	((struct cell_live){.group_fd = -1, .events = -1, .pipes = {{-1, -1}, {-1, -1}}, .frozen = LOOP_WATCH_INIT})

struct cell_run {
	struct cell_step *step; /* what was asked, while it runs */
	enum cell_phase phase;
	enum cell_stop stop;
	struct output output; /* of the phase */
	struct loop_watch pipes[2];
	int64_t wall_limit_us, cpu_limit_us;
	int64_t started_us, wall_deadline_us, cpu_check_us;
	int64_t waits_since_us, waited_us;   /* since 0: it does not wait; neither counts as wall time */
	int64_t reported_us, reported_bytes; /* last output event */
	struct jail_result result;
};

/* What failed in the sandbox itself. */
struct cell_fault {
	char step[INIT_STEP_SIZE]; /* "": nothing did */
	int error;                 /* errno, 0: none */
};

struct cell {
	struct cell *next;
	struct cells *cells;
	struct runner *runner;
	struct jail_limits limits;
	const struct root_mount *root;
	char label[CELL_LABEL];
	struct cell_callbacks callbacks;
	void *arg;
	enum cell_state state;
	unsigned families; /* whose filters its init has: bits by enum seccomp_family */
	bool fingerprint, extra, background, shim_there, starter_there, helper_there; /* as of cell_request; in /code */
	size_t slot;
	int pidfd_fd;
	struct loop_watch control, pidfd;
	struct cgroup_group *group;
	bool network, every_host; /* of network.allow */
	struct net_jail *net;     /* with network */
	struct cgroup_usage base; /* at the end of the last phase */
	int64_t init_cpu_us;
	struct {
		int namespaces[JOIN_NAMESPACES]; /* -1: it cannot be joined, or is */
		uint64_t key;                    /* of the interpreter that waits */
		bool joined, lost;               /* lost: its template was ended meanwhile */
	} join;
	bool parked; /* it was made ahead, and nothing ran in it */
	int data_root, code_root;
	int64_t opened_us, ready_us;
	struct cell_fault broken;
	struct cell_step *first, **last;
	size_t n_steps, n_fds, fills; /* fills: sent and not answered */
	bool has_files;               /* something may be in /data before the next run */
	struct data_tree before, after;
	struct data_change *changes;
	struct cell_run run;
	struct cell_live live;
};

/* Each part calls only those before it; cell_open.c and cell.c come last.
 *
 * cell_state.c: */
/* As the table says; CELL_IMPOSSIBLE: it has no such row. */
enum cell_state cell_next(enum cell_state state, enum cell_event event);
void cell_happened(struct cell *cell, enum cell_event event);
bool cell_has_run(const struct cell *cell); /* a run is under way */
void cell_break(struct cell *cell, const char *step, int error);
void cell_kill(struct cell *cell);
void cell_fail(struct cell *cell, const struct err *why); /* calls the owner, for the last time */
/* Sends an order; ERR_BUSY: the socket is full, try again when it is writable. */
int cell_order(struct cell *cell, const struct init_order *order, const char *tail, size_t tail_length, const int *fds,
	       size_t n_fds);
void cell_step_free(struct cell_step *step);

/* cell_verdict.c: how a run ended, as a verdict and one sentence in its result. */
/* `status` NULL: init is dead, so the program's status is unknown. Counters and kills are in the result already. */
void cell_verdict_decide(struct jail_result *result, const struct cell *cell, enum cell_stop stop, const int *status);
/* A refused system call, into the result of the run that is under way. */
void cell_verdict_denied(struct cell *cell, int number);
void cell_verdict_mention(struct jail_result *result); /* adds the refused system calls to the sentence */
/* The verdict XX: the sandbox failed at this step, with this errno. */
void cell_verdict_sandbox(struct jail_result *result, const char *step, int error);

/* cell_live.c */
int cell_live_open(struct cell *cell, struct err *err);
void cell_live_clear(struct cell_live *live);
int cell_live_begin(struct cell *cell);                    /* thaws; -1 and errno */
int cell_live_output(struct cell *cell, int ret_write[2]); /* as output_pipes */
/* A phase ended: begins to freeze. True: everything is frozen. */
bool cell_live_freeze(struct cell *cell, const struct init_report *report);
void cell_live_frozen(struct cell *cell);         /* everything is frozen, or dead */
bool cell_live_must_end(const struct cell *cell); /* for what became of the run */
bool cell_live_may_run(const struct cell *cell);
int64_t cell_live_deadline(const struct cell *cell);
bool cell_live_tick(struct cell *cell); /* true: everything is frozen now */

/* cell_run_order.c */
void cell_run_order(const struct cell *cell, struct init_order *order, struct buf *tail);
/* cell_run_limits.c */
int cell_run_limit_group(struct cell *cell, enum cell_phase phase); /* sets the group's; -1 and errno */
int cell_run_limits(struct cell *cell, struct init_limits *ret);    /* of the phase that begins: the same, and init's */
void cell_run_ready(struct cell *cell);                             /* the clock starts */
int64_t cell_run_allowed(const struct cell *cell), cell_run_deadline(const struct cell *cell);
void cell_run_tick(struct cell *cell, int64_t now_us);
void cell_run_stop(struct cell *cell, enum cell_stop why);
/* cell_run.c */
void cell_run_begin(struct cell *cell, struct cell_step *step);
void cell_run_ended(struct cell *cell, const struct init_report *report); /* by itself */
void cell_run_failed(struct cell *cell, const char *step, int error);     /* could not be started */
void cell_run_lost(struct cell *cell, enum cell_state before);            /* init is dead; the state when it died */
/* A phase is over; NULL: init is dead. */
void cell_run_settled(struct cell *cell, const struct init_report *report);

/* cell_template.c */
void cell_template_asked(struct cells *cells, const struct runner *runner); /* a jail was opened */
bool cell_template_possible(const struct cells *cells);
bool cell_template_may_start(const struct cells *cells);
void cell_template_start(struct cells *cells);
bool cell_template_renew(struct cells *cells); /* ends one that is old: true */
/* Is the interpreter on the host the one of that key? */
bool cell_template_current(const struct cells *cells, uint64_t key);
/* Kills it, because this failed (0: it did not answer), and the jail that is being joined. */
void cell_template_end(struct cells *cells, const char *step, int error);
struct cell *cell_template_joining(const struct cells *cells); /* that jail, or NULL */
int64_t cell_template_deadline(const struct cells *cells);
void cell_template_tick(struct cells *cells, int64_t now_us);
void cell_template_clear(struct cells *cells);
/* cell_join.c */
int cell_join_keep(struct cell *cell, pid_t pid, struct err *err); /* what is needed to join it */
void cell_join_forget(struct cell *cell);
bool cell_join_due(const struct cells *cells); /* is there anything to do in an idle moment? */
bool cell_join_possible(const struct cells *cells); /* a jail waits for it, and the template for an order */
void cell_join_prepare(struct cells *cells);
/* Of the process that waits in it; false: the jail is nothing to be given out any more. */
bool cell_join_report(struct cell *cell, const struct init_report *report);

/* cell_queue.c */
/* Works off the queue as far as it goes; its owner may destroy the cell meanwhile. */
void cell_advance(struct cell *cell);
void cell_forget_trees(struct cell *cell);

/* cell.c */
void cell_control_ready(struct loop_watch *watch, uint32_t events);
void cell_pidfd_ready(struct loop_watch *watch, uint32_t events);
