/*
 * cmd_files.c - `sallyport files`: the files of conversations as they are now, and their bytes.
 *
 * Without a name they are listed: how large, since when, and which run left them so. With a name the bytes of that one
 * go to standard output, with --output-dir files go into a folder. Names were chosen by programs: run_files.c writes
 * them, through no symlink.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "lib/base/util.h"
#include "lib/store/blob/store_blob.h"
#include "lib/store/record/store_resource.h"
#include "run.h"

#define CHUNK (128 * 1024)

struct files {
	struct cli_common common;
	const char *owner, *conversation, *output_dir;
};

static const struct cli_option files_options[] = {
	{.name = "owner", .type = CLI_STRING, .offset = offsetof(struct files, owner), .value = "OWNER",
	 .help = "list only this owner's files"},
	{.name = "conversation", .letter = 'c', .type = CLI_STRING, .offset = offsetof(struct files, conversation),
	 .value = "NAME",
	 .help = "list only this conversation's files"},
	{.name = "output-dir", .letter = 'o', .type = CLI_STRING, .offset = offsetof(struct files, output_dir),
	 .value = "DIR",
	 .help = "write the files to DIR, which is made if it is missing"},
	{0},
};
static const struct cli_group files_groups[] = {{files_options, 0}, {0}};

struct work {
	const struct files *files;
	const char *name; /* NULL: all */
	struct store *store;
	struct cli_table *table; /* NULL: JSON lines */
	int folder;              /* -1: they are listed, or printed */
	char owner[STORE_OWNER_MAX + 1], conversation[STORE_CONVERSATION_MAX + 1]; /* of the file before */
	int64_t count, bytes, conversations;
	struct err *err;
	int result;
};

static void list_one(struct work *work, const struct store_listed_file *f)
{
	auto_free char *name = xstrndup(f->file.name, f->file.name_length);
	char size[CLI_TEXT_SIZE], time[CLI_TEXT_SIZE];

	if (!work->table) {
		auto_json struct json_object *object = json_object_new_object();
		char modified[CLOCK_TEXT_SIZE];

		clock_text(f->file.mtime_us, modified);
		json_add_string(object, "owner", f->owner);
		json_add_string(object, "conversation", f->conversation);
		json_add_bytes(object, "name", f->file.name, f->file.name_length);
		json_add_int(object, "size", f->file.size);
		json_add_string(object, "modified", modified);
		json_add_string(object, "media_type", f->file.media_type);
		json_add_string(object, "sha256", f->file.blob);
		json_add_string(object, "run", *f->run ? f->run : NULL);
		cli_print_json(stdout, object, false);
		return;
	}
	cli_text_bytes(f->file.size, size);
	cli_text_time(f->file.mtime_us, time);
	cli_table_cell(work->table, f->owner, CLI_PLAIN);
	cli_table_cell(work->table, f->conversation, CLI_PLAIN);
	cli_table_cell(work->table, size, CLI_PLAIN);
	cli_table_cell(work->table, time, CLI_PLAIN);
	cli_table_cell(work->table, *f->run ? f->run : "uploaded", CLI_DIM);
	cli_table_cell(work->table, f->file.media_type, CLI_PLAIN);
	cli_table_cell(work->table, name, CLI_BOLD);
}

static int fetch(struct work *work, const struct store_listed_file *f, struct err *err)
{
	auto_free char *name = xstrndup(f->file.name, f->file.name_length);
	auto_close int fd = -1;
	int64_t size;
	int result = store_blob_open(work->store, f->file.blob, &fd, &size, err);
	struct jail_change change = {
		.name = name, .mode = f->file.mode, .mtime_us = f->file.mtime_us, .size = size, .fd = fd};

	if (result == 0 && work->folder >= 0)
		result = run_file_write(work->folder, &change, err);
	if (result < 0 || work->folder >= 0)
		return result < 0 ? err_wrap(err, "%s", name) : 0;
	auto_free char *chunk = xmalloc(CHUNK);
	ssize_t got;

	while ((got = read(fd, chunk, CHUNK)) > 0)
		if (write_all(STDOUT_FILENO, chunk, (size_t)got) < 0)
			return err_errno(err, "writing the output");
	return got < 0 ? err_errno(err, "reading the file") : 0;
}

