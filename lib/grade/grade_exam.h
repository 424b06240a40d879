/*
 * grade_exam.h - one sample against the tests of its task, and the verdict, which is always taken outside of the code
 * under test.
 *
 * Apart: the tests run in one jail, the code under test in another, and values cross between them as plain data
 * through this process. The code under test sees neither the tests nor the channel on which their verdict comes; all
 * that it can do is answer. In Python and JavaScript a jail for tests serves one sample after the other; in C++ and Go
 * the tests are a program of their own.
 *
 * Alone (suites that cannot be split): code and tests are one program. It must prove that it reached the end of the
 * tests: by a nonce that it read from a pipe before the code under test started, written to a descriptor which that
 * code cannot name. Without the nonce an exit with status 0 is an early end. What code does to the memory of its own
 * process this cannot see; reports name such samples ("in_process").
 */
#pragma once

#include "grade_load.h"
#include "grade_program.h"
#include "grade_task.h"
#include "jail/client/client_once.h"

/* The largest limits of all jails here. */
#define GRADE_EXAM_WALL_US GRADE_LOAD_WALL_US
#define GRADE_EXAM_MEMORY  (1LL << 30)
#define GRADE_EXAM_OUTPUT  (8 << 20)

struct grade_exam_result {
	enum grade_verdict verdict;
	bool premature;  /* RTE because it ended before the tests did */
	bool in_process; /* code and tests were one program */
	bool apart;      /* the suite asked for what cannot cross; the verdict says nothing */
	char message[GRADE_MESSAGE];
	int64_t cpu_us, wall_us;
	int64_t tests, passed;           /* cases; 0 tests: the suite has no such parts */
	int64_t base_tests, base_passed; /* of them, evalplus' base */
	struct grade_candidate *leaving; /* NULL, or it has passed and its jail is ending: grade_exam_leave */
};

struct grade_examiner; /* jails for tests, of one thread */
struct grade_exam {
	struct jail_client *client;
	struct json_object *runners;
	const char *cache;
	double time_limit; /* seconds; 0: the language's */
	struct grade_examiner **examiner; /* *examiner NULL: not there yet */
	const struct grade_program *tests; /* of a language that is compiled: grade_exam_tests */
	const struct grade_load *load;     /* the run that begins is its next one; NULL: the first */
	bool more;                         /* samples are left, so that the next jail may be made ahead */
};

bool grade_exam_compiles(const struct grade_task *task);
void grade_exam_apart(const struct grade_exam *exam, const struct grade_sample *sample,
		      struct grade_exam_result *ret);
/* In C++ and Go the tests are a program, which serves all samples of a task: GRADE_AC where it could be made. */
void grade_exam_tests(const struct grade_exam *exam, const struct grade_task *task, struct grade_program *ret);
/* Waits for the end of result->leaving, which tells cpu_us and wall_us. An error: the sandbox failed, and what the
 * tests said is worth nothing. */
int grade_exam_leave(struct jail_client *client, struct grade_exam_result *result, struct err *err);
void grade_exam_alone(const struct grade_exam *exam, const struct grade_sample *sample,
		      struct grade_exam_result *ret);
void grade_examiner_free(struct grade_examiner *examiner); /* NULL is fine */

/* Between the files of this module: */
struct jail_limits grade_exam_limits(const struct grade_exam *exam, const struct grade_task *task);
/* After a run of the code under test: is it to be repeated? Else the result is right. `limits`: of the first run. */
bool grade_exam_again(const struct jail_limits *limits, struct grade_load *load, struct grade_exam_result *result);
/* What the end of the code under test means where its tests were not through. */
void grade_exam_ended(const struct jail_once *once, struct grade_exam_result *result);
/* The programs of jail/guest/exam. */
struct grade_text {
	const char *data;
	size_t length;
};
struct grade_texts {
	struct grade_text examiner, candidate; /* data NULL: not in this language */
	struct grade_text alone;
	const char *runner; /* of examiner and candidate */
	bool compiles;      /* the examiner begins with the candidate's program, compiled */
};
extern const struct grade_texts grade_texts[];
/* What a program in C++ includes: what its task names, or also what samples use without an include of their own. */
enum grade_headers { GRADE_OWN_HEADERS, GRADE_USUAL_HEADERS };
/* Code and tests as one program, or one of two, which has no files where the task cannot be split. The caller's
 * (grade_source_clear). */
enum grade_part { GRADE_ALONE, GRADE_TESTS, GRADE_CODE, GRADE_PLAIN /* the sample as it is */ };
void grade_compose(const struct grade_sample *sample, enum grade_part part, enum grade_headers headers,
		   struct grade_source *ret);
/* The program of a sample, compiled where its language is. */
void grade_exam_make(const struct grade_exam *exam, const struct grade_sample *sample, enum grade_part part,
		     struct grade_program *ret);
