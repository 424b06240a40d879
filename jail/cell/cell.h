/*
 * cell.h - one jail as the jailer sees it: a process 1 (init.h), a cgroup, two file systems, and at most one run at a
 * time.
 *
 * Steps (fill, run, collect) are queued and worked off in order; what becomes of them is reported through struct
 * cell_callbacks. A cell whose init is dead still has its /data and can be collected. A cell is destroyed at once from
 * its owner's view; it stays in the list of the dying until the kernel has taken down everything in it.
 *
 * Its states are a table at the top of cell_internal.h. A live cell is the same with many runs; between them what runs
 * in it is frozen (cell_live.c).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "data.h"
#include "jail/base/identity.h"
#include "jail/base/loop.h"
#include "jail/cgroup/cgroup.h"
#include "jail/client/jail.h"
#include "jail/client/wire.h"
#include "jail/init/init.h"
#include "jail/init/seccomp.h"
#include "jail/relay/net.h"
#include "jail/root/layers.h"
#include "lib/base/config.h"
#include "lib/base/err.h"
#include "output.h"
#include "pool.h"
#include "runner.h"

#define CELL_STEPS_MAX 256 /* queued steps of one jail */
#define CELL_LABEL     73
#define CELLS_PARKED   2      /* jails made ahead, at least */
#define CELLS_AWAIT_US 20000  /* after a jail was opened none is made ahead for so long, until its program came */
#define CELLS_FIRST_US 100000 /* nor by a private jailer for so long after its start, until a jail was opened */

struct cell;

#define TEMPLATE_JOINS 1000 /* then there is a new one */
/* An interpreter that jails made ahead are joined from (cell_join.c). */
struct template
{
	struct runner *runner; /* NULL: none is wanted */
	struct loop_watch socket, pidfd;
	int pidfd_fd;
	struct cgroup_group *group;
	bool serves;
	uint32_t number; /* jails that it was asked to join */
	uint32_t first;  /* of them, when it started */
	int64_t started_us;
	uint64_t key;               /* of the file of its interpreter */
	int64_t started, joined;    /* templates, and jails, since the jailer's start */
	unsigned asked;             /* jails of its language that were opened, of a private jailer */
	int64_t deadline_us;        /* it is not waited for any longer */
	int64_t again_us, pause_us; /* when there may be a new one; 0: it has not ended */
};
#define TEMPLATE_INIT                                                                                                  \
	((struct template){                                                                                            \
		.socket = LOOP_WATCH_INIT, .pidfd = LOOP_WATCH_INIT, .pidfd_fd = -1, .deadline_us = INT64_MAX})

/* What all cells share. */
struct cells {
	int loop;
	const struct config *config;
	const struct identity *identity;
	struct cgroup *cgroup;
	struct net *net;                                 /* the jailer's; NULL: no network */
	struct seccomp_filter filters[SECCOMP_FAMILIES]; /* made once; without one: not needed yet */
	const struct root_mount *root;                   /* the usual one */
	struct layers layers;                            /* over it */
	int landlock_abi;   /* Landlock: asked once, so that a call that fails later is not taken for "none" */
	char *command_line; /* argv of the process: init wipes its copy */
	size_t command_line_size;
	struct template template;
	struct pool pool; /* of jails made ahead */
	struct cell *first;  /* all of them, the dying too */
	size_t count;        /* neither dying nor made ahead */
	bool parking_failed; /* making jails ahead failed: not tried again until a jail was opened */
	bool opened;         /* a jail was opened: its filters are those that jails made ahead need */
	int64_t first_us;    /* until when the first jail is awaited */
	int64_t cores;       /* when the jailer started: asked for each run, it is all of /proc/stat */
	bool *slots;         /* ids in use */
	size_t n_slots;
};

struct cell_callbacks {
	void (*output)(void *arg, int64_t stdout_bytes, int64_t stderr_bytes);
	void (*done)(void *arg, const struct jail_result *result);
	/* The last callback. Every callback may destroy the cell. */
	void (*failed)(void *arg, const struct err *err);
	/* The trees and changes are the cell's and stay until cell_collected. */
	void (*collect)(void *arg, const struct data_change *changes, size_t count);
};

