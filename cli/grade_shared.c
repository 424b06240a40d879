/*
 * grade_shared.c - what packages, tasks and suites have in common, see grade.h: the jailer, the lines of --json and of
 * the report, and the file of --results and --resume.
 *
 * Results are kept in a file as replay keeps what it found (store_results.h), each as soon as it is there; a run that
 * is resumed takes them from it.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "grade.h"
#include "lib/base/util.h"
#include "lib/store/transfer/store_results.h"

/* What is weaker on this host, in one sentence. */
static void tell_weaker(struct grading *grading, struct jail_client *client)
{
	auto_json struct json_object *info = NULL;

	if (grading->told || jail_client_info(client, &info, NULL) < 0)
		return;
	grading->told = true;
	if (json_object_get_boolean(json_get(info, "weaker_limits", json_type_boolean)))
		fputs("sallyport: this user has no cgroup: each program runs in a jail of its own, but memory and CPU "
		      "time are limited for each of its processes, not for all together (sallyport doctor says more)\n",
		      stderr);
}

/* A private jailer of a user without a cgroup works with the limits that there are. */
static int connect_jailer(void *arg, struct jail_client **ret, size_t count, struct err *err)
{
	struct grading *grading = arg;
	const bool private = !grading->config->jailer.socket || !*grading->config->jailer.socket;

	if (private && geteuid() != 0)
		setenv("SALLYPORT_JAILER_WEAKER_LIMITS", "true", 0);
	int result = cli_open_jailer(grading->config, ret, count, err);

	if (result == 0 && private)
		tell_weaker(grading, ret[0]);
	return result;
}

struct grade_dial grade_dial(struct grading *grading)
{
	return (struct grade_dial){connect_jailer, grading};
}

int grade_refuse(const struct err *err)
{
	return cli_complain(err) == CLI_MISSING ? CLI_MISSING : CLI_USAGE;
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

bool grade_put_line(struct grading *grading, struct json_object *line, struct report_case *one)
{
	const bool shown = !grading->options->quiet || one->state != REPORT_PASS;
	auto_buf struct buf text = {0};

	if (grading->options->common.json && shown)
		cli_print_json(stdout, line, false);
	buf_init(&text, SIZE_MAX / 2);
	json_print(&text, line);
	one->json = text.data;
	report_add(grading->report, one);
	return shown && !grading->options->common.json;
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
	if (!grading->parts && !options->results && !options->resume)
		return 0;
	int result = options->merge.count > 0 ? replay_shards_open(options->merge.items, options->merge.count,
								   &grading->shards, err)
		     : grading->parts         ? replay_shard_choose(options->shard, &grading->shard, err)
					      : 0;

	if (result < 0 || options->merge.count > 0)
		return result;
	const struct replay_shard *shard = &grading->shard;
	auto_free char *part = shard->count > 0 ? xasprintf("-%d-of-%d", shard->number, shard->count) : xstrdup("");
	auto_free char *place = xasprintf("%s/grade%s.db", grading->config->data_dir, part);
	if (!options->results && !options->resume && !options->only && shard->count == 0)
		return 0;
	return store_results_open(options->results ? options->results : place, true, &grading->results, err);
}

/* The file's names are as long as ids of executions. */
static void id_of(const char *name, char ret[SHA256_HEX_SIZE])
{
	sha256_hex(name, strlen(name), ret);
	ret[ID_SIZE - 1] = '\0';
}

/* The samples of a task are in one part, so that each part has its pass@k. */
int grade_shard_of(const char *name, int count)
{
	const char *mark = strrchr(name, '#');
	auto_free char *task = mark && mark > name ? xstrndup(name, (size_t)(mark - 1 - name)) : xstrdup(name);

	return replay_shard_of(task, count);
}

static bool recall(void *arg, const char *name, const char *key, struct json_object **ret)
{
	const struct grading *grading = arg;
	const struct grade_options *options = grading->options;
	const struct replay_shards *shards = &grading->shards;
	struct store_results *file = shards->count > 0 ? shards->files[grade_shard_of(name, shards->count) - 1]
						       : grading->results;
	struct store_result found = {0};
	char id[SHA256_HEX_SIZE];

	id_of(name, id);
	if (!file || !(options->resume || options->only || shards->count > 0) ||
	    store_results_get(file, id, key, &found, NULL) != 1)
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

/* --only. */
static bool skips(void *arg, struct json_object *found)
{
	const struct grading *grading = arg;
	const char *verdict = json_get_string(found, "verdict");

	if (streq(grading->options->only, "missing"))
		return found != NULL;
	return !verdict || streq(verdict, grade_verdict_text(GRADE_AC));
}

/* Says in the file which part it has. */
static void begins(void *arg, const char *common)
{
	const struct grading *grading = arg;
	struct store_shard mark = {.number = MAX(grading->shard.number, 1), .count = MAX(grading->shard.count, 1)};

	snprintf(mark.key, sizeof(mark.key), "%s", common);
	if (grading->results)
		store_results_shard(grading->results, &mark, NULL);
}

const struct grade_memory *grade_results_memory(struct grading *grading)
{
	const bool merges = grading->shards.count > 0;

	grading->memory = (struct grade_memory){.recall = recall,
						.keep = keep,
						.skips = grading->options->only ? skips : NULL,
						.begins = begins,
						.common = merges ? grading->shards.key : NULL,
						.arg = grading};
	return grading->results || merges ? &grading->memory : NULL;
}
