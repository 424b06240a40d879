/*
 * grade_results.c - `sallyport grade --results` and `--resume`: what was graded is kept in a file as replay keeps what
 * it found (store_results.h), as soon as it is there; a run that goes on takes it from there.
 */
#include <string.h>

#include "grade.h"
#include "lib/base/util.h"
#include "lib/store/transfer/store_results.h"

int grade_results_open(struct grading *grading, struct err *err)
{
	const struct grade_options *options = grading->options;
	auto_free char *place = xasprintf("%s/grade.db", grading->config->data_dir);

	if (!options->results && !options->resume)
		return 0;
	return store_results_open(options->results ? options->results : place, true, &grading->results, err);
}

/* The file's names are as long as ids of executions. */
static void id_of(const char *name, char ret[SHA256_HEX_SIZE])
{
	sha256_hex(name, strlen(name), ret);
	ret[ID_SIZE - 1] = '\0';
}

static bool recall(void *arg, const char *name, const char *key, struct json_object **ret)
{
	const struct grading *grading = arg;
	struct store_result found = {0};
	char id[SHA256_HEX_SIZE];

	id_of(name, id);
	if (!grading->options->resume || store_results_get(grading->results, id, key, &found, NULL) != 1)
		return false;
	int result = json_parse(found.report, strlen(found.report), ret, NULL);
	free(found.report);
	return result == 0;
}

/* What cannot be kept is graded again. */
static void keep(void *arg, const char *name, const char *key, struct json_object *result)
{
	const struct grading *grading = arg;
	const char *verdict = json_get_string(result, "verdict");
	auto_buf struct buf text = {0};
	struct store_result kept = {0};
	char id[SHA256_HEX_SIZE];

	id_of(name, id);
	buf_init(&text, SIZE_MAX / 2);
	json_print(&text, result);
	snprintf(kept.class, sizeof(kept.class), "%s", verdict ? verdict : "");
	kept.report = text.data;
	store_results_put(grading->results, id, key, &kept, NULL);
}

const struct grade_memory *grade_results_memory(struct grading *grading)
{
	grading->memory = (struct grade_memory){recall, keep, grading};
	return grading->results ? &grading->memory : NULL;
}
