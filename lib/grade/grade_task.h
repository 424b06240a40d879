/*
 * grade_task.h - tasks as JSON Lines (HumanEval, HumanEvalPack, MBPP) and the samples that are graded.
 *
 * The members of a line say what it is: `prompt`, `test`, `entry_point` HumanEval; with `declaration` HumanEvalPack,
 * whose language is that of its `task_id` (Python/0, CPP/0, JavaScript/0, Go/0); `code` and `test_list` or `test` MBPP
 * and MBPP+. A line with other members that look like tests is refused: tests that nobody runs would let samples pass.
 *
 * A sample's `completion` (or `generation`) continues the prompt (HumanEvalPack: the declaration), of MBPP it is the
 * whole program; a `solution` is always the whole program. Of text with fences of Markdown the code in them counts
 * (grade_sample.c).
 */
#pragma once

#include <stdbool.h>

#include "grade.h"
#include "lib/base/json.h"

enum grade_tongue { GRADE_PYTHON, GRADE_CPP, GRADE_JAVASCRIPT, GRADE_GO };
enum grade_layout { GRADE_HUMANEVAL, GRADE_PACK, GRADE_MBPP };

struct grade_task {
	char *id;
	struct json_object *line; /* all of it; belongs to the list */
	enum grade_layout layout;
	enum grade_tongue tongue;
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

/* The task's own solution as a sample; its text is NULL where there is none. */
struct grade_sample grade_task_reference(const struct grade_task *task);
/* The part before a sample: prompt, declaration or nothing. */
const char *grade_task_prefix(const struct grade_task *task);
/* A member's text, "" where there is none. */
const char *grade_task_member(const struct grade_task *task, const char *name);
/* The program of a sample, with the part before it; the caller's. */
char *grade_sample_program(const struct grade_sample *sample);
/* pass@k by the unbiased estimator 1 - C(n-c, k) / C(n, k) of one task. */
double grade_pass_at(size_t n, size_t correct, size_t k);
