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

static void list_one(void *arg, const char *tag, int64_t executions)
{
	struct json_object *row = json_object_new_object();

	json_add_string(row, "tag", tag);
	json_add_int(row, "executions", executions);
	json_object_array_add(arg, row);
}

static int list(const struct tag *options, struct store *store, struct err *err)
{
	static const struct cli_field fields[] = {{"tag", "TAG", CLI_AS_TEXT, CLI_BOLD, 0},
						  {"executions", "RUNS", CLI_AS_COUNT, 0, 0}};
	auto_json struct json_object *array = json_object_new_array();
	int result = store_tag_list(store, list_one, array, err);

	if (result < 0)
		return result;
	cli_print_rows(array, fields, ARRAY_SIZE(fields), options->common.json);
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

static void print_sums(const struct tag *options, size_t count, int64_t changed)
{
	const char *tag = options->common.args[0];
	auto_json struct json_object *object = json_object_new_object();

	json_add_string(object, "tag", tag);
	json_add_int(object, "executions", (int64_t)count);
	json_add_int(object, "changed", changed);
	if (options->common.json)
		cli_print_json(stdout, object, true);
	else
		printf("%zu runs, %lld of them %s %s\n", count, (long long)changed,
		       options->remove ? "no longer have" : "newly have", tag);
}

static int tag_run(void *arg, struct err *err)
{
	const struct tag *options = arg;
	const bool lists = options->common.n_args == 0;
	const char *tag = lists ? NULL : options->common.args[0];
	struct cli_common ids = options->common;
	const struct cli_selection selection = {&ids, &options->filter, options->all};
	struct chosen chosen = {0};
	int64_t changed = 0;
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;

	if (lists && (options->remove || options->all || !cli_filter_empty(&options->filter)))
		return err_set(err, ERR_INVALID, "which tag? Name it before the ids");
	if (!lists && !store_tag_valid(tag))
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
	/* some at a time, so that a gateway that writes meanwhile does not wait for long */
	for (size_t at = 0; result == 0 && at < chosen.count; at += STORE_TAG_BATCH) {
		const struct store_tagging tagging = {.tag = tag,
						      .remove = options->remove,
						      .ids = (const char(*)[ID_SIZE])(chosen.ids + at),
						      .count = MIN(chosen.count - at, STORE_TAG_BATCH)};
		int64_t some = 0;

		result = store_tag_put(store, &tagging, &some, err);
		changed += some;
	}
	free(chosen.ids);
	if (result < 0)
		return result;
	print_sums(options, chosen.count, changed);
	return CLI_OK;
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
