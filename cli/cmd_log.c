/*
 * cmd_log.c - `sallyport log`: what ran, newest first, or as it finishes.
 *
 * --follow (follow.c) asks for what was recorded since it last looked. The position is a row's place in the order of
 * recording, which no clock decides. It ends with Ctrl-C, or when its reader is gone.
 */
#include <string.h>

#include "cli.h"
#include "lib/base/util.h"

#define LOG_LIMIT_DEFAULT 20
#define LOG_LIMIT_MAX 1000000

struct log_command {
	struct cli_common common;
	struct cli_filter filter;
	int64_t limit;
	bool follow;
};

static const struct cli_option log_options[] = {
	{.name = "limit", .letter = 'n', .type = CLI_INT, .offset = offsetof(struct log_command, limit), .min = 1,
	 .max = LOG_LIMIT_MAX, .value = "N",
	 .help = "list at most N executions [20]"},
	{.name = "follow", .type = CLI_FLAG, .offset = offsetof(struct log_command, follow),
	 .help = "list the oldest first, then each run as it finishes, until Ctrl-C"},
	{0},
};
static const struct cli_group log_groups[] = {
	{cli_filter_options, offsetof(struct log_command, filter)},
	{cli_log_options, offsetof(struct log_command, filter)},
	{cli_tag_options, offsetof(struct log_command, filter)},
	{log_options, 0},
	{0},
};

static const struct cli_column columns[] = {
	{"TIME", false, 19, 0, 0},          {"ID", false, 12, 0, 0},           {"OWNER", false, 5, 16, 0},
	{"CONVERSATION", false, 12, 20, 0}, {"LANGUAGE", false, 8, 12, 4},  {"VERDICT", false, 7, 11, 0},
	{"TASK", false, 4, 9, 1},        {"WALL", true, 7, 0, 0},           {"CPU", true, 7, 0, 2},
	{"MEMORY", true, 9, 0, 3},       {"CODE", false, 4, 120, 0}};

struct view {
	struct cli_table *table; /* NULL: JSON lines */
	int64_t position;        /* --follow: what was recorded up to this place has been dealt with */
};

static void first_line(const struct store_execution *execution, char *ret, size_t size)
{
	const char *code = execution->code.data;
	size_t length = 0;

	if (!code) {
		snprintf(ret, size, "(%zu bytes)", execution->code.length);
		return;
	}
	while (length < execution->code.length && strchr(" \t\r\n", code[length]) && code[length])
		length++;
	code += length;
	length = execution->code.length - length;
	snprintf(ret, size, "%.*s", (int)MIN(length, size - 1), code);
	ret[strcspn(ret, "\n")] = '\0';
}

static void row_show(struct view *view, const struct store_execution *e)
{
	bool over = e->state == STORE_FINISHED;
	const char *state = over ? e->verdict : cli_state_text(e->state);
	char time[CLI_TEXT_SIZE], wall[CLI_TEXT_SIZE] = "", cpu[CLI_TEXT_SIZE] = "", memory[CLI_TEXT_SIZE] = "";
	char line[512];

	if (!view->table) {
		auto_json struct json_object *object = cli_execution_json(e);

		first_line(e, line, sizeof(line));
		json_add_bytes(object, "first_line", line, strlen(line));
		cli_print_json(stdout, object, false);
		return;
	}
	cli_text_time(e->created_us, time);
	if (over) {
		cli_text_duration(e->run.wall_us, wall);
		cli_text_duration(e->run.cpu_user_us + e->run.cpu_system_us, cpu);
		cli_text_bytes(e->run.memory_peak_bytes, memory);
	}
	first_line(e, line, sizeof(line));
	cli_table_cell(view->table, time, CLI_PLAIN);
	cli_table_cell(view->table, STORE_ID_SHORT(e->id), CLI_DIM);
	cli_table_cell(view->table, e->owner, CLI_PLAIN);
	cli_table_cell(view->table, e->conversation, CLI_PLAIN);
	cli_table_cell(view->table, e->language, CLI_BLUE);
	cli_table_cell(view->table, state, cli_verdict_colour(over ? e->verdict : ""));
	cli_table_cell(view->table, cli_task_text(e), CLI_DIM);
	cli_table_cell(view->table, wall, CLI_PLAIN);
	cli_table_cell(view->table, cpu, CLI_PLAIN);
	cli_table_cell(view->table, memory, CLI_PLAIN);
	cli_table_cell(view->table, line, CLI_PLAIN);
}

