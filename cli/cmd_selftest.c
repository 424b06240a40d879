/*
 * cmd_selftest.c - `sallyport selftest`: the escape probes of our own tests, on the operator's machine, in the jails of his configuration.
 *
 * The probes are one static program, which is put into /data of a fresh jail for each of them and run by the bash runner: the jailer needs
 * to know nothing of it, and what is tried is exactly what a guest could try. It is not a program of ours for a person to call, hence in
 * libexec (or in tests/ of the build folder) instead of bin; it is never run outside of a jail. Meanwhile we listen on an abstract
 * socket, which no guest may reach.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../lib/util.h"
#include "cli.h"

#define OUTPUT_MAX     (64 * 1024)
#define PROBES_MAX     256
#define PROBE_PIDS     16
#define PROBE_NAME     "probe"
#define ABSTRACT_NAME  "\0sallyport-probe"

struct selftest {
	struct cli_common common;
};

struct one {
	bool ran, over;
	struct err failure;
	enum jail_verdict verdict;
	char message[JAIL_MESSAGE_TEXT];
};

static void on_done(void *arg, const struct jail_result *result)
{
	struct one *one = arg;

	one->ran = one->over = true;
	one->verdict = result->verdict;
	snprintf(one->message, sizeof(one->message), "%s", result->message);
}

static void on_failed(void *arg, const struct err *err)
{
	struct one *one = arg;

	one->over = true;
	one->failure = *err;
}

static int open_probes(int *ret_fd, struct err *err)
{
	static const char *const places[] = {"../libexec/sallyport/jail_probe", "../tests/jail_probe"};
	auto_free char *dir = config_program_dir();

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		auto_free char *path = xasprintf("%s/%s", dir, places[i]);
		int fd = open(path, O_RDONLY | O_CLOEXEC);

		if (fd >= 0) {
			*ret_fd = fd;
			return 0;
		}
	}
	return err_set(err, ERR_UNAVAILABLE, "the probes are not there: make install puts them at %s/%s, make all builds them", dir,
		       places[0]);
}

/* One jail for one argument; *ret_text is what the probe said (the caller's). 0 or an error: the jail could not be had. */
static int run_probe(struct jail_client *client, int probes_fd, const char *argument, struct one *ret, char **ret_text, struct err *err)
{
	/* One of the probes looks at the environment: without what bash adds to it. */
	static const char script[] = "exec env -u PWD -u OLDPWD -u SHLVL /data/" PROBE_NAME " \"$1\" 2>&1\n";
	static const struct jail_events events = {.done = on_done, .failed = on_failed};
	auto_close int code_fd = memfd_with("selftest", script, sizeof(script) - 1);
	auto_close int output_fd = memfd_create("selftest", MFD_CLOEXEC);
	const struct jail_spec spec = {.runner = "bash", .label = "selftest", .limits = {.pids = PROBE_PIDS}};
	const struct jail_file file = {.name = PROBE_NAME, .mode = 0755, .fd = probes_fd};
	const char *const args[] = {argument, NULL};
	const struct jail_program program = {.code_fd = code_fd, .args = args, .stdin_fd = -1, .stdout_fd = output_fd, .stderr_fd = -1};
	struct jail *jail = NULL;
	size_t length;

	*ret = (struct one){.over = false};
	if (code_fd < 0 || output_fd < 0)
		return err_errno(err, "memfd_create");
	int result = jail_open(client, &spec, &events, ret, &jail, err);
	if (!result)
		result = jail_fill(jail, &file, 1, err);
	if (!result)
		result = jail_run(jail, &program, err);
	if (!result)
		result = jail_client_wait(client, jail, err);
	jail_close(jail);
	if (!result && !ret->ran) {
		*err = ret->failure;
		result = -(int)ret->failure.code;
	}
	if (!result && lseek(output_fd, 0, SEEK_SET))
		result = err_errno(err, "reading the probe's output");
	return result ? result : read_fd(output_fd, OUTPUT_MAX, ret_text, &length, err);
}

static void listen_abstract(int *ret_fd)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, ABSTRACT_NAME, sizeof(ABSTRACT_NAME) - 1);
	/* Another selftest may have the name: then that one listens. */
	if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(sa_family_t) + sizeof(ABSTRACT_NAME) - 1) == 0)
		listen(fd, 1);
	*ret_fd = fd;
}

static void add_result(struct json_object *list, const char *name, const char *what, bool held, const char *said)
{
	struct json_object *probe = json_object_new_object();

	json_add_string(probe, "name", name);
	json_add_string(probe, "what", what);
	json_add_bool(probe, "held", held);
	json_add_bytes(probe, "said", said, strlen(said));
	json_object_array_add(list, probe);
}

