/* cmd_export.c - `sallyport export`: recorded executions, with all that is needed to run them again, into one file. */
#include "cli.h"
#include "lib/audit/audit_bundle.h"
#include "lib/base/util.h"
#include "lib/store/transfer/store_bundle.h"

struct export_options {
	struct cli_common common;
	struct cli_filter filter;
	bool all, with_env;
	const char *output, *checkpoint;
};

static const struct cli_option export_options_table[] = {
	{.name = "output",
	 .letter = 'o',
	 .type = CLI_STRING,
	 .offset = offsetof(struct export_options, output),
	 .value = "BUNDLE",
	 .help = "write the bundle to this file"},
	{.name = "all",
	 .letter = 'a',
	 .type = CLI_FLAG,
	 .offset = offsetof(struct export_options, all),
	 .help = "select all recorded runs"},
	{.name = "with-env",
	 .type = CLI_FLAG,
	 .offset = offsetof(struct export_options, with_env),
	 .help = "write the values of environment variables, too, unencrypted"},
	{.name = "checkpoint",
	 .type = CLI_STRING,
	 .offset = offsetof(struct export_options, checkpoint),
	 .value = "FILE",
	 .help = "prove the runs' audit entries against this signed checkpoint"},
	{0},
};
static const struct cli_group export_groups[] = {
	{export_options_table, 0},
	{cli_filter_options, offsetof(struct export_options, filter)},
	{cli_tag_options, offsetof(struct export_options, filter)},
	{0},
};

struct exporting {
	struct store_bundle *bundle;
	struct store *store;
	struct err *err;
	bool chosen; /* by filters, which find what was erased, too */
	int64_t count, erased;
	int result;
};

static int add(void *arg, const struct store_execution *execution)
{
	struct exporting *exporting = arg;

	struct err missing = ERR_INIT;

	exporting->result = store_bundle_add(exporting->bundle, exporting->store, execution->id, &missing);
	if (exporting->result == -ERR_NOT_FOUND && exporting->chosen) {
		exporting->erased++;
		return exporting->result = 0;
	}
	if (exporting->result < 0)
		*exporting->err = missing;
	exporting->count++;
	return exporting->result;
}

static int export_all(struct exporting *exporting, const struct export_options *options, const char *data_dir,
		      struct err *err)
{
	const struct cli_selection selection = {&options->common, &options->filter, options->all};
	int result = store_bundle_new(options->output, &exporting->bundle, err);

	if (result == 0 && !options->with_env)
		store_bundle_leave_env(exporting->bundle);
	if (result == 0)
		result = cli_select(exporting->store, &selection, add, exporting, err);
	if (result == 0)
		result = exporting->result;
	if (result == 0)
		result = store_bundle_audit_add(exporting->bundle, exporting->store, err);
	if (result == 0)
		result = audit_bundle_prove(exporting->bundle, data_dir, options->checkpoint, err);
	if (result == 0)
		result = cli_audit(exporting->store, STORE_AUDIT_EXPORT, exporting->count, err);
	if (result == 0)
		result = store_bundle_finish(exporting->bundle, exporting->store, err);
	store_bundle_close(exporting->bundle);
	return result;
}

static int export_run(void *arg, struct err *err)
{
	const struct export_options *options = arg;
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	auto_json struct json_object *object = NULL;
	struct exporting exporting = {.err = err};
	int result;

	if (!options->output)
		return err_set(err, ERR_INVALID, "where to? Give --output BUNDLE");
	result = cli_open_store(&options->common, STORE_WRITE, &config, &store, err);
	if (result < 0)
		return result;
	exporting.store = store;
	exporting.chosen = options->common.n_args == 0;
	result = export_all(&exporting, options, config.data_dir, err);
	if (result < 0)
		return result;
	if (options->common.json) {
		struct json_object *summary = json_object_new_object();

		object = json_object_new_object();
		json_add_int(summary, "executions", exporting.count);
		json_add_int(summary, "erased", exporting.erased);
		json_add(object, "summary", summary);
		cli_print_json(stdout, object, false);
	} else {
		printf("%lld executions exported\n", (long long)exporting.count);
		if (exporting.erased > 0)
			printf("%lld were left out: their content was erased\n", (long long)exporting.erased);
	}
	return CLI_OK;
}

const struct cli_command cmd_export = {
	.name = "export",
	.summary = "Write executions into one file, a bundle",
	.arguments = "[ID]…",
	.help = "A bundle holds everything that replay needs: code, input, files, limits, outcome and output, and the tags. "
		"The executions are given by id, by filters or with --all. "
		"Runs of a live sandbox bring the runs before them along. "
		"Filters and --all leave out executions whose content was erased, and count them. "
		"Values of environment variables are left out unless --with-env is given, and secrets were never stored: a replay of such a run needs --secret.",
	.examples = "sallyport export --output runs.bundle --language python --since 2d\n"
		"sallyport export --output mine.bundle --with-env --owner alice\n"
		"sallyport export --all --output all.bundle --checkpoint /var/lib/sallyport-audit/checkpoint\n",
	.exits = "0 done\n"
		"3 no such execution, or a content is damaged\n"
		"8 the checkpoint does not cover all of them\n",
	.groups = export_groups,
	.size = sizeof(struct export_options),
	.max_args = SIZE_MAX,
	.run = export_run,
};
