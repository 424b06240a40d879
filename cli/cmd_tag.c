/*
 * cmd_tag.c - `sallyport tag`: names for recorded runs, by which log, replay and export find them again.
 */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "commands.h"
#include "lib/base/util.h"
#include "lib/store/record/store_tag.h"

struct tag {
	struct cli_common common;
	struct cli_filter filter;
	bool all, remove;
};
static const struct cli_option tag_options[] = {
	{.name = "all", .type = CLI_FLAG, .offset = offsetof(struct tag, all), .help = "select all recorded runs"},
	{.name = "remove", .type = CLI_FLAG, .offset = offsetof(struct tag, remove),
	 .help = "remove the tag from the runs"},
	{0},
};
static const struct cli_group tag_groups[] = {
	{tag_options, 0},
	{cli_filter_options, offsetof(struct tag, filter)},
	{cli_tag_options, offsetof(struct tag, filter)},
	{0},
};

/* -------- the list ------------------------------------------------------------------------------------ */

struct listing {
	struct cli_table *table;
	struct json_object *array;
};

static void list_one(void *arg, const char *tag, int64_t executions)
{
	struct listing *listing = arg;
	struct json_object *object = json_object_new_object();
	auto_free char *count = xasprintf("%lld", (long long)executions);

	json_add_string(object, "tag", tag);
	json_add_int(object, "executions", executions);
	json_object_array_add(listing->array, object);
	cli_table_cell(listing->table, tag, CLI_BOLD);
	cli_table_cell(listing->table, count, CLI_PLAIN);
}

static int list(const struct tag *options, struct store *store, struct err *err)
{
	static const struct cli_column columns[] = {{"TAG", false, 8, 0}, {"RUNS", true, 4, 0}};
	auto_table struct cli_table *table = cli_table_new(columns, ARRAY_SIZE(columns));
	auto_json struct json_object *array = json_object_new_array();
	struct listing listing = {table, array};
	int result = store_tag_list(store, list_one, &listing, err);

	if (result < 0)
		return result;
	if (options->common.json)
		cli_print_json(stdout, array, true);
	else
		cli_table_print(table, stdout);
	return CLI_OK;
}

/* -------- the work ------------------------------------------------------------------------------------ */

struct chosen {
	char (*ids)[ID_SIZE];
	size_t count, room;
};

static int choose_one(void *arg, const struct store_execution *execution)
{
	struct chosen *chosen = arg;

	if (chosen->count == chosen->room) {
		chosen->room = chosen->room ? 2 * chosen->room : 64;
		chosen->ids = xrealloc(chosen->ids, chosen->room, sizeof(*chosen->ids));
	}
	snprintf(chosen->ids[chosen->count++], ID_SIZE, "%s", execution->id);
	return 0;
}

/* Some at a time, so that a gateway that writes meanwhile does not wait for long. */
static int put(const struct tag *options, struct store *store, const struct chosen *chosen, int64_t *ret_changed,
	       struct err *err)
{
	struct store_tagging tagging = {.tag = options->common.args[0], .remove = options->remove};
	int result = 0;

	for (size_t at = 0; result == 0 && at < chosen->count; at += tagging.count) {
		int64_t changed = 0;

		tagging.ids = (const char(*)[ID_SIZE])(chosen->ids + at);
		tagging.count = MIN(chosen->count - at, STORE_TAG_BATCH);
		result = store_tag_put(store, &tagging, &changed, err);
		*ret_changed += changed;
	}
	return result;
}

static void print_sums(const struct tag *options, size_t count, int64_t changed)
{
	const char *tag = options->common.args[0];

	if (options->common.json) {
		auto_json struct json_object *object = json_object_new_object();

		json_add_string(object, "tag", tag);
		json_add_int(object, "executions", (int64_t)count);
		json_add_int(object, "changed", changed);
		cli_print_json(stdout, object, true);
	} else {
		printf("%zu runs, %lld of them %s %s\n", count, (long long)changed,
		       options->remove ? "no longer have" : "newly have", tag);
	}
}

static int tag_run(void *arg, struct err *err)
{
	const struct tag *options = arg;
	const bool lists = options->common.n_args == 0;
	struct cli_common ids = options->common;
	const struct cli_selection selection = {&ids, &options->filter, options->all};
	struct chosen chosen = {0};
	int64_t changed = 0;
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;

	if (lists && (options->remove || options->all || !cli_filter_empty(&options->filter)))
		return err_set(err, ERR_INVALID, "which tag? Name it before the ids");
	if (!lists && !store_tag_valid(options->common.args[0]))
		return err_set(err, ERR_INVALID, "a tag is 1 to %d letters, digits and characters of ._:/-",
			       STORE_TAG_MAX);
	int result = cli_open_store(&options->common, lists ? STORE_READ : STORE_WRITE, &config, &store, err);

	if (result < 0)
		return result;
	if (lists)
		return list(options, store, err);
	ids.args++;
	ids.n_args--;
	result = cli_select(store, &selection, choose_one, &chosen, err);
	if (result == 0)
		result = put(options, store, &chosen, &changed, err);
	if (result == 0)
		print_sums(options, chosen.count, changed);
	free(chosen.ids);
	return result;
}

const struct cli_command cmd_tag = {
	.name = "tag",
	.summary = "Tag executions, for --tag of log, replay and export",
	.arguments = "[TAG [ID]…]",
	.help = "Without TAG, lists all tags with the number of their runs. "
		"The executions are given by id, by filters or with --all. "
		"A tag is 1 to 64 letters, digits and characters of ._:/-; a run can have several. "
		"Tags belong to the operator and are not part of the record.",
	.examples = "sallyport tag nightly --language python --since 1d\n"
		"sallyport replay --tag nightly\n"
		"sallyport tag --remove nightly 019bf2\n",
	.exits = "0 done\n"
		"3 no such execution\n",
	.groups = tag_groups,
	.size = sizeof(struct tag),
	.max_args = SIZE_MAX,
	.run = tag_run,
};
