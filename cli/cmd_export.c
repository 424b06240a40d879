/*
 * cmd_export.c - `sallyport export` and `sallyport import`: recorded executions, with all that is needed to run them
 * again, into one file, and back; with --move, all that an owner needs on another host.
 * lib/store/transfer/store_bundle.h does the work.
 */

#include "cli.h"
#include "lib/audit/audit_bundle.h"
#include "lib/audit/audit_verify.h"
#include "lib/base/util.h"
#include "lib/store/transfer/store_bundle.h"

struct export_options {
	struct cli_common common;
	struct cli_filter filter;
	bool all, with_env, move;
	const char *output, *checkpoint;
};

static const struct cli_option export_options_table[] = {
	{.name = "output", .letter = 'o', .type = CLI_STRING, .offset = offsetof(struct export_options, output),
	 .value = "BUNDLE",
	 .help = "write the bundle to this file"},
	{.name = "all", .letter = 'a', .type = CLI_FLAG, .offset = offsetof(struct export_options, all),
	 .help = "select all recorded runs"},
	{.name = "with-env", .type = CLI_FLAG, .offset = offsetof(struct export_options, with_env),
	 .help = "write the values of environment variables, too, unencrypted"},
	{.name = "move", .type = CLI_FLAG, .offset = offsetof(struct export_options, move),
	 .help = "move one drained --owner to another host: add tokens, snippets, conversations and files"},
	{.name = "checkpoint", .type = CLI_STRING, .offset = offsetof(struct export_options, checkpoint),
	 .value = "FILE", .input = true,
	 .help = "prove the runs' audit entries against this signed checkpoint"},
	{0},
};
static const struct cli_group export_groups[] = {
	{export_options_table, 0},
	{cli_filter_options, offsetof(struct export_options, filter)},
	{cli_tag_options, offsetof(struct export_options, filter)},
	{0},
};

/* `owner`: who moves; NULL: nobody. */
static void print_done(const struct cli_common *common, const char *owner, const struct store_carried *done,
		       bool imported)
{
	auto_json struct json_object *object = json_object_new_object();
	struct json_object *summary = json_object_new_object();

	json_add_int(summary, "executions", done->executions);
	if (imported) {
		json_add_int(summary, "new", done->added);
		json_add_int(summary, "already_there", done->executions - done->added);
	}
	if (owner) {
		json_add_string(summary, "owner", owner);
		json_add_int(summary, "tokens", done->tokens);
		json_add_int(summary, "snippets", done->snippets);
		json_add_int(summary, "conversations", done->conversations);
		json_add_int(summary, "files", done->files);
	}
	if (!imported)
		json_add_int(summary, "erased", done->erased);
	json_add(object, "summary", summary);
	if (common->json)
		cli_print_json(stdout, object, false);
	else if (owner)
		printf("%s: %lld tokens, %lld versions of snippets, %lld conversations with %lld files, %lld runs\n",
		       owner, (long long)done->tokens, (long long)done->snippets, (long long)done->conversations,
		       (long long)done->files, (long long)done->executions);
	else if (imported)
		printf("%lld executions, %lld of them new\n", (long long)done->executions, (long long)done->added);
	else
		printf("%lld executions exported\n", (long long)done->executions);
	if (done->erased > 0 && !common->json)
		printf(owner ? "%lld runs of which something was erased stay in this record\n"
			     : "%lld were left out: their content was erased\n",
		       (long long)done->erased);
}

/* -------- out ----------------------------------------------------------------------------------------- */

struct exporting {
	const struct export_options *options;
	struct store_bundle *bundle;
	struct store *store;
	struct store_carried done;
	struct err *err;
	int result;
};

static int add(void *arg, const struct store_execution *execution)
{
	struct exporting *exporting = arg;
	const struct export_options *options = exporting->options;
	const bool chosen = options->common.n_args == 0; /* by filters, which find what was erased, too */
	struct err missing = ERR_INIT;
	int result = 0;

	if (!options->move || !execution->erased[0]) /* else the fact stays where it was recorded */
		result = store_bundle_add(exporting->bundle, exporting->store, execution->id, &missing);
	if ((options->move && execution->erased[0]) || (result == -ERR_NOT_FOUND && chosen)) {
		exporting->done.erased++;
		return 0;
	}
	if (result < 0)
		*exporting->err = missing;
	exporting->done.executions++;
	return exporting->result = result;
}

