/*
 * cmd_selftest.c - `sallyport selftest`: the escape probes of our own tests, on the operator's machine, in the jails of
 * his configuration.
 *
 * selftest.h says what a probe is and when it has held. All of them are tried twice, in fresh jails and in live
 * sandboxes, where the jailer can keep some: what is promised for the one is promised for the other. The program that
 * they are in is not one for a person to call, hence in libexec (or in tests/ of the build folder) instead of bin; it
 * is never run outside of a jail. Meanwhile we listen on an abstract socket, which no guest may reach.
 */
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli.h"
#include "lib/base/util.h"
#include "selftest.h"

#define ABSTRACT_NAME "\0sallyport-probe"

struct selftest {
	struct cli_common common;
	bool live, no_live;
};

static const struct cli_option selftest_options[] = {
	{.name = "live", .type = CLI_FLAG, .offset = offsetof(struct selftest, live),
	 .help = "run the probes only in live sandboxes"},
	{.name = "no-live", .type = CLI_FLAG, .offset = offsetof(struct selftest, no_live),
	 .help = "run the probes only in fresh jails, in half the time"},
	{0},
};
static const struct cli_group selftest_groups[] = {{selftest_options, 0}, {0}};

/* Of one run over all probes. */
struct tally {
	int counts[PROBE_ABSENT + 1];
	struct json_object *json; /* NULL: lines are printed */
};

static const struct {
	const char *text;
	enum cli_colour colour;
} results[] = {
	[PROBE_HELD] = {"held", CLI_GREEN},
	[PROBE_BROKEN] = {"BROKEN", CLI_RED},
	[PROBE_WEAKER] = {"weaker", CLI_YELLOW},
	[PROBE_ABSENT] = {"absent", CLI_YELLOW},
};

static char *probes_folder(struct err *err)
{
	static const char *const places[] = {"../libexec/sallyport", "../tests"};
	auto_free char *dir = config_program_dir();

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		auto_free char *program = xasprintf("%s/%s/jail_probe", dir, places[i]);

		if (access(program, R_OK) == 0)
			return xasprintf("%s/%s", dir, places[i]);
	}
	err_set(err, ERR_UNAVAILABLE,
		"the probes are not there: make install puts them into %s/%s, make all builds them", dir, places[0]);
	return NULL;
}

/* Keeps those that were asked for, in their order. */
static int choose(const struct selftest *command, struct probe_list *list, struct err *err)
{
	const struct cli_common *common = &command->common;
	size_t n = 0;

	for (size_t i = 0; i < list->count; i++) {
		bool wanted = common->n_args == 0;

		for (size_t k = 0; k < common->n_args; k++)
			wanted = wanted || str_starts(list->entries[i].name, common->args[k]);
		if (wanted) {
			struct probe_entry kept = list->entries[i];

			list->entries[i] = list->entries[n];
			list->entries[n++] = kept;
		}
	}
	if (n == 0)
		return err_set(err, ERR_NOT_FOUND, "no probe has a name that begins with %s", common->args[0]);
	list->chosen = n;
	return 0;
}

static void report(const struct probe_entry *probe, bool live, const struct probe_outcome *outcome,
		   struct json_object *list)
{
	const char *text = results[outcome->result].text;
	struct json_object *object;

	if (list) {
		object = json_object_new_object();
		json_add_string(object, "name", probe->name);
		json_add_string(object, "what", probe->what);
		json_add_bool(object, "live", live);
		json_add_bool(object, "held", outcome->result == PROBE_HELD);
		json_add_string(object, "result", text);
		json_add_string(object, "message", outcome->message);
		json_add_bytes(object, "said", outcome->said, strlen(outcome->said));
		json_object_array_add(list, object);
		return;
	}
	printf("%s%-6s%s %-4s  %s\n", cli_colour_on(stdout, results[outcome->result].colour), text,
	       cli_colour_off(stdout), probe->name, probe->what);
	if (outcome->result != PROBE_BROKEN)
		return;
	printf("       ");
	cli_print_safe(stdout, outcome->message, strlen(outcome->message));
	printf("\n       ");
	cli_print_safe(stdout, outcome->said, strlen(outcome->said));
	putchar('\n');
}

static int run_all(const struct probe_place *place, const struct probe_list *list, struct tally *tally, struct err *err)
{
	struct cli_progress progress;

	cli_progress_start(&progress, place->live ? "probes, live" : "probes", (int64_t)list->chosen);
	for (size_t i = 0; i < list->chosen; i++) {
		struct probe_outcome outcome;
		int result = selftest_probe_run(place, &list->entries[i], &outcome, err);

		cli_progress_hide(&progress);
		if (result < 0)
			return err_wrap(err, "probe %s", list->entries[i].name);
		tally->counts[outcome.result]++;
		report(&list->entries[i], place->live, &outcome, tally->json);
		selftest_outcome_clear(&outcome);
		cli_progress_step(&progress, (int64_t)i + 1);
	}
	cli_progress_hide(&progress);
	return 0;
}

/* Fresh jails, live sandboxes, or both one after the other. */
static int run_both(const struct selftest *command, bool live, struct probe_place *place, const struct probe_list *list,
		    struct tally *tally, struct err *err)
{
	int result = 0;

