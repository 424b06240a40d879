/*
 * grade_judge.h - judges a package's submissions: compiles each once, runs cases side by side, reports in the order of
 * the list.
 *
 * Threads work on one list. Each has a client of the jailer of its own and takes the first thing that can be done: the
 * earliest submission's compilation or next case. Time limit, where the package has none: the accepted submissions
 * (later formats: all that may not be too slow, be it in a part of the data) run first, with GRADE_FREE_SECONDS a
 * case; the slowest case, by the format's rule, makes the limit, and their outcomes count as they are. What has to be
 * too slow then runs on up to time_limit_to_tle times the limit, and its message says where that is not reached.
 */
#pragma once

#include "grade_expect.h"
#include "grade_pool.h"
#include "grade_score.h"

#define GRADE_FREE_SECONDS 60.0 /* a case, while the time limit is not known */

struct grade_memory;
struct grade_submission {
	char *name; /* below submissions/, or as the caller named it */
	char *path;
	bool reported; /* false: it runs for the time limit only */
	struct grade_expect expect;
	/* What came of it: */
	char language[32];
	bool compiled, from_cache;
	struct grade_total total;
	char unmet[GRADE_MESSAGE]; /* a rule for a part of the test data that does not hold; "": none */
};

struct grade_judge {
	struct grade_package *package;
	int jobs;
	double time_limit; /* seconds; 0: the package's, or from its submissions. Then what was used */
	bool derived;      /* it came from the submissions */
	const struct grade_memory *memory; /* NULL: nothing is kept or recalled */
	const char *cache; /* folder of executables; NULL: none */
	struct grade_dial dial;
	/* A submission is done: in the order of the list, one call at a time, from any thread. False: this is the end,
	 * nothing more is begun or reported. */
	bool (*done)(void *arg, const struct grade_submission *submission);
	void (*progress)(void *arg, size_t done, size_t all); /* cases; may be NULL */
	void (*warning)(void *arg, const char *text);         /* before programs run whose verdicts it is about */
	void *arg;

	/* From grade_judge_open: */
	struct grade_submission *submissions;
	size_t count;
	struct grade_node *root, **cases;
	size_t n_cases;
	struct json_object *expectations; /* submissions.yaml or NULL */
};

/* Reads test data and the list of submissions: all of the package, or those that `names` name (below submissions/, else
 * files or folders anywhere). ERR_INVALID where there is nothing to judge. */
int grade_judge_open(struct grade_judge *judge, const char *const *names, size_t n_names, struct err *err);
/* Does all of it run first, for the time limit? */
bool grade_judge_bounds(const struct grade_package *package, const struct grade_submission *submission);
/* Does the limit come from it, or from the cases of it that grade_expect_lower has a rule for? */
bool grade_judge_makes_limit(const struct grade_package *package, const struct grade_submission *submission);
int grade_judge_run(struct grade_judge *judge, struct err *err);
void grade_judge_clear(struct grade_judge *judge);

/* -------- warnings (grade_warn.c) --------------------------------------------------------------------- */

#define GRADE_WARNINGS_MAX 20 /* texts for one package; the last one says how many more there are */
/* After grade_judge_open: calls `say` for everything in a package that its author surely meant otherwise, though it can
 * be judged: no secret data, names that 2025-09 leaves out, answers without an input, files that were not fetched, and
 * words and patterns of submissions.yaml that say nothing. Without a warning a case or an expectation would be lost in
 * silence. `all`: the list is all of the package's submissions. */
void grade_warn(const struct grade_judge *judge, bool all, void (*say)(void *arg, const char *text), void *arg);
