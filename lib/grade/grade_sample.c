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

#include <stdlib.h>
#include <string.h>

#include "lib/base/util.h"

#define FENCES_MAX 64

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

/* Adds a sample whose code is in a member of `holder`. */
static void add_sample(struct grade_tasks *tasks, const struct grade_tasks_source *source,
		       const struct grade_task *task, size_t number, struct json_object *holder, const char *member)
{
	const char *text = json_get_string(holder, member), *entry = grade_task_member(task, "entry_point");
	struct grade_sample sample = {task, number, text, streq(member, "solution")};
	auto_free char *code = text && !source->raw ? grade_sample_unfence(text, entry) : NULL;

	if (code) {
		sample.whole = sample.whole || (task->tongue == GRADE_PYTHON && grade_sample_defines(code, entry));
		sample.text = code;
		tasks->texts = xrealloc(tasks->texts, tasks->n_texts + 1, sizeof(*tasks->texts));
		tasks->texts[tasks->n_texts++] = steal(&code);
	}
	tasks->samples = xrealloc(tasks->samples, tasks->n_samples + 1, sizeof(*tasks->samples));
	tasks->samples[tasks->n_samples++] = sample;
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
			return err_set(err, ERR_INVALID, "task %s has no member %s", task->id,
				       source->solution ? source->solution : "canonical_solution or code");
		tasks->samples[tasks->n_samples++] = sample;
	}
	return 0;
}

/* The member of a line that has its code, or NULL. */
static const char *code_member(struct json_object *line)
{
	static const char *const members[] = {"solution", "completion", "generation"};

	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		if (json_get(line, members[i], json_type_string))
			return members[i];
	return NULL;
}

static int read_samples(const struct grade_tasks_source *source, struct grade_tasks *tasks, struct err *err)
{
	auto_free const struct grade_task **sorted = xcalloc(tasks->n_tasks, sizeof(*sorted));
	auto_free size_t *seen = xcalloc(tasks->n_tasks, sizeof(*seen));
	int result = grade_lines_read(source->samples, leave_out, tasks, &tasks->completions, err);

	if (result < 0)
		return result;
	for (size_t i = 0; i < tasks->n_tasks; i++)
		sorted[i] = &tasks->tasks[i];
	qsort(sorted, tasks->n_tasks, sizeof(*sorted), by_id);
	for (size_t i = 0; i < json_object_array_length(tasks->completions); i++) {
		struct json_object *line = json_object_array_get_idx(tasks->completions, i);
		auto_free char *id = grade_line_id(line), *why = NULL;
		const struct grade_task wanted = {.id = id}, *key = &wanted, **found = NULL;
		const char *member = code_member(line);

		if (id)
			found = bsearch(&key, sorted, tasks->n_tasks, sizeof(*sorted), by_id);
		if (!id || !member)
			why = xasprintf("%s: sample number %zu has no task_id or no completion", source->samples,
					i + 1);
		else if (!found)
			why = xasprintf("%s: there is no task %s", source->samples, id);
		if (why)
			leave_out(tasks, why);
		else
			add_sample(tasks, source, *found, seen[*found - tasks->tasks]++, line, member);
	}
	if (tasks->n_samples == 0)
		return err_set(err, ERR_INVALID, "%s",
			       tasks->n_left_out ? tasks->left_out[0] : "the file of samples holds no samples");
	return 0;
}

int grade_sample_open(const struct grade_tasks_source *source, struct grade_tasks *tasks, struct err *err)
{
	return source->samples ? read_samples(source, tasks, err) : own_solutions(source, tasks, err);
}
