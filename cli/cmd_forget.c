/*
 * cmd_forget.c - `sallyport forget`: removes the content of runs and conversations, and leaves the fact.
 *
 * Without --yes nothing is removed: the numbers are shown first. The gateway may serve meanwhile.
 */
#include "cli.h"
#include "gc.h"
#include "lib/base/util.h"
#include "lib/store/audit/store_audit_list.h"
#include "lib/store/record/store_file.h"
#include "lib/store/record/store_owner.h"
#include "lib/store/retention/store_erase.h"
#include "lib/store/retention/store_erasures.h"
#include "lib/upstream/upstream_data.h"

struct forget {
	struct cli_common common;
	const char *owner, *conversation, *execution, *reason;
	int64_t before_us;
	bool output, yes, list;
};

static const struct cli_option forget_options[] = {
	{.name = "owner", .type = CLI_STRING, .offset = offsetof(struct forget, owner), .value = "OWNER",
	 .help = "erase everything of this owner: runs, conversations, tasks"},
	{.name = "conversation", .letter = 'c', .type = CLI_STRING, .offset = offsetof(struct forget, conversation),
	 .value = "NAME",
	 .help = "erase this conversation of --owner, its files and its runs"},
	{.name = "execution", .type = CLI_STRING, .offset = offsetof(struct forget, execution), .value = "ID",
	 .help = "erase this run; ID may be the beginning of an id"},
	{.name = "before", .type = CLI_TIME, .offset = offsetof(struct forget, before_us), .value = "TIME",
	 .help = "limit the erasure to older runs: 30d (ago), 2026-11-21; alone, runs of every owner"},
	{.name = "only-output", .type = CLI_FLAG, .offset = offsetof(struct forget, output),
	 .help = "erase only the runs' output and the files that they made; conversations stay"},
	{.name = "reason", .type = CLI_STRING, .offset = offsetof(struct forget, reason), .value = "TEXT",
	 .help = "note TEXT in the audit log, a ticket's number for instance"},
	{.name = "list", .type = CLI_FLAG, .offset = offsetof(struct forget, list),
	 .help = "print past erasures, a line each, for restore --erasures"},
	{.name = "yes", .letter = 'y', .type = CLI_FLAG, .offset = offsetof(struct forget, yes),
	 .help = "erase [only count]"},
	{0},
};
static const struct cli_group forget_groups[] = {{forget_options, 0}, {0}};

/* What upstream servers keep for an owner: it goes with all else of the owner, and has no age. */
struct kept {
	int64_t removed, busy;
	int64_t first, next; /* entries of the audit log: the first of this erasure, and the one behind its last */
};

/* A line as `sallyport restore --erasures` takes it. */
static int print_erasure(void *arg, const struct store_erasure *erasure)
{
	const struct forget *forget = arg;
	auto_json struct json_object *object = json_object_new_object();

	json_add_int(object, "n", erasure->n);
	json_add_string(object, "object", erasure->object);
	json_add_string(object, "what", erasure->what);
	if (forget->common.json)
		cli_print_json(stdout, object, false);
	else
		printf("%lld %s %s\n", (long long)erasure->n, erasure->object, erasure->what);
	return 0;
}

static void print(const struct forget *forget, const struct store_erased *erased,
		  const struct store_collected *collected, const struct kept *kept)
{
	auto_json struct json_object *object = NULL;

	if (forget->common.json) {
		object = json_object_new_object();
		json_add_bool(object, "done", forget->yes);
		json_add_int(object, "executions", erased->executions);
		json_add_int(object, "conversations", erased->conversations);
		json_add_int(object, "running", erased->running);
		if (forget->yes) {
			gc_add_json(object, collected);
			json_add_int(object, "tokens_revoked", erased->tokens);
			json_add_int(object, "upstream_data", kept->removed);
			json_add_int(object, "upstream_data_busy", kept->busy);
			json_add_int(object, "first_entry", kept->next > kept->first ? kept->first : -1);
			json_add_int(object, "last_entry", kept->next > kept->first ? kept->next - 1 : -1);
		}
		cli_print_json(stdout, object, true);
		return;
	}
	printf("%lld runs and %lld conversations %s\n", (long long)erased->executions, (long long)erased->conversations,
	       forget->yes ? "forgotten" : "would be forgotten");
	if (erased->running)
		printf("%lld runs are in progress and stay: cancel them, and repeat this\n",
		       (long long)erased->running);
	if (erased->tokens)
		printf("%lld tokens revoked\n", (long long)erased->tokens);
	if (forget->yes)
		gc_print(collected, false);
	if (kept->removed)
		printf("%lld upstream servers lost what they kept in /data\n", (long long)kept->removed);
	if (kept->busy)
		printf("%lld upstream servers are in use and keep their /data: repeat this when they are idle\n",
		       (long long)kept->busy);
	if (kept->next > kept->first)
		printf("a certificate: sallyport audit certificate %lld-%lld\n", (long long)kept->first,
		       (long long)kept->next - 1);
	if (!forget->yes)
		puts("Nothing was removed: --yes does it.");
}

/* Or counts what it would erase. *kept: the entries that it made. */
static int erase_all(struct store *store, const struct store_erase *erase, bool yes, struct store_erased *ret,
		     struct kept *kept, struct err *err)
{
	if (!yes)
		return store_forget_count(store, erase, ret, err);
	int result = store_audit_next(store, &kept->first, err);

	if (result == 0)
		result = store_forget(store, erase, ret, err);
	return result == 0 ? store_audit_next(store, &kept->next, err) : result;
}

