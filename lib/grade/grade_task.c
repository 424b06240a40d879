/*
 * grade_task.c - see grade_task.h.
 *
 * Files are read whole and stay in memory as JSON; tasks and samples point into them.
 */
#include "grade_task.h"
#include "grade_format.h"
#include "grade_lines.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/util.h"

const char *grade_task_member(const struct grade_task *task, const char *name)
{
	const char *text = json_get_string(task->line, name);

	return text ? text : "";
}

struct grade_sample grade_task_reference(const struct grade_task *task)
{
	return (struct grade_sample){.task = task, .text = task->reference, .whole = task->whole};
}

char *grade_sample_program(const struct grade_sample *sample)
{
	const struct grade_task *task = sample->task;
	const char *header = task->header && !strstr(sample->text, "from __future__") ? task->header : "";
	size_t length = strlen(task->prefix);

	if (task->expression)
		return xasprintf("%s = (%s)\n", task->entry, sample->text);
	/* Of the prefix of a whole program only what comes before the function counts: helpers, imports. */
	if (sample->whole) {
		auto_free char *def = xasprintf("def %s(", task->entry);
		const char *at = strstr(task->prefix, def);

		while (at && at > task->prefix && at[-1] != '\n')
			at--;
		length = at ? (size_t)(at - task->prefix) : 0;
	}
	return xasprintf("%s%.*s%s%s", header, (int)length, task->prefix, sample->text,
			 task->closes && !sample->whole ? "\n}\n" : "");
}

double grade_pass_at(size_t n, size_t correct, size_t k)
{
	double fail = 1;

	if (n - correct < k)
		return 1;
	for (size_t i = n - correct + 1; i <= n; i++)
		fail *= 1 - (double)k / (double)i;
	return 1 - fail;
}

/* -------- tasks --------------------------------------------------------------------------------------- */

static int read_tasks(const struct grade_tasks_source *source, struct grade_tasks *tasks, struct err *err)
{
	int result = grade_lines_read(source->tasks, NULL, NULL, &tasks->lines, err);
	size_t count = result == 0 ? json_object_array_length(tasks->lines) : 0;

	tasks->tasks = xcalloc(count + 1, sizeof(*tasks->tasks));
	for (size_t i = 0; result == 0 && i < count; i++) {
		struct json_object *line = json_object_array_get_idx(tasks->lines, i);
		struct grade_task *task = &tasks->tasks[tasks->n_tasks];

		if (!(task->id = grade_line_id(line)))
			return err_set(err, ERR_INVALID, "%s: task number %zu has no task_id", source->tasks, i + 1);
		tasks->n_tasks++;
		task->line = line;
		result = grade_format_read(task, source->language, err);
	}
	if (result == 0 && count == 0)
		return err_set(err, ERR_INVALID, "%s holds no tasks", source->tasks);
	return result;
}

int grade_tasks_open(const struct grade_tasks_source *source, struct grade_tasks *ret, struct err *err)
{
	struct grade_tasks tasks = {0};
	int result = read_tasks(source, &tasks, err);

	if (result < 0)
		grade_tasks_clear(&tasks);
	else
		*ret = tasks;
	return result;
}

void grade_task_clear(struct grade_task *task)
{
	free(task->id);
	free(task->entry);
	free(task->prefix);
	free(task->reference);
	free(task->test);
	free(task->before);
	free(task->checker);
	json_object_put(task->suite);
	json_object_put(task->cases);
	*task = (struct grade_task){0};
}

void grade_tasks_clear(struct grade_tasks *tasks)
{
	for (size_t i = 0; i < tasks->n_tasks; i++)
		grade_task_clear(&tasks->tasks[i]);
	for (size_t i = 0; i < tasks->n_texts; i++)
		free(tasks->texts[i]);
	for (size_t i = 0; i < tasks->n_left_out; i++)
		free(tasks->left_out[i]);
	free(tasks->texts);
	free(tasks->left_out);
	free(tasks->tasks);
	free(tasks->samples);
	json_object_put(tasks->lines);
	json_object_put(tasks->completions);
	*tasks = (struct grade_tasks){0};
}
