/*
 * grade_task.h - tasks as JSON Lines (HumanEval, HumanEvalPack, MBPP) and the samples that are graded.
 *
 * The members of a line say what it is: `prompt`, `test`, `entry_point` HumanEval; with `declaration` HumanEvalPack,
 * whose language is that of its `task_id` (Python/0, CPP/0, JavaScript/0, Go/0); `code` and `test_list` MBPP. A sample
 * of the first two continues the prompt (HumanEvalPack: the declaration); one of MBPP is the whole program.
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
	const char *text; /* the completion; the lists'. NULL: it holds a NUL, which no program may */
};
struct grade_tasks {
	struct json_object *lines, *completions;
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
};
int grade_tasks_open(const struct grade_tasks_source *source, struct grade_tasks *ret, struct err *err);
void grade_tasks_clear(struct grade_tasks *tasks);

/* The task's own solution, or NULL. */
const char *grade_task_reference(const struct grade_task *task);
/* The part before a sample: prompt, declaration or nothing. */
const char *grade_task_prefix(const struct grade_task *task);
/* A member's text, "" where there is none. */
const char *grade_task_member(const struct grade_task *task, const char *name);
/* pass@k by the unbiased estimator 1 - C(n-c, k) / C(n, k) of one task. */
double grade_pass_at(size_t n, size_t correct, size_t k);