static int forget_all(struct store *store, const struct config *config, const struct forget *forget,
		      const struct store_erase *erase, struct err *err)
{
	struct kept kept = {0};
	struct store_erased erased = {0};
	struct store_collected collected = {0};
	bool emptied = true;
	int result = erase_all(store, erase, forget->yes, &erased, &kept, err);

	if (result == 0 && forget->yes)
		result = gc_collect(store, false, true, &collected, err);
	if (result == -ERR_CONFLICT) /* the gateway's garbage collection takes it along */
		result = 0;
	if (result == 0 && forget->owner && forget->yes && !forget->conversation && !forget->before_us &&
	    !forget->output)
		result = upstream_data_forget(config->data_dir, forget->owner, &kept.removed, &kept.busy, err);
	if (result == 0 && forget->yes)
		result = store_empty_log(store, &emptied, err);
	if (result < 0)
		return result;
	print(forget, &erased, &collected, &kept);
	if (!emptied)
		fputs("sallyport: the database's log is in use; what was removed leaves it with the next checkpoint\n",
		      stderr);
	return CLI_OK;
}

struct wanted {
	const char *name;
	bool found;
};

static int look_for(void *arg, const struct store_owner *owner)
{
	struct wanted *wanted = arg;

	wanted->found |= streq(wanted->name, owner->name);
	return wanted->found;
}

static int run_found(void *arg, const struct store_execution *execution)
{
	struct wanted *wanted = arg;

	(void)execution;
	return wanted->found = true;
}

static int line_found(void *arg, const struct store_audit_line *line)
{
	struct wanted *wanted = arg;

	(void)line;
	return wanted->found = true;
}

/* A name that was mistyped must not pass for one whose content is gone. */
static int check_names(struct store *store, const struct forget *forget, struct err *err)
{
	struct wanted owner = {.name = forget->owner}, conversation = {.name = forget->conversation};
	struct store_filter runs = {
		.owner = forget->owner, .conversation = forget->conversation, .running_too = true, .limit = 1};
	const struct store_audit_lines log = {
		.owner = forget->owner, .conversation = forget->conversation, .after = -1, .limit = 1};
	struct store_conversation row;
	int result = 0;

	if (owner.name && !streq(owner.name, STORE_OWNER_LOCAL)) {
		result = store_owner_list(store, look_for, &owner, err);
		if (result == 0 && !owner.found)
			return err_set(err, ERR_NOT_FOUND,
				       "no owner \"%s\" has tokens or a record here: sallyport owners lists those who have",
				       owner.name);
	}
	if (result < 0 || !owner.name || !conversation.name)
		return result;
	/* one that expired, or was forgotten before, is known by its runs */
	result = store_execution_list(store, &runs, run_found, &conversation, err);
	if (result < 0 || conversation.found)
		return MIN(result, 0);
	/* or by the audit log */
	result = store_audit_list(store, &log, line_found, &conversation, err);
	if (result < 0 || conversation.found)
		return MIN(result, 0);
	result = store_conversation_find(store, owner.name, conversation.name, &row, err);
	return result == -ERR_NOT_FOUND ? err_set(err, ERR_NOT_FOUND,
			"%s has no conversation \"%s\": sallyport log --owner %s names those of its runs",
			owner.name, conversation.name, owner.name)
					: result;
}

static int check(const struct forget *forget, struct err *err)
{
	const bool all = forget->owner || forget->conversation || forget->before_us;

	if (forget->list)
		return all || forget->execution || forget->yes
			       ? err_set(err, ERR_INVALID, "--list erases nothing: give it alone")
			       : 0;
	if (!all && !forget->execution)
		return err_set(err, ERR_INVALID,
			       "what? Give --owner, --conversation, --execution or --before (see --help)");
	return all && forget->execution ? err_set(err, ERR_INVALID, "give --execution alone") : 0;
}

static int forget_run(void *options, struct err *err)
{
	const struct forget *forget = options;
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	auto_execution struct store_execution one = {0};
	struct store_erase erase = {.what = forget->output ? STORE_ERASE_OUTPUT : STORE_ERASE_CONTENT,
				    .id = forget->execution,
				    .owner = forget->owner,
				    .conversation = forget->conversation,
				    .before_us = forget->before_us ? forget->before_us : INT64_MAX,
				    .why = "request",
				    .ticket = forget->reason};
	int result = check(forget, err);

	if (result == 0)
		result = forget->yes ? gc_open_store(&forget->common, &config, &store, err)
				     : cli_open_store(&forget->common, STORE_READ, &config, &store, err);
	if (result == 0 && forget->list)
		return store_erasures_list(store, print_erasure, options, err);
	if (result == 0)
		result = check_names(store, forget, err);
	if (result == 0 && forget->execution) {
		result = store_execution_find(store, forget->execution, &one, err); /* exactly one begins so */
		erase.id = one.id;
	}
	return result == 0 ? forget_all(store, &config, forget, &erase, err) : result;
}

const struct cli_command cmd_forget = {
	.name = "forget",
	.summary = "Erase the content of runs and conversations",
	.help = "Erases code, input, arguments, environment, output and files, and all contents that nothing else uses. "
		"The fact of the run remains (when, for whom, its size and its end), and the audit log can still be verified. "
		"A content younger than six hours leaves the disk when it is six hours old. "
		"Backups keep their copies. "
		"With --owner alone, the names of conversations, tags and snippets are erased, too, and the data that upstream servers keep in /data for the owner; the owner's tokens are revoked. "
		"Without --yes the command only counts. "
		"On a full disk the file reserve of data_dir is given up first. "
		"A killed command can be repeated.",
	.examples = "sallyport forget --owner ann --before 90d --reason 'ticket 4711' --yes\n",
	.exits = "0 done\n"
		"3 no such run, owner or conversation\n",
	.groups = forget_groups,
	.size = sizeof(struct forget),
	.run = forget_run,
};
