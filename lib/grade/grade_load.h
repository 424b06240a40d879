/*
 * grade_load.h - verdicts on a busy host: was a program too slow, or did it not get the processors?
 *
 * The limit is CPU time; the wall clock is there for programs that wait. Of a run that was too slow this says whether
 * the verdict holds. It does where the program used its CPU time (on a busy host: twice, the second time alone), or
 * used next to none because it waits. Else other work had the processors: the run is repeated, alone among the runs of
 * this process, with more wall clock each time, and in the end it is not judged. How busy the host was is what the
 * kernel says of the time that something waited for a processor (/proc/pressure/cpu), else the load.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define GRADE_LOAD_TRIES   3           /* runs, before one is given up */
#define GRADE_LOAD_WALL_US 300000000LL /* the longest wall clock: what a service allows by default */

struct grade_load {
	int tries;            /* runs that began */
	int64_t first_cpu_us; /* of the first one */
	bool busy;            /* was the host, while the last run ran? */
	int64_t began_us, pressure_us;
};
#define GRADE_LOAD_INIT ((struct grade_load){0})

/* Around each run: the first may run while others do, the next ones wait until they are alone. */
void grade_load_begin(struct grade_load *load);
void grade_load_end(struct grade_load *load);
/* The wall clock of the run that begins next, where `base_us` is that of the first one. */
int64_t grade_load_wall(const struct grade_load *load, int64_t base_us);

struct grade_load_run {
	bool late; /* a limit of time ended it */
	int64_t cpu_us, wall_us;
	int64_t other_us;                    /* CPU time of what it talked to */
	int64_t cpu_limit_us, wall_limit_us; /* of the first run */
};
enum grade_load_word {
	GRADE_LOAD_HOLDS,   /* the verdict of the run counts */
	GRADE_LOAD_WAITS,   /* it ended well, but only because it had more wall clock to wait in: too slow */
	GRADE_LOAD_AGAIN,   /* nothing can be said yet */
	GRADE_LOAD_STARVED, /* and nothing will be */
};
enum grade_load_word grade_load_word(struct grade_load *load, const struct grade_load_run *run);
#define GRADE_LOAD_TEXT "not judged: the machine was busy (%.2f s of processor time in %.2f s, tried %d times)"
