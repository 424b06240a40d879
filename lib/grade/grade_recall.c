/*
 * grade_recall.c - a judge's submissions and what an earlier run found (grade_memory.h): the recalling half of
 * grade_work.h.
 *
 * What the time limit comes from is recalled first, then the limit, and then the rest, whose keys have the limit in
 * them: where a corrected submission makes another limit, what was judged by the old one is judged again.
 */
#include <string.h>

#include "grade_memory.h"
#include "grade_work.h"
#include "grade_yaml.h"
#include "lib/base/util.h"

#define LIMIT_NAME "time limit"

static void find_key(struct grade_work *work, struct grade_entry *entry)
{
	auto_source struct grade_source source = {0};

	/* What cannot be read cannot be judged, and is no work. */
	if (grade_judge_source(work, entry->submission, &source, NULL) == 0)
		grade_memory_program(work->key, &source, entry->key);
}

static void recall(struct grade_work *work, struct grade_entry *entry)
{
	const struct grade_judge *judge = work->judge;
	struct grade_submission *submission = entry->submission;
	auto_source struct grade_source source = {0};
	auto_json struct json_object *result = NULL;

	if (*entry->key && judge->memory->recall(judge->memory->arg, submission->name, entry->key, &result) &&
	    grade_judge_source(work, submission, &source, NULL) == 0 &&
	    grade_memory_parse(judge, result, submission)) {
		grade_expect_comment(&source, &submission->expect);
		entry->stage = STAGE_DONE;
	}
}

/* What the limit does not come from, or in part only, depends on it. */
void grade_recall_rest(struct grade_work *work)
{
	const struct grade_judge *judge = work->judge;

	for (size_t i = 0; judge->memory && i < judge->count; i++) {
		struct grade_entry *entry = &work->entries[i];
		auto_free char *both = xasprintf("%s %.17g", entry->key, judge->time_limit);

		if (!*entry->key || grade_judge_bounds(judge->package, entry->submission))
			continue;
		sha256_hex(both, strlen(both), entry->key);
		if (entry->stage == STAGE_WAITING)
			recall(work, entry);
	}
}

/* The limit that an earlier run took from the same submissions. */
static void recall_limit(struct grade_work *work)
{
	struct grade_judge *judge = work->judge;
	struct sha256 *digest = sha256_new();
	auto_json struct json_object *found = NULL;
	double limit;

	for (size_t i = 0; i < judge->count; i++)
		if (grade_judge_makes_limit(judge->package, &judge->submissions[i]))
			sha256_add(digest, work->entries[i].key, SHA256_HEX_SIZE);
	sha256_finish(digest, work->limit_key);
	if (!judge->memory->recall(judge->memory->arg, LIMIT_NAME, work->limit_key, &found) ||
	    grade_yaml_number(found, "seconds", 0, &limit, NULL) < 0 || !(limit > 0))
		return;
	judge->time_limit = limit;
	judge->derived = true;
}

int grade_recall_all(struct grade_work *work, struct err *err)
{
	struct grade_judge *judge = work->judge;
	int result = judge->memory ? grade_memory_package(judge, work->runners, work->key, err) : 0;

	if (!judge->memory || result < 0)
		return result;
	for (size_t i = 0; i < judge->count; i++) {
		find_key(work, &work->entries[i]);
		if (grade_judge_bounds(judge->package, work->entries[i].submission))
			recall(work, &work->entries[i]);
	}
	if (!judge->time_limit)
		recall_limit(work);
	if (judge->time_limit)
		grade_recall_rest(work);
	return 0;
}

void grade_recall_keep_limit(const struct grade_work *work)
{
	const struct grade_memory *memory = work->judge->memory;
	auto_json struct json_object *limit = json_object_new_object();
	char text[40];

	if (!memory)
		return;
	snprintf(text, sizeof(text), "%.17g", work->judge->time_limit);
	json_add_string(limit, "seconds", text);
	memory->keep(memory->arg, LIMIT_NAME, work->limit_key, limit);
}

void grade_recall_keep(const struct grade_work *work, const struct grade_entry *entry)
{
	const struct grade_memory *memory = work->judge->memory;
	auto_json struct json_object *result = NULL;

	if (!memory || !*entry->key || entry->submission->total.verdict == GRADE_JE)
		return;
	result = grade_memory_print(entry->submission);
	memory->keep(memory->arg, entry->submission->name, entry->key, result);
}