static int write_bundle(struct exporting *exporting, const char *data_dir, struct err *err)
{
	const struct export_options *options = exporting->options;
	const struct cli_selection selection = {&options->common, &options->filter, options->all};
	const char *owner = options->move ? options->filter.owners.items[0] : NULL;
	int result = owner ? store_bundle_owner_quiet(exporting->store, owner, err) : 0;

	if (result == 0)
		result = store_bundle_new(options->output, &exporting->bundle, err);
	if (result == 0 && !options->with_env && !owner)
		store_bundle_leave_env(exporting->bundle);
	if (result == 0)
		result = cli_select(exporting->store, &selection, add, exporting, err);
	if (result == 0)
		result = exporting->result;
	if (result == 0 && owner)
		result = store_bundle_owner_add(exporting->bundle, exporting->store, owner, &exporting->done, err);
	if (result == 0)
		result = store_bundle_audit_add(exporting->bundle, exporting->store, err);
	if (result == 0)
		result = audit_bundle_prove(exporting->bundle, data_dir, options->checkpoint, err);
	if (result == 0)
		result = cli_audit(exporting->store, STORE_AUDIT_EXPORT, exporting->done.executions, err);
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
	struct exporting exporting = {.options = options, .err = err};
	struct cli_filter others = options->filter;
	int result;

	if (!options->output)
		return err_set(err, ERR_INVALID, "where to? Give --output BUNDLE");
	others.owners.count = 0;
	if (options->move && (options->filter.owners.count != 1 || !cli_filter_empty(&others) || options->all))
		return err_set(err, ERR_INVALID, "--move takes one --owner, and all of that owner's runs");
	result = cli_open_store(&options->common, STORE_WRITE, &config, &store, err);
	exporting.store = store;
	if (result == 0)
		result = write_bundle(&exporting, config.data_dir, err);
	if (result < 0)
		return result;
	print_done(&options->common, options->move ? options->filter.owners.items[0] : NULL, &exporting.done, false);
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
		"Values of environment variables are left out unless --with-env is given, and secrets were never stored: a replay of such a run needs --secret.\n\n"
		"--move writes all that an owner needs on another host: tokens, snippets, conversations, files, and the runs with their environments. "
		"The owner must be drained. "
		"Runs of which something was erased stay here.",
	.examples = "sallyport export --output runs.bundle --language python --since 2d\n"
		"sallyport export --output mine.bundle --with-env --owner alice\n"
		"sallyport export --all --output all.bundle --checkpoint /var/lib/sallyport-audit/checkpoint\n"
		"sallyport export --owner alice --move --output alice.bundle\n",
	.exits = "0 done\n"
		"3 no such execution, or a content is damaged\n"
		"5 --move: the owner is not drained, or is busy\n"
		"8 the checkpoint does not cover all of them\n",
	.groups = export_groups,
	.size = sizeof(struct export_options),
	.max_args = SIZE_MAX,
	.run = export_run,
};

/* -------- in ------------------------------------------------------------------------------------------ */

struct import_options {
	struct cli_common common;
	bool move, unverified;
};

static const struct cli_option import_options_table[] = {
	{.name = "move", .type = CLI_FLAG, .offset = offsetof(struct import_options, move),
	 .help = "let the owner of an export --move in, with tokens, snippets, conversations and files"},
	{.name = "unverified", .type = CLI_FLAG, .offset = offsetof(struct import_options, unverified),
	 .help = "take runs whose audit entries are missing or say something else, and give them the tag unverified for ever"},
	{0},
};
static const struct cli_group import_groups[] = {{import_options_table, 0}, {0}};

/* What is wrong first. */
struct doubt {
	char text[sizeof((struct err){0}.text) + AUDIT_TEXT_SIZE];
};

