/* shim.h - the library that the programs of a deterministic run preload (jail_program.clock_us), and its variables. */
#pragma once

#include <stdint.h>

/* Variables of the programs, unless their caller or their runner sets them; ended by NULL. */
extern const char *const shim_env[];
/* Puts the library below the directory /code; its time of change is when the clock begins. -1 and errno. */
int shim_put(int code_root, int64_t clock_us);
