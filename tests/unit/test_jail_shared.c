/*
 * test_jail_shared.c - what all jails and the host see has inodes of each jail's own: locks that a guest holds on files
 * of /usr, of the modules and on devices meet nobody else's. Asked from outside while the guest holds them.
 */
#include "gauged.h"
#include "jail_service.h"
#include "live_try.h"

#include <errno.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/statvfs.h>

#define LOCKED "/usr/bin/env"

/* Takes all kinds of locks on a file and a device, says what it got, and stays. */
static const char holder[] = "import fcntl, time\n"
			     "got = []\n"
			     "for path in '" LOCKED "', '/dev/null':\n"
			     " whole, part = open(path, 'rb'), open(path, 'rb')\n"
			     " for take in (lambda: fcntl.flock(whole, fcntl.LOCK_EX | fcntl.LOCK_NB),\n"
			     "              lambda: fcntl.lockf(part, fcntl.LOCK_SH | fcntl.LOCK_NB)):\n"
			     "  try: take(); got.append('yes')\n"
			     "  except OSError as e: got.append('no')\n"
			     " globals()['keep' + path] = whole, part\n"
			     "print(*got, flush=True)\n";
static const char stays[] = "time.sleep(1000)\n";

static void hold(struct service *service, struct try *try)
{
	const struct jail_spec spec = {.runner = "python"};
	auto_free char *code = xasprintf("%s%s", holder, stays);
	auto_close int code_fd = memfd_with("code", code, strlen(code));

	try_begin(service->client, try, &spec);
	struct jail_program program = {
		.code_fd = code_fd, .stdin_fd = -1, .stdout_fd = try->out_fd, .stderr_fd = try->error_fd};
	assert_int_equal(jail_run(try->jail, &program, NULL), 0);
	while (!try->outputs)
		assert_true(try_hear(service->client, PATIENCE_MS) && !try->done && !try->failed);
}

static void let_go(struct service *service, struct try *try)
{
	jail_cancel(try->jail);
	try_end(service->client, try);
}

static void assert_free(const char *path)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(fcntl(fd, F_GETLK, &lock), 0);
	assert_int_equal(lock.l_type, F_UNLCK);
}

/* Are device nodes the jailer's own? Root makes them; others bind the host's. */
static bool own_nodes(const struct service *service)
{
	auto_free char *path = xasprintf("/proc/%d/root/dev/null", service->pid);
	struct stat host, node;

	return stat("/dev/null", &host) == 0 && stat(path, &node) == 0 && host.st_dev != node.st_dev;
}

static void host_locks(void **state)
{
	struct service *service = *state;
	struct try try = {.jail = NULL};

	hold(service, &try);
	assert_free(LOCKED);
	if (geteuid() == 0)
		assert_true(own_nodes(service));
	if (own_nodes(service))
		assert_free("/dev/null");
	let_go(service, &try);
	assert_true(str_starts(try.out, "yes yes "));
	try_clear(&try);
}

/* Frozen, nothing can ask it to let go. */
static void host_locks_frozen(void **state)
{
	struct service *service = *state;

	live_need(live_possible(service->client));
	auto_live struct live live = {.client = NULL};
	live_begin(&live, service->client, "python", (struct jail_limits){.wall_us = 0});
	assert_int_equal(live_run(&live, holder)->verdict, JAIL_OK);
	assert_true(str_starts(live.try.out, "yes yes "));
	assert_free(LOCKED);
	if (own_nodes(service))
		assert_free("/dev/null");
}

/* The file of /usr is free for a second jail; the device is one for all jails. */
static void locks_of_another(void **state)
{
	struct service *service = *state;
	struct try first = {.jail = NULL}, second = {.jail = NULL};

	hold(service, &first);
	hold(service, &second);
	let_go(service, &first);
	let_go(service, &second);
	assert_true(str_starts(first.out, "yes yes "));
	assert_true(str_starts(second.out, "yes yes "));
	if (own_nodes(service)) { /* else another program of the host may have the host's */
		assert_string_equal(first.out, "yes yes yes yes\n");
		assert_string_equal(second.out, "yes yes no yes\n");
	}
	try_clear(&first);
	try_clear(&second);
}

/* The overlays are kept from one jail to the next (layers.h); locks are not. More jails than are made ahead, one by
 * one, so that the same overlays come back. */
static void locks_end_with_the_jail(void **state)
{
	struct service *service = *state;

	for (int i = 0; i < 8; i++) {
		struct try try = {.jail = NULL};

		hold(service, &try);
		let_go(service, &try);
		assert_true(str_starts(try.out, "yes yes "));
		try_clear(&try);
	}
}

