/*
 * grade_task.c - see grade_task.h. Facts: openai/human-eval (data.py, evaluation.py), bigcode/humanevalpack, MBPP.
 *
 * Both files are read whole and stay in memory as JSON; tasks and samples point into them. Samples are found by the
 * text of their task_id, which MBPP writes as a number: those of a task need not lie together, and are numbered in the
 * order in which they come.
 */
#include "grade_task.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/util.h"

#define LINES_BYTES (512 << 20) /* of a file, decompressed */
#define LINES_MAX   1000000

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

const char *grade_task_reference(const struct grade_task *task)
{
	return json_get_string(task->line, task->layout == GRADE_MBPP ? "code" : "canonical_solution");
}

const char *grade_task_prefix(const struct grade_task *task)
{
	return task->layout == GRADE_MBPP ? ""
	       : task->layout == GRADE_PACK && task->tongue != GRADE_PYTHON
		       ? grade_task_member(task, "declaration")
		       : grade_task_member(task, "prompt");
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

/* -------- JSON Lines ---------------------------------------------------------------------------------- */

static void archive_pointer(struct archive **archive)
{
	archive_read_free(*archive);
}

static int read_all(struct archive *archive, const char *path, struct buf *out, struct err *err)
{
	struct archive_entry *entry;
	char block[65536];
	la_ssize_t n = 0;

	archive_read_support_filter_all(archive);
	archive_read_support_format_raw(archive);
	archive_read_support_format_empty(archive);
	if (archive_read_open_filename(archive, path, sizeof(block)) != ARCHIVE_OK)
		return err_set(err, ERR_NOT_FOUND, "%s: %s", path, archive_error_string(archive));
	int result = archive_read_next_header(archive, &entry);
	if (result == ARCHIVE_EOF)
		return 0;
	while (result == ARCHIVE_OK && (n = archive_read_data(archive, block, sizeof(block))) > 0)
		buf_add(out, block, (size_t)n);
	if (result != ARCHIVE_OK || n < 0)
		return err_set(err, ERR_INVALID, "%s: %s", path, archive_error_string(archive));
	if (out->overflow)
		return err_set(err, ERR_LIMIT, "%s holds more than %d bytes", path, LINES_BYTES);
	return 0;
}

/* Every line that is not blank as an object of the array *ret (the caller's); ERR_INVALID names the line. The file is
 * plain or compressed: gzip, xz, bzip2, zstd. */
static int read_lines(const char *path, struct json_object **ret, struct err *err)
{
	__attribute__((cleanup(archive_pointer))) struct archive *archive = archive_read_new();
	auto_json struct json_object *lines = json_object_new_array();
	auto_buf struct buf text = {0};
	size_t number = 0;

	buf_init(&text, LINES_BYTES);
	int result = read_all(archive, path, &text, err);
	for (char *at = text.data, *end = text.data + text.length; result == 0 && at < end; number++) {
		char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t length = (size_t)((newline ? newline : end) - at);
		struct json_object *line = NULL;

		if (strspn(at, " \t\r") < length) {
			result = json_parse(at, length, &line, err);
			if (result == 0 && !json_object_is_type(line, json_type_object))
				result = err_set(err, ERR_INVALID, "not an object");
			if (result < 0) {
				json_object_put(line);
				return err_wrap(err, "%s, line %zu", path, number + 1);
			}
			if (number == LINES_MAX)
				return err_set(err, ERR_LIMIT, "%s has more than %d lines", path, LINES_MAX);
			json_object_array_add(lines, line);
		}
		at += length + 1;
	}
	if (result == 0)
		*ret = steal(&lines);
	return result;
}

/* -------- tasks --------------------------------------------------------------------------------------- */

static char *id_of(struct json_object *line)
{
	struct json_object *id = NULL;

	json_object_object_get_ex(line, "task_id", &id);
	return json_object_is_type(id, json_type_string) || json_object_is_type(id, json_type_int)
		       ? xstrdup(json_object_get_string(id))
		       : NULL;
}

static bool has(struct json_object *line, const char *name)
{
	return json_get_string(line, name) != NULL;
}

static int read_layout(struct json_object *line, struct grade_task *ret, struct err *err)
{
	struct json_object *list = json_get(line, "test_list", json_type_array);
	size_t count = list ? json_object_array_length(list) : 0, texts = 0;

	for (size_t i = 0; i < count; i++)
		texts += json_object_is_type(json_object_array_get_idx(list, i), json_type_string);
	if (has(line, "prompt") && has(line, "test") && has(line, "entry_point"))
		ret->layout = has(line, "declaration") ? GRADE_PACK : GRADE_HUMANEVAL;
	else if (!list)
		return err_set(err, ERR_INVALID,
			       "task %s is neither HumanEval (prompt, test, entry_point) nor MBPP (code, test_list)",
			       ret->id);
	else if (count == 0 || texts < count) /* tests that say nothing would let every sample pass */
		return err_set(err, ERR_INVALID, "task %s: test_list must hold one test or more, as strings", ret->id);
	else
		ret->layout = GRADE_MBPP;
	return 0;
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
	int result = read_lines(source->tasks, &tasks->lines, err);
	size_t count = result == 0 ? json_object_array_length(tasks->lines) : 0;

	tasks->tasks = xcalloc(count + 1, sizeof(*tasks->tasks));
	for (size_t i = 0; result == 0 && i < count; i++) {
		struct json_object *line = json_object_array_get_idx(tasks->lines, i);
		struct grade_task *task = &tasks->tasks[tasks->n_tasks];

		if (!(task->id = id_of(line)))
			return err_set(err, ERR_INVALID, "%s: task number %zu has no task_id", source->tasks, i + 1);
		tasks->n_tasks++;
		result = read_task(line, source->language, task, err);
	}
	if (result == 0 && count == 0)
		return err_set(err, ERR_INVALID, "%s holds no tasks", source->tasks);
	return result;
}

/* -------- samples ------------------------------------------------------------------------------------- */

static int own_solutions(const struct grade_tasks_source *source, struct grade_tasks *tasks, struct err *err)
{
	tasks->samples = xcalloc(tasks->n_tasks, sizeof(*tasks->samples));
	for (size_t i = 0; i < tasks->n_tasks; i++) {
		const struct grade_task *task = &tasks->tasks[i];
		const char *text = source->solution ? json_get_string(task->line, source->solution)
						    : grade_task_reference(task);

		if (!text)
			return err_set(err, ERR_INVALID, "task %s has no member %s", task->id,
				       source->solution ? source->solution : "canonical_solution or code");
		tasks->samples[tasks->n_samples++] = (struct grade_sample){task, 0, text};
	}
	return 0;
}

static int by_id(const void *a, const void *b)
{
	return strcmp((*(const struct grade_task *const *)a)->id, (*(const struct grade_task *const *)b)->id);
}

static int read_samples(const struct grade_tasks_source *source, struct grade_tasks *tasks, struct err *err)
{
	auto_free const struct grade_task **sorted = xcalloc(tasks->n_tasks, sizeof(*sorted));
	auto_free size_t *seen = xcalloc(tasks->n_tasks, sizeof(*seen));
	int result = read_lines(source->samples, &tasks->completions, err);

	if (result < 0)
		return result;
	for (size_t i = 0; i < tasks->n_tasks; i++)
		sorted[i] = &tasks->tasks[i];
	qsort(sorted, tasks->n_tasks, sizeof(*sorted), by_id);
	size_t count = json_object_array_length(tasks->completions);
	tasks->samples = xcalloc(count + 1, sizeof(*tasks->samples));
	for (size_t i = 0; i < count; i++) {
		struct json_object *line = json_object_array_get_idx(tasks->completions, i);
		auto_free char *id = id_of(line);
		const char *text = json_get_string(line, "completion");
		bool there = json_get(line, "completion", json_type_string) != NULL;
		const struct grade_task wanted = {.id = id}, *key = &wanted;

		if (!id || !there)
			return err_set(err, ERR_INVALID, "%s: sample number %zu has no task_id or no completion",
				       source->samples, i + 1);
		const struct grade_task **found = bsearch(&key, sorted, tasks->n_tasks, sizeof(*sorted), by_id);
		if (!found)
			return err_set(err, ERR_INVALID, "%s: there is no task %s", source->samples, id);
		tasks->samples[tasks->n_samples++] =
			(struct grade_sample){*found, seen[*found - tasks->tasks]++, text};
	}
	if (count == 0)
		return err_set(err, ERR_INVALID, "%s holds no samples", source->samples);
	return 0;
}

int grade_tasks_open(const struct grade_tasks_source *source, struct grade_tasks *ret, struct err *err)
{
	struct grade_tasks tasks = {0};
	int result = read_tasks(source, &tasks, err);

	if (result == 0)
		result = source->samples ? read_samples(source, &tasks, err) : own_solutions(source, &tasks, err);
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
	free(tasks->tasks);
	free(tasks->samples);
	json_object_put(tasks->lines);
	json_object_put(tasks->completions);
	*tasks = (struct grade_tasks){0};
}
