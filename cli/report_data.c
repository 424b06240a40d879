/*
 * report_data.c - results of samples as other harnesses write them, for the programs that read those.
 *
 * evalplus: eval_results.json, whose member "eval" lists the samples of each task with base_status and plus_status.
 * bigcode: each task's samples in order as pairs of a number and passed, result, task_id, completion_id.
 */
#include "report.h"

#include "lib/base/json.h"
#include "lib/base/util.h"

/* The list of a task in `object`, made where it is not there. */
static struct json_object *list_of(struct json_object *object, const char *task)
{
	struct json_object *list = json_get(object, task, json_type_array);

	if (!list)
		json_add(object, task, list = json_object_new_array());
	return list;
}

static const char *status(bool passed, const char *verdict)
{
	return passed ? "pass" : streq(verdict, "TLE") ? "timeout" : "fail";
}

static char *task_of(struct json_object *line)
{
	struct json_object *id = NULL;

	json_object_object_get_ex(line, "task_id", &id);
	return xstrdup(id ? json_object_get_string(id) : "");
}

static int64_t number(struct json_object *line, const char *name)
{
	return json_object_get_int64(json_get(line, name, json_type_int));
}

/* The caller's; NULL: it is no JSON. */
static struct json_object *line_of(const char *text)
{
	struct json_object *line = NULL;

	return json_parse(text, strlen(text), &line, NULL) < 0 ? NULL : line;
}

static void put(FILE *out, struct json_object *object)
{
	auto_buf struct buf text;

	buf_init(&text, SIZE_MAX / 2);
	json_print(&text, object);
	fprintf(out, "%s\n", text.data);
}

void report_evalplus(const struct report_all *all, FILE *out)
{
	auto_json struct json_object *whole = json_object_new_object();
	struct json_object *tasks = json_object_new_object();

	for (size_t i = 0; i < all->count; i++) {
		auto_json struct json_object *line = line_of(all->items[i].json);

		if (!line)
			continue;
		auto_free char *task = task_of(line);
		struct json_object *one = json_object_new_object();
		bool passed = all->items[i].state == REPORT_PASS, split = number(line, "base_tests") > 0;
		bool base = split ? number(line, "base_passed") == number(line, "base_tests") : passed;

		json_add_string(one, "task_id", task);
		json_add_string(one, "solution", all->items[i].code);
		json_add_string(one, "base_status", status(base, all->items[i].label));
		json_add_string(one, "plus_status", split ? status(passed, all->items[i].label) : NULL);
		json_add(one, "base_fail_tests", json_object_new_array());
		json_add(one, "plus_fail_tests", json_object_new_array());
		json_object_array_add(list_of(tasks, task), one);
	}
	json_add(whole, "eval", tasks);
	put(out, whole);
}

void report_bigcode(const struct report_all *all, FILE *out)
{
	auto_json struct json_object *tasks = json_object_new_object();

	for (size_t i = 0; i < all->count; i++) {
		auto_json struct json_object *line = line_of(all->items[i].json);

		if (!line)
			continue;
		auto_free char *task = task_of(line);
		struct json_object *pair = json_object_new_array(), *one = json_object_new_object();

		json_add_string(one, "task_id", task);
		json_add_bool(one, "passed", all->items[i].state == REPORT_PASS);
		json_add_string(one, "result", all->items[i].message);
		json_add_int(one, "completion_id", number(line, "sample"));
		json_object_array_add(pair, json_object_new_int64(number(line, "sample")));
		json_object_array_add(pair, one);
		json_object_array_add(list_of(tasks, task), pair);
	}
	put(out, tasks);
}
