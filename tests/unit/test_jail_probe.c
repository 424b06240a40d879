/*
 * test_jail_probe.c - every probe of tests/probe in a jail of its own, and the host looked at afterwards.
 *
 * The probes' program stands beside this one; its folder is the jails' modules directory, so the runner finds it there.
 */
#include "jail_try.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define PROBES_MAX 64

static struct jail_client *client;
static char config_path[] = "/tmp/test_jail_probe.XXXXXX";
static int abstract = -1;
static char names[PROBES_MAX][8];
static char titles[PROBES_MAX][64];
static struct CMUnitTest tests[PROBES_MAX];

static void run_probe(const char *name, struct try *try)
{
	const char *args[] = {name, NULL};
	auto_close int code_fd = memfd_with("code", "", 0);
	struct jail_spec spec = {.runner = "probe", .limits = {.pids = 16}};
	struct err err = ERR_INIT;

	try_begin(client, try, &spec);
	struct jail_program program = {
		.code_fd = code_fd, .args = args, .stdin_fd = -1, .stdout_fd = try->out_fd, .stderr_fd = try->error_fd};
	if (jail_run(try->jail, &program, &err) || jail_collect(try->jail, &err))
		fail_msg("%s", err.text);
	try_end(client, try);
	if (try->failed)
		fail_msg("%s", try->err.text);
}

static void probe(void **state)
{
	auto_try struct try try = {.jail = NULL};
	struct stat before, after;

	assert_int_equal(stat("/usr/bin/env", &before), 0);
	run_probe(*state, &try);
	if (try.result.verdict != JAIL_OK || !streq(try.out, "held\n"))
		fail_msg("%s: %s\n%s%s", (const char *)*state, try.result.message, try.out, try.error);
	assert_int_equal(stat("/usr/bin/env", &after), 0);
	assert_int_equal(before.st_ctim.tv_nsec, after.st_ctim.tv_nsec);
	assert_int_equal(before.st_ctim.tv_sec, after.st_ctim.tv_sec);
}

/* A socket of the host that a guest must not reach. */
static void listen_abstract(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	static const char name[] = "\0sallyport-probe";

	abstract = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	memcpy(address.sun_path, name, sizeof(name) - 1);
	/* Another run of this test may have it: then that one listens. */
	if (bind(abstract, (struct sockaddr *)&address, sizeof(sa_family_t) + sizeof(name) - 1) == 0)
		listen(abstract, 1);
}

static char *probes_folder(void)
{
	const char *given = getenv("TEST_PROBES");

	return given ? xstrdup(given) : config_program_dir();
}

int main(void)
{
	auto_free char *folder = probes_folder();
	auto_free char *program = xasprintf("%s/jail_probe --list", folder);
	auto_free char *sources = xstrdup(__FILE__);
	char line[128];
	size_t n = 0;

	*strstr(sources, "unit/") = '\0';
	auto_free char *runners = realpath(sources, NULL);
	auto_close int fd = mkostemp(config_path, O_CLOEXEC);
	dprintf(fd, "{\"jailer\":{\"runners_dir\":\"%s/probe/runners\",\"modules_dir\":\"%s\",%s}}\n", runners ? runners : sources, folder,
		try_jailer_members());
	fchmod(fd, 0644);
	FILE *list = popen(program, "re");
	while (list && n < PROBES_MAX && fgets(line, sizeof(line), list))
		if (sscanf(line, "%7s %63[^\n]", names[n], titles[n]) == 2) {
			tests[n] = (struct CMUnitTest){.name = names[n], .test_func = probe, .initial_state = names[n]};
			n++;
		}
	if (!list || pclose(list) || n == 0)
		return 1;
	listen_abstract();
	client = try_client(config_path);
	int failed = _cmocka_run_group_tests("probes", tests, n, NULL, NULL);
	jail_client_free(client);
	unlink(config_path);
	return failed;
}
