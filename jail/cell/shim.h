/* shim.h - what a jail needs for a deterministic run (jail_program.clock_us) besides what init does. */
#pragma once

#include <stdint.h>

/* Variables that its programs get unless their caller or their runner sets them; ended by NULL. */
extern const char *const shim_env[];
/* The library that they preload, below the directory /code; its time of change is when the clock begins. -1 and
 * errno. */
int shim_put(int code_root, int64_t clock_us);
