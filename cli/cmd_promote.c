/*
 * cmd_promote.c - `sallyport promote`: recorded executions become the cases of a suite, which `sallyport grade` runs.
 *
 * The suite is changed in one transaction: a wrong id, or a signal, leaves it as it was.
 */
#include <string.h>

#include "cli.h"
#include "lib/base/util.h"
#include "lib/store/transfer/store_bundle.h"
#include "replay.h"

struct promote_options {
	struct cli_common common;
	struct cli_filter filter;
	bool all;
	const char *suite, *name, *compare, *normalise;
	struct bind_strings tags;
	struct replay_normalisers normalisers;
};

#define FIELD(member) offsetof(struct promote_options, member)
static const struct cli_option promote_options_table[] = {
	{.name = "suite", .letter = 's', .type = CLI_STRING, .offset = FIELD(suite), .value = "FILE",
	 .help = "change this suite, which is made if it is missing"},
	{.name = "name", .type = CLI_STRING, .offset = FIELD(name), .value = "NAME",
	 .help = "name the case [the execution's id]"},
	{.name = "tag", .type = CLI_STRINGS, .offset = FIELD(tags), .value = "TAG",
	 .help = "give the cases this tag, for grade --tag; repeatable"},
	{.name = "compare", .type = CLI_STRING, .offset = FIELD(compare), .value = "LIST",
	 .help = "compare these when the cases are graded, as for replay [verdict,exit,stdout,stderr,files]"},
	{.name = "normalise", .type = CLI_STRING, .offset = FIELD(normalise), .value = "LIST",
	 .help = "apply these normalisers when the cases are graded, as for replay"},
	{.name = "all", .letter = 'a', .type = CLI_FLAG, .offset = FIELD(all), .help = "select all recorded runs"},
	{0},
};
static const struct cli_group promote_groups[] = {
	{promote_options_table, 0},
	{replay_normaliser_options, FIELD(normalisers)},
	{cli_filter_options, FIELD(filter)},
	{0},
};

struct promoting {
	const struct promote_options *options;
	struct store *store;
	struct store_bundle *suite;
	const char *tags;
	struct err *err;
	int64_t cases, added;
	int result;
};

static int promote_one(void *arg, const struct store_execution *execution)
{
	struct promoting *promoting = arg;
	const struct promote_options *options = promoting->options;
	const struct store_bundle_case one = {execution->id, options->name, promoting->tags, options->compare,
					     options->normalise};
	auto_free char *why = replay_incomparable(execution);

	if (why && options->common.n_args > 0)
		return promoting->result = err_set(promoting->err, ERR_INVALID, "%s: %s", execution->id, why);
	if (why) {
		fprintf(stderr, "sallyport: %s is left out: %s\n", execution->id, why);
		return 0;
	}
	if (options->name && promoting->cases > 0)
		return promoting->result = err_set(promoting->err, ERR_INVALID, "--name is for one execution only");
	int added = store_bundle_case_add(promoting->suite, promoting->store, &one, promoting->err);

	promoting->cases++;
	promoting->added += added > 0;
	return promoting->result = MIN(added, 0);
}

static int check_options(const struct promote_options *options, struct err *err)
{
	unsigned ignored;

	if (!options->suite)
		return err_set(err, ERR_INVALID, "into which suite? Give --suite FILE");
	if (options->name && strlen(options->name) > 256)
		return err_set(err, ERR_INVALID, "--name takes at most 256 bytes");
	if (replay_normalisers_load(&options->normalisers, err) < 0)
		return -ERR_INVALID;
	if (options->compare && replay_settings_by(options->compare, &ignored, err) < 0)
		return -ERR_INVALID;
	return options->normalise ? normalise_parse(options->normalise, &ignored, err) : 0;
}

/* The tags as JSON; NULL: none were given, so that a case keeps those that it has. The caller's. */
static char *tags_json(const struct bind_strings *tags)
{
	auto_json struct json_object *array = json_object_new_array();
	struct buf text;

	if (tags->count == 0)
		return NULL;
	for (size_t i = 0; i < tags->count; i++)
		json_object_array_add(array, json_object_new_string(tags->items[i]));
	buf_init(&text, SIZE_MAX / 2);
	json_print(&text, array);
	return buf_steal(&text, NULL);
}

static int promote_run(void *arg, struct err *err)
{
	const struct promote_options *options = arg;
	const struct cli_selection selection = {&options->common, &options->filter, options->all};
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	auto_free char *tags = tags_json(&options->tags);
	auto_json struct json_object *object = json_object_new_object();
	struct json_object *summary = json_object_new_object();
	struct promoting promoting = {.options = options, .tags = tags, .err = err};
	int result = check_options(options, err);

	json_add(object, "summary", summary);
	if (result == 0)
		result = cli_open_store(&options->common, STORE_READ, &config, &store, err);
	if (result < 0)
		return result;
	promoting.store = store;
	if (store_bundle_change(options->suite, &promoting.suite, err) < 0) {
		cli_complain(err);
		return CLI_USAGE;
	}
	result = cli_select(store, &selection, promote_one, &promoting, err);
	if (result == 0)
		result = promoting.result;
	if (result == 0)
		result = store_bundle_finish(promoting.suite, store, err);
	store_bundle_close(promoting.suite);
	if (result < 0)
		return result;
	json_add_int(summary, "cases", promoting.cases);
	json_add_int(summary, "new", promoting.added);
	json_add_int(summary, "already_there", promoting.cases - promoting.added);
	if (options->common.json)
		cli_print_json(stdout, object, false);
	else
		printf("%lld cases, %lld of them new\n", (long long)promoting.cases, (long long)promoting.added);
	return CLI_OK;
}

const struct cli_command cmd_promote = {
	.name = "promote",
	.summary = "Make executions the cases of a suite",
	.arguments = "--suite FILE [ID]…",
	.help = "A suite is one SQLite file with everything that its cases need: code, input, files, limits and the expected outcome, which is the recorded one. "
		"sallyport grade runs it, here or elsewhere. "
		"Existing cases are unchanged except for the options given. "
		"The executions are given by id, by filters or with --all. "
		"The file holds the values of environment variables unencrypted.",
	.examples = "sallyport promote --suite regress.suite --name \"sorts numbers\" --tag fast 019bf2\n"
		"sallyport promote --suite regress.suite --language python --verdict OK --since 2d\n"
		"sallyport grade regress.suite\n",
	.exits = "0 done\n"
		"2 the command line is wrong, or the file is not a valid suite\n"
		"3 no such execution, or the file cannot be written\n",
	.groups = promote_groups,
	.size = sizeof(struct promote_options),
	.max_args = SIZE_MAX,
	.run = promote_run,
};
