/*
 * grade_task.c - see grade_task.h. Facts: openai/human-eval (data.py, evaluation.py), bigcode/humanevalpack, MBPP.
 *
 * Files are read whole and stay in memory as JSON; tasks and samples point into them.
 */
#include "grade_task.h"
#include "grade_lines.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/util.h"

/* Names of languages as task ids and people write them, and their runners. */
static const struct {
	const char *name;
	enum grade_tongue tongue;
} tongues[] = {
	{"python", GRADE_PYTHON}, {"cpp", GRADE_CPP}, {"javascript", GRADE_JAVASCRIPT}, {"go", GRADE_GO},
	{"HumanEval", GRADE_PYTHON}, {"py", GRADE_PYTHON}, {"python3", GRADE_PYTHON}, {"c++", GRADE_CPP},
	{"js", GRADE_JAVASCRIPT}, {"node", GRADE_JAVASCRIPT}, {"golang", GRADE_GO},
};

const char *grade_tongue_text(enum grade_tongue tongue)
{
	return tongues[tongue].name;
}

static int find_tongue(const char *name, size_t length, enum grade_tongue *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(tongues); i++)
		if (strlen(tongues[i].name) == length && strncasecmp(tongues[i].name, name, length) == 0) {
			*ret = tongues[i].tongue;
			return 0;
		}
	return -1;
}

const char *grade_task_member(const struct grade_task *task, const char *name)
{
	const char *text = json_get_string(task->line, name);

	return text ? text : "";
}

struct grade_sample grade_task_reference(const struct grade_task *task)
{
	const char *member = task->layout == GRADE_MBPP ? "code" : "canonical_solution";

	return (struct grade_sample){.task = task, .text = json_get_string(task->line, member)};
}

const char *grade_task_prefix(const struct grade_task *task)
{
	return task->layout == GRADE_MBPP ? ""
	       : task->layout == GRADE_PACK && task->tongue != GRADE_PYTHON
		       ? grade_task_member(task, "declaration")
		       : grade_task_member(task, "prompt");
}

char *grade_sample_program(const struct grade_sample *sample)
{
	const char *prefix = grade_task_prefix(sample->task);
	size_t length = strlen(prefix);

	/* Of the prefix of a whole program only what comes before the function counts: helpers, imports. */
	if (sample->whole) {
		const char *entry = grade_task_member(sample->task, "entry_point");
		auto_free char *def = xasprintf("def %s(", entry);
		const char *at = strstr(prefix, def);

		while (at && at > prefix && at[-1] != '\n')
			at--;
		length = at ? (size_t)(at - prefix) : 0;
	}
	return xasprintf("%.*s%s", (int)length, prefix, sample->text);
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

static bool has(struct json_object *line, const char *name)
{
	return json_get_string(line, name) != NULL;
}

/* Is there something in it? */
static bool filled(struct json_object *value)
{
	return json_object_is_type(value, json_type_string)  ? json_object_get_string_len(value) > 0
	       : json_object_is_type(value, json_type_array) ? json_object_array_length(value) > 0
							     : json_object_is_type(value, json_type_object);
}

/* The members of each layout that may be taken for tests; the others of such a name would go unseen. */
static const char *const test_members[][8] = {
	[GRADE_HUMANEVAL] = {"test"},
	[GRADE_PACK] = {"test", "test_setup", "example_test"},
	[GRADE_MBPP] = {"test", "test_list", "test_setup_code", "test_imports", "challenge_test_list"},
};

static int check_members(const struct grade_task *task, struct json_object *line, struct err *err)
{
	static const char *const words[] = {"test", "assert", "_input", "_output", "cases"};

	json_object_object_foreach(line, name, value)
	{
		bool like = false, known = !filled(value);

		for (size_t i = 0; i < ARRAY_SIZE(words); i++)
			like = like || strcasestr(name, words[i]);
		for (size_t i = 0; i < ARRAY_SIZE(test_members[0]) && test_members[task->layout][i]; i++)
			known = known || streq(test_members[task->layout][i], name);
		if (like && !known)
			return err_set(err, ERR_INVALID,
				       "task %s: its member %s looks like tests, and is none that runs", task->id,
				       name);
	}
	return 0;
}

static int read_layout(struct json_object *line, struct grade_task *ret, struct err *err)
{
	struct json_object *list = json_get(line, "test_list", json_type_array);
	size_t count = list ? json_object_array_length(list) : 0, texts = 0;

	for (size_t i = 0; i < count; i++)
		texts += json_object_is_type(json_object_array_get_idx(list, i), json_type_string);
	if (has(line, "prompt") && has(line, "test") && has(line, "entry_point"))
		ret->layout = has(line, "declaration") ? GRADE_PACK : GRADE_HUMANEVAL;
	else if (!list && !(has(line, "code") && has(line, "test")))
		return err_set(err, ERR_INVALID,
			       "task %s is neither HumanEval (prompt, test, entry_point) nor MBPP (code, test_list)",
			       ret->id);
	/* Tests that say nothing would let every sample pass. */
	else if (texts < count || (count == 0 && !filled(json_get(line, "test", json_type_string))))
		return err_set(err, ERR_INVALID, "task %s: test_list must hold one test or more, as strings", ret->id);
	else
		ret->layout = GRADE_MBPP;
	return check_members(ret, line, err);
}

static int read_task(struct json_object *line, const char *language, struct grade_task *ret, struct err *err)
{
	const char *id = ret->id, *slash = strchr(id, '/');
	int result = read_layout(line, ret, err);

	ret->line = line;
	if (result < 0)
		return result;
	if (language && find_tongue(language, strlen(language), &ret->tongue) < 0)
		return err_set(err, ERR_INVALID,
			       "no tasks are graded in the language %s: python, cpp, javascript or go", language);
	if (!language && slash && ret->layout == GRADE_PACK &&
	    find_tongue(id, (size_t)(slash - id), &ret->tongue) < 0)
		return err_set(err, ERR_INVALID, "task %s: no language of that name is known, give one with --language",
			       id);
	if (ret->tongue != GRADE_PYTHON && ret->layout != GRADE_PACK)
		return err_set(err, ERR_INVALID, "task %s: only tasks with a declaration are graded in %s", id,
			       grade_tongue_text(ret->tongue));
	return 0;
}

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
		result = read_task(line, source->language, task, err);
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

void grade_tasks_clear(struct grade_tasks *tasks)
{
	for (size_t i = 0; i < tasks->n_tasks; i++)
		free(tasks->tasks[i].id);
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
