/*
 * test_landlock.c - Landlock's rules by themselves: in a plain process, with nothing of the jail's mounts around it, so
 * that what is refused is refused by Landlock alone.
 *
 * Each case is a child that enters Landlock and tries; its exit status is what it found.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "jail/init/landlock.h"
#include "lib/base/util.h"

static char folder[] = "/tmp/test_landlock.XXXXXX";
static int abi;

static char *at(const char *name)
{
	return xasprintf("%s/%s", folder, name);
}

static void put(const char *name)
{
	auto_free char *path = at(name);
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0 && write_all(fd, "x", 1) == 0);
}

static int setup(void **state)
{
	static const char *const made[] = {"shown", "shown/deep", "writable", "writable/a", "writable/b", "outside"};

	(void)state;
	if (!mkdtemp(folder))
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(made); i++) {
		auto_free char *path = at(made[i]);

		if (mkdir(path, 0755))
			return -1;
	}
	put("shown/deep/file");
	put("outside/file");
	put("writable/a/file");
	return 0;
}

static int teardown(void **state)
{
	static const char *const made[] = {"shown/deep/file",
					   "outside/file",
					   "writable/a/file",
					   "writable/b/file",
					   "writable/a",
					   "writable/b",
					   "writable",
					   "shown/deep",
					   "shown",
					   "outside",
					   ""};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(made); i++) {
		auto_free char *path = at(made[i]);

		remove(path);
	}
	return 0;
}

static void need(int least)
{
	if (abi >= least)
		return;
	print_message("this kernel's Landlock has ABI %d, not %d: skipped\n", abi, least);
	skip();
}

/* Runs `try` behind Landlock; 0 from it, and the test goes on. */
static void behind(int (*try)(int outside, pid_t parent))
{
	auto_free char *shown = at("shown");
	auto_free char *writable = at("writable");
	auto_free char *outside_path = at("outside");
	auto_free char *none = at("none");
	const char *const readable_list[] = {shown, none, "/usr", "/lib", "/lib64", NULL};
	const char *const writable_list[] = {writable, NULL};
	auto_close int outside = open(outside_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_close int landlock_fd = -1;
	pid_t parent = getpid();
	int status;

	assert_int_equal(landlock_make(abi, readable_list, writable_list, &landlock_fd), 0);
	assert_true(landlock_fd >= 0 && outside >= 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || landlock_enter(landlock_fd))
			_exit(100);
		_exit(try(outside, parent));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int opens(int directory, const char *name, int flags)
{
	auto_close int fd = openat(directory, name, flags | O_CLOEXEC, 0644);

	return fd < 0 ? errno : 0;
}

static int opens_in(const char *name, int flags)
{
	auto_free char *path = at(name);

	return opens(AT_FDCWD, path, flags);
}

/* By path, and through a descriptor that was open before: both are behind Landlock. */
static int try_outside(int outside, pid_t parent)
{
	(void)parent;
	if (opens_in("outside/file", O_RDONLY) != EACCES)
		return 1;
	if (opens(outside, "file", O_RDONLY) != EACCES || opens(outside, "file", O_WRONLY) != EACCES)
		return 2;
	if (opens(outside, "new", O_WRONLY | O_CREAT) != EACCES || mkdirat(outside, "new", 0755) == 0)
		return 3;
	if (unlinkat(outside, "file", 0) == 0 || errno != EACCES)
		return 4;
	return opens(AT_FDCWD, "/etc/passwd", O_RDONLY) == EACCES ? 0 : 5;
}

static int try_shown(int outside, pid_t parent)
{
	(void)outside;
	(void)parent;
	if (opens_in("shown/deep/file", O_RDONLY) || opens_in("shown/deep", O_RDONLY | O_DIRECTORY) ||
	    opens_in("", O_RDONLY | O_DIRECTORY))
		return 1;
	if (opens_in("shown/deep/file", O_WRONLY) != EACCES || opens_in("shown/new", O_WRONLY | O_CREAT) != EACCES)
		return 2;
	auto_free char *file = at("shown/deep/file");
	if (abi >= 3 && (truncate(file, 0) == 0 || errno != EACCES))
		return 3;
	char *argv[] = {NULL, NULL};
	char name[] = "true";
	argv[0] = name;
	execv("/usr/bin/true", argv);
	return 4;
}

/* A rename between directories is what ABI 1 could not allow. */
static int try_writable(int outside, pid_t parent)
{
	auto_free char *from = at("writable/a/file");
	auto_free char *to = at("writable/b/file");
	auto_free char *out = at("outside/moved");

	(void)outside;
	(void)parent;
	if (opens_in("writable/a/file", O_RDWR | O_TRUNC) || rename(from, to) || rename(to, from))
		return 1;
	return rename(from, out) && (errno == EACCES || errno == EXDEV) ? 0 : 2;
}

static int try_signal(int outside, pid_t parent)
{
	(void)outside;
	if (kill(parent, 0) == 0 || errno != EPERM)
		return 1;
	return kill(getpid(), 0);
}

static int listener = -1;
static struct sockaddr_un address = {.sun_family = AF_UNIX};

static int try_abstract(int outside, pid_t parent)
{
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)outside;
	(void)parent;
	return connect(fd, (struct sockaddr *)&address, sizeof(address)) && errno == EPERM ? 0 : 1;
}

static void outside(void **state)
{
	(void)state;
	need(LANDLOCK_ABI_LEAST);
	behind(try_outside);
}

static void shown(void **state)
{
	(void)state;
	need(LANDLOCK_ABI_LEAST);
	behind(try_shown);
}

static void writable(void **state)
{
	(void)state;
	need(LANDLOCK_ABI_LEAST);
	behind(try_writable);
}

static void signals(void **state)
{
	(void)state;
	need(6);
	behind(try_signal);
}

static void abstract_sockets(void **state)
{
	(void)state;
	need(6);
	snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "%s", folder);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 1), 0);
	behind(try_abstract);
	close(listener);
}

/* What an older kernel has is not used by halves. */
static void too_old(void **state)
{
	const char *const none[] = {NULL};
	int fd = 7;

	(void)state;
	assert_int_equal(landlock_make(LANDLOCK_ABI_LEAST - 1, none, none, &fd), 0);
	assert_int_equal(fd, -1);
	assert_int_equal(landlock_make(0, none, none, &fd), 0);
	assert_int_equal(fd, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(outside),          cmocka_unit_test(shown),
		cmocka_unit_test(writable),         cmocka_unit_test(signals),
		cmocka_unit_test(abstract_sockets), cmocka_unit_test(too_old),
	};

	abi = landlock_abi();
	return cmocka_run_group_tests(tests, setup, teardown);
}
