/*
 * cmd_stats.c - `sallyport stats`: who used what, when, and how it ended, by one word.
 *
 * The runs that the filters leave are read once and added up under a key (an owner, a language, an hour …). Groups are
 * kept in a sorted array: there are few of them next to the runs. Percentiles are exact, from the wall times of all
 * runs of a group. By hour and by day the order is that of time, groups without a run are there too, and a bar shows
 * each; elsewhere the largest comes first.
 *
 * Some words add up something else. `limit`: refusals, which are entries of the audit log (store_refused.h), each with
 * a count. `disk`: the bytes that the record counts against retention.owner_mb. `slowest` and `largest`: single
 * runs of those that the filters leave. `code`: programs that ran under several owners.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "lib/base/util.h"
#include "lib/store/audit/store_refused.h"
#include "lib/store/record/store_failure.h"
#include "lib/store/record/store_view.h"

#define KEY_SIZE  STORE_FAILURE_SIZE
#define OWNERS_SIZE 400
#define BAR_WIDTH 40
#define GAPS_MAX  2000 /* hours or days without a run that are shown */
#define HOUR_US   (3600 * INT64_C(1000000))
#define SHOWN     20

struct group {
	char key[KEY_SIZE];
	int64_t runs, failed, cpu_us, memory_max, bytes, network;
	int64_t first_us, last_us; /* of refusals, which are counted as runs */
	char owners[OWNERS_SIZE];  /* of a program: ",ann,bob," */
	int64_t n_owners;
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
	size_t count, most;   /* groups; lines to show */
	struct json_object *rows;
};

/* -------- keys ---------------------------------------------------------------------------------------- */

static const char *const bys[] = {"owner", "owner-day", "token", "language", "verdict", "conversation",
				  "hour",  "day",   "message",  "failure", "denied",  "slowest",
				  "largest", "limit", "disk",  "code",    NULL};

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

static struct group *group_of(struct adding *adding, const char *key)
{
	size_t place = 0, high = adding->count; /* where the key is, or belongs */

	while (place < high) {
		const size_t middle = place + (high - place) / 2;

		if (strcmp(adding->groups[middle].key, key) < 0)
			place = middle + 1;
		else
			high = middle;
	}
	if (place < adding->count && streq(adding->groups[place].key, key))
		return &adding->groups[place];
	adding->groups = xrealloc(adding->groups, adding->count + 1, sizeof(*adding->groups));
	memmove(&adding->groups[place + 1], &adding->groups[place], (adding->count - place) * sizeof(*adding->groups));
	adding->count++;
	adding->groups[place] = (struct group){0};
	snprintf(adding->groups[place].key, KEY_SIZE, "%s", key);
	return &adding->groups[place];
}

/* By the hash of the whole; its first line follows it. */
static void add_code(struct adding *adding, const struct store_execution *e)
{
	char key[KEY_SIZE], hash[SHA256_HEX_SIZE];
	const char *code = e->code.data ? e->code.data : "";

	if (e->code.data)
		sha256_hex(e->code.data, e->code.length, hash);
	else if (*e->code.blob)
		memcpy(hash, e->code.blob, sizeof(hash));
	else
		return; /* erased */
	code += strspn(code, " \t\r\n");
	snprintf(key, sizeof(key), "%.16s %.*s", hash, (int)strcspn(code, "\r\n"), code);
	struct group *group = group_of(adding, key);
	auto_free char *name = xasprintf(",%s,", e->owner);
	const size_t used = strlen(group->owners);

	group->runs++;
	if (strstr(group->owners, name))
		return;
	group->n_owners++;
	snprintf(group->owners + used, sizeof(group->owners) - used, "%s", used ? name + 1 : name);
}

static int64_t cpu_of(const struct store_execution *e)
{
	return e->run.cpu_user_us + e->run.cpu_system_us + e->compile.cpu_user_us + e->compile.cpu_system_us;
}

static int64_t bytes_of(const struct store_execution *e)
{
	return (int64_t)(e->code.length + e->stdin_text.length + e->stdout_text.length + e->stderr_text.length);
}

