/* grade_load.c - see grade_load.h. */
#include "grade_load.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/util.h"

#define WALL_GROWTH   5         /* times the wall clock, with each try */
#define IDLE_SHARE    50        /* a program that computes has such a part of its wall clock, or the host is busy */
#define BUSY_SHARE    4         /* so much of the time something waited for a processor */
#define NOISE_US      20000     /* of CPU time, between two runs of what waits */

/* Runs hold it for reading, a run that has to be alone for writing. */
static pthread_rwlock_t alone = PTHREAD_RWLOCK_INITIALIZER;

/* -1: the kernel does not tell. */
static int64_t pressure_us(void)
{
	FILE *file = fopen("/proc/pressure/cpu", "re");
	long long total = -1;

	if (file && fscanf(file, "some avg10=%*f avg60=%*f avg300=%*f total=%lld", &total) != 1)
		total = -1;
	if (file)
		fclose(file);
	return total;
}

void grade_load_begin(struct grade_load *load)
{
	if (load->tries++ == 0)
		pthread_rwlock_rdlock(&alone);
	else
		pthread_rwlock_wrlock(&alone);
	load->began_us = clock_monotonic_us();
	load->pressure_us = pressure_us();
}

void grade_load_end(struct grade_load *load)
{
	int64_t now_us = clock_monotonic_us(), waited_us = pressure_us();
	double average;

	if (waited_us >= 0 && load->pressure_us >= 0)
		load->busy = waited_us - load->pressure_us > (now_us - load->began_us) / BUSY_SHARE;
	else
		load->busy = getloadavg(&average, 1) == 1 && average > (double)sysconf(_SC_NPROCESSORS_ONLN);
	pthread_rwlock_unlock(&alone);
}

int64_t grade_load_wall(const struct grade_load *load, int64_t base_us)
{
	int64_t wall_us = base_us;

	for (int i = 0; i < load->tries; i++)
		wall_us = MIN(wall_us * WALL_GROWTH, MAX(base_us, GRADE_LOAD_WALL_US));
	return wall_us;
}

enum grade_load_word grade_load_word(struct grade_load *load, const struct grade_load_run *run)
{
	bool idle = run->cpu_us + run->other_us < run->wall_us / IDLE_SHARE;
	bool more = run->cpu_us > load->first_cpu_us + load->first_cpu_us / 2 + NOISE_US; /* than in the first run */

	bool tried = load->tries > 1;

	if (!tried)
		load->first_cpu_us = run->cpu_us;
	if (!run->late)
		return tried && idle && !more && run->wall_us > run->wall_limit_us ? GRADE_LOAD_WAITS
										    : GRADE_LOAD_HOLDS;
	bool doubtful = load->busy && (!tried || more); /* where it used next to nothing */
	if (run->cpu_us >= run->cpu_limit_us ? tried || !load->busy : idle && !doubtful)
		return GRADE_LOAD_HOLDS;
	return load->tries < GRADE_LOAD_TRIES ? GRADE_LOAD_AGAIN : GRADE_LOAD_STARVED;
}
