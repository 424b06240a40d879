/*
 * cmd_cancel.c - `sallyport cancel ID`: ends a run that is under way, or waits for its turn.
 *
 * The gateway that runs it is asked through the sockets on which gateways hear what others recorded (job_news.h): only
 * the account of data_dir reaches them. An entry in the audit log says who asked, before the gateway hears of it. Then
 * the command waits for the run's end: the same sockets tell of it, and the record is what counts.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "cli.h"
#include "lib/base/util.h"
#include "lib/job/job_news.h"
#include "lib/store/record/store_running.h"

#define PATIENCE_US (30 * INT64_C(1000000)) /* a gateway that cannot write keeps a run for longer than that */
#define LOOK_MS     500

struct cancel {
	struct cli_common common;
	const char *reason;
};

static const struct cli_option cancel_options[] = {
	{.name = "reason", .type = CLI_STRING, .offset = offsetof(struct cancel, reason), .value = "TEXT",
	 .help = "note TEXT in the audit log, a ticket's number for instance"},
	{0},
};
static const struct cli_group cancel_groups[] = {{cancel_options, 0}, {0}};

struct search {
	const char *prefix;
	struct store_running found;
	size_t count;
};

static int search_each(void *arg, const struct store_running *running)
{
	struct search *search = arg;

	if (!str_starts(running->id, search->prefix))
		return 0;
	search->count++;
	search->found = *running;
	return 0;
}

/* The only one under way whose id begins so, and of a gateway: nothing else can be asked. */
static int find(struct store *store, const char *prefix, struct store_running *ret, struct err *err)
{
	struct search search = {.prefix = prefix};
	auto_execution struct store_execution over = {0};
	int result = store_running_list(store, search_each, &search, err);

	if (result < 0)
		return result;
	if (search.count > 1)
		return err_set(err, ERR_CONFLICT, "several runs begin with '%s': give more of the id", prefix);
	if (search.count == 0) {
		result = store_execution_find(store, prefix, &over, err);
		return result < 0 ? result
				  : err_set(err, ERR_CONFLICT, "run %s is over already (%s)", over.id, over.verdict);
	}
	*ret = search.found;
	if (!streq(ret->program, "gateway"))
		return err_set(err, ERR_CONFLICT,
			       "run %s belongs to a command (process %lld), which takes no requests: end that process",
			       ret->id, (long long)ret->pid);
	return 0;
}

/* Until it is no longer under way. */
static int await_end(struct store *store, int fd, const char *id, struct err *err)
{
	const int64_t until = clock_monotonic_us() + PATIENCE_US;
	char byte;

	for (;;) {
		struct search search = {.prefix = id};
		struct pollfd polled = {.fd = fd, .events = POLLIN};
		int result = store_running_list(store, search_each, &search, err);

		if (result < 0 || search.count == 0)
			return result;
		if (clock_monotonic_us() >= until)
			return err_set(err, ERR_UNAVAILABLE,
				       "run %s still runs after %d s: the gateway (process %lld) does not answer", id,
				       (int)(PATIENCE_US / 1000000), (long long)search.found.pid);
		poll(&polled, 1, LOOK_MS); /* any news are a reason to look again */
		while (recv(fd, &byte, 1, MSG_DONTWAIT) >= 0)
			;
	}
}

static int ask(const struct cancel *cancel, const struct config *config, struct store *store,
	       const struct store_running *running, struct err *err)
{
	const struct job_news word = {.cancel = true, .owner = "", .conversation = "", .execution = running->id};
	struct job_news_sender sender = {0};
	struct store_audit entry;
	char name[ID_SIZE];
	auto_close int fd = -1;
	int result = job_news_listen(config->data_dir, name, &fd, err);

	if (result < 0)
		return result;
	store_audit_init(&entry, STORE_AUDIT_RUN_CANCEL, "execution", running->id);
	entry.owner = running->owner;
	store_audit_word(&entry, "state", running->waits ? "waiting" : "running");
	if (cancel->reason)
		store_audit_text(&entry, "reason", cancel->reason, strlen(cancel->reason));
	result = store_audit_add(store, &entry, err);
	if (result == 0) {
		job_news_send(&sender, config->data_dir, name, &word);
		result = await_end(store, fd, running->id, err);
	}
	job_news_leave(config->data_dir, name);
	return result;
}

static int cancel_run(void *options, struct err *err)
{
	const struct cancel *cancel = options;
	struct store_running running;
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	auto_json struct json_object *object = json_object_new_object();
	auto_execution struct store_execution execution = {0};
	int result = cli_open_store(&cancel->common, STORE_WRITE, &config, &store, err);

	if (result == 0)
		result = find(store, cancel->common.args[0], &running, err);
	if (result == 0)
		result = ask(cancel, &config, store, &running, err);
	if (result < 0)
		return result;
	result = store_execution_find(store, running.id, &execution, err);
	if (result < 0 && result != -ERR_NOT_FOUND)
		return result;
	json_add_string(object, "id", running.id);
	json_add_string(object, "verdict", result == 0 ? execution.verdict : NULL);
	if (cancel->common.json)
		cli_print_json(stdout, object, true);
	else if (result < 0) /* a task that waited has no row */
		printf("run %s was cancelled before it began\n", running.id);
	else if (streq(execution.verdict, "CX"))
		printf("run %s was cancelled\n", running.id);
	else
		printf("run %s ended with %s before it could be cancelled\n", running.id, execution.verdict);
	return CLI_OK;
}

const struct cli_command cmd_cancel = {
	.name = "cancel",
	.summary = "End a running program or a waiting task",
	.arguments = "ID",
	.help = "ID may be the beginning of an id if only one running execution has it; sallyport ps lists them. "
		"The run ends with the verdict CX. "
		"Its output is recorded, and its files are kept as far as they were written.",
	.examples = "sallyport cancel 019a5c3e-71f2-7 --reason 'ticket 4711'\n",
	.exits = "0 done\n"
		"3 no such run\n"
		"5 the run is over, or several ids begin so\n",
	.groups = cancel_groups,
	.size = sizeof(struct cancel),
	.min_args = 1,
	.max_args = 1,
	.run = cancel_run,
};
