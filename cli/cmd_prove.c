/* cmd_prove.c - `sallyport prove`: one run, or the whole log, for somebody who trusts none of our programs. */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "lib/audit/audit_prove.h"
#include "lib/base/util.h"

#define CHECKPOINT_DEFAULT "/var/lib/sallyport-audit/checkpoint"

struct prove {
	struct cli_common common;
	const char *checkpoint, *output, *tiles;
};

static const struct cli_option prove_options[] = {
	{.name = "checkpoint", .type = CLI_STRING, .offset = offsetof(struct prove, checkpoint), .value = "FILE",
	 .input = true,
	 .help = "prove against this checkpoint [" CHECKPOINT_DEFAULT "]"},
	{.name = "output", .letter = 'o', .type = CLI_STRING, .offset = offsetof(struct prove, output), .value = "DIR",
	 .help = "write the proof to this folder, which is made"},
	{.name = "tiles", .type = CLI_STRING, .offset = offsetof(struct prove, tiles), .value = "DIR",
	 .help = "write the whole log as static files (C2SP tlog-tiles)"},
	{0},
};
static const struct cli_group prove_groups[] = {{prove_options, 0}, {0}};

static int prove_run(void *options, struct err *err)
{
	const struct prove *prove = options;
	const char *checkpoint = prove->checkpoint ? prove->checkpoint : CHECKPOINT_DEFAULT;
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	auto_execution struct store_execution execution = {0};
	auto_json struct json_object *object = json_object_new_object();
	int64_t entries = 0;
	int result;

	if (!prove->tiles && (prove->common.n_args == 0 || !prove->output))
		return err_set(err, ERR_INVALID, "prove what? Give an id and --output DIR, or --tiles DIR");
	if (prove->tiles && prove->common.n_args > 0)
		return err_set(err, ERR_INVALID, "give either an id, or --tiles DIR");
	result = cli_open_store(&prove->common, STORE_READ, &config, &store, err);
	if (result == 0 && prove->tiles) {
		result = audit_tiles(config.data_dir, checkpoint, prove->tiles, &entries, err);
	} else if (result == 0) {
		result = store_execution_find(store, prove->common.args[0], &execution, err);
		if (result == 0)
			entries = result = audit_prove(config.data_dir, checkpoint, execution.id, prove->output, err);
		json_add_string(object, "execution", execution.id);
	}
	if (result < 0)
		return result;
	json_add_int(object, "entries", entries);
	if (prove->common.json)
		cli_print_json(stdout, object, false);
	else if (prove->tiles)
		printf("%lld entries are in %s\n", (long long)entries, prove->tiles);
	else
		printf("%lld entries of execution %s are proven in %s\n", (long long)entries, execution.id,
		       prove->output);
	return CLI_OK;
}

const struct cli_command cmd_prove = {
	.name = "prove",
	.summary = "Prove one execution to others by the audit log",
	.arguments = "ID --output DIR | --tiles DIR",
	.help = "Writes the run's entries, their details with salts, and for each a proof (C2SP tlog-proof) that a signed checkpoint covers it. "
		"These files and the log's public key are enough for others to check the run, without Sallyport (docs/audit_check.py does so); they disclose nothing about other runs.",
	.examples = "sallyport prove 01932c01-77aa --output proof\n",
	.exits = "0 done\n"
		"3 no such execution, no entry names it, or there is no checkpoint\n"
		"5 the folder has a proof already\n"
		"8 no checkpoint covers it yet\n"
		"11 the log is not the one of the checkpoint\n",
	.groups = prove_groups,
	.size = sizeof(struct prove),
	.max_args = 1,
	.audits = true,
	.run = prove_run,
};
