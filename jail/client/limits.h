/*
 * limits.h - limits of one jail, and what the configuration makes of them: defaults and caps.
 *
 * A new limit is a row of lib/base/limits.def, and the code that enforces it.
 */
#pragma once

#include <stdint.h>

#include "lib/base/bind.h"
#include "lib/base/config.h"
#include "lib/base/err.h"

/* wall_us, cpu_us (user + system of the whole tree), cpu_percent (100: one core; -1: none), memory_bytes (what the
 * memory cgroup counts: heap, tmpfs, memfd, kernel; swap is off), pids, data_bytes, data_inodes, tmp_bytes,
 * output_bytes (stdout and stderr together), compile_wall_us, compile_memory_bytes (the compile step has no CPU share).
 * 0: the default. */
struct jail_limits {
#define RUN_LIMIT(field, ...) int64_t field;
#include "lib/base/limits.def"
};
#define LIMITS_MAX ((int64_t)1 << 50) /* sizes and times beyond it are nonsense and would overflow sums */
extern const struct bind jail_limits_table[]; /* on the wire and in the record: one member a field */

/* 0 becomes the default. Above a cap: ERR_LIMIT names the limit and its cap; nothing is clamped. */
int limits_resolve(const struct config_limits *limits, const struct jail_limits *asked, struct jail_limits *ret,
		   struct err *err);
/* {"wall_us":{"default":…,"max":…},…} */
struct json_object *limits_print(const struct config_limits *limits);
