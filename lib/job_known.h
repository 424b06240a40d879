/*
 * job_known.h - what a live sandbox's /data holds, as far as the record tells: a run fills in only what is new, and its replay the same.
 *
 * Names are NUL-terminated; blob, mode and time must agree for a file to be known.
 */
#pragma once

#include "store.h"

struct job_known_file;
struct job_known {
	struct job_known_file *items; /* sorted by name */
	size_t count;
};
bool job_known_has(const struct job_known *known, const struct store_file *file);
void job_known_put(struct job_known *known, const struct store_file *file);
void job_known_remove(struct job_known *known, const char *name);
void job_known_clear(struct job_known *known);
