/*
 * job_tools.h - who answers the calls of tools that a run's program makes: a pool of servers, or a record
 * (lib/bridge).
 *
 * The functions of struct job_tools are the engine's (or a replay's) to call, on its thread, and must not wait.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jail/client/jail.h"
#include "lib/base/err.h"
#include "lib/store/record/store_tool.h"

struct job_tools_given {
	const char *const *env; /* "NAME=value", NULL-terminated; what the request names wins */
	int socket;             /* for jail_program.tools_fd; stays the giver's */
};
struct mask;
struct job_tools_run {
	const char *execution;
	/* On any thread until `close`: the program waits for tools, or goes on; as jail_wait. NULL: nobody wants to
	 * know. */
	void (*waits)(void *arg, bool waits, int64_t credit_us);
	void *arg;
	/* Of the run's secrets, for what is kept or shown of its calls before `close`; who wants it later keeps it
	 * (mask_keep). NULL: none, or nothing is kept. */
	struct mask *mask;
};
struct job_tools {
	_Atomic int references;        /* 1 for who makes it */
	const struct jail_file *files; /* for jail_fill_code, also before `open`; they stay the maker's */
	size_t n_files;
	/* Before the program starts. */
	int (*open)(struct job_tools *tools, const struct job_tools_run *run, struct job_tools_given *ret,
		    struct err *err);
	/* The program has ended; once, after `open`. What it could call and did call is the caller's. */
	void (*close)(struct job_tools *tools, struct store_tools *ret);
	void (*free)(struct job_tools *tools); /* nobody holds it any more */
};
void job_tools_release(struct job_tools **tools); /* one holder less; NULL is fine */
#define auto_job_tools __attribute__((cleanup(job_tools_release)))
/* The program's own variables, and those of `given` (NULL: none) that it does not name; to be freed, not its
 * strings. */
const char **job_tools_environment(char *const *own, const char *const *given);

/* What the engine notes for its reactor. */
struct job_waits {
	_Atomic bool waits, changed;
	_Atomic int64_t credit_us;
};
/* The same for a program outside of the engine. */
struct job_tools_wait {
	struct job_waits waits;
	int event; /* readable: job_tools_wait_step */
};
int job_tools_wait_begin(struct job_tools_wait *wait, struct err *err);
void job_tools_wait_note(void *arg, bool waits, int64_t credit_us); /* job_tools_run.waits; arg: the struct */
/* The program waits, or goes on: its wall clock stands still, or does so no more. */
void job_tools_wait_step(struct job_tools_wait *wait, struct jail *jail);
void job_tools_wait_clear(struct job_tools_wait *wait); /* event -1 is fine */

/* Arguments and results without what the run was given as a secret; NULL: it was given none. */
void job_tools_veil(const struct mask *mask, struct store_tools *tools);