static void add(struct group *group, const struct store_execution *e)
{
	group->runs++;
	group->network += e->network;
	if (e->state == STORE_RUNNING)
		return;
	group->failed += !streq(e->verdict, "OK");
	group->cpu_us += cpu_of(e);
	group->memory_max = MAX(group->memory_max, e->run.memory_peak_bytes);
	group->bytes += bytes_of(e);
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

	if (streq(by, "denied") || streq(by, "code")) {
		(streq(by, "code") ? add_code : add_denied)(adding, e);
		return 0;
	}
	if (by_time(adding->stats))
		time_key(e->created_us, by, key);
	else if (streq(by, "owner-day")) {
		time_key(e->created_us, by, key);
		snprintf(key + strlen(key), sizeof(key) - strlen(key), " %s", e->owner);
	} else if (streq(by, "message") || streq(by, "failure")) {
		struct store_failure failure = {.verdict = e->verdict, .message = e->message};

		if (streq(by, "failure")) {
			failure.status = true;
			failure.result = e->result_json;
			failure.error = e->stderr_text.data;
			failure.error_length = e->stderr_text.data ? e->stderr_text.length : 0;
		}
		store_failure_kind(&failure, key);
	} else
		snprintf(key, sizeof(key), "%.*s", KEY_SIZE - 1, text_key(by, e));
	if ((!streq(by, "message") && !streq(by, "failure")) || (e->state != STORE_RUNNING && !streq(e->verdict, "OK")))
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

/* A column of the table alone. */
static void add_bar(struct json_object *row, int64_t part, int64_t most)
{
	char bar[4 * BAR_WIDTH];
	size_t length = 0;

	for (int64_t i = 0; i < (part * BAR_WIDTH + most - 1) / most; i++)
		length += (size_t)snprintf(bar + length, sizeof(bar) - length, "\u2588");
	json_add_string(row, "bar", length > 0 ? bar : " ");
}

/* What is counted. "2026-11-27 ann" of owner-day is two members for programs. */
static void add_key(struct json_object *row, const struct stats *stats, const char *key)
{
	if (!stats->common.json || !streq(stats->by, "owner-day")) {
		json_add_bytes(row, stats->by, key, strlen(key));
		return;
	}
	auto_free char *day = xstrndup(key, strcspn(key, " "));

	json_add_string(row, "day", day);
	json_add_string(row, "owner", key + strlen(day) + 1);
}

static int sum_up(struct adding *adding, struct store *store, struct err *err)
{
	const struct stats *stats = adding->stats;
	const struct cli_field fields[] = {
		{stats->by, "", CLI_AS_TEXT, CLI_BOLD, 50},       {"runs", "RUNS", CLI_AS_COUNT, 0, 0},
		{"failed", "FAILED", CLI_AS_COUNT, CLI_RED, 0},   {"cpu_us", "CPU", CLI_AS_DURATION, 0, 0},
		{"wall_p50_us", "MEDIAN", CLI_AS_DURATION, 0, 0}, {"wall_p95_us", "P95", CLI_AS_DURATION, 0, 0},
		{"memory_max_bytes", "MEMORY", CLI_AS_BYTES, 0, 0},     {"bytes", "BYTES", CLI_AS_BYTES, 0, 0},
		{"bar", "", CLI_AS_TEXT, CLI_BLUE, 0},
	};
	struct store_filter filter;
	int64_t most_runs = 1;

	cli_filter_to_store(&stats->filter, &filter);
	filter.running_too = true;
	int result = store_execution_list(store, &filter, add_run, adding, err);

	if (result < 0)
		return result;
	fill_gaps(adding);
	for (size_t i = 0; i < adding->count; i++)
		if (adding->groups[i].n_walls > 0)
			qsort(adding->groups[i].walls, adding->groups[i].n_walls, sizeof(int64_t), by_number);
	if (!by_time(stats) && adding->count > 0)
		qsort(adding->groups, adding->count, sizeof(*adding->groups), by_runs);
	for (size_t i = 0; i < MIN(adding->count, adding->most); i++) {
		const struct group *group = &adding->groups[i];
		struct json_object *row = json_object_new_object();

		add_key(row, stats, group->key);
		json_add_int(row, "runs", group->runs);
		json_add_int(row, "failed", group->failed);
		json_add_int(row, "network", group->network);
		json_add_int(row, "cpu_us", group->cpu_us);
		json_add_int(row, "wall_p50_us", percentile(group, 50));
		json_add_int(row, "wall_p95_us", percentile(group, 95));
		json_add_int(row, "wall_max_us", percentile(group, 100));
		json_add_int(row, "memory_max_bytes", group->memory_max);
		json_add_int(row, "bytes", group->bytes);
		json_object_array_add(adding->rows, row);
		most_runs = MAX(most_runs, adding->groups[i].runs);
	}
	for (size_t i = 0; by_time(stats) && !stats->common.json && i < json_object_array_length(adding->rows); i++)
		add_bar(json_object_array_get_idx(adding->rows, i), adding->groups[i].runs, most_runs);
	cli_print_rows(adding->rows, fields, ARRAY_SIZE(fields) - !by_time(stats), stats->common.json);
	if (!stats->common.json && adding->most < adding->count)
		printf("%zu more: see --limit\n", adding->count - adding->most);
	return 0;
}

/* -------- limits that refused something, the disk of owners, the slowest runs -------------------------- */

static void add_refusal(void *arg, const struct store_refusal *refusal)
{
	struct adding *adding = arg;
	/* "limit:rate" is called by its word, "auth:unknown" as it is: not a limit, but a door that was shut */
	const char *word = str_starts(refusal->object, "limit:") ? refusal->object + strlen("limit:") : refusal->object;
	char key[KEY_SIZE];

	if (!cli_filter_owner(&adding->stats->filter, refusal->owner))
		return;
	snprintf(key, sizeof(key), "%.40s %s", word, refusal->owner);
	struct group *group = group_of(adding, key);

	group->first_us = group->runs > 0 ? MIN(group->first_us, refusal->at_us) : refusal->at_us;
	group->last_us = MAX(group->last_us, refusal->at_us);
	group->runs += refusal->count;
}

static int show_limits(struct adding *adding, struct store *store, struct err *err)
{
	static const struct cli_field fields[] = {
		{"limit", "LIMIT", CLI_AS_TEXT, CLI_BOLD, 0},   {"owner", "OWNER", CLI_AS_TEXT, 0, 0},
		{"refused", "REFUSED", CLI_AS_COUNT, 0, 0},     {"first", "FIRST", CLI_AS_TIME, 0, 0},
		{"last", "LAST", CLI_AS_TIME, 0, 0},
	};
	const struct cli_filter *filter = &adding->stats->filter;
	int result = store_refused_list(store, filter->since_us, filter->until_us, add_refusal, adding, err);

	if (result == 0 && adding->count > 0)
		qsort(adding->groups, adding->count, sizeof(*adding->groups), by_runs);
	for (size_t i = 0; i < MIN(adding->count, adding->most); i++) {
		struct group *group = &adding->groups[i];
		struct json_object *row = json_object_new_object();
		char *owner = group->key + strcspn(group->key, " ");

		*owner = '\0';
		json_add_string(row, "limit", group->key);
		json_add_string(row, "owner", owner + 1);
		json_add_int(row, "refused", group->runs);
		json_add_int(row, "first", group->first_us);
		json_add_int(row, "last", group->last_us);
		json_object_array_add(adding->rows, row);
	}
	if (result == 0)
		cli_print_rows(adding->rows, fields, ARRAY_SIZE(fields), adding->stats->common.json);
	return result;
}

static void add_owner(void *arg, const struct store_view_owner *owner)
{
	struct adding *adding = arg;

	if (!cli_filter_owner(&adding->stats->filter, owner->owner) ||
	    json_object_array_length(adding->rows) == adding->most)
		return;
	struct json_object *row = json_object_new_object();

	json_add_string(row, "owner", owner->owner);
	json_add_int(row, "bytes", owner->bytes);
	json_add_int(row, "conversations", owner->conversations);
	json_add_int(row, "tokens", owner->tokens);
	json_object_array_add(adding->rows, row);
}

static int show_disk(struct adding *adding, struct store *store, int64_t cap, struct err *err)
{
	static const struct cli_field fields[] = {
		{"owner", "OWNER", CLI_AS_TEXT, CLI_BOLD, 0},   {"bytes", "DISK", CLI_AS_BYTES, 0, 0},
		{"share", "OF ITS CAP", CLI_AS_TEXT, 0, 0},     {"conversations", "CONVERSATIONS", CLI_AS_COUNT, 0, 0},
	};
	const bool json = adding->stats->common.json;
	int result = store_view_owners(store, 0, add_owner, adding, err);

	for (size_t i = 0; cap > 0 && i < json_object_array_length(adding->rows); i++) {
		struct json_object *row = json_object_array_get_idx(adding->rows, i);
		const int64_t bytes = json_object_get_int64(json_get(row, "bytes", json_type_int));
		auto_free char *share = xasprintf("%lld %%", (long long)(bytes * 100 / cap));

		json_add_int(row, "cap_bytes", cap);
		if (!json)
			json_add_string(row, "share", share);
	}
	if (result == 0)
		cli_print_rows(adding->rows, fields, ARRAY_SIZE(fields), json);
	return result;
}

static int most_first(const void *a, const void *b, const char *member)
{
	struct json_object *x = *(struct json_object *const *)a, *y = *(struct json_object *const *)b;
	const int64_t of_x = json_object_get_int64(json_get(x, member, json_type_int));
	const int64_t of_y = json_object_get_int64(json_get(y, member, json_type_int));

	return of_x != of_y ? (of_x > of_y ? -1 : 1) : strcmp(json_get_string(x, "id"), json_get_string(y, "id"));
}

static int by_wall(const void *a, const void *b)
{
	return most_first(a, b, "wall_us");
}

static int by_bytes(const void *a, const void *b)
{
	return most_first(a, b, "bytes");
}

static void keep_slowest(struct adding *adding)
{
	const size_t count = json_object_array_length(adding->rows);

	json_object_array_sort(adding->rows, streq(adding->stats->by, "largest") ? by_bytes : by_wall);
	if (count > adding->most)
		json_object_array_del_idx(adding->rows, adding->most, count - adding->most);
}

static int add_slow(void *arg, const struct store_execution *e)
{
	struct adding *adding = arg;
	struct json_object *row = json_object_new_object();

	json_add_string(row, "id", e->id);
	json_add_string(row, "owner", e->owner);
	json_add_string(row, "language", e->language);
	json_add_string(row, "verdict", e->verdict);
	json_add_int(row, "wall_us", e->run.wall_us + e->compile.wall_us);
	json_add_int(row, "cpu_us", cpu_of(e));
	json_add_int(row, "bytes", bytes_of(e));
	json_add_int(row, "created", e->created_us);
	json_object_array_add(adding->rows, row);
	if (json_object_array_length(adding->rows) > 2 * adding->most + 1000)
		keep_slowest(adding);
	return 0;
}

static int show_slowest(struct adding *adding, struct store *store, struct err *err)
{
	static const struct cli_field fields[] = {
		{"id", "RUN", CLI_AS_TEXT, CLI_BOLD, 0},        {"created", "STARTED", CLI_AS_TIME, 0, 0},
		{"owner", "OWNER", CLI_AS_TEXT, 0, 0},          {"language", "LANGUAGE", CLI_AS_TEXT, 0, 0},
		{"verdict", "", CLI_AS_TEXT, 0, 0},             {"wall_us", "WALL", CLI_AS_DURATION, 0, 0},
		{"cpu_us", "CPU", CLI_AS_DURATION, 0, 0},       {"bytes", "BYTES", CLI_AS_BYTES, 0, 0},
	};
	struct store_filter filter;

	cli_filter_to_store(&adding->stats->filter, &filter);
	int result = store_execution_list(store, &filter, add_slow, adding, err);

	keep_slowest(adding);
	if (result == 0)
		cli_print_rows(adding->rows, fields, ARRAY_SIZE(fields), adding->stats->common.json);
	return result;
}

/* Programs that ran under several owners. */
static int show_codes(struct adding *adding, struct store *store, struct err *err)
{
	static const struct cli_field fields[] = {
		{"runs", "RUNS", CLI_AS_COUNT, 0, 0},
		{"owners", "OWNERS", CLI_AS_TEXT, CLI_BOLD, 60},
		{"code", "CODE", CLI_AS_TEXT, 0, 0},
	};
	struct store_filter filter;

	cli_filter_to_store(&adding->stats->filter, &filter);
	int result = store_execution_list(store, &filter, add_run, adding, err);

	if (result == 0 && adding->count > 0)
		qsort(adding->groups, adding->count, sizeof(*adding->groups), by_runs);
	for (size_t i = 0; i < adding->count && json_object_array_length(adding->rows) < adding->most; i++) {
		struct group *group = &adding->groups[i];
		struct json_object *row;

		if (group->n_owners < 2)
			continue;
		row = json_object_new_object();
		group->owners[strlen(group->owners) - 1] = '\0';
		json_add_int(row, "runs", group->runs);
		json_add_string(row, "owners", group->owners + 1);
		json_add_bytes(row, "code", group->key + 17, strlen(group->key + 17));
		json_object_array_add(adding->rows, row);
	}
	if (result == 0)
		cli_print_rows(adding->rows, fields, ARRAY_SIZE(fields), adding->stats->common.json);
	return result;
}

static int stats_run(void *options, struct err *err)
{
	struct stats *stats = options;
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	auto_json struct json_object *rows = json_object_new_array();
	struct adding adding = {.stats = stats, .rows = rows};
	int result = cli_open_store(&stats->common, STORE_READ, &config, &store, err);

	if (result < 0)
		return result;
	if (stats->by == NULL)
		stats->by = "owner";
	adding.most = stats->limit > 0 ? (size_t)stats->limit : by_time(stats) ? SIZE_MAX : SHOWN;
	if (streq(stats->by, "limit"))
		result = show_limits(&adding, store, err);
	else if (streq(stats->by, "disk"))
		result = show_disk(&adding, store, config.retention.owner_mb << 20, err);
	else if (streq(stats->by, "slowest") || streq(stats->by, "largest"))
		result = show_slowest(&adding, store, err);
	else if (streq(stats->by, "code"))
		result = show_codes(&adding, store, err);
	else
		result = sum_up(&adding, store, err);
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
		"--json prints one object a line.",
	.examples = "sallyport stats --since yesterday\n"
		"sallyport stats --by hour --since 24h --language python\n"
		"sallyport stats --by failure --since 1w\n"
		"sallyport stats --by limit --since today\n"
		"sallyport stats --by disk\n",
	.exits = "0 done, also when nothing ran\n",
	.groups = stats_groups,
	.size = sizeof(struct stats),
	.run = stats_run,
};
