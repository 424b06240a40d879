/*
 * store_baseline.h - what is expected of an execution: what was recorded (generation 1), or what somebody put in its
 * place later, with a reason. The last generation counts; the ones before it are kept.
 */
#pragma once

#include "store_execution.h"
#include "store_tool.h"

#define STORE_AUTHOR_MAX 256
#define STORE_REASON_MAX 4096

/* Puts the outcome of execution->generation into *execution; nothing to do for 1. */
int store_baseline_apply(struct store *store, struct store_execution *execution, struct err *err);
/* The files of that generation, as store_execution_files gives those that were recorded. Of later generations a file's
 * blob is the sum of its content, which is not kept. */
int store_baseline_files(struct store *store, const struct store_execution *execution,
			 int (*each)(void *arg, const struct store_execution_file *file), void *arg, struct err *err);

struct store_baseline {
	int64_t generation, blessed_us;
	char author[STORE_AUTHOR_MAX + 1], reason[STORE_REASON_MAX + 1];
	char fingerprint[256];
	char verdict[3];
	int64_t servers, calls; /* that the real servers answered anew; 0 servers: none were asked */
};
/* The generations from 2 on. */
int store_baseline_list(struct store *store, const char *execution,
			int (*each)(void *arg, const struct store_baseline *baseline), void *arg, struct err *err);

/* Of `outcome` the id, the times and what came of it count; what is longer than STORE_INLINE_MAX is in a blob. */
struct store_blessing {
	const struct store_execution *outcome;
	const struct store_execution_file *files;
	size_t n_files;
	const char *author, *reason; /* not empty, not longer than above */
	const struct store_tools *tools; /* what answers its calls from now on; NULL: what did so far */
};
int store_baseline_add(struct store *store, const struct store_blessing *blessing, int64_t *ret_generation,
		       struct err *err);
/* All of fd, as a text of an outcome. */
int store_baseline_text(struct store *store, int fd, struct store_text *ret, struct err *err);
