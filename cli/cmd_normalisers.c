/* cmd_normalisers.c - `sallyport normalisers`: those that replay applies, in order, and a project's own. */
#include <string.h>

#include "cli.h"
#include "lib/base/util.h"
#include "replay.h"

const struct cli_option replay_normaliser_options[] = {
	{.name = "normalisers", .type = CLI_STRINGS, .offset = offsetof(struct replay_normalisers, files),
	 .value = "FILE", .input = true,
	 .help = "apply a project's own normalisers (JSON) after the built-in ones; repeatable"},
	{0},
};

int replay_normalisers_load(const struct replay_normalisers *normalisers, struct err *err)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < normalisers->files.count; i++)
		result = normalise_file_load(normalisers->files.items[i], err);
	return result;
}

struct listing {
	struct cli_common common;
	struct replay_normalisers normalisers;
};

static const struct cli_group listing_groups[] = {
	{replay_normaliser_options, offsetof(struct listing, normalisers)},
	{0},
};

static int listing_run(void *arg, struct err *err)
{
	static const struct cli_column columns[] = {{"NAME", false, 10, 34, 0},
						    {"VERSION", false, 7, 24, 0},
						    {"DEFAULT", false, 7, 0, 0},
						    {"TAKES OUT", false, 9, 0, 0}};
	const struct listing *listing = arg;
	auto_table struct cli_table *table = cli_table_new(columns, ARRAY_SIZE(columns));
	int result = replay_normalisers_load(&listing->normalisers, err);

	for (int i = 0; result == 0 && i < normalise_count(); i++) {
		auto_buf struct buf version = {0};

		buf_init(&version, SIZE_MAX / 2);
		normalise_version(NORMALISE_BIT(i), &version);
		buf_putc(&version, '\0');
		const char *number = strchr(version.data, '/') + 1;

		if (listing->common.json) {
			auto_json struct json_object *line = json_object_new_object();

			json_add_string(line, "name", normalise_name(i));
			json_add_string(line, "version", number);
			json_add_bool(line, "default", (normalise_defaults() & NORMALISE_BIT(i)) != 0);
			json_add_string(line, "does", normalise_about(i));
			if (i >= NORMALISERS)
				json_add_string(line, "pattern", normalise_about(i));
			cli_print_json(stdout, line, false);
			continue;
		}
		cli_table_cell(table, normalise_name(i), CLI_BOLD);
		cli_table_cell(table, number, CLI_PLAIN);
		cli_table_cell(table, normalise_defaults() & NORMALISE_BIT(i) ? "yes" : "", CLI_PLAIN);
		cli_table_cell(table, normalise_about(i), CLI_PLAIN);
	}
	if (result == 0 && !listing->common.json)
		cli_table_print(table, stdout);
	normalise_file_forget();
	return result < 0 ? result : CLI_OK;
}

const struct cli_command cmd_normalisers = {
	.name = "normalisers",
	.summary = "List the normalisers, which take variable parts out of output",
	.help = "Prints them in the order in which replay, grade and promote apply them; their option --normalise selects some by name.",
	.examples = "sallyport normalisers\n"
		"sallyport normalisers --normalisers tests/normalisers.json --json\n",
	.exits = "0 done\n"
		"2 the command line or the file of normalisers is wrong\n",
	.groups = listing_groups,
	.size = sizeof(struct listing),
	.run = listing_run,
};
