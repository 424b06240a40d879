/* cmd_diff.c - `sallyport diff ID`: what a run changed of its conversation's files. */
#include "cli.h"
#include "lib/base/utf8.h"
#include "lib/job/job_diff.h"

#define TEXT_MAX (16 * 1024 * 1024)

struct diff {
	struct cli_common common;
};

static int diff_run(void *options, struct err *err)
{
	const struct diff *diff = options;
	auto_execution struct store_execution execution = {0};
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	auto_buf struct buf text = {0};
	int result = cli_open_store(&diff->common, STORE_READ, &config, &store, err);

	buf_init(&text, TEXT_MAX);
	if (result == 0)
		result = store_execution_find(store, diff->common.args[0], &execution, err);
	if (result == 0)
		result = job_diff(store, &execution, &text, err);
	if (result == 0 && diff->common.json) {
		auto_json struct json_object *object = json_object_new_object();

		json_add_string(object, "id", execution.id);
		json_add_string(object, "diff", text.data);
		cli_print_json(stdout, object, true);
	} else if (result == 0) {
		fwrite(text.data, 1, text.length, stdout); /* each line is printable */
	}
	return result < 0 ? result : CLI_OK;
}

const struct cli_command cmd_diff = {
	.name = "diff",
	.summary = "Show how a run changed its files",
	.arguments = "ID",
	.help = "Prints unified diffs of the text files that the run made, changed and removed; of other files, and of files larger than 1 MiB, only the sizes. "
		"ID may be the beginning of an id if no other id begins so.",
	.examples = "sallyport diff 019a5c3e-71f2-7\n",
	.exits = "0 done\n"
		"3 no such run, or its content was erased\n",
	.size = sizeof(struct diff),
	.min_args = 1,
	.max_args = 1,
	.run = diff_run,
};