static int each(void *arg, const struct store_listed_file *f)
{
	struct work *work = arg;

	if (work->name && (strlen(work->name) != f->file.name_length ||
			   memcmp(work->name, f->file.name, f->file.name_length) != 0))
		return 0;
	if (!streq(work->owner, f->owner) || !streq(work->conversation, f->conversation)) {
		work->conversations++;
		snprintf(work->owner, sizeof(work->owner), "%s", f->owner);
		snprintf(work->conversation, sizeof(work->conversation), "%s", f->conversation);
	}
	work->count++;
	work->bytes += f->file.size;
	if (work->name || work->folder >= 0)
		work->result = fetch(work, f, work->err);
	else
		list_one(work, f);
	return work->result;
}

/* Nobody wants the bytes of several files in one stream, or two conversations in one folder. */
static int check(const struct files *files, struct err *err)
{
	const bool fetches = files->common.n_args > 0 || files->output_dir;

	if (fetches && (!files->owner || !files->conversation))
		return err_set(err, ERR_INVALID,
			       "whose? Bytes are of one conversation: give --owner and --conversation");
	if (fetches && files->common.json)
		return err_set(err, ERR_INVALID, "--json lists; bytes come without it");
	return 0;
}

static void summary(const struct work *work)
{
	char bytes[CLI_TEXT_SIZE];

	cli_text_bytes(work->bytes, bytes);
	if (work->table && work->folder < 0 && !work->name) {
		cli_table_print(work->table, stdout);
		printf("%lld files, %s, in %lld conversations\n", (long long)work->count, bytes,
		       (long long)work->conversations);
	} else if (work->folder >= 0) {
		printf("%lld files, %s\n", (long long)work->count, bytes);
	}
}

static int files_run(void *options, struct err *err)
{
	static const struct cli_column columns[] = {
		{"OWNER", false, 5, 16, 0},     {"CONVERSATION", false, 12, 24, 0}, {"SIZE", true, 6, 0, 0},
		{"MODIFIED", false, 19, 0, 0},  {"LEFT BY RUN", false, 11, 0, 0},   {"TYPE", false, 4, 24, 0},
		{"NAME", false, 4, 0, 0}};
	const struct files *files = options;
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	auto_table struct cli_table *table = files->common.json ? NULL : cli_table_new(columns, ARRAY_SIZE(columns));
	auto_close int folder = -1;
	int result = check(files, err);

	if (result == 0)
		result = cli_open_store(&files->common, STORE_READ, &config, &store, err);

	if (result == 0 && files->output_dir)
		result = run_folder_open(files->output_dir, &folder, err);
	struct work work = {.files = files,
			    .name = files->common.n_args > 0 ? files->common.args[0] : NULL,
			    .store = store,
			    .table = table,
			    .folder = folder,
			    .err = err};

	if (result == 0)
		result = store_files_list(store, files->owner, files->conversation, each, &work, err);
	if (result == 0)
		result = work.result;
	if (result == 0 && work.name && work.count == 0)
		result = err_set(err, ERR_NOT_FOUND, "there is no file '%s' in conversation '%s' of %s", work.name,
				 files->conversation, files->owner);
	if (result < 0)
		return result;
	summary(&work);
	return CLI_OK;
}

const struct cli_command cmd_files = {
	.name = "files",
	.summary = "List or fetch the files of conversations",
	.arguments = "[NAME]",
	.help = "Without NAME, lists the files as they are now: size, time of change, and the run that wrote them (or `uploaded`). "
		"With NAME, --owner and --conversation, writes the bytes of that file to standard output. "
		"With --output-dir, writes the file, or all files of the conversation, to a folder, where files of the same names are replaced.",
	.examples = "sallyport files --owner ann\n"
		"sallyport files --owner ann -c talk plot.png >plot.png\n"
		"sallyport files --owner ann -c talk -o /tmp/talk\n"
		"sallyport files --json | jq -s 'sort_by(-.size)[:10]'\n",
	.exits = "0 done, also when there are no files\n"
		"3 no file NAME\n",
	.groups = files_groups,
	.size = sizeof(struct files),
	.max_args = 1,
	.run = files_run,
};
