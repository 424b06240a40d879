/*
 * grade_memory.h - what an earlier, interrupted run of the same found, so that another one goes on from there.
 *
 * A result belongs to a name (a submission, a sample) and to a key: the SHA-256 of everything that it depends on, which
 * is the runners with their versions, the package or task, the program and the limits. Where one of these is another,
 * so is the key, and nothing is recalled. JE is never kept: it is tried again. The caller keeps the results.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/json.h"

struct grade_memory {
	/* True and *ret (the caller's): there is a result. */
	bool (*recall)(void *arg, const char *name, const char *key, struct json_object **ret);
	/* As soon as it is there; from any thread, one call at a time. */
	void (*keep)(void *arg, const char *name, const char *key, struct json_object *result);
	/* Is a sample left out, of which this is known (NULL: nothing)? The others run, known or not. Where `skips` is
	 * NULL, what is known does not run. */
	bool (*skips)(void *arg, struct json_object *found);
	/* What all keys of this run have in common: called before anything is recalled. NULL: nobody asks. */
	void (*begins)(void *arg, const char *common);
	/* Of runs that are over, whose results are put together without running anything; NULL: this one runs. */
	const char *common;
	void *arg;
};