static void print_line(const char *name, const char *what, bool held, const char *said, const char *message)
{
	enum cli_colour colour = held ? CLI_GREEN : CLI_RED;

	printf("%s%-6s%s %s  %s\n", cli_colour_on(stdout, colour), held ? "held" : "BROKEN", cli_colour_off(stdout), name, what);
	if (held)
		return;
	printf("       %s\n       ", message);
	cli_print_safe(stdout, said, strlen(said));
	putchar('\n');
}

/* Runs what `list` (lines "NAME\tWHAT") names; the number that did not hold, or an error. */
static int run_all(struct jail_client *client, int probes_fd, char *list, struct json_object *ret_json, struct err *err)
{
	struct cli_progress progress;
	char *lines[PROBES_MAX], *state;
	size_t n = 0;
	int broken = 0;

	for (char *line = strtok_r(list, "\n", &state); line && n < PROBES_MAX; line = strtok_r(NULL, "\n", &state))
		if (strchr(line, '\t'))
			lines[n++] = line;
	if (n == 0)
		return err_set(err, ERR_INTERNAL, "the probes name none of themselves");
	cli_progress_start(&progress, "probes", (int64_t)n);
	for (size_t i = 0; i < n; i++) {
		char *what = lines[i] + strcspn(lines[i], "\t"); /* only lines that have one are in the list */
		auto_free char *said = NULL;
		struct one one;

		*what++ = '\0';
		int result = run_probe(client, probes_fd, lines[i], &one, &said, err);
		cli_progress_hide(&progress);
		if (result)
			return err_wrap(err, "probe %s", lines[i]);
		bool held = one.verdict == JAIL_OK && streq(said, "held\n");
		broken += !held;
		if (ret_json)
			add_result(ret_json, lines[i], what, held, said);
		else
			print_line(lines[i], what, held, said, one.message);
		cli_progress_step(&progress, (int64_t)i + 1);
	}
	cli_progress_hide(&progress);
	if (!ret_json)
		printf("\n%zu held, %d broken\n", n - (size_t)broken, broken);
	return broken;
}

static int selftest_run(void *options, struct err *err)
{
	const struct selftest *command = options;
	auto_config struct config config = {0};
	auto_jailer struct jail_client *client = NULL;
	auto_close int probes_fd = -1, abstract_fd = -1;
	auto_free char *list = NULL;
	auto_json struct json_object *object = NULL, *info = NULL;
	struct json_object *probes = NULL;
	struct one one;
	int result = config_load(command->common.config, &config, err);

	if (!result)
		result = open_probes(&probes_fd, err);
	if (!result)
		result = cli_open_jailer(&config, &client, err);
	if (!result)
		result = jail_client_info(client, &info, err);
	if (!result)
		result = run_probe(client, probes_fd, "--list", &one, &list, err);
	if (result)
		return result;
	if (one.verdict != JAIL_OK)
		return err_set(err, ERR_UNAVAILABLE, "the probes cannot be run in a jail: %s", one.message);
	listen_abstract(&abstract_fd);
	const char *mode = json_get_string(info, "mode"), *cgroup = json_get_string(info, "cgroup");
	if (command->common.json) {
		object = json_object_new_object();
		probes = json_object_new_array();
		json_add_string(object, "mode", mode);
		json_add_string(object, "cgroup", cgroup);
		json_add(object, "probes", probes);
	} else {
		printf("jailer: %s, cgroup %s\n\n", mode ? mode : "?", cgroup ? cgroup : "?");
	}
	result = run_all(client, probes_fd, list, probes, err);
	if (result < 0)
		return result;
	if (object) {
		json_add_bool(object, "held", result == 0);
		cli_print_json(stdout, object, true);
	}
	return result ? CLI_DIFFERENT : CLI_OK;
}

const struct cli_command cmd_selftest = {
	.name = "selftest",
	.summary = "Tries to break out of a jail in every way that we know",
	.help = "Runs the escape probes of Sallyport's own tests on this machine, each in a fresh jail of the configured jailer, and\n"
		"prints what held. The numbers are those of docs/security.md.\n\n"
		"Example:\n"
		"  sallyport selftest --json | jq '.probes[] | select(.held | not)'\n\n"
		"Exit codes: 0 all of them held; 1 something is broken: report it, and run nothing of strangers; 2 wrong usage;\n"
		"others: no jail could be had.\n",
	.size = sizeof(struct selftest),
	.run = selftest_run,
};
