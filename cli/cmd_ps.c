/*
 * cmd_ps.c - `sallyport ps`: what is under way now, oldest first.
 *
 * It is read from the record alone, so it answers while the gateway is busy, too: rows that say `running`, and tasks
 * whose run waits for its turn. Whether the process that runs them lives is known from its lock.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "lib/base/util.h"
#include "lib/store/record/store_resource.h"
#include "lib/store/record/store_running.h"

struct ps {
	struct cli_common common;
	const char *owner;
};

static const struct cli_option ps_options[] = {
	{.name = "owner", .type = CLI_STRING, .offset = offsetof(struct ps, owner), .value = "OWNER",
	 .help = "list only this owner's runs"},
	{0},
};
static const struct cli_group ps_groups[] = {{ps_options, 0}, {0}};

struct listing {
	const struct ps *ps;
	struct store *store;
	struct cli_table *table; /* NULL: JSON lines */
	int64_t now_us;
	size_t dead;
};

/* What it has printed so far, in bytes. */
static int64_t printed(struct store *store, const char *id)
{
	static const char *const suffixes[] = {"out", "err"};
	int64_t sum = 0;

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		struct err ignored = ERR_INIT;
		auto_close int fd = -1;
		struct stat st;

		if (store_running_read(store, id, suffixes[i], &fd, &ignored) == 0 && fstat(fd, &st) == 0)
			sum += st.st_size;
	}
	return sum;
}

static const char *state_text(const struct store_running *running)
{
	return !running->alive ? "left" : running->waits ? "waiting" : "running";
}

static void print_json(const struct listing *listing, const struct store_running *running)
{
	auto_json struct json_object *object = json_object_new_object();
	char since[CLOCK_TEXT_SIZE];

	clock_text(running->since_us, since);
	json_add_string(object, "id", running->id);
	json_add_string(object, "state", state_text(running));
	json_add_string(object, "owner", running->owner);
	json_add_string(object, "conversation", *running->conversation ? running->conversation : NULL);
	json_add_string(object, running->waits ? "tool" : "language", running->what);
	json_add_string(object, "since", since);
	json_add_int(object, "for", MAX(listing->now_us - running->since_us, 0));
	json_add_int(object, "output", running->waits ? 0 : printed(listing->store, running->id));
	json_add_string(object, "program", running->program);
	json_add_int(object, "pid", running->pid);
	cli_print_json(stdout, object, false);
}

static int each(void *arg, const struct store_running *running)
{
	struct listing *listing = arg;
	char time[CLI_TEXT_SIZE], bytes[CLI_TEXT_SIZE], program[64];

	if (listing->ps->owner && !streq(listing->ps->owner, running->owner))
		return 0;
	listing->dead += !running->alive;
	if (!listing->table) {
		print_json(listing, running);
		return 0;
	}
	cli_text_duration(MAX(listing->now_us - running->since_us, 0), time);
	cli_text_bytes(running->waits ? 0 : printed(listing->store, running->id), bytes);
	snprintf(program, sizeof(program), "%s, process %lld", running->program, (long long)running->pid);
	cli_table_cell(listing->table, running->id, CLI_DIM);
	cli_table_cell(listing->table, state_text(running), running->alive ? CLI_GREEN : CLI_RED);
	cli_table_cell(listing->table, time, CLI_PLAIN);
	cli_table_cell(listing->table, running->owner, CLI_PLAIN);
	cli_table_cell(listing->table, running->conversation, CLI_PLAIN);
	cli_table_cell(listing->table, running->what, CLI_BLUE);
	cli_table_cell(listing->table, bytes, CLI_PLAIN);
	cli_table_cell(listing->table, program, CLI_PLAIN);
	return 0;
}

static int ps_run(void *options, struct err *err)
{
	static const struct cli_column columns[] = {{"ID", false, 36, 0},          {"STATE", false, 7, 0},
						    {"FOR", true, 6, 0},           {"OWNER", false, 5, 16},
						    {"CONVERSATION", false, 12, 20}, {"LANGUAGE", false, 8, 12},
						    {"OUTPUT", true, 6, 0},        {"PROGRAM", false, 7, 0}};
	const struct ps *ps = options;
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	auto_table struct cli_table *table = ps->common.json ? NULL : cli_table_new(columns, ARRAY_SIZE(columns));
	struct listing listing = {.ps = ps, .table = table, .now_us = clock_now_us()};
	int result = cli_open_store(&ps->common, STORE_READ, &config, &store, err);

	listing.store = store;
	if (result == 0)
		result = store_running_list(store, each, &listing, err);
	if (result < 0)
		return result;
	if (table)
		cli_table_print(table, stdout);
	if (table && listing.dead > 0)
		printf("The process of %zu is gone: the next start of the gateway marks them as interrupted.\n",
		       listing.dead);
	return CLI_OK;
}

const struct cli_command cmd_ps = {
	.name = "ps",
	.summary = "List running programs and waiting tasks",
	.help = "The oldest comes first, with its time, its output so far and the process that runs it. "
		"The state `waiting` is a task whose run has not begun; `left` is a run whose process is gone, which the next start of the gateway marks as interrupted. "
		"--json prints one object a line; times are in microseconds.",
	.examples = "sallyport ps --owner ann\n"
		"sallyport ps --json | jq -r 'select(.for > 60000000).id' | xargs -n 1 sallyport cancel\n",
	.exits = "0 done, also when nothing runs\n",
	.groups = ps_groups,
	.size = sizeof(struct ps),
	.run = ps_run,
};
