/*
 * cmd_snippet.c - `sallyport snippet list|promote|remove`: programs that models keep by name (save_snippet), and which
 * of them are everybody's.
 */
#include <string.h>

#include "cli.h"
#include "commands.h"
#include "lib/base/text.h"
#include "lib/base/util.h"
#include "lib/store/record/store_snippet.h"

struct snippet {
	struct cli_common common;
	const char *owner;
	int64_t version;
};
static const struct cli_option snippet_options[] = {
	{.name = "owner", .type = CLI_STRING, .offset = offsetof(struct snippet, owner), .value = "OWNER",
	 .help = "take this owner's snippets [list: all; remove: the copy for all owners]"},
	{.name = "version", .type = CLI_INT, .offset = offsetof(struct snippet, version), .min = 1, .max = INT32_MAX,
	 .value = "N",
	 .help = "take this version [promote: the newest; remove: all]"},
	{0},
};
static const struct cli_group snippet_groups[] = {{snippet_options, 0}, {0}};

static void list_one(void *arg, const struct store_snippet *snippet)
{
	struct json_object *row = json_object_new_object();

	json_add_string(row, "name", snippet->name);
	json_add_string(row, "owner", *snippet->owner ? snippet->owner : NULL);
	json_add_int(row, "version", snippet->version);
	json_add_string(row, "language", snippet->language);
	json_add_string(row, "description", snippet->description);
	json_object_array_add(arg, row);
}

static int list(const struct snippet *options, struct store *store, struct err *err)
{
	static const struct cli_field fields[] = {{"name", "NAME", CLI_AS_TEXT, CLI_BOLD, 0},
						  {"owner", "OWNER", CLI_AS_TEXT, 0, 0},
						  {"version", "VERSION", CLI_AS_COUNT, 0, 0},
						  {"language", "LANGUAGE", CLI_AS_TEXT, 0, 0},
						  {"description", "DESCRIPTION", CLI_AS_TEXT, 0, 60}};
	auto_json struct json_object *array = json_object_new_array();
	int result = store_snippet_list(store, options->owner, list_one, array, err);

	if (result < 0)
		return result;
	for (size_t i = 0; !options->common.json && i < json_object_array_length(array); i++)
		if (!json_get_string(json_object_array_get_idx(array, i), "owner"))
			json_add_string(json_object_array_get_idx(array, i), "owner", "(all owners)");
	cli_print_rows(array, fields, ARRAY_SIZE(fields), options->common.json);
	return CLI_OK;
}

static int promote(const struct snippet *options, struct store *store, const char *name, struct err *err)
{
	auto_snippet_row struct store_snippet snippet = {0};
	int64_t version = 0;

	if (!options->owner)
		return err_set(err, ERR_INVALID, "promote: name the snippet's owner with --owner");
	int result = store_snippet_find(store, options->owner, name, options->version, &snippet, err);

	if (result == 0 && !*snippet.owner)
		return err_set(err, ERR_NOT_FOUND, "%s has no snippet \"%s\"", options->owner, name);
	snippet.owner[0] = '\0';
	if (result == 0)
		result = store_snippet_save(store, &snippet, &version, err);
	if (result < 0)
		return result;
	if (!options->common.json)
		printf("%s: version %lld for all owners\n", name, (long long)version);
	return CLI_OK;
}

static int snippet_run(void *arg, struct err *err)
{
	const struct snippet *options = arg;
	const char *verb = options->common.args[0];
	const char *name = options->common.n_args > 1 ? options->common.args[1] : NULL;
	const bool lists = streq(verb, "list");
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	int result;

	if (!lists && !streq(verb, "promote") && !streq(verb, "remove"))
		return err_set(err, ERR_INVALID, "'%s' is none of list, promote, remove", verb);
	if (lists != !name)
		return err_set(err, ERR_INVALID, lists ? "list takes no name" : "name the snippet");
	result = cli_open_store(&options->common, lists ? STORE_READ : STORE_WRITE, &config, &store, err);
	if (result < 0)
		return result;
	if (lists)
		return list(options, store, err);
	if (streq(verb, "promote"))
		return promote(options, store, name, err);
	return store_snippet_remove(store, options->owner ? options->owner : STORE_SNIPPET_ALL, name, options->version,
				    err);
}

const struct cli_command cmd_snippet = {
	.name = "snippet",
	.summary = "Manage programs that models keep by name",
	.arguments = "list | promote NAME --owner OWNER | remove NAME",
	.help = "list shows the newest version of each snippet. "
		"promote copies a snippet of one owner for all owners: they find it with list_snippets, and it runs unless they have a snippet of the same name. "
		"remove removes the copy for all owners, or with --owner a snippet of that owner.",
	.examples = "sallyport snippet promote summarize --owner alice\n",
	.exits = "0 done\n"
		"3 no such snippet\n",
	.groups = snippet_groups,
	.size = sizeof(struct snippet),
	.min_args = 1,
	.max_args = 2,
	.run = snippet_run,
};