/* Reading moves no access time, which the next jail could see. */
static void access_times(void **state)
{
	static const char code[] = "import os\n"
				   "before = os.stat('" LOCKED "').st_atime_ns\n"
				   "open('" LOCKED "', 'rb').read()\n"
				   "print(os.stat('" LOCKED "').st_atime_ns == before)\n";
	const struct jail_spec spec = {.runner = "python"};
	auto_try struct try try = {.jail = NULL};

	try_program(((struct service *)*state)->client, &try, &spec, code);
	assert_string_equal(try.out, "True\n");
}

/* How full the host's disk is, a guest does not learn; except below another mount, where there is no overlay. */
static void free_space(void **state)
{
	static const char code[] = "import os\n"
				   "s = os.statvfs('/usr')\n"
				   "print(s.f_blocks, s.f_files, s.f_bfree == os.statvfs('/').f_bfree)\n";
	const struct jail_spec spec = {.runner = "python"};
	auto_try struct try try = {.jail = NULL};
	struct statvfs host;

	assert_int_equal(statvfs("/usr", &host), 0);
	try_program(((struct service *)*state)->client, &try, &spec, code);
	auto_free char *hosts = xasprintf("%lu %lu ", host.f_blocks, host.f_files);
	assert_false(str_starts(try.out, hosts));
	assert_non_null(strstr(try.out, " True\n"));
}

static bool sees(struct service *service, const char *path)
{
	auto_free char *code = xasprintf("import os\nprint(os.path.exists('%s'))\n", path);
	const struct jail_spec spec = {.runner = "python"};
	auto_try struct try try = {.jail = NULL};

	try_program(service->client, &try, &spec, code);
	return streq(try.out, "True\n");
}

/* What is installed and removed while the jailer runs: a kept overlay knows the old names for a second. */
static void installed_later(void **state)
{
	struct service *service = *state;
	char path[64];
	int64_t until = 0;
	bool seen = false, gone = false;

	snprintf(path, sizeof(path), "/usr/local/sallyport-test-%d", getpid());
	if (access("/usr/local", W_OK)) {
		print_message("/usr is not ours to write to: skipped\n");
		skip();
	}
	for (int i = 0; i < 8; i++) /* all of them know that it is not there */
		assert_false(sees(service, path));
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	while (!(seen = sees(service, path)) && patience_left(&until))
		;
	unlink(path);
	until = 0;
	while (!(gone = !sees(service, path)) && patience_left(&until))
		;
	assert_true(seen);
	assert_true(gone);
}

#define SOCKETS 600

/* What docs/security.md says of /proc/net/sockstat: sums of the whole machine are in it (no kernel hides the file), and
 * whose they are is not. When this fails because the sum is the jail's own the page can promise that. */
static void sockets_are_only_counted(void **state)
{
	static const char code[] = "import re\n"
				   "text = open('/proc/net/sockstat').read()\n"
				   "tcp = dict(re.findall(r'(\\w+) (\\d+)', re.search('TCP:(.*)', text)[1]))\n"
				   "print(int(tcp['alloc']) >= 600, tcp['inuse'])\n"
				   "for name in 'tcp', 'tcp6', 'udp', 'udp6', 'raw', 'unix':\n"
				   "    print(name, len(open('/proc/net/' + name).readlines()) - 1)\n";
	const struct jail_spec spec = {.runner = "python"};
	auto_try struct try try = {.jail = NULL};
	int sockets[SOCKETS];

	for (size_t i = 0; i < SOCKETS; i++)
		assert_true((sockets[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) >= 0);
	try_program(((struct service *)*state)->client, &try, &spec, code);
	for (size_t i = 0; i < SOCKETS; i++)
		close(sockets[i]);
	assert_string_equal(try.out, "True 0\ntcp 0\ntcp6 0\nudp 0\nudp6 0\nraw 0\nunix 0\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		GAUGED(host_locks, service_setup, service_teardown, 1),
		GAUGED(host_locks_frozen, service_setup, service_teardown, 1),
		GAUGED(locks_of_another, service_setup, service_teardown, 2),
		cmocka_unit_test_setup_teardown(locks_end_with_the_jail, service_setup, service_teardown),
		cmocka_unit_test_setup_teardown(access_times, service_setup, service_teardown),
		cmocka_unit_test_setup_teardown(free_space, service_setup, service_teardown),
		cmocka_unit_test_setup_teardown(sockets_are_only_counted, service_setup, service_teardown),
		cmocka_unit_test_setup_teardown(installed_later, service_setup, service_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
