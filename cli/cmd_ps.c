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
	struct json_object *rows;
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

static int each(void *arg, const struct store_running *running)
{
	struct listing *listing = arg;
	const bool json = listing->ps->common.json;
	auto_free char *program = xasprintf("%s, process %lld", running->program, (long long)running->pid);
	char since[CLOCK_TEXT_SIZE];

	if (listing->ps->owner && !streq(listing->ps->owner, running->owner))
		return 0;
	listing->dead += !running->alive;
	struct json_object *row = json_object_new_object();

	clock_text(running->since_us, since);
	json_add_string(row, "id", running->id);
	json_add_string(row, "state", !running->alive ? "left" : running->waits ? "waiting" : "running");
	json_add_string(row, "owner", running->owner);
	json_add_string(row, "conversation", *running->conversation ? running->conversation : NULL);
	json_add_string(row, running->waits && json ? "tool" : "language", running->what);
	json_add_string(row, "since", since);
	json_add_int(row, "for_us", MAX(listing->now_us - running->since_us, 0));
	json_add_int(row, "printed_bytes", running->waits ? 0 : printed(listing->store, running->id));
	json_add_string(row, "program", json ? running->program : program);
	json_add_int(row, "pid", running->pid);
	json_object_array_add(listing->rows, row);
	return 0;
}

static int ps_run(void *options, struct err *err)
{
	static const struct cli_field fields[] = {
		{"id", "ID", CLI_AS_TEXT, CLI_DIM, 0},
		{"state", "STATE", CLI_AS_TEXT, CLI_GREEN, 0},
		{"for_us", "FOR", CLI_AS_DURATION, 0, 0},
		{"owner", "OWNER", CLI_AS_TEXT, 0, 16},
		{"conversation", "CONVERSATION", CLI_AS_TEXT, 0, 20},
		{"language", "LANGUAGE", CLI_AS_TEXT, CLI_BLUE, 12},
		{"printed_bytes", "OUTPUT", CLI_AS_BYTES, 0, 0},
		{"program", "PROGRAM", CLI_AS_TEXT, 0, 0},
	};
	const struct ps *ps = options;
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	auto_json struct json_object *rows = json_object_new_array();
	struct listing listing = {.ps = ps, .rows = rows, .now_us = clock_now_us()};
	int result = cli_open_store(&ps->common, STORE_READ, &config, &store, err);

	listing.store = store;
	if (result == 0)
		result = store_running_list(store, each, &listing, err);
	if (result < 0)
		return result;
	cli_print_rows(rows, fields, ARRAY_SIZE(fields), ps->common.json);
	if (!ps->common.json && listing.dead > 0)
		printf("%zu processes are gone: the next start of the gateway marks their runs as interrupted.\n",
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
		"sallyport ps --json | jq -r 'select(.for_us > 60000000).id' | xargs -n 1 sallyport cancel\n",
	.exits = "0 done, also when nothing runs\n",
	.groups = ps_groups,
	.size = sizeof(struct ps),
	.run = ps_run,
};
