/*
 * cmd_backup.c - `sallyport backup` and `sallyport restore`: the record of one moment into a folder, and back.
 *
 * lib/store/transfer/store_backup.h does the work. Before the copy counts it is compared with its audit log, as
 * `sallyport verify` does without reading contents, which were read when they were copied. What does not fit is
 * reported, and the copy is kept all the same: a record that somebody altered is the one that is wanted most.
 */
#include <stdio.h>
#include <sys/stat.h>

#include "cli.h"
#include "lib/audit/audit_verify.h"
#include "lib/base/util.h"
#include "lib/store/retention/store_erasures.h"
#include "lib/store/transfer/store_backup.h"

struct backup {
	struct cli_common common;
	const char *signer;
	bool key, full;
};

static const struct cli_option backup_options[] = {
	{.name = "key", .type = CLI_FLAG, .offset = offsetof(struct backup, key),
	 .help = "copy secret.key, too, which can open sealed values and make download addresses"},
	{.name = "full", .type = CLI_FLAG, .offset = offsetof(struct backup, full),
	 .help = "read and compare contents again that the folder has already"},
	{.name = "signer", .type = CLI_STRING, .offset = offsetof(struct backup, signer), .value = "DIR", .input = true,
	 .help = "compare with the checkpoints of this signer's folder"},
	{0},
};
static const struct cli_group backup_groups[] = {{backup_options, 0}, {0}};

struct copying {
	const char *signer;
	struct cli_progress progress;
	int64_t findings;
	char text[AUDIT_TEXT_SIZE];
};

static void progress(void *arg, const char *what, int64_t done, int64_t total)
{
	struct copying *copying = arg;

	if (copying->progress.label == NULL || !streq(copying->progress.label, what)) {
		cli_progress_hide(&copying->progress);
		cli_progress_start(&copying->progress, what, total);
	}
	cli_progress_step(&copying->progress, done);
}

static int verify_progress(void *arg, const char *what, int64_t done, int64_t total)
{
	progress(arg, what, done, total);
	return 0;
}

static int check(void *arg, const char *database, struct err *err)
{
	struct copying *copying = arg;
	struct audit_report report;
	const struct audit_request request = {
		.path = database, .signer = copying->signer, .progress = verify_progress, .arg = copying};
	int result = audit_verify(&request, &report, err);

	if (result == -ERR_UNAVAILABLE) /* of an older release: the gateway upgrades it */
		return 0;
	for (int i = 0; result == 0 && i < AUDIT_PARTS; i++) {
		if (report.parts[i].findings > 0 && copying->findings == 0)
			snprintf(copying->text, sizeof(copying->text), "%s", report.parts[i].text);
		copying->findings += report.parts[i].findings;
	}
	return result;
}

static int tell(const struct cli_common *common, struct copying *copying, const char *what,
		const struct store_backup_made *made)
{
	auto_json struct json_object *object = json_object_new_object();

	cli_progress_hide(&copying->progress);
	json_add_int(object, "schema", made->schema);
	json_add_int(object, "executions", made->executions);
	json_add_int(object, "entries", made->entries);
	json_add_int(object, "blobs", made->blobs);
	json_add_int(object, "bytes", made->bytes);
	json_add_int(object, "new_blobs", made->new_blobs);
	json_add_int(object, "new_bytes", made->new_bytes);
	json_add_int(object, "findings", copying->findings);
	if (common->json)
		cli_print_json(stdout, object, false);
	else
		printf("%s: %lld executions, %lld audit entries, %lld contents (%lld of them copied now)\n", what,
		       (long long)made->executions, (long long)made->entries, (long long)made->blobs,
		       (long long)made->new_blobs);
	if (copying->findings == 0)
		return CLI_OK;
	fprintf(stderr, "sallyport: the record does not fit its audit log (see sallyport verify): %s\n", copying->text);
	return CLI_DIFFERENT;
}

