/*
 * cmd_stats.c - `sallyport stats`: who used what, when, and how it ended, by one word.
 *
 * The runs that the filters leave are read once and added up under a key (an owner, a language, an hour …). Groups are
 * kept in a sorted array: there are few of them next to the runs. Percentiles are exact, from the wall times of all
 * runs of a group. By hour and by day the order is that of time, groups without a run are there too, and a bar shows
 * each; elsewhere the largest comes first.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "lib/base/util.h"
#include "stats_more.h"

#define KEY_SIZE  96
#define BAR_WIDTH 40
#define GAPS_MAX  2000 /* hours or days without a run that are shown */
#define HOUR_US   (3600 * INT64_C(1000000))
#define SHOWN     20

struct group {
	char key[KEY_SIZE];
	int64_t runs, failed, cpu_us, memory_max, bytes, network;
	int64_t *walls;
	size_t n_walls;
};

struct stats {
	struct cli_common common;
	struct cli_filter filter;
	const char *by;
	int64_t limit;
};

struct adding {
	const struct stats *stats;
	struct group *groups; /* sorted by key */
	size_t count;
};

/* -------- keys ---------------------------------------------------------------------------------------- */

static const char *const bys[] = {"owner", "token", "language", "verdict", "conversation",
				  "hour",  "day",   "message",  "denied",  "slowest", "limit",
				  "disk",  NULL};

static bool by_time(const struct stats *stats)
{
	return streq(stats->by, "hour") || streq(stats->by, "day");
}

static void time_key(int64_t us, const char *by, char ret[KEY_SIZE])
{
	const time_t seconds = (time_t)(us / 1000000);
	struct tm parts;

	localtime_r(&seconds, &parts);
	strftime(ret, KEY_SIZE, streq(by, "hour") ? "%Y-%m-%d %H:00" : "%Y-%m-%d", &parts);
}

/* The same failure has the same sentence but for its figures. */
static void message_key(const struct store_execution *e, char ret[KEY_SIZE])
{
	size_t length = (size_t)snprintf(ret, KEY_SIZE, "%s: ", e->verdict);

	for (const char *p = e->message; *p != '\0' && length + 2 < KEY_SIZE; p++) {
		const bool digit = *p >= '0' && *p <= '9';

		if (!digit || ret[length - 1] != '#')
			ret[length++] = digit ? '#' : *p;
	}
	ret[length] = '\0';
}

static const char *text_key(const char *by, const struct store_execution *e)
{
	if (streq(by, "owner"))
		return e->owner;
	if (streq(by, "token"))
		return e->token_id;
	if (streq(by, "language"))
		return e->language;
	if (streq(by, "conversation"))
		return e->conversation;
	return e->state == STORE_RUNNING ? "running" : e->verdict;
}

/* -------- adding up ----------------------------------------------------------------------------------- */