	place->live = false;
	if (!command->live)
		result = run_all(place, list, tally, err);
	if (result < 0 || !live)
		return result;
	place->live = true;
	if (!tally->json)
		printf(command->live ? "in live sandboxes:\n" : "\nin live sandboxes:\n");
	return run_all(place, list, tally, err);
}

static void print_summary(const struct tally *tally)
{
	const int *counts = tally->counts;

	printf("\n%d held, %d broken", counts[PROBE_HELD], counts[PROBE_BROKEN]);
	if (counts[PROBE_WEAKER])
		printf(", %d not tried: this account cannot hold them (weaker)", counts[PROBE_WEAKER]);
	if (counts[PROBE_ABSENT])
		printf(", %d not tried: their runner is not installed (absent)", counts[PROBE_ABSENT]);
	putchar('\n');
}

static int run_list(const struct selftest *command, struct probe_place *place, const struct probe_list *list,
		    struct err *err)
{
	static const char none[] =
		"this jailer keeps no live sandboxes, because it cannot freeze them (sallyport doctor)";
	auto_json struct json_object *info = NULL, *object = NULL;
	struct tally tally = {.json = NULL};
	int result = jail_client_info(place->client, &info, err);

	if (result < 0)
		return result;
	bool keeps = json_object_get_boolean(json_get(info, "live", json_type_boolean));
	if (command->live && !keeps)
		return err_set(err, ERR_UNAVAILABLE, none);
	const char *mode = json_get_string(info, "mode"), *cgroup = json_get_string(info, "cgroup");
	if (command->common.json) {
		object = json_object_new_object();
		tally.json = json_object_new_array();
		json_add_string(object, "mode", mode);
		json_add_string(object, "cgroup", cgroup);
		json_add_bool(object, "live", keeps && !command->no_live);
		json_add(object, "probes", tally.json);
	} else {
		printf("jailer: %s, cgroup %s\n\n", mode ? mode : "?", cgroup ? cgroup : "?");
	}
	result = run_both(command, keeps && !command->no_live, place, list, &tally, err);
	if (result < 0)
		return result;
	if (object) {
		json_add_bool(object, "held", tally.counts[PROBE_BROKEN] == 0);
		cli_print_json(stdout, object, true);
	} else {
		print_summary(&tally);
		if (!keeps && !command->no_live)
			printf("%s: not tried there\n", none);
	}
	return tally.counts[PROBE_BROKEN] ? CLI_DIFFERENT : CLI_OK;
}

static int selftest_run(void *options, struct err *err)
{
	const struct selftest *command = options;
	auto_config struct config config = {0};
	auto_jailer struct jail_client *client = NULL;
	auto_close int abstract_fd = -1;
	auto_free char *folder = NULL;
	struct probe_place place = {.program_fd = -1};
	struct probe_list list = {.count = 0};
	int result = config_load(command->common.config, &config, err);

	if (result == 0 && command->live && command->no_live)
		result = err_set(err, ERR_INVALID, "--live and --no-live leave nothing to try");
	if (result == 0 && !(folder = probes_folder(err)))
		result = -ERR_UNAVAILABLE;
	if (result == 0)
		result = cli_open_jailer(&config, &client, 1, err);
	if (result == 0)
		result = selftest_place_open(client, folder, &place, err);
	if (result == 0)
		result = selftest_list_read(&place, folder, &list, err);
	if (result == 0)
		result = choose(command, &list, err);
	if (result == 0) {
		struct sockaddr_un address = {.sun_family = AF_UNIX};
		const socklen_t length = sizeof(sa_family_t) + sizeof(ABSTRACT_NAME) - 1;

		memcpy(address.sun_path, ABSTRACT_NAME, sizeof(ABSTRACT_NAME) - 1);
		abstract_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		/* Another selftest may have the name: then that one listens. */
		if (abstract_fd >= 0 && bind(abstract_fd, (struct sockaddr *)&address, length) == 0)
			listen(abstract_fd, 1);
		result = run_list(command, &place, &list, err);
	}
	selftest_list_clear(&list);
	selftest_place_close(&place);
	return result;
}

const struct cli_command cmd_selftest = {
	.name = "selftest",
	.summary = "Try every known way to break out of a jail",
	.arguments = "[NAME…]",
	.help = "Runs the escape probes of Sallyport's own tests on this machine, each in a fresh jail of the configured jailer, and prints `held` or `BROKEN` for each. "
		"NAME selects the probes whose names begin so (K: the kernel, R04: memory); docs/probes.md lists them. "
		"`weaker` means not tried, because this account has no cgroup or only one id; `absent` means not tried, because the runner is not installed.\n\n"
		"Every probe is then repeated in a live sandbox; probes for leftovers also run next to a live sandbox and an ended one.\n\n"
		"If a probe is broken, report it, and do not run untrusted code until it is fixed.",
	.examples = "sallyport selftest --json | jq '.probes[] | select(.result == \"BROKEN\")'\n",
	.exits = "0 every probe held\n"
		"1 a probe is broken\n",
	.max_args = SIZE_MAX,
	.size = sizeof(struct selftest),
	.groups = selftest_groups,
	.run = selftest_run,
};