static void on_finding(void *arg, enum audit_part part, int64_t n, const char *text)
{
	struct doubt *doubt = arg;

	(void)n;
	if (!*doubt->text)
		snprintf(doubt->text, sizeof(doubt->text), "%s: %s", audit_part_names[part], text);
}

/* Are the rows of a bundle those of the audit entries that came along? */
static int prove(const char *path, struct err *err)
{
	struct doubt doubt = {.text = ""};
	const struct audit_request request = {.path = path, .found = on_finding, .arg = &doubt};
	struct err cause = ERR_INIT;
	struct audit_report report;

	if (audit_verify(&request, &report, &cause) < 0)
		snprintf(doubt.text, sizeof(doubt.text), "%s", cause.text);
	if (*doubt.text)
		return err_set(err, ERR_INVALID, "%s: %s; --unverified takes it all the same, and marks its runs",
			       path, doubt.text);
	return 0;
}

static int open_bundle(const struct import_options *options, const char *path, struct store_bundle **ret,
		       struct err *err)
{
	int result = store_bundle_open(path, ret, err);
	const char *owner = result == 0 ? store_bundle_owner(*ret) : NULL;

	if (owner && !options->move)
		return err_set(err, ERR_INVALID, "%s lets the owner %s in, with tokens: say --move", path, owner);
	if (result == 0 && !owner && options->move)
		return err_set(err, ERR_INVALID, "%s has no owner to move: export --move writes such a file", path);
	if (result == 0 && options->unverified)
		store_bundle_unverified(*ret);
	else if (result == 0)
		result = prove(path, err);
	return result;
}

static int import_all(const struct import_options *options, struct store_bundle **bundles, struct store_carried *ret,
		      struct err *err)
{
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	int result = 0;

	for (size_t i = 0; result == 0 && i < options->common.n_args; i++)
		result = open_bundle(options, options->common.args[i], &bundles[i], err);
	if (result < 0) {
		cli_complain(err);
		return CLI_USAGE;
	}
	result = cli_make_database(&options->common, err);
	if (result == 0)
		result = cli_open_store(&options->common, STORE_WRITE, &config, &store, err);
	for (size_t i = 0; result == 0 && i < options->common.n_args; i++)
		result = store_bundle_import(bundles[i], store, ret, err);
	return result;
}

static int import_run(void *arg, struct err *err)
{
	const struct import_options *options = arg;
	struct store_bundle **bundles = xcalloc(options->common.n_args, sizeof(struct store_bundle *));
	struct store_carried done = {0};
	int result = 0;

	if (options->move && options->common.n_args > 1)
		result = err_set(err, ERR_INVALID, "--move takes one bundle");
	if (result == 0)
		result = import_all(options, bundles, &done, err);
	if (result == 0)
		print_done(&options->common, store_bundle_owner(bundles[0]), &done, true);
	for (size_t i = 0; i < options->common.n_args; i++)
		store_bundle_close(bundles[i]);
	free(bundles);
	return result;
}

const struct cli_command cmd_import = {
	.name = "import",
	.summary = "Read executions from bundles",
	.arguments = "BUNDLE…",
	.help = "A bundle is checked before anything is written: tables, names, sizes, the hash of each content, and each row by the audit entries that came along. "
		"Executions that exist already are unchanged; ids are kept. "
		"The database is made if there is none.\n\n"
		"A bundle of export --move holds an owner's tokens, which are valid here from then on. "
		"It is refused without --move.\n\n"
		"A suite has no audit entries. --unverified takes it, or a bundle that was edited.",
	.examples = "sallyport import runs.bundle && sallyport replay --all\n"
		"sallyport import --move alice.bundle\n",
	.exits = "0 done\n"
		"2 the command line is wrong, or a file is not a valid bundle\n"
		"3 there is no such file, or no data folder\n"
		"5 --move: the owner has conversations here\n"
		"6 the disk has no room for it\n",
	.groups = import_groups,
	.size = sizeof(struct import_options),
	.min_args = 1,
	.max_args = SIZE_MAX,
	.n_inputs = SIZE_MAX,
	.run = import_run,
};
