/*
 * job_known.h - what a live sandbox's /data holds, as far as the record knows: a run fills in only what is new and
 * takes away what is gone from the conversation, and its replay the same.
 *
 * Names are NUL-terminated; blob, mode and time must agree for a file to be known.
 */
#pragma once

#include "jail/client/jail.h"
#include "lib/store/record/store_file.h"

struct job_known_file;
struct job_known {
	struct job_known_file *items; /* sorted by name */
	size_t count;
};
/* What the next run must find: after _begin, _has is asked of each of its files and remembers the name; then _gone
 * lists those that nobody asked for: they are to be removed from /data, and then to be forgotten. */
struct job_gone {
	struct jail_file *files; /* for jail_remove: only their names count, … */
	char **names;            /* … which are these, owned */
	size_t count;
};
void job_known_begin(struct job_known *known);
bool job_known_has(struct job_known *known, const struct store_file *file);
void job_known_gone(const struct job_known *known, struct job_gone *ret);
void job_known_forget(struct job_known *known, const struct job_gone *gone);
void job_gone_clear(struct job_gone *gone);
void job_known_put(struct job_known *known, const struct store_file *file);
void job_known_remove(struct job_known *known, const char *name);
void job_known_clear(struct job_known *known);
