/*
 * jail_bench.c - what a jail costs: /bin/true through a running jailer, over bare vfork+exec, beside bubblewrap.
 *
 *   jail_bench JAILER RUNNERS_DIR [ROUNDS]
 *
 * Each is measured in turns within the same run, so that a noisy machine is noisy to all; what is printed are medians
 * and minima, and their ratios to the bare program's. The jailer makes jails ahead while others have their turn, as it
 * does between the calls of a client; the line "back to back" is without such pauses. Also printed: the memory of the
 * jailer.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jail/client/jail.h"
#include "lib/base/util.h"

#define TRUE_PROGRAM "/usr/bin/true"
#define ROUNDS_MAX   10000

extern char **environ;

static _Noreturn void die(const char *text)
{
	fprintf(stderr, "jail_bench: %s\n", text);
	exit(1);
}

static void spawn_wait(char *const *argv)
{
	pid_t pid = vfork();
	int status;

	if (pid == 0) {
		execv(argv[0], argv);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		die(argv[0]);
}

static void bare(void)
{
	char program[] = TRUE_PROGRAM;
	char *const argv[] = {program, NULL};

	spawn_wait(argv);
}

static void bubblewrap(void)
{
	static const char *const argv[] = {
		"/usr/bin/bwrap", "--unshare-all", "--cap-drop", "ALL",   "--new-session", "--die-with-parent",
		"--clearenv",     "--ro-bind",     "/usr",       "/usr",  "--symlink",     "usr/bin",
		"/bin",           "--symlink",     "usr/lib",    "/lib",  "--symlink",     "usr/lib64",
		"/lib64",         "--proc",        "/proc",      "--dev", "/dev",          "--tmpfs",
		"/tmp",           TRUE_PROGRAM,    NULL};
	char **plain;

	__builtin_memcpy(&plain, &(const char *const *){argv}, sizeof(plain));
	spawn_wait(plain);
}

static struct jail_client *client;
static struct jail_result last;

static void on_done(void *arg, const struct jail_result *result)
{
	(void)arg;
	last = *result;
}

static void on_failed(void *arg, const struct err *err)
{
	(void)arg;
	die(err->text);
}

static void run_jail(void)
{
	static const struct jail_events events = {.done = on_done, .failed = on_failed};
	struct jail_spec spec = {.runner = "exec"};
	struct jail_program program = {.code_fd = -1, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
	struct jail *jail;
	struct err err = ERR_INIT;
	static int code = -1;

	if (code < 0)
		code = memfd_with("code", "", 0);
	program.code_fd = code;
	if (jail_open(client, &spec, &events, NULL, &jail, &err) || jail_run(jail, &program, &err) ||
	    jail_client_wait(client, jail, &err))
		die(err.text);
	jail_close(jail);
	if (last.verdict != JAIL_OK)
		die(last.message);
}

static int by_value(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return left < right ? -1 : left > right;
}

static long resident_kb(int pid)
{
	auto_free char *path = xasprintf("/proc/%d/status", pid);
	auto_free char *text = NULL;
	size_t length;
	char *line;

	if (read_file_at(AT_FDCWD, path, 65536, &text, &length, NULL) || !(line = strstr(text, "VmRSS:")))
		return -1;
	return strtol(line + 6, NULL, 10);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} kinds[] = {{"bare vfork+exec", bare}, {"jail", run_jail}, {"bubblewrap", bubblewrap}};
	static int64_t times[ARRAY_SIZE(kinds)][ROUNDS_MAX];
	uint64_t rounds = 200;
	struct err err = ERR_INIT;
	char config[] = "/tmp/jail_bench.XXXXXX";

	if (argc < 3 || (argc > 3 && parse_u64(argv[3], 1, ROUNDS_MAX, &rounds)))
		die("usage: jail_bench JAILER RUNNERS_DIR [ROUNDS]");
	auto_close int fd = mkostemp(config, O_CLOEXEC);
	dprintf(fd, "{\"jailer\":{\"runners_dir\":\"%s\"}}\n", argv[2]);
	if (jail_client_spawn(argv[1], config, &client, &err))
		die(err.text);
	size_t n_kinds = access("/usr/bin/bwrap", X_OK) ? 2 : 3;
	for (size_t i = 0; i < rounds; i++)
		for (size_t k = 0; k < n_kinds; k++) {
			int64_t begin = clock_monotonic_us();

			kinds[k].run();
			times[k][i] = clock_monotonic_us() - begin;
		}
	unlink(config);
	double base_median = 0, base_least = 0;
	printf("%-18s %10s %10s %8s %8s   (%llu rounds of /bin/true)\n", "", "min ms", "median ms", "x min", "x median",
	       (unsigned long long)rounds);
	for (size_t k = 0; k < n_kinds; k++) {
		qsort(times[k], rounds, sizeof(times[k][0]), by_value);
		double least = (double)times[k][0] / 1000, median = (double)times[k][rounds / 2] / 1000;

		if (k == 0) {
			base_least = least;
			base_median = median;
		}
		printf("%-18s %10.3f %10.3f %8.2f %8.2f\n", kinds[k].name, least, median, least / base_least,
		       median / base_median);
	}
	int64_t begin = clock_monotonic_us();
	for (size_t i = 0; i < rounds; i++)
		run_jail();
	double each = (double)(clock_monotonic_us() - begin) / 1000 / (double)rounds;
	printf("jails back to back: %.3f ms each, %.2f times the bare median (aim 4.5)\n", each, each / base_median);
	struct json_object *info;
	if (jail_client_info(client, &info, &err) == 0) {
		long kb = resident_kb((int)json_object_get_int64(json_get(info, "pid", json_type_int)));

		printf("jailer: %ld KB resident after %llu jails; last set-up %.3f ms\n", kb,
		       (unsigned long long)rounds, (double)last.setup_us / 1000);
		json_object_put(info);
	}
	jail_client_free(client);
	return 0;
}