static int plain_each(void *arg, const struct store_execution *execution)
{
	row_show(arg, execution);
	return 0;
}

static int follow_each(void *arg, const struct store_execution *execution)
{
	struct view *view = arg;

	view->position = execution->recorded;
	row_show(view, execution);
	return 0;
}

struct following {
	struct view *view;
	struct store *store;
	const struct cli_filter *filter;
};

static int follow_look(void *arg, struct err *err)
{
	const struct following *following = arg;
	struct view *view = following->view;
	struct store_filter filter;

	cli_filter_to_store(following->filter, &filter);
	filter.text_in_output = true;
	filter.follow = true;
	filter.recorded_after = view->position;
	int result = store_execution_list(following->store, &filter, follow_each, view, err);

	if (result < 0)
		return result;
	if (view->table)
		cli_table_print(view->table, stdout);
	return fflush(stdout) ? err_errno(err, "writing the output") : 0;
}

/* The rows of the first screen: found newest first, gathered because they are shown oldest first. What was recorded
 * after `position` comes later. */
struct screen {
	struct store_filter filter;
	int64_t position;
	char (*ids)[ID_SIZE];
	size_t count;
};

static int screen_each(void *arg, const struct store_execution *execution)
{
	struct screen *screen = arg;

	if (execution->recorded > screen->position)
		return 0;
	screen->ids = xrealloc(screen->ids, screen->count + 1, sizeof(*screen->ids));
	snprintf(screen->ids[screen->count++], ID_SIZE, "%s", execution->id);
	return 0;
}

static int follow(struct view *view, const struct log_command *log, struct store *store, const struct config *config,
		  struct err *err)
{
	auto_close int watch = cli_follow_open(config, err);
	int result;

	if (watch < 0)
		return watch;
	/* the watch exists before the first look: nothing falls between them */
	struct screen screen = {.position = view->position};
	struct following following = {view, store, &log->filter};

	cli_filter_to_store(&log->filter, &screen.filter);
	screen.filter.text_in_output = true;
	screen.filter.limit = log->limit ? log->limit : LOG_LIMIT_DEFAULT;
	screen.filter.newest_first = true;
	result = store_execution_list(store, &screen.filter, screen_each, &screen, err);
	for (size_t i = screen.count; i > 0 && result == 0; i--) {
		struct store_execution execution = {0};

		result = store_execution_find(store, screen.ids[i - 1], &execution, err);
		if (result == 0) {
			row_show(view, &execution);
		}
		store_execution_clear(&execution);
	}
	free(screen.ids);
	return result < 0 ? result : cli_follow(watch, follow_look, &following, err);
}

static int log_run(void *options, struct err *err)
{
	const struct log_command *log = options;
	auto_table struct cli_table *table = log->common.json ? NULL : cli_table_new(columns, ARRAY_SIZE(columns));
	struct view view = {.table = table};
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	struct store_filter filter;
	int result = cli_open_store(&log->common, STORE_READ, &config, &store, err);

	if (result < 0)
		return result;
	if (log->follow) {
		/* What is recorded from now on, even before the first screen, is shown once. */
		result = store_execution_recorded(store, &view.position, err);
		if (result == 0)
			result = follow(&view, log, store, &config, err);
		return result;
	}
	cli_filter_to_store(&log->filter, &filter);
	filter.text_in_output = true;
	filter.limit = log->limit ? log->limit : LOG_LIMIT_DEFAULT;
	filter.newest_first = true;
	filter.running_too = true;
	result = store_execution_list(store, &filter, plain_each, &view, err);
	if (result == 0 && view.table)
		cli_table_print(view.table, stdout);
	return result;
}

const struct cli_command cmd_log = {
	.name = "log",
	.summary = "List executions, newest first",
	.help = "Several filters must all match. "
		"show and replay take the ids that the table shows, which are the ends of longer ones. "
		"--json prints one object a line.",
	.examples = "sallyport log --since 2h --verdict TO\n"
		"sallyport log --follow --json | jq -r .verdict\n",
	.exits = "0 done, also when nothing matches\n",
	.groups = log_groups,
	.size = sizeof(struct log_command),
	.run = log_run,
};
