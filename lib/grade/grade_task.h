/*
 * grade_task.h - tasks as JSON Lines and the samples that are graded.
 *
 * The members of a line say of which format it is (grade_format.h). A sample's `completion` (or `generation`) continues
 * what the task begins, or is a whole program where the task begins nothing; a `solution` is always the whole program.
 * Of text with fences of Markdown the code in them counts (grade_sample.c).
 */
#pragma once

#include <stdbool.h>

#include "grade.h"
#include "lib/base/json.h"

enum grade_tongue { GRADE_PYTHON, GRADE_CPP, GRADE_JAVASCRIPT, GRADE_GO };
/* How the output of a case of standard input is compared: token by token, numbers within 1e-5; or line by line after
 * the blanks at their ends are gone, words as numbers where both are: exactly, or as numpy.allclose does; or the line
 * as a whole, in letters of either case, or as a number within 1e-5 of the larger one. */
enum grade_compare_kind { GRADE_TOKENS, GRADE_LINES, GRADE_LINES_CLOSE, GRADE_LINES_FREE };

struct grade_task {
	char *id;
	struct json_object *line; /* all of it; belongs to the list */
	enum grade_tongue tongue;
	/* From its format (grade_format.h); the task's: */
	char *entry;               /* the function in question; "" */
	char *prefix;              /* comes before a sample that continues it; "" where samples are whole */
	const char *header;        /* imports before any sample; NULL */
	char *reference;           /* the task's own solution, or NULL */
	char *test;                /* of a program of code and tests: its end; NULL */
	char *before;              /* and its beginning, where the sample is a text in it; NULL */
	struct json_object *suite; /* what the process of tests gets (Python, JavaScript); NULL */
	struct json_object *cases; /* of standard input: objects of input and output; NULL */
	enum grade_compare_kind compare;
	char *checker;   /* a program that says which outputs are right, instead: its path; NULL (grade_checker.h) */
	double seconds;  /* the limit of CPU time; 0: the language's */
	bool said;       /* somebody named the language */
	bool alone;      /* tests and code cannot be split */
	bool closes;     /* C++: the tests have the brace that ends the function */
	bool expression; /* samples are an expression, the value of `entry` */
	bool whole;      /* samples are whole programs */
	bool plus;       /* of its cases some are more than the base */
};
struct grade_sample {
	const struct grade_task *task;
	size_t number;   /* within its task */
	const char *text; /* the code; the lists'. NULL: it holds a NUL, which no program may */
	bool whole;       /* a program, not what comes after the task's prefix */
};
struct grade_tasks {
	struct json_object *lines, *completions;
	char **texts; /* of samples that are not as they are in their lines */
	size_t n_texts;
	char **left_out; /* sentences about lines of samples that cannot be read */
	size_t n_left_out;
	struct grade_task *tasks;
	size_t n_tasks;
	struct grade_sample *samples;
	size_t n_samples;
};

const char *grade_tongue_text(enum grade_tongue tongue); /* the runner's name: "python" */

struct grade_tasks_source {
	const char *tasks, *samples; /* files; samples NULL: the tasks' own solutions are graded … */
	const char *solution;        /* … or this member of them; NULL: canonical_solution or code */
	const char *language;        /* a runner's name or alias, instead of what the tasks say; NULL */
	bool raw;                    /* samples are code as they are: fences of Markdown stay */
};
int grade_tasks_open(const struct grade_tasks_source *source, struct grade_tasks *ret, struct err *err);
void grade_tasks_clear(struct grade_tasks *tasks);
void grade_task_clear(struct grade_task *task); /* its line stays */

/* The task's own solution as a sample; its text is NULL where there is none. */
struct grade_sample grade_task_reference(const struct grade_task *task);
/* A member's text, "" where there is none. */
const char *grade_task_member(const struct grade_task *task, const char *name);
/* The program of a sample, with the part before it; the caller's. */
char *grade_sample_program(const struct grade_sample *sample);
/* pass@k by the unbiased estimator 1 - C(n-c, k) / C(n, k) of one task. */
double grade_pass_at(size_t n, size_t correct, size_t k);
