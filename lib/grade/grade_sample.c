/*
 * grade_sample.c - see grade_sample.h.
 *
 * Samples are found by the text of their task's id, which MBPP writes as a number: those of a task need not lie
 * together, and are numbered in the order in which they come.
 *
 * Fences: models put code into Markdown. A line that begins with three backquotes opens or closes a block. Of several
 * blocks the one counts that defines the function in question, else the first. Where the first fence has no language
 * and code before it, the prompt had opened the block, and the code ends there.
 */
#include "grade_sample.h"
#include "grade_lines.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/util.h"

#define FENCES_MAX         64
#define GRADE_SAMPLE_BYTES (16 << 20) /* of a sample that is a file */

struct reading {
	const struct grade_tasks_source *source;
	struct grade_tasks *tasks;
	const struct grade_task **sorted; /* by id */
	size_t *seen;                     /* samples of each task */
};

/* -------- fences -------------------------------------------------------------------------------------- */

struct fence {
	const char *line, *after; /* where its line begins, and the next one */
	bool language;            /* it says something, as an opening one */
};

static size_t find_fences(const char *text, struct fence fences[FENCES_MAX])
{
	size_t n = 0;

	for (const char *line = text, *next; *line && n < FENCES_MAX; line = next) {
		size_t length = strcspn(line, "\n"), blanks = strspn(line, " ");

		next = line + length + (line[length] == '\n');
		if (blanks > 3 || !str_starts(line + blanks, "```"))
			continue;
		const char *rest = line + blanks + strspn(line + blanks, "`");
		fences[n++] = (struct fence){line, next, rest + strspn(rest, " \t\r") < line + length};
	}
	return n;
}

bool grade_sample_defines(const char *text, const char *name)
{
	static const char *const words[] = {"def ", "async def ", "class "};
	size_t length = strlen(name);

	for (const char *line = text; length > 0 && line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
			size_t word = str_starts(line, words[i]) ? strlen(words[i]) : 0;

			if (word && strncmp(line + word, name, length) == 0 && strchr("(: [", line[word + length]))
				return true;
		}
	}
	return false;
}

char *grade_sample_unfence(const char *text, const char *entry)
{
	struct fence fences[FENCES_MAX];
	size_t n = find_fences(text, fences);
	char *first = NULL;

	if (n == 0)
		return NULL;
	bool blank = text + strspn(text, " \t\r\n") == fences[0].line;
	if (n % 2 == 1 && !fences[0].language && !blank)
		return xstrndup(text, (size_t)(fences[0].line - text));
	for (size_t i = 0; i < n; i += 2) {
		const char *end = i + 1 < n ? fences[i + 1].line : fences[i].after + strlen(fences[i].after);
		auto_free char *block = xstrndup(fences[i].after, (size_t)(end - fences[i].after));

		if (grade_sample_defines(block, entry)) {
			free(first);
			return steal(&block);
		}
		if (!first)
			first = steal(&block);
	}
	return first;
}

/* -------- one sample ---------------------------------------------------------------------------------- */

static void leave_out(void *arg, const char *why)
{
	struct grade_tasks *tasks = arg;

	tasks->left_out = xrealloc(tasks->left_out, tasks->n_left_out + 1, sizeof(*tasks->left_out));
	tasks->left_out[tasks->n_left_out++] = xstrdup(why);
}

static void keep_text(struct grade_tasks *tasks, char *text)
{
	tasks->texts = xrealloc(tasks->texts, tasks->n_texts + 1, sizeof(*tasks->texts));
	tasks->texts[tasks->n_texts++] = text;
}

/* `text` NULL: it holds a NUL. */
static void add_sample(struct reading *reading, const struct grade_task *task, const char *text, bool whole)
{
	struct grade_tasks *tasks = reading->tasks;
	size_t number = reading->seen[task - tasks->tasks]++;
	struct grade_sample sample = {task, number, text, (whole || task->whole) && !task->expression};
	char *code = text && !reading->source->raw ? grade_sample_unfence(text, task->entry) : NULL;

	if (code) {
		sample.whole = sample.whole ||
			       (task->tongue == GRADE_PYTHON && grade_sample_defines(code, task->entry));
		sample.text = code;
		keep_text(tasks, code);
	}
	tasks->samples = xrealloc(tasks->samples, tasks->n_samples + 1, sizeof(*tasks->samples));
	tasks->samples[tasks->n_samples++] = sample;
}

/* A text, or a list of texts. */
static void add_samples(struct reading *reading, const struct grade_task *task, struct json_object *value, bool whole)
{
	bool list = json_object_is_type(value, json_type_array);

	for (size_t i = 0; i < (list ? json_object_array_length(value) : 1); i++) {
		struct json_object *one = list ? json_object_array_get_idx(value, i) : value;
		const char *text = json_object_is_type(one, json_type_string) ? json_object_get_string(one) : NULL;

		bool whole_text = text && strlen(text) == (size_t)json_object_get_string_len(one);

		add_sample(reading, task, whole_text ? text : NULL, whole);
	}
}

static int by_id(const void *a, const void *b)
{
	return strcmp((*(const struct grade_task *const *)a)->id, (*(const struct grade_task *const *)b)->id);
}

