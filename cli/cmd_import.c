/* cmd_import.c - `sallyport import`: bundles of `sallyport export` into this database, each as a whole or not at all.
 */
#include <poll.h>

#include "cli.h"
#include "lib/base/util.h"
#include "lib/store/transfer/store_bundle.h"

struct import_options {
	struct cli_common common;
};

#define MAKING_US 30000000 /* another import may be making the database, too */

static bool has_database(const char *folder)
{
	int version = 0, result = store_schema_version(folder, &version, NULL);

	/* what else is wrong comes out when it is opened */
	return result != -ERR_NOT_FOUND && (result < 0 || version > 0);
}

/* There is a database afterwards. */
static int make_database(const struct cli_common *common, struct err *err)
{
	auto_config struct config config = {0};
	const int64_t began = clock_monotonic_us();
	int result = config_load(common->config, &config, err);

	while (result == 0 && *config.data_dir && !has_database(config.data_dir)) {
		auto_store struct store *store = NULL;

		result = store_open(config.data_dir, STORE_SERVE, &store, err);
		if (result == -ERR_CONFLICT && clock_monotonic_us() - began < MAKING_US) {
			poll(NULL, 0, 10);
			result = 0;
		}
	}
	return result;
}

static int import_all(const struct import_options *options, struct store_bundle **bundles, struct store_carried *ret,
		      struct err *err)
{
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	int result = 0;

	for (size_t i = 0; result == 0 && i < options->common.n_args; i++)
		result = store_bundle_open(options->common.args[i], &bundles[i], err);
	if (result < 0) {
		cli_complain(err);
		return CLI_USAGE;
	}
	result = make_database(&options->common, err);
	if (result == 0)
		result = cli_open_store(&options->common, STORE_WRITE, &config, &store, err);
	for (size_t i = 0; result == 0 && i < options->common.n_args; i++)
		result = store_bundle_import(bundles[i], store, ret, err);
	return result;
}

static void print_sums(const struct store_carried *done, bool as_json)
{
	auto_json struct json_object *object = json_object_new_object();
	struct json_object *summary = json_object_new_object();

	json_add_int(summary, "executions", done->executions);
	json_add_int(summary, "new", done->added);
	json_add_int(summary, "already_there", done->executions - done->added);
	json_add(object, "summary", summary);
	if (as_json)
		cli_print_json(stdout, object, false);
	else
		printf("%lld executions, %lld of them new\n", (long long)done->executions, (long long)done->added);
}

static int import_run(void *arg, struct err *err)
{
	const struct import_options *options = arg;
	struct store_bundle **bundles = xcalloc(options->common.n_args, sizeof(struct store_bundle *));
	struct store_carried done = {0};
	int result = import_all(options, bundles, &done, err);

	for (size_t i = 0; i < options->common.n_args; i++)
		store_bundle_close(bundles[i]);
	free(bundles);
	if (result == 0)
		print_sums(&done, options->common.json);
	return result;
}

const struct cli_command cmd_import = {
	.name = "import",
	.summary = "Read executions from bundles",
	.arguments = "BUNDLE…",
	.help = "A bundle is checked before anything is written: tables, names, sizes and the hash of each content. "
		"Executions that exist already are unchanged; ids are kept. "
		"The database is made if there is none.",
	.examples = "sallyport import runs.bundle && sallyport replay --all\n",
	.exits = "0 done\n"
		"2 the command line is wrong, or a file is not a valid bundle\n"
		"3 the database cannot be written\n",
	.size = sizeof(struct import_options),
	.min_args = 1,
	.max_args = SIZE_MAX,
	.run = import_run,
};
