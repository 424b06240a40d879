/*
 * warm_bench.c - print(1) in Python: bare, in a jail, and in a jail in which an interpreter waits (jailer.warm). From
 * before the jail is opened until its client has the result; with pauses, so that there is always a jail ahead.
 *
 *   warm_bench JAILER RUNNERS [ROUNDS]
 */
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jail/client/client_once.h"
#include "jail/client/jail.h"
#include "lib/base/util.h"

#define ROUNDS_MAX 10000
#define PAUSE_US   50000
#define SOURCE     "print(1)"

static struct jail_client *client;
static bool warm;

static _Noreturn void die(const char *why)
{
	fprintf(stderr, "warm_bench: %s\n", why);
	exit(1);
}

static void bare(void)
{
	int status;
	pid_t pid = vfork();

	if (pid == 0) {
		execl("/usr/bin/python3", "python3", "-c", SOURCE, NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		die("python3");
}

static void in_jail(void)
{
	auto_close int code = memfd_with("code", SOURCE, strlen(SOURCE));
	auto_once struct jail_once once = {
		.spec = {.runner = "python"}, .program = {.code_fd = code, .stdin_fd = -1}, .capture = true};
	struct err err = ERR_INIT;

	if (jail_once_begin(client, &once, &err) < 0 || jail_once_end(client, &once, &err) < 0)
		die(err.text);
	if (once.result.verdict != JAIL_OK)
		die(once.result.message);
	warm = once.result.warm;
}

static int by_value(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return left < right ? -1 : left > right;
}

/* The median; *ret_least. */
static double measure(void (*run)(void), uint64_t rounds, bool joined, double *ret_least)
{
	auto_free int64_t *times = xcalloc(rounds, sizeof(*times));
	size_t n = 0;

	while (n < rounds) {
		int64_t begin = clock_monotonic_us();

		run();
		times[n] = clock_monotonic_us() - begin;
		n += !joined || warm;
		usleep(PAUSE_US);
	}
	qsort(times, n, sizeof(*times), by_value);
	*ret_least = (double)times[0] / 1000;
	return (double)times[n / 2] / 1000;
}

static void start(const char *jailer, const char *runners, const char *mode)
{
	char config[] = "/tmp/warm_bench.XXXXXX";
	struct json_object *info = NULL;
	struct err err = ERR_INIT;
	int fd = mkostemp(config, O_CLOEXEC);

	dprintf(fd, "{\"jailer\":{\"runners_dir\":\"%s\",\"warm\":\"%s\"}}\n", runners, mode);
	close(fd);
	if (jail_client_spawn(jailer, config, &client, &err) || jail_client_info(client, &info, &err))
		die(err.text);
	json_object_put(info);
	unlink(config);
}

int main(int argc, char **argv)
{
	uint64_t rounds = 100;
	double least, first_least, first = 0;

	if (argc < 3 || (argc > 3 && parse_u64(argv[3], 1, ROUNDS_MAX, &rounds)))
		die("usage: warm_bench JAILER RUNNERS [ROUNDS]");
	if (dup2(memfd_create("out", 0), STDOUT_FILENO) < 0) /* of the bare ones */
		die("memfd");
	first = measure(bare, rounds, false, &first_least);
	fprintf(stderr, "print(1) in Python: bare %.2f ms, least %.2f", first, first_least);
	for (int joined = 0; joined < 2; joined++) {
		start(argv[1], argv[2], joined ? "on" : "off");
		double median = measure(in_jail, rounds, joined, &least);
		fprintf(stderr, "; %s %.2f (x %.2f), least %.2f (x %.2f)", joined ? "joined jail" : "jail", median,
			median / first, least, least / first_least);
		jail_client_free(client);
	}
	fprintf(stderr, " (%llu rounds)\n", (unsigned long long)rounds);
	return 0;
}
