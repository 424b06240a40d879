/*
 * runner.h - languages: one JSON file each in the runners' directory.
 *
 * The files that it names are looked for next to it, then among those that the jailer has embedded (jail/guest).
 *
 *     { "name": "c", "aliases": ["gcc"], "extensions": [".c"],
 *       "source": "main.c",                            file name of the program's source below /code
 *       "interpreters": ["/usr/bin/gcc"],              the first that exists is {interpreter}; none: the runner is not
 *                                                      available
 *       "compile": ["{interpreter}", …], "run": ["/code/main"],
 *       "tools_run": ["{interpreter}", …],             instead of "run" for a program that calls tools (jail_program)
 *       "show_run": ["{interpreter}", …],              … and for one whose last value is shown
 *       "live": ["{interpreter}", …],                  starts the driver, which keeps the interpreter's state over the
 *                                                      runs of a live jail (init_live.c)
 *       "starter": "python.py",                        put into the jail as /code/.start, which these commands name
 *       "warm": "python_warm.py",                      what an interpreter runs in the starter's place from which jails
 *                                                      that were made ahead are joined (cell_join.c)
 *       "helper": "java.sh",                           put into the jail as /code/.helper, which commands may name
 *       "version": ["{interpreter}", "--version"],     the first line that it prints is the fingerprint
 *       "libraries": ["{interpreter}", …],             prints lines "name version"
 *       "libraries_are": ["/usr/lib/…/numpy-*"],        patterns of files that say by name or contents which libraries
 *                                                      there are: they stand for versions that are not known
 *       "answers_are": ["/usr/local/share/fonts"],      patterns of more files on which the answers of the commands
 *                                                      depend; answers.h says which are known
 *       "cache": ["{interpreter}", …],                 prints the name of a file below /tmp, then the file: put there
 *                                                      before each run
 *       "seccomp": "native",                           the family of system calls for its programs (seccomp.h); absent:
 *                                                      "base"
 *       "seccomp_compile": "base",                     and for its compile step; absent: "compiler"
 *       "quiet": ["keyctl"],                           refused system calls that the result does not mention
 *       "env": ["LANG=C.UTF-8"], "install": "apt-get install gcc",
 *       "internal": true,                              not offered to clients: a step that `sallyport grade` uses
 *       "unlisted": true,                              not in the description of run_code, which has little room
 *       "reserves_mb": 256,                            that the interpreter reserves without using: added to the
 *                                                      memory where limits are weaker and count it (RLIMIT_DATA)
 *       "service": true,                               for programs that last (jail_spec.service)
 *       "rootfs": "/srv/debian-13",                    the system that its programs see, instead of the host's
 *       "binds": ["/opt/julia"] }                      or directories of the host that they also see, read-only
 *
 * In "run", "compile" and "env", {memory_mb} is the run's limit of memory in MiB, for interpreters that must know it.
 *
 * Paths are those inside a jail, but for rootfs and binds (rootfs.h says which are refused); what begins with
 * ROOT_MOUNT_MODULES is looked up in the modules directory, where there is no rootfs. Versions are found by running the
 * commands in a jail (versions.c), in the background after start.
 */
#pragma once

#include <stdbool.h>

#include "jail/init/seccomp.h"
#include "jail/root/root_mount.h"
#include "lib/base/bind.h"
#include "lib/base/err.h"
#include "lib/base/json.h"

#define RUNNERS_MAX        64
#define RUNNER_FINGERPRINT 256
#define RUNNER_FILE_MAX    (256 * 1024)
#define RUNNER_STARTER     ".start" /* its name below /code */
#define RUNNER_HELPER      ".helper"
#define RUNNER_VALUE       ".value" /* the starter writes there what is shown */

struct runner {
	const char *name, *source, *install, *rootfs, *starter, *helper, *warm, *seccomp, *seccomp_compile;
	struct bind_strings aliases, extensions, interpreters, compile, run, tools_run, show_run, live, version,
		libraries, cache, env, quiet, binds, libraries_are, answers_are;
	bool service;          /* for programs that last (jail_spec.service); its jails see upstream.binds, too */
	bool internal;         /* not offered as a language: for parts of Sallyport that name it (a compiler alone) */
	bool unlisted;         /* offered, and not in the description of run_code */
	int64_t reserves_mb;   /* that its interpreter reserves and does not use: weaker limits count that, too */
	int64_t version_least; /* first number in the fingerprint must be this or more */

	enum seccomp_family family, family_compile;
	const char *interpreter; /* NULL: not available */
	char *on_host;           /* its path there */
	struct json_object *libraries_on_host, *answers_on_host; /* where those patterns are there; NULL: none */
	int starter_fd, helper_fd, warm_fd; /* their texts; -1 */
	struct root_mount root;    /* its jails' own, if it names a rootfs or binds; path "" otherwise */
	char fingerprint[RUNNER_FINGERPRINT];
	bool asked, awaited;                 /* for its version (versions.c): that was done; a run waits for it */
	uint64_t answers_key;                /* of answers.h */
	struct json_object *found_libraries; /* [{"name","version"}] or NULL */
	char *cache_name;                    /* what `cache` printed; NULL: nothing */
	int cache_fd;                        /* memfd, or -1 */
	struct json_object *document;        /* the strings above point into it */
};
struct runners {
	struct runner *items;
	size_t count;
};

/* What decides which directories a runner file may name. */
struct runners_host {
	const char *modules_dir; /* "" = none */
	const char *state_dir;   /* "" = not known */
	const struct bind_strings *service_binds; /* for services, read-only; NULL: none */
};
/* All *.json of the directory. A file that is wrong is an error that names it. */
int runners_load(const char *directory, const struct runners_host *host, struct runners *ret, struct err *err);
void runners_clear(struct runners *runners);
/* By name or alias; NULL. */
struct runner *runners_find(const struct runners *runners, const char *name);
/* The language in which jails are joined; NULL: none. */
struct runner *runners_warm(const struct runners *runners);
/* An element of argv or a variable, with {interpreter} and {memory_mb} replaced; the caller's. */
char *runner_expand(const struct runner *runner, const char *text, int64_t memory_bytes);
/* As jail.h says for jail_client_runners. */
struct json_object *runners_print(const struct runners *runners);
