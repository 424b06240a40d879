/*
 * jail_limits.c - how exact the limits are and what they cost: overshoot of the CPU limit, time until a thousand
 * processes are dead, price of seccomp and Landlock on a system call and an open, of the network, memory of a hundred
 * jails, jail after jail without growth.
 *
 *   jail_limits JAILER RUNNERS_DIR [JAILS_IN_A_ROW]
 *
 * Each figure stands beside its aim and beside the same thing done bare in the same run: the guest's program is
 * compiled and run outside as well.
 */
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jail/client/jail.h"
#include "lib/base/util.h"
#include "tests/unit/host_count.h"

#define SPINS      20
#define SPIN_US    100000
#define TREE       1000
#define TREE_US    3000000
#define TREES      5
#define NET_JAILS  20
#define NET_ROUNDS 5
#define LIVE       100
#define IN_A_ROW   10000
#define JAILS_MOST 100000

/* What is measured, in the jail and bare: tests/bench is not there in a jail, so it is text. Calls are counted in
 * stretches of a millisecond: the best of them was not interrupted. */
static const char source[] =
	"#define _GNU_SOURCE\n"
	"#include <fcntl.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include "
	"<sys/syscall.h>\n#include <time.h>\n"
	"#include <unistd.h>\n"
	"static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + "
	"t.tv_nsec; }\n"
	"int main(int n, char **v) {\n"
	" if (n < 2) return 2;\n"
	" if (!strcmp(v[1], \"spin\")) for (;;) ;\n"
	" if (!strcmp(v[1], \"tree\")) { for (int i = 1; i < atoi(v[2]); i++) if (fork() == 0) for (;;) pause();\n"
	"  if (write(1, \"x\", 1) < 0) return 1; for (;;) pause(); }\n"
	" double call = 1e9, open_file = 1e9;\n"
	" for (int k = 0; k < 200; k++) {\n"
	"  double t = now(); for (int i = 0; i < 5000; i++) syscall(SYS_getppid);\n"
	"  double c = (now() - t) / 5000; if (c < call) call = c;\n"
	"  t = now(); for (int i = 0; i < 200; i++) close(open(\"/usr/bin/env\", O_RDONLY));\n"
	"  c = (now() - t) / 200; if (c < open_file) open_file = c; }\n"
	" printf(\"%f %f\\n\", call, open_file); return 0; }\n";

static struct jail_client *client;
static struct jail_result last;
static char program[] = "/tmp/jail_limits.XXXXXX";

static _Noreturn void die(const char *text)
{
	fprintf(stderr, "jail_limits: %s\n", text);
	unlink(program);
	exit(1);
}

static void on_done(void *arg, const struct jail_result *result)
{
	(void)arg;
	last = *result;
	last.denied = NULL;
}

static void on_failed(void *arg, const struct err *err)
{
	(void)arg;
	die(err->text);
}

static const struct jail_events events = {.done = on_done, .failed = on_failed};

/* -------- in a jail ----------------------------------------------------------------------------------- */
static void run_spec(const struct jail_spec *spec, const char *const *args, int out)
{
	auto_close int code = memfd_with("code", source, sizeof(source) - 1);
	struct jail_program start = {.code_fd = code, .args = args, .stdin_fd = -1, .stdout_fd = out, .stderr_fd = -1};
	struct err err = ERR_INIT;
	struct jail *jail;

	if (jail_open(client, spec, &events, NULL, &jail, &err) || jail_run(jail, &start, &err) ||
	    jail_client_wait(client, jail, &err))
		die(err.text);
	jail_close(jail);
}

static void run(const char *runner, struct jail_limits limits, const char *const *args, int out)
{
	run_spec(&(struct jail_spec){.runner = runner, .limits = limits}, args, out);
}

static void expect(enum jail_verdict verdict)
{
	if (last.verdict != verdict)
		die(last.message);
}

