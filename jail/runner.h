/*
 * runner.h - languages: one JSON file each in the runners' directory.
 *
 *     { "name": "c", "aliases": ["gcc"], "extensions": [".c"],
 *       "source": "main.c",                            file name of the program's source below /code
 *       "interpreters": ["/usr/bin/gcc"],              the first that exists is {interpreter}; none: the runner is not available
 *       "compile": ["{interpreter}", …], "run": ["/code/main"],
 *       "version": ["{interpreter}", "--version"],     the first line that it prints is the fingerprint
 *       "libraries": ["{interpreter}", …],             prints lines "name version"
 *       "quiet": ["keyctl"],                           refused system calls that are not worth a word in the result
 *       "env": ["LANG=C.UTF-8"], "install": "apt-get install gcc" }
 *
 * Paths are those inside a jail; what begins with TEMPLATE_MODULES is looked up in the modules directory. Versions are found by
 * running the commands in a jail (probe.c), in the background after start.
 */
#pragma once

#include <stdbool.h>

#include "../lib/bind.h"
#include "../lib/err.h"
#include "../lib/json.h"

#define RUNNERS_MAX        64
#define RUNNER_FINGERPRINT 256
#define RUNNER_FILE_MAX    (256 * 1024)

struct runner {
	const char *name, *source, *install;
	struct bind_strings aliases, extensions, interpreters, compile, run, version, libraries, env, quiet;
	int64_t version_least; /* first number in the fingerprint must be this or more */

	const char *interpreter; /* NULL: not available */
	char fingerprint[RUNNER_FINGERPRINT];
	struct json_object *found_libraries; /* [{"name","version"}] or NULL */
	struct json_object *document;        /* the strings above point into it */
};
struct runners {
	struct runner *items;
	size_t count;
};

/* All *.json of the directory. A file that is wrong is an error that names it. */
int runners_load(const char *directory, const char *modules_dir, struct runners *ret, struct err *err);
void runners_clear(struct runners *runners);
/* By name or alias; NULL. */
struct runner *runners_find(const struct runners *runners, const char *name);
/* An element of argv with {interpreter} replaced; the caller's. */
char *runner_expand(const struct runner *runner, const char *text);
/* As jail.h says for jail_client_runners. */
struct json_object *runners_print(const struct runners *runners);