static int backup_run(void *options, struct err *err)
{
	const struct backup *backup = options;
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	struct copying copying = {.signer = backup->signer};
	struct store_backup_made made = {0};
	const struct store_backup request = {.dir = backup->common.args[0],
					     .key = backup->key,
					     .full = backup->full,
					     .check = check,
					     .progress = progress,
					     .arg = &copying};
	int result = cli_open_store(&backup->common, STORE_WRITE, &config, &store, err);

	if (result == 0)
		result = store_backup(store, &request, &made, err);
	cli_progress_hide(&copying.progress);
	return result < 0 ? result : tell(&backup->common, &copying, "saved", &made);
}

const struct cli_command cmd_backup = {
	.name = "backup",
	.summary = "Copy the record of one moment into a folder",
	.arguments = "DIR",
	.help = "The gateway may serve meanwhile: the copy has the database and the contents of the moment at which it begins. "
		"A later backup into the same folder copies only new contents and removes those that are not named any more. "
		"The folder holds one complete moment at any time, also when a backup fails or is killed.",
	.examples = "sallyport backup --key /backup/sallyport\n",
	.exits = "0 done\n"
		"1 the copy was made, but the record does not fit its audit log\n"
		"2 the command line is wrong, or DIR is the record's own folder\n"
		"3 there is no record\n"
		"7 another backup writes there\n"
		"10 the disk is full\n"
		"11 the record is damaged\n",
	.groups = backup_groups,
	.size = sizeof(struct backup),
	.min_args = 1,
	.max_args = 1,
	.run = backup_run,
};

struct restore {
	struct cli_common common;
	const char *key, *erasures;
	bool before_upgrade;
};

static const struct cli_option restore_options[] = {
	{.name = "key", .type = CLI_STRING, .offset = offsetof(struct restore, key), .value = "FILE", .input = true,
	 .help = "take secret.key from FILE, if the backup has none"},
	{.name = "erasures", .type = CLI_STRING, .offset = offsetof(struct restore, erasures), .value = "FROM",
	 .input = true,
	 .help = "repeat the erasures that followed the backup: FROM is the old data folder, or a file with the lines of forget --list"},
	{.name = "before-upgrade", .type = CLI_FLAG, .offset = offsetof(struct restore, before_upgrade),
	 .help = "take the copy of the database that its last upgrade kept, not a backup"},
	{0},
};
static const struct cli_group restore_groups[] = {{restore_options, 0}, {0}};

#define LINE_MAX_BYTES 256

struct repeating {
	struct store *store;
	int64_t entries, repeated;
	struct err *err;
	int result;
};

static int repeat_each(void *arg, const struct store_erasure *erasure)
{
	struct repeating *repeating = arg;
	struct store_erased erased = {0};

	if (erasure->n < repeating->entries)
		return 0;
	repeating->result = store_erasures_repeat(repeating->store, erasure, &erased, repeating->err);
	repeating->repeated += erased.executions + erased.conversations;
	return repeating->result;
}

static int from_file(struct repeating *repeating, const char *from)
{
	FILE *file = fopen(from, "re");
	char line[LINE_MAX_BYTES];
	int result = file ? 0 : err_errno(repeating->err, "%s", from);

	for (int64_t number = 1; result == 0 && fgets(line, sizeof(line), file); number++) {
		struct store_erasure erasure = {0};
		long long n = -1;
		int end = 0;

		if (sscanf(line, "%lld %79s %15s %n", &n, erasure.object, erasure.what, &end) < 3 || n < 0 || line[end])
			result = err_set(
				repeating->err, ERR_INVALID,
				"%s, line %lld: a number, an object and the erased part are expected, as sallyport forget --list prints them",
				from, (long long)number);
		erasure.n = n;
		if (result == 0)
			result = repeat_each(repeating, &erasure);
	}
	if (file)
		fclose(file);
	return result;
}

/* Repeats those lines of `sallyport forget --list` (in a file, or of another data folder) whose entry in the audit log
 * the restored record does not have: from number `made->entries` on. A line is that number, the object, and what was
 * erased. */
static int repeat(const struct restore *restore, const struct config *config, const struct store_backup_made *made,
		  struct err *err)
{
	auto_store struct store *store = NULL, *newer = NULL;
	const char *from = restore->erasures;
	struct repeating repeating = {.entries = made->entries, .err = err};
	struct stat st;
	int result = store_open(config->data_dir, STORE_WRITE, &store, err);

