/*
 * grade_run.h - all samples of a list against their tests, side by side, reported in the order of the list.
 *
 * Whether a suite can be split between two processes is decided by the task's own solution, never by the sample: where
 * a sample fails, the task's solution is examined in the same way once; if that fails too, but passes as one program
 * with the tests, then so are the task's samples.
 */
#pragma once

#include "grade_exam.h"
#include "grade_pool.h"

struct grade_run {
	const struct grade_tasks *tasks;
	int jobs;
	double time_limit; /* seconds; 0: the language's */
	bool require_split; /* samples that would share a process with their tests are SKIP */
	const char *cache; /* folder of executables; NULL: none */
	const struct grade_memory *memory; /* NULL: nothing is kept or recalled */
	struct grade_dial dial;
	/* A sample is done: in the order of the list, one call at a time, from any thread. False: this is the end,
	 * nothing more is begun or reported. */
	bool (*done)(void *arg, const struct grade_sample *sample, const struct grade_exam_result *result);
	void (*progress)(void *arg, size_t done, size_t all); /* may be NULL */
	void *arg;
};
int grade_run(const struct grade_run *run, struct err *err);
