/*
 * grade_shared.c - what packages, tasks and suites have in common, see grade.h: the jailer, the lines of --json and of
 * the report, and the file of --results and --resume.
 *
 * Results are kept in a file as replay keeps what it found (store_results.h), each as soon as it is there; a run that
 * is resumed takes them from it.
 */
#include <string.h>
#include <unistd.h>

#include "grade.h"
#include "lib/base/util.h"
#include "lib/store/transfer/store_results.h"

static int connect_jailer(void *arg, struct jail_client **ret, size_t count, struct err *err)
{
	const struct grading *grading = arg;

	return cli_open_jailer(grading->config, ret, count, err);
}

struct grade_dial grade_dial(struct grading *grading)
{
	return (struct grade_dial){connect_jailer, grading};
}

int grade_jobs(const struct grade_options *options)
{
	return (int)(options->jobs ? options->jobs : MIN(sysconf(_SC_NPROCESSORS_ONLN), GRADE_JOBS_MAX));
}

void grade_progress(void *arg, size_t done, size_t all)
{
	struct grading *grading = arg;

	grading->progress.total = (int64_t)all;
	cli_progress_step(&grading->progress, (int64_t)done);
}

void grade_put_line(struct grading *grading, struct json_object *line, struct report_case *one)
{
	auto_buf struct buf text = {0};

	if (grading->options->common.json)
		cli_print_json(stdout, line, false);
	buf_init(&text, SIZE_MAX / 2);
	json_print(&text, line);
	one->json = text.data;
	report_add(grading->report, one);
}

void grade_put_summary(struct grading *grading, struct json_object *line, double seconds)
{
	struct buf text;

	if (grading->options->common.json)
		cli_print_json(stdout, line, false);
	buf_init(&text, SIZE_MAX / 2);
	json_print(&text, line);
	grading->summary = buf_steal(&text, NULL);
	grading->seconds = seconds;
}

/* A private jailer takes its caps from the configuration, and that from the environment. */
static void raise_cap(const char *variable, int64_t cap, int64_t needed)
{
	char text[24];

	if (needed <= cap)
		return;
	snprintf(text, sizeof(text), "%lld", (long long)needed);
	setenv(variable, text, 1);
}

void grade_raise_caps(const struct config *config, int64_t wall_us, int64_t memory, int64_t output)
{
	const struct config_limits *limits = &config->limits;

	if (*config->jailer.socket)
		return; /* the service's caps are its operator's */
	raise_cap("SALLYPORT_LIMITS_WALL_SECONDS_MAX", limits->wall_seconds_max, wall_us / 1000000 + 1);
	raise_cap("SALLYPORT_LIMITS_MEMORY_MB_MAX", limits->memory_mb_max, (memory + (1 << 20) - 1) >> 20);
	raise_cap("SALLYPORT_LIMITS_OUTPUT_MB", limits->output_mb, (output + (1 << 20) - 1) >> 20);
}

void grade_add_verdicts(struct json_object *object, const size_t counts[GRADE_VERDICTS])
{
	struct json_object *verdicts = json_object_new_object();

	for (int i = 0; i < GRADE_VERDICTS; i++)
		if (counts[i])
			json_add_int(verdicts, grade_verdict_text((enum grade_verdict)i), (int64_t)counts[i]);
	json_add(object, "verdicts", verdicts);
}

/* -------- the file of results ------------------------------------------------------------------------- */

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
