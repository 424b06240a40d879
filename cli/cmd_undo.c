/*
 * cmd_undo.c - `sallyport undo ID`: makes a conversation's files what they were before (or after) a run.
 *
 * A gateway may serve meanwhile: it happens in one transaction, and is refused while a program of the conversation is
 * running. Contents are not copied: the record has them.
 */
#include "cli.h"
#include "lib/job/job_edit.h"

struct undo {
	struct cli_common common;
	bool after;
};
static const struct cli_option undo_options[] = {
	{.name = "after", .type = CLI_FLAG, .offset = offsetof(struct undo, after),
	 .help = "restore the files as they were after the run [before it]"},
	{0},
};
static const struct cli_group undo_groups[] = {{undo_options, 0}, {0}};

static int undo_run(void *options, struct err *err)
{
	const struct undo *undo = options;
	const struct job_state state = {undo->common.args[0], undo->after};
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	struct job_edited done = {0};
	int result = cli_open_store(&undo->common, STORE_WRITE, &config, &store, err);

	if (result == 0)
		result = job_edit_restore_apart(store, &state, &done, err);
	if (result < 0)
		return result;
	if (undo->common.json) {
		auto_json struct json_object *object = json_object_new_object();

		json_add_int(object, "put", done.put);
		json_add_int(object, "removed", done.removed);
		cli_print_json(stdout, object, true);
	} else {
		printf("%lld files put back, %lld removed\n", (long long)done.put, (long long)done.removed);
	}
	return CLI_OK;
}

const struct cli_command cmd_undo = {
	.name = "undo",
	.summary = "Restore a conversation's files as they were before a run",
	.arguments = "ID",
	.help = "Later changes by runs and uploads are undone, too. "
		"Files that were uploaded after the last run, and that no run has seen, are removed. "
		"`undo --after` of the last run takes an undo back. "
		"Refused while a program of the conversation is running. "
		"ID may be the beginning of an id if no other id begins so.",
	.examples = "sallyport undo 019a5c3e-71f2-7\n",
	.exits = "0 done\n"
		"3 no such run, or its content was erased\n",
	.groups = undo_groups,
	.size = sizeof(struct undo),
	.min_args = 1,
	.max_args = 1,
	.run = undo_run,
};