/* A program with its descriptors, which the cell takes over (-1: none); strings are copied. */
struct cell_program {
	const char *const *args;
	size_t n_args;
	const char *const *env;
	size_t n_env;
	const char *entry;                  /* NULL, or the file of /data that is compiled or run */
	const char *cwd;                    /* NULL: /data */
	const struct bind_strings *command; /* instead of the runner's run and compile steps: for probing versions */
	int code_fd, stdin_fd, stdout_fd, stderr_fd;
	bool tools; /* with tools_fd, a socket that is to listen in the jail */
	int tools_fd;
	bool display, read_only; /* jail_program */
	int64_t clock_us;
	int64_t wall_us;
};

void cells_init(struct cells *cells, int loop, const struct config *config, const struct identity *identity,
		struct cgroup *cgroup);
void cells_clear(struct cells *cells); /* kills and waits */
/* After cells_init: jails for programs of this language may be joined, as jailer.warm says. */
void cell_join_init(struct cells *cells, struct runner *runner, bool service);
bool cells_join_wanted(const struct cells *cells); /* an interpreter is there for them, or will be in an idle moment */
size_t cells_joined(const struct cells *cells);    /* jails in which one waits, without an owner */
/* The next moment at which cells_tick has something to do. */
int64_t cells_deadline(const struct cells *cells);
void cells_tick(struct cells *cells);
/* Makes the filter of a family unless it is there. It costs some 4 ms: a service makes all of them at start, a private
 * jailer the one that its first jail needs, and the others in idle moments. */
int cells_make_filter(struct cells *cells, enum seccomp_family family, struct err *err);
/* For idle moments: makes one jail ahead, or first a filter that its programs may need (any, until one was opened). */
void cells_prepare(struct cells *cells);
void cells_advance(struct cells *cells);        /* after something came that runs wait for */
bool cells_prepared(const struct cells *cells); /* enough are there */
bool cells_owed(const struct cells *cells);     /* cells_prepare is due, idle or not */
/* Until when the jailer must not begin idle work: a client has opened a jail and is about to send its program, which
 * must not wait for a clone; or it has started a private jailer and is about to open a jail. */
int64_t cells_awaited(const struct cells *cells);
void cells_census(const struct cells *cells, struct jail_census *ret);
void cells_reap(struct cells *cells); /* frees what is destroyed and dead; only between events */

struct cell_request {
	struct runner *runner;
	const struct jail_limits *limits;
	bool network;
	const struct bind_strings *hosts; /* with network: entries of network.allow; NULL, none: all */
	const struct bind_strings *binds; /* a service's: folders of upstream.binds; NULL: all */
	const char *label;                /* or NULL; copied */
	bool live;
	bool fingerprint; /* runs wait as long as runner->awaited */
	bool background;  /* jail_client_background */
	bool ahead;       /* nobody's yet */
	bool extra;       /* not one of config.jailer.jails: the jailer's own */
	const struct cell_callbacks *callbacks;
	void *arg;
};
int cell_open(struct cells *cells, const struct cell_request *request, struct cell **ret, struct err *err);
/* Names and descriptors are taken out of the message. */
int cell_queue_fill(struct cell *cell, struct wire_message *message, const struct wire_request *request,
		    struct err *err); /* the files of a WIRE_FILL */
int cell_queue_remove(struct cell *cell, const struct wire_message *message,
		      struct err *err); /* the files that its strings name */
int cell_queue_run(struct cell *cell, struct cell_program *program, struct err *err);
int cell_queue_collect(struct cell *cell, struct err *err);
void cell_collected(struct cell *cell);                           /* the owner has sent everything */
void cell_wait(struct cell *cell, bool waits, int64_t credit_us); /* jail_wait */
void cell_cancel(struct cell *cell);
void cell_destroy(struct cell *cell);
int cell_data(const struct cell *cell); /* root of its /data */
size_t cell_held_fds(const struct cell *cell);
bool cell_lasts(const struct cell *cell);  /* a live one: for any number of runs */
bool cell_driven(const struct cell *cell); /* one interpreter for all runs */