static int own_solutions(const struct grade_tasks_source *source, struct grade_tasks *tasks, struct err *err)
{
	tasks->samples = xcalloc(tasks->n_tasks, sizeof(*tasks->samples));
	for (size_t i = 0; i < tasks->n_tasks; i++) {
		const struct grade_task *task = &tasks->tasks[i];
		struct grade_sample sample = grade_task_reference(task);

		if (source->solution)
			sample.text = json_get_string(task->line, source->solution);
		if (!sample.text)
			return source->solution
				       ? err_set(err, ERR_INVALID, "task %s has no member %s", task->id,
						 source->solution)
				       : err_set(err, ERR_INVALID,
						 "task %s has no solution of its own: name samples with --samples",
						 task->id);
		tasks->samples[tasks->n_samples++] = sample;
	}
	return 0;
}

/* The member of a line that has its code, a text or a list of texts; or NULL. */
static const char *code_member(struct json_object *line)
{
	static const char *const members[] = {"solution",    "completion", "generation", "completions",
					      "generations", "code_list",  "solutions",  "code",
					      "prediction",  "output"};

	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		if (json_get(line, members[i], json_type_string) || json_get(line, members[i], json_type_array))
			return members[i];
	return NULL;
}

static const struct grade_task *find_task(const struct reading *reading, const char *id)
{
	const struct grade_task wanted = {.id = unconst(id)}, *key = &wanted;
	const struct grade_task **found =
		bsearch(&key, reading->sorted, reading->tasks->n_tasks, sizeof(*reading->sorted), by_id);

	return found ? *found : NULL;
}

static void read_line(struct reading *reading, struct json_object *line, size_t number)
{
	const char *path = reading->source->samples, *member = code_member(line);
	auto_free char *id = grade_line_id(line), *why = NULL;
	const struct grade_task *task = id ? find_task(reading, id) : NULL;
	struct json_object *value = NULL;

	if (!id || !member) {
		why = xasprintf("%s: sample number %zu has no task_id or no completion", path, number + 1);
		return leave_out(reading->tasks, why);
	}
	if (!task) {
		why = xasprintf("%s: there is no task %s", path, id);
		return leave_out(reading->tasks, why);
	}
	json_object_object_get_ex(line, member, &value);
	add_samples(reading, task, value, streq(member, "solution"));
}

static int read_file(struct reading *reading, struct err *err)
{
	struct grade_tasks *tasks = reading->tasks;
	int result = grade_lines_read(reading->source->samples, leave_out, tasks, &tasks->completions, err);

	for (size_t i = 0; result == 0 && i < json_object_array_length(tasks->completions); i++) {
		struct json_object *one = json_object_array_get_idx(tasks->completions, i);

		if (json_object_is_type(one, json_type_object))
			read_line(reading, one, i);
		else if (i < tasks->n_tasks) /* bigcode's list: in the order of the tasks */
			add_samples(reading, &tasks->tasks[i], one, false);
		else
			leave_out(tasks, "there are more samples than tasks");
	}
	return result;
}

static int in_folder(const struct dirent *entry)
{
	return *entry->d_name != '.';
}

/* Folders as evalplus has them: TASK_ID/N.py, with "_" for "/". */
static int read_folder(struct reading *reading, struct err *err)
{
	struct grade_tasks *tasks = reading->tasks;
	int result = 0;

	for (size_t i = 0; result == 0 && i < tasks->n_tasks; i++) {
		auto_free char *folder = xasprintf("%s/%s", reading->source->samples, tasks->tasks[i].id);
		struct dirent **entries = NULL;

		for (char *slash = folder + strlen(reading->source->samples) + 1; (slash = strchr(slash, '/'));)
			*slash = '_';
		int n = scandir(folder, &entries, in_folder, versionsort);
		for (int k = 0; k < n; k++) {
			auto_free char *path = xasprintf("%s/%s", folder, entries[k]->d_name);
			auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
			char *data = NULL;
			size_t length = 0;

			if (result == 0 && fd < 0)
				result = err_errno(err, "%s", path);
			else if (result == 0)
				result = read_fd(fd, GRADE_SAMPLE_BYTES, &data, &length, err);
			if (result == 0) {
				keep_text(tasks, data);
				add_sample(reading, &tasks->tasks[i], strlen(data) == length ? data : NULL, true);
			}
			free(entries[k]);
		}
		free(entries);
	}
	return result;
}

static int read_samples(const struct grade_tasks_source *source, struct grade_tasks *tasks, struct err *err)
{
	auto_free const struct grade_task **sorted = xcalloc(tasks->n_tasks, sizeof(*sorted));
	auto_free size_t *seen = xcalloc(tasks->n_tasks, sizeof(*seen));
	struct reading reading = {source, tasks, sorted, seen};
	struct stat st;

	for (size_t i = 0; i < tasks->n_tasks; i++)
		sorted[i] = &tasks->tasks[i];
	qsort(sorted, tasks->n_tasks, sizeof(*sorted), by_id);
	int result = stat(source->samples, &st) == 0 && S_ISDIR(st.st_mode) ? read_folder(&reading, err)
									    : read_file(&reading, err);
	if (result == 0 && tasks->n_samples == 0)
		return err_set(err, ERR_INVALID, "%s",
			       tasks->n_left_out ? tasks->left_out[0] : "the file of samples holds no samples");
	return result;
}

int grade_sample_open(const struct grade_tasks_source *source, struct grade_tasks *tasks, struct err *err)
{
	return source->samples ? read_samples(source, tasks, err) : own_solutions(source, tasks, err);
}
