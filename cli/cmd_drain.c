/*
 * cmd_drain.c - `sallyport drain`: nothing new starts here, what is under way ends.
 *
 * For a host that is to be stopped, and for an owner who moves to another one. The gateway reads the mark with the
 * token of each request, so it needs no signal, and a restart of it changes nothing.
 */
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "commands.h"
#include "lib/base/util.h"
#include "lib/store/record/store_drain.h"

#define LOOK_US           200000 /* between two looks at what is under way */
#define WAIT_MOST_SECONDS (24 * 3600)
#define WAIT_DEFAULT_US   600000000LL

struct drain {
	struct cli_common common;
	const char *owner, *reason;
	int64_t wait_us;
	bool end, list, no_wait;
};

static const struct cli_option drain_options[] = {
	{.name = "owner", .type = CLI_STRING, .offset = offsetof(struct drain, owner), .value = "OWNER",
	 .help = "drain this owner only [all owners]"},
	{.name = "reason", .type = CLI_STRING, .offset = offsetof(struct drain, reason), .value = "TEXT",
	 .help = "give other operators a reason, shown by drain --list"},
	{.name = "wait", .type = CLI_SECONDS, .offset = offsetof(struct drain, wait_us), .min = 1000000,
	 .max = WAIT_MOST_SECONDS * 1000000LL, .value = "SECONDS",
	 .help = "wait so long for work under way [600]"},
	{.name = "no-wait", .type = CLI_FLAG, .offset = offsetof(struct drain, no_wait),
	 .help = "do not wait, only count work under way"},
	{.name = "end", .type = CLI_FLAG, .offset = offsetof(struct drain, end),
	 .help = "end the drain: accept work again"},
	{.name = "list", .type = CLI_FLAG, .offset = offsetof(struct drain, list),
	 .help = "list drains: owner, since when, reason"},
	{0},
};
static const struct cli_group drain_groups[] = {{drain_options, 0}, {0}};

static const char *who_text(const char *owner)
{
	return streq(owner, STORE_DRAIN_ALL) ? "everybody" : owner;
}

struct listing {
	struct json_object *rows;
	bool json;
};

static void list_each(void *arg, const struct store_drain *drain)
{
	struct listing *listing = arg;
	struct json_object *row = json_object_new_object();

	json_add_string(row, "owner", listing->json ? drain->owner : who_text(drain->owner));
	json_add_int(row, "since", drain->since_us);
	json_add_string(row, "reason", drain->reason);
	json_object_array_add(listing->rows, row);
}

static int list(const struct drain *drain, struct store *store, struct err *err)
{
	static const struct cli_field fields[] = {{"owner", "OWNER", CLI_AS_TEXT, 0, 0},
						  {"since", "SINCE", CLI_AS_TIME, 0, 0},
						  {"reason", "REASON", CLI_AS_TEXT, 0, 0}};
	auto_json struct json_object *rows = json_object_new_array();
	struct listing listing = {rows, drain->common.json};
	int result = store_drain_list(store, list_each, &listing, err);

	if (result == 0)
		cli_print_rows(rows, fields, ARRAY_SIZE(fields), drain->common.json);
	return result;
}

static int begin(const struct drain *drain, struct store *store, const char *owner, struct err *err)
{
	const struct store_drain row = {owner, drain->reason ? drain->reason : "", 0};
	int64_t left = 0;
	int result = store_drain_begin(store, &row, err);

	if (result == 0) {
		/* Until nothing of the owner is under way, or time is up. */
		int64_t wait_us = drain->no_wait ? 0 : drain->wait_us ? drain->wait_us : WAIT_DEFAULT_US;
		const int64_t until = clock_monotonic_us() + wait_us;
		struct cli_progress bar;
		result = store_under_way(store, owner, &left, err);
		const int64_t first = left;

		cli_progress_start(&bar, "under way", first);
		while (result == 0 && left > 0 && clock_monotonic_us() < until) {
			usleep(LOOK_US);
			result = store_under_way(store, owner, &left, err);
			cli_progress_step(&bar, MAX(first - left, 0));
		}
		cli_progress_hide(&bar);
	}
	if (result < 0)
		return result;
	if (drain->common.json) {
		auto_json struct json_object *object = json_object_new_object();

		json_add_string(object, "owner", owner);
		json_add_int(object, "under_way", left);
		cli_print_json(stdout, object, true);
	} else if (left > 0) {
		printf("%s: drained; still under way: %lld\n", who_text(owner), (long long)left);
	} else {
		printf("%s: drained; nothing is under way\n", who_text(owner));
	}
	return left > 0 ? CLI_INCOMPLETE : CLI_OK;
}

static int drain_run(void *arg, struct err *err)
{
	const struct drain *drain = arg;
	const char *owner = drain->owner ? drain->owner : STORE_DRAIN_ALL;
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	int result;

	if (drain->end && drain->list)
		return err_set(err, ERR_INVALID, "--end and --list exclude each other");
	if ((drain->end || drain->list) && drain->reason)
		return err_set(err, ERR_INVALID, "--reason belongs to the beginning of a drain");
	result = cli_open_store(&drain->common, drain->list ? STORE_READ : STORE_WRITE, &config, &store, err);
	if (result < 0)
		return result;
	if (drain->list)
		return list(drain, store, err);
	if (!drain->end)
		return begin(drain, store, owner, err);
	result = store_drain_end(store, owner, err);
	if (result == 0 && !drain->common.json)
		printf("%s: not drained any more\n", who_text(owner));
	return result;
}

const struct cli_command cmd_drain = {
	.name = "drain",
	.summary = "Refuse new work, and wait for the rest to end",
	.help = "New runs, uploads and other changes are answered 503 with Retry-After, and /readyz fails. "
		"Work under way continues, and everything can still be read. "
		"A drain lasts until --end, across restarts, so that upgrades and moves of an owner to another host are safe. "
		"Servers without authentication ignore it.",
	.examples = "sallyport drain --reason 'new kernel'     # then stop socket and services; afterwards:\n"
		"sallyport drain --end\n"
		"sallyport drain --owner alice --wait 60\n",
	.exits = "0 done\n"
		"3 --end: there was no drain\n"
		"5 work was still under way when the time was over\n",
	.groups = drain_groups,
	.size = sizeof(struct drain),
	.run = drain_run,
};