	if (result == 0 && stat(from, &st) < 0)
		result = err_errno(err, "%s", from);
	repeating.store = store;
	if (result == 0 && !S_ISDIR(st.st_mode))
		result = from_file(&repeating, from);
	else if (result == 0 && (result = store_open(from, STORE_READ, &newer, err)) == 0)
		result = store_erasures_list(newer, repeat_each, &repeating, err);
	if (result == 0)
		result = repeating.result;
	if (result < 0)
		return err_wrap(err, "the backup was restored with content that was erased later: repeating erasures");
	if (!restore->common.json)
		printf("erased once more: %lld runs and conversations\n", (long long)repeating.repeated);
	return 0;
}

/* The way back from a release; the older one is installed next. */
static int roll_back(const struct restore *restore, const struct config *config, struct err *err)
{
	struct store_rollback back;
	int result = store_rollback(config->data_dir, &back, err);

	if (result < 0)
		return result;
	if (restore->common.json) {
		auto_json struct json_object *object = json_object_new_object();

		json_add_int(object, "from", back.from);
		json_add_int(object, "schema", back.to);
		json_add_int(object, "executions", back.executions);
		json_add_int(object, "lost", back.lost);
		json_add_string(object, "set_aside", back.set_aside);
		cli_print_json(stdout, object, false);
		return CLI_OK;
	}
	printf("the database is of version %d again, with %lld executions; %lld that were recorded since are in %s\n"
	       "install the release that it is of before the gateway starts, which would upgrade it again\n",
	       back.to, (long long)back.executions, (long long)back.lost, back.set_aside);
	return CLI_OK;
}

static int restore_run(void *options, struct err *err)
{
	const struct restore *restore = options;
	auto_config struct config config = {0};
	struct copying copying = {0};
	struct store_backup_made made = {0};
	int result = config_load(restore->common.config, &config, err);

	if (result < 0)
		return result;
	if (restore->before_upgrade ? restore->common.n_args > 0 || restore->key || restore->erasures
				    : restore->common.n_args == 0)
		return err_set(err, ERR_INVALID, "restore takes a backup's folder, or --before-upgrade alone");
	if (!*config.data_dir)
		return err_set(err, ERR_INVALID,
			       "there is no data_dir: name a configuration with --config or SALLYPORT_CONFIG");
	if (restore->before_upgrade)
		return roll_back(restore, &config, err);
	const struct store_restore request = {.dir = restore->common.args[0],
					      .data_dir = config.data_dir,
					      .key = restore->key,
					      .check = check,
					      .progress = progress,
					      .arg = &copying};

	result = store_restore(&request, &made, err);
	cli_progress_hide(&copying.progress);
	if (result == 0 && restore->erasures)
		result = repeat(restore, &config, &made, err);
	return result < 0 ? result : tell(&restore->common, &copying, "restored", &made);
}

const struct cli_command cmd_restore = {
	.name = "restore",
	.summary = "Make a data folder from a backup",
	.arguments = "DIR | --before-upgrade",
	.help = "The configured data_dir must be empty or missing. "
		"The database and every content are compared with their hashes before the command ends with success; an interrupted restore can be repeated. "
		"Begin a new log of checkpoints afterwards: sallyport checkpoint --init NAME.",
	.examples = "sallyport restore --config /etc/sallyport/sallyport.conf /backup/sallyport\n"
		"sallyport restore --erasures /var/lib/sallyport.old /backup/sallyport\n"
		"sallyport restore --before-upgrade\n",
	.exits = "0 done\n"
		"1 the record was restored, but does not fit its audit log\n"
		"3 there is no such backup, or no upgrade left a copy\n"
		"5 data_dir is not empty, or in use\n"
		"8 the backup is of a newer release\n"
		"10 the disk is full\n"
		"11 the backup is damaged\n",
	.groups = restore_groups,
	.size = sizeof(struct restore),
	.min_args = 0,
	.max_args = 1,
	.n_inputs = 1,
	.run = restore_run,
};