/* The place of the key, or where it belongs. */
static size_t find(const struct adding *adding, const char *key)
{
	size_t low = 0, high = adding->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (strcmp(adding->groups[middle].key, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct group *group_of(struct adding *adding, const char *key)
{
	const size_t place = find(adding, key);

	if (place < adding->count && streq(adding->groups[place].key, key))
		return &adding->groups[place];
	adding->groups = xrealloc(adding->groups, adding->count + 1, sizeof(*adding->groups));
	memmove(&adding->groups[place + 1], &adding->groups[place], (adding->count - place) * sizeof(*adding->groups));
	adding->count++;
	adding->groups[place] = (struct group){0};
	snprintf(adding->groups[place].key, KEY_SIZE, "%s", key);
	return &adding->groups[place];
}

static void add(struct group *group, const struct store_execution *e)
{
	group->runs++;
	group->network += e->network;
	if (e->state == STORE_RUNNING)
		return;
	group->failed += !streq(e->verdict, "OK");
	group->cpu_us += e->run.cpu_user_us + e->run.cpu_system_us + e->compile.cpu_user_us + e->compile.cpu_system_us;
	group->memory_max = MAX(group->memory_max, e->run.memory_peak_bytes);
	group->bytes +=
		(int64_t)(e->code.length + e->stdin_text.length + e->stdout_text.length + e->stderr_text.length);
	if ((group->n_walls & (group->n_walls + 1)) == 0 || group->walls == NULL)
		group->walls = xrealloc(group->walls, 2 * group->n_walls + 2, sizeof(*group->walls));
	group->walls[group->n_walls++] = e->run.wall_us;
}

/* Once under each system call, and each host and port, that was refused. */
static void add_denied(struct adding *adding, const struct store_execution *e)
{
	auto_json struct json_object *result = NULL;
	struct json_object *calls, *network, *hosts = NULL;
	char key[KEY_SIZE];

	if (e->result_json == NULL || strstr(e->result_json, "\"denied\"") == NULL ||
	    json_parse(e->result_json, strlen(e->result_json), &result, NULL) < 0)
		return;
	calls = json_get(result, "denied", json_type_array);
	network = json_get(result, "network", json_type_object);
	if (network != NULL)
		hosts = json_get(network, "denied", json_type_array);
	for (size_t i = 0; calls != NULL && i < json_object_array_length(calls); i++) {
		const char *name = json_get_string(json_object_array_get_idx(calls, i), "name");

		if (name != NULL)
			add(group_of(adding, name), e);
	}
	for (size_t i = 0; hosts != NULL && i < json_object_array_length(hosts); i++) {
		struct json_object *one = json_object_array_get_idx(hosts, i);
		const char *host = json_get_string(one, "host");

		snprintf(key, sizeof(key), "%.80s:%d", host != NULL ? host : "",
			 json_object_get_int(json_get(one, "port", json_type_int)));
		add(group_of(adding, key), e);
	}
}

static int add_run(void *arg, const struct store_execution *e)
{
	struct adding *adding = arg;
	const char *by = adding->stats->by;
	char key[KEY_SIZE];

	if (streq(by, "denied")) {
		add_denied(adding, e);
		return 0;
	}
	if (by_time(adding->stats))
		time_key(e->created_us, by, key);
	else if (streq(by, "message"))
		message_key(e, key);
	else
		snprintf(key, sizeof(key), "%.*s", KEY_SIZE - 1, text_key(by, e));
	if (!streq(by, "message") || (e->state != STORE_RUNNING && !streq(e->verdict, "OK")))
		add(group_of(adding, key), e);
	return 0;
}

/* Hours and days in which nothing ran, between the first and the last. */
static void fill_gaps(struct adding *adding)
{
	char key[KEY_SIZE], last[KEY_SIZE];
	int64_t at;

	if (!by_time(adding->stats) || adding->count < 2 ||
	    cli_parse_time(adding->groups[0].key, clock_now_us(), &at, NULL) < 0)
		return;
	memcpy(last, adding->groups[adding->count - 1].key, sizeof(last));
	for (int i = 0; i < GAPS_MAX; i++) {
		at += streq(adding->stats->by, "hour") ? HOUR_US : 24 * HOUR_US;
		time_key(at, adding->stats->by, key);
		if (strcmp(key, last) >= 0)
			return;
		group_of(adding, key);
	}
}

/* -------- showing ------------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static int by_runs(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return x->runs != y->runs ? (x->runs > y->runs ? -1 : 1) : strcmp(x->key, y->key);
}

/* The wall times are sorted. */
static int64_t percentile(const struct group *group, size_t percent)
{
	return group->n_walls == 0 ? 0 : group->walls[(group->n_walls - 1) * percent / 100];
}

static void print_json(const struct adding *adding, size_t shown)
{
	for (size_t i = 0; i < shown; i++) {
		const struct group *group = &adding->groups[i];
		auto_json struct json_object *object = json_object_new_object();

		json_add_bytes(object, adding->stats->by, group->key, strlen(group->key));
		json_add_int(object, "runs", group->runs);
		json_add_int(object, "failed", group->failed);
		json_add_int(object, "network", group->network);
		json_add_int(object, "cpu", group->cpu_us);
		json_add_int(object, "wall_p50", percentile(group, 50));
		json_add_int(object, "wall_p95", percentile(group, 95));
		json_add_int(object, "wall_max", percentile(group, 100));
		json_add_int(object, "memory_max", group->memory_max);
		json_add_int(object, "bytes", group->bytes);
		cli_print_json(stdout, object, false);
	}
}

static void bar(int64_t part, int64_t most, char *ret, size_t size)
{
	const int64_t width = most > 0 ? (part * BAR_WIDTH + most - 1) / most : 0;
	size_t length = 0;

	ret[0] = '\0';
	for (int64_t i = 0; i < width && length + 4 < size; i++)
		length += (size_t)snprintf(ret + length, size - length, "\u2588");
}

static void print_table(const struct adding *adding, size_t shown)
{
	static const struct cli_column columns[] = {
		{"", false, 0, 50},     {"RUNS", true, 0, 0},   {"FAILED", true, 0, 0},
		{"CPU", true, 0, 0},    {"MEDIAN", true, 0, 0}, {"P95", true, 0, 0},
		{"MEMORY", true, 0, 0}, {"BYTES", true, 0, 0},  {"", false, 0, 0}};
	auto_table struct cli_table *table = cli_table_new(columns, ARRAY_SIZE(columns) - !by_time(adding->stats));
	char text[CLI_TEXT_SIZE], line[4 * BAR_WIDTH];
	int64_t most = 0;

	for (size_t i = 0; i < shown; i++)
		most = MAX(most, adding->groups[i].runs);
	for (size_t i = 0; i < shown; i++) {
		const struct group *group = &adding->groups[i];

		cli_table_cell(table, group->key[0] != '\0' ? group->key : "-", CLI_BOLD);
		snprintf(text, sizeof(text), "%lld", (long long)group->runs);
		cli_table_cell(table, text, CLI_PLAIN);
		snprintf(text, sizeof(text), "%lld", (long long)group->failed);
		cli_table_cell(table, text, group->failed > 0 ? CLI_RED : CLI_PLAIN);
		cli_text_duration(group->cpu_us, text);
		cli_table_cell(table, text, CLI_PLAIN);
		cli_text_duration(percentile(group, 50), text);
		cli_table_cell(table, text, CLI_PLAIN);
		cli_text_duration(percentile(group, 95), text);
		cli_table_cell(table, text, CLI_PLAIN);
		cli_text_bytes(group->memory_max, text);
		cli_table_cell(table, text, CLI_PLAIN);
		cli_text_bytes(group->bytes, text);
		cli_table_cell(table, text, CLI_PLAIN);
		if (!by_time(adding->stats))
			continue;
		bar(group->runs, most, line, sizeof(line));
		cli_table_cell(table, line, CLI_BLUE);
	}
	cli_table_print(table, stdout);
	if (shown < adding->count)
		printf("%zu more: see --limit\n", adding->count - shown);
}

static void show(struct adding *adding)
{
	const struct stats *stats = adding->stats;

	fill_gaps(adding);
	for (size_t i = 0; i < adding->count; i++)
		if (adding->groups[i].n_walls > 0)
			qsort(adding->groups[i].walls, adding->groups[i].n_walls, sizeof(int64_t), by_number);
	if (!by_time(stats) && adding->count > 0)
		qsort(adding->groups, adding->count, sizeof(*adding->groups), by_runs);
	const size_t most = stats->limit > 0 ? (size_t)stats->limit : by_time(stats) ? SIZE_MAX : SHOWN;
	const size_t shown = MIN(adding->count, most);

	if (stats->common.json)
		print_json(adding, shown);
	else
		print_table(adding, shown);
}

static int stats_run(void *options, struct err *err)
{
	struct stats *stats = options;
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	struct adding adding = {.stats = stats};
	struct store_filter filter;
	int result = cli_open_store(&stats->common, STORE_READ, &config, &store, err);

	if (result < 0)
		return result;
	if (stats->by == NULL)
		stats->by = "owner";
	if (stats_more_has(stats->by)) {
		const struct stats_more more = {.by = stats->by,
						.filter = &stats->filter,
						.most = stats->limit > 0 ? (size_t)stats->limit : SHOWN,
						.json = stats->common.json,
						.owner_bytes = config.retention.owner_mb << 20};

		return stats_more_show(store, &more, err);
	}
	cli_filter_to_store(&stats->filter, &filter);
	filter.running_too = true;
	result = store_execution_list(store, &filter, add_run, &adding, err);
	if (result == 0)
		show(&adding);
	for (size_t i = 0; i < adding.count; i++)
		free(adding.groups[i].walls);
	free(adding.groups);
	return result;
}

static const struct cli_option stats_options[] = {
	{.name = "by", .type = CLI_STRING, .offset = offsetof(struct stats, by), .value = "WHAT", .choices = bys,
	 .help = "group by WHAT [owner]"},
	{.name = "limit", .letter = 'n', .type = CLI_INT, .offset = offsetof(struct stats, limit), .min = 1,
	 .max = 1000000, .value = "N",
	 .help = "print at most N lines [20; by hour and day: all]"},
	{0},
};
static const struct cli_group stats_groups[] = {
	{stats_options, 0}, {cli_filter_options, offsetof(struct stats, filter)}, {0}};

const struct cli_command cmd_stats = {
	.name = "stats",
	.summary = "Sum up executions by owner, hour, failure and so on",
	.help = "Prints the number of runs and of failures (every verdict but OK), CPU time, the median and the 95th percentile of wall time, the largest memory, and the bytes of code, input and output. "
		"--json prints one object a line; times are in microseconds.",
	.examples = "sallyport stats --since yesterday\n"
		"sallyport stats --by hour --since 24h --language python\n"
		"sallyport stats --by message --since 1w\n"
		"sallyport stats --by limit --since today\n"
		"sallyport stats --by disk\n",
	.exits = "0 done, also when nothing ran\n",
	.groups = stats_groups,
	.size = sizeof(struct stats),
	.run = stats_run,
};