/* -------- bare ---------------------------------------------------------------------------------------- */
static pid_t start(const char *const *argv, int out)
{
	pid_t pid = fork();

	if (pid == 0) {
		char **plain;

		__builtin_memcpy(&plain, &argv, sizeof(plain));
		setpgid(0, 0);
		if (out >= 0)
			dup2(out, 1);
		execv(plain[0], plain);
		_exit(127);
	}
	if (pid < 0)
		die("fork");
	return pid;
}

static void compile(void)
{
	const char *const argv[] = {"/usr/bin/gcc", "-O2", "-o", program, "-x", "c", "-", NULL};
	int fd = mkostemp(program, O_CLOEXEC), status;
	auto_close int text = memfd_with("source", source, sizeof(source) - 1);
	int input = fcntl(0, F_DUPFD_CLOEXEC, 3);

	close(fd);
	dup2(text, 0);
	pid_t pid = start(argv, -1);
	if (waitpid(pid, &status, 0) != pid || status)
		die("gcc");
	if (input >= 0) {
		dup2(input, 0);
		close(input);
	}
}

static int64_t cpu_us(const struct rusage *usage)
{
	return (usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000 + usage->ru_utime.tv_usec +
	       usage->ru_stime.tv_usec;
}

/* The kernel's own CPU limit knows whole seconds. */
static int64_t bare_overshoot(void)
{
	const char *const argv[] = {"/bin/sh", "-c", "ulimit -t 1; exec \"$0\" spin", program, NULL};
	struct rusage usage;

	wait4(start(argv, -1), NULL, 0, &usage);
	return llabs(cpu_us(&usage) - 1000000); /* counted by ticks: it may come early */
}

static int64_t bare_tree(void)
{
	auto_free char *count = xasprintf("%d", TREE);
	const char *const argv[] = {program, "tree", count, NULL};
	int ends[2];
	char byte;

	if (pipe2(ends, O_CLOEXEC))
		die("pipe");
	pid_t pid = start(argv, ends[1]);
	close(ends[1]);
	if (read(ends[0], &byte, 1) != 1)
		die("the tree does not grow");
	int64_t begin = clock_monotonic_us();
	kill(-pid, SIGKILL);
	waitpid(pid, NULL, 0);
	while (read(ends[0], &byte, 1) > 0) /* ends when the last of them has closed it */
		;
	close(ends[0]);
	return clock_monotonic_us() - begin;
}

static void read_numbers(int fd, double *call, double *open_file)
{
	char text[128] = "";

	if (pread(fd, text, sizeof(text) - 1, 0) <= 0 || sscanf(text, "%lf %lf", call, open_file) != 2)
		die("no numbers");
}

/* -------- of a process -------------------------------------------------------------------------------- */
static long memory_kb(int pid, const char *field)
{
	auto_free char *path = xasprintf("/proc/%d/smaps_rollup", pid);
	auto_free char *text = NULL;
	size_t length;

	if (read_file_at(AT_FDCWD, path, 65536, &text, &length, NULL))
		return -1;
	const char *line = strstr(text, field);
	return line ? strtol(line + strlen(field), NULL, 10) : -1;
}

/* What a child has for itself, on average: pages shared with the jailer are divided among all. */
static double children_kb(int pid)
{
	auto_free char *path = xasprintf("/proc/%d/task/%d/children", pid, pid);
	auto_free char *text = NULL;
	size_t length, n = 0;
	double sum = 0;

	if (read_file_at(AT_FDCWD, path, 65536, &text, &length, NULL))
		return -1;
	for (char *at = text, *end; strtol(at, &end, 10) > 0; at = end, n++) {
		long kb = memory_kb((int)strtol(at, NULL, 10), "\nPss:");

		sum += kb > 0 ? (double)kb : 0;
	}
	return n ? sum / (double)n : 0;
}

static int jailer_pid(void)
{
	struct json_object *info;

	if (jail_client_info(client, &info, NULL))
		die("no info");
	int pid = (int)json_object_get_int64(json_get(info, "pid", json_type_int));
	json_object_put(info);
	return pid;
}

/* -------- figures ------------------------------------------------------------------------------------- */
static int by_value(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return left < right ? -1 : left > right;
}

static void overshoot(void)
{
	const char *const args[] = {"spin", NULL};
	int64_t over[SPINS];

	for (size_t i = 0; i < SPINS; i++) {
		run("c", (struct jail_limits){.cpu_us = SPIN_US, .wall_us = 60000000}, args, -1);
		expect(JAIL_TO);
		over[i] = last.run.cpu_user_us + last.run.cpu_system_us - SPIN_US;
	}
	qsort(over, SPINS, sizeof(*over), by_value);
	double bare = (double)bare_overshoot() / 1000, median = (double)over[SPINS / 2] / 1000;
	printf("CPU limit of %d ms, overshoot: median of %d %.2f ms (aim 10), most %.2f ms; RLIMIT_CPU of 1 s bare is "
	       "off by %.2f ms, "
	       "ratio %.2f\n",
	       SPIN_US / 1000, SPINS, median, (double)over[SPINS - 1] / 1000, bare, median / bare);
}

static void tree(void)
{
	auto_free char *count = xasprintf("%d", TREE);
	const char *const args[] = {"tree", count, NULL};
	int64_t ours[TREES], bare[TREES], least = INT64_MAX;

	for (size_t i = 0; i < TREES; i++) {
		run("c", (struct jail_limits){.wall_us = TREE_US, .pids = TREE + 10}, args, -1);
		expect(JAIL_TO);
		ours[i] = last.run.wall_us - TREE_US;
		least = MIN(least, last.run.pids_peak);
		bare[i] = bare_tree();
	}
	qsort(ours, TREES, sizeof(*ours), by_value);
	qsort(bare, TREES, sizeof(*bare), by_value);
	double median = (double)ours[TREES / 2] / 1000, bare_median = (double)bare[TREES / 2] / 1000;
	printf("from the wall limit until %lld processes are dead and reaped: median of %d %.1f ms (aim 100), least "
	       "%.1f ms; kill and wait "
	       "bare: "
	       "%.1f ms, ratio %.2f\n",
	       (long long)least, TREES, median, (double)ours[0] / 1000, bare_median, median / bare_median);
}

/* A jail with the network is never made ahead: beside it one without, back to back, which is made on the spot as well.
 */
static void network(void)
{
	const char *const none[] = {NULL};
	int64_t us[2][NET_ROUNDS];

	for (size_t i = 0; i < NET_ROUNDS; i++)
		for (int with = 0; with < 2; with++) {
			int64_t begin = clock_monotonic_us();

			for (size_t k = 0; k < NET_JAILS; k++) {
				run_spec(&(struct jail_spec){.runner = "exec", .network = with}, none, -1);
				expect(JAIL_OK);
			}
			us[with][i] = (clock_monotonic_us() - begin) / NET_JAILS;
		}
	for (int with = 0; with < 2; with++)
		qsort(us[with], NET_ROUNDS, sizeof(us[with][0]), by_value);
	double without = (double)us[0][NET_ROUNDS / 2] / 1000, median = (double)us[1][NET_ROUNDS / 2] / 1000;
	printf("a jail with the network, back to back: %.2f ms each, without it %.2f ms, ratio %.2f (median of %d "
	       "rounds)\n",
	       median, without, median / without, NET_ROUNDS);
}

static void calls(void)
{
	const char *const args[] = {"calls", NULL};
	const char *const argv[] = {program, "calls", NULL};
	auto_close int out = memfd_create("out", MFD_CLOEXEC);
	auto_close int bare_out = memfd_create("out", MFD_CLOEXEC);
	double call, open_file, bare_call, bare_open;

	run("c", (struct jail_limits){.cpu_percent = -1}, args, out);
	expect(JAIL_OK);
	waitpid(start(argv, bare_out), NULL, 0);
	read_numbers(out, &call, &open_file);
	read_numbers(bare_out, &bare_call, &bare_open);
	printf("getppid: %.0f ns in a jail, %.0f bare, ratio %.2f (seccomp); open and close: %.0f ns, %.0f bare, ratio "
	       "%.2f "
	       "(Landlock, too)\n",
	       call, bare_call, call / bare_call, open_file, bare_open, open_file / bare_open);
}

static void live(void)
{
	const char *const sleeper[] = {"/usr/bin/sleep", "1000", NULL};
	struct jail_spec spec = {.runner = "exec"};
	struct err err = ERR_INIT;
	int pid = jailer_pid();
	long before = memory_kb(pid, "\nAnonymous:");
	struct jail *jails[LIVE];

	for (size_t i = 0; i < LIVE; i++)
		if (jail_open(client, &spec, &events, NULL, &jails[i], &err))
			die(err.text);
	jailer_pid(); /* a round trip: they are all made */
	long after = memory_kb(pid, "\nAnonymous:"), resident = memory_kb(pid, "\nRss:");
	double init = children_kb(pid);
	pid_t bare = start(sleeper, -1);
	while (memory_kb(bare, "\nAnonymous:") < 60) /* until it sleeps */
		usleep(1000);
	long sleep_kb = memory_kb(bare, "\nAnonymous:");
	kill(bare, SIGKILL);
	waitpid(bare, NULL, 0);
	for (size_t i = 0; i < LIVE; i++)
		jail_close(jails[i]);
	printf("jailer with %d open jails: %ld kB resident, of its own %ld kB against %ld without; init of a jail %.1f "
	       "kB; "
	       "sleep(1) bare %ld kB, ratio %.2f\n",
	       LIVE, resident, after, before, init, sleep_kb, init / (double)sleep_kb);
}

static void in_a_row(size_t jails)
{
	const char *const none[] = {NULL};
	int pid = jailer_pid();
	auto_free char *descriptors = xasprintf("/proc/%d/fd", pid), *mountinfo = xasprintf("/proc/%d/mountinfo", pid);
	long kb[2] = {0};
	size_t fds[2] = {0}, mounts[2] = {0};
	int64_t begin = 0;

	for (size_t i = 0; i < jails + 100; i++) {
		run("exec", (struct jail_limits){.wall_us = 0}, none, -1);
		expect(JAIL_OK);
		if (i != 99 && i != jails + 99)
			continue;
		kb[i != 99] = memory_kb(pid, "\nAnonymous:");
		fds[i != 99] = count_entries(descriptors);
		mounts[i != 99] = count_lines(mountinfo);
		begin = i == 99 ? clock_monotonic_us() : begin;
	}
	printf("%zu jails in a row, %.2f ms each: jailer's own memory %ld -> %ld kB, descriptors %zu -> %zu, mounts "
	       "%zu -> %zu "
	       "(aim: no growth)\n",
	       jails, (double)(clock_monotonic_us() - begin) / 1000 / (double)jails, kb[0], kb[1], fds[0], fds[1],
	       mounts[0], mounts[1]);
}

int main(int argc, char **argv)
{
	uint64_t jails = IN_A_ROW;
	struct err err = ERR_INIT;
	char config[] = "/tmp/jail_limits.XXXXXX";

	if (argc < 3 || (argc > 3 && parse_u64(argv[3], 1, JAILS_MOST, &jails)))
		die("usage: jail_limits JAILER RUNNERS_DIR [JAILS_IN_A_ROW]");
	auto_close int fd = mkostemp(config, O_CLOEXEC);
	dprintf(fd,
		"{\"jailer\":{\"runners_dir\":\"%s\",\"jails\":%d},\"limits\":{\"pids_max\":%d},\"network\":{\"allow\":"
		"[\"192.0.2.1:80\"]}}"
		"\n",
		argv[2], LIVE + 10, TREE + 100);
	if (jail_client_spawn(argv[1], config, &client, &err))
		die(err.text);
	jailer_pid(); /* it has read the file */
	unlink(config);
	compile();
	overshoot();
	tree();
	calls();
	network();
	live();
	in_a_row(jails);
	jail_client_free(client);
	unlink(program);
	return 0;
}
