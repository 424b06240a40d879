/*
 * selftest.h - one escape probe in a jail: what it promises, how it is run, whether it held. For `sallyport selftest`
 * and for our tests.
 *
 * A probe is a verb of the program of tests/probe, or a script in a language of its own; the list says for each of them
 *
 *     NAME | WHAT IT TRIES | TERMS
 *
 * (the program's --list; the first line of a script). Terms are words NAME=VALUE, all of them optional:
 *
 *     ends=OK               the verdict: OK, RE, SG, TO, ML, OL, CE; then ":limit", ":exit status" or ":signal"
 *                           ("TO:cpu", "SG:6")
 *     also=ML               another verdict that is as good
 *     live=SG               the verdict in a live sandbox, where it is another one
 *     else=OK               the verdict where no cgroup counts; "weaker": the host cannot hold it then, it is not tried
 *     single=weaker         the host cannot hold it with a single id; it is not tried then
 *     runner=python         for scripts
 *     wall_ms= cpu_ms= compile_ms= memory_mb= pids= data_kb= tmp_kb= output_kb= cpu_percent=       limits
 *     cpu_below_ms=         CPU time that it must not have used
 *     kept=a,b%0Ac          files that must come out of /data, percent-encoded, in their order; left= those that must
 *                           be named as not kept
 *     after=plant           what it leaves behind must not be seen by others: see below
 *     tools=1               it has the socket of a program with tools (below)
 *     heavy=1               it takes long: not tried where times are stretched (patience), as in an emulated machine
 *     twice=differs         what it prints is another thing each time
 *
 * The first argument of a probe is its name. One with after=plant runs in three jails: the first gets a second
 * argument, "plant", says "planted" and stays; the second runs next to it, the third when it has ended.
 *
 * It has held when the verdict is the promised one, nothing of its output says BROKEN, "held" is the last line where it
 * ended with OK, and every file that came out begins with "own" or zeros, is a regular file of somebody who is not
 * root, and has no setuid bit.
 *
 * Ownership: texts of a probe are the list's; `said` of an outcome is the caller's (selftest_outcome_clear).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "jail/client/jail.h"

struct probe_terms {
	enum jail_verdict ends, also, live_ends, weaker_ends; /* also, live_ends: JAIL_VERDICTS for none */
	bool weaker;                               /* not tried where no cgroup counts */
	char detail[16];                           /* of `ends`: limit, exit status or signal; "" any */
	char runner[16];                           /* "": the program's verb */
	struct jail_limits limits;
	int64_t cpu_below_us;
	char kept[512], left[512]; /* "": no file at all may come out; "*": whichever */
	bool plant, twice, heavy, weaker_single, tools;
};

struct probe_entry {
	char *name, *what;
	char *script; /* path; NULL: a verb */
	struct probe_terms terms;
};

struct probe_list {
	struct probe_entry *entries; /* in the order of their names */
	size_t count;
	size_t chosen; /* the first so many are to be run: all, unless the caller says otherwise */
};

enum probe_result {
	PROBE_HELD,
	PROBE_BROKEN,
	PROBE_WEAKER,
	PROBE_ABSENT
}; /* ABSENT: its runner is not installed, or it is too heavy */
struct probe_outcome {
	enum probe_result result;
	char message[JAIL_MESSAGE_TEXT]; /* one sentence: what was expected and what came; "" held */
	char *said;                      /* what it printed */
};

/* Where probes run. The client is the caller's. */
struct probe_place {
	struct jail_client *client;
	int program_fd; /* of the static program */
	bool counted;   /* a cgroup counts */
	bool single;    /* the jailer has a single id */
	int patience;   /* factor of the times, for slow machines */
	bool live; /* the caller's to set: in live sandboxes, where runs are frozen when they have ended, and drivers
		      stay */
	struct json_object *runners;
};

/* `folder` holds the program (jail_probe) and the scripts (probes/). */
int selftest_place_open(struct jail_client *client, const char *folder, struct probe_place *ret, struct err *err);
void selftest_place_close(struct probe_place *place);

int selftest_list_read(const struct probe_place *place, const char *folder, struct probe_list *ret, struct err *err);
void selftest_list_clear(struct probe_list *list);

/* An error: no jail could be had. */
int selftest_probe_run(const struct probe_place *place, const struct probe_entry *probe, struct probe_outcome *ret,
	      struct err *err);
void selftest_outcome_clear(struct probe_outcome *outcome);

/* For probes with tools=1: a bridge with one run, whose server "own" has the tools `echo`, which answers with its
 * arguments, and `never`, which does not answer. */
#define SELFTEST_CALLS 100 /* the run's limit */
struct selftest_tools;
int selftest_tools_open(struct selftest_tools **ret, struct err *err);
int selftest_tools_socket(const struct selftest_tools *tools); /* for jail_program.tools_fd */
/* Ends the run and gives it back (NULL is fine): how many calls came to its server. */
int64_t selftest_tools_close(struct selftest_tools *tools);
