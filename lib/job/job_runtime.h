/*
 * job_runtime.h - what a runner's programs run on, as an object: "runner", "version", "interpreter", its "sha256",
 * "libraries" ({name: version}), "kernel", "architecture", "processor". What is not known is left out.
 */
#pragma once

#include "lib/base/json.h"
#include "lib/store/record/store_runtime.h"

struct job_engine;
struct job_runtimes; /* those that an engine has met */
struct job_runtimes *job_runtimes_new(void);
void job_runtimes_free(struct job_runtimes *runtimes); /* NULL is fine */
/* Of the engine's runners; it stays the engine's until that ends. NULL: no jailer has told them yet. To have the
 * interpreter read before it is needed, ask with the version "". */
const struct store_runtime *job_runtime_of(struct job_engine *engine, const char *name, const char *version);

/* Of this runner of jail_client_runners; `version`: of the run. The caller's. The interpreter is read once for each
 * version of its file that this process meets: up to a few tenths of a second. Thread-safe. */
struct json_object *job_runtime(struct json_object *runners, const char *name, const char *version);
/* One line a member that differs, of those that both have: each(arg, member, recorded, now). Of libraries those that
 * differ. */
void job_runtime_compare(struct json_object *recorded, struct json_object *now,
			 void (*each)(void *arg, const char *member, const char *recorded, const char *now), void *arg);
