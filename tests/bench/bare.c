/*
 * bare.c - what the operating system takes by itself: CLIENTS processes at once, each running a command over and over
 * with vfork and exec, output thrown away. Prints the median time of one run in microseconds. `make bench` divides by
 * it.
 *
 *     bare CLIENTS SECONDS COMMAND [ARGUMENT…]
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/util.h"

#define CLIENTS_MAX 64
#define SAMPLES_MAX 65536 /* a client */
#define SECOND_US   1000000

extern char **environ;

struct samples {
	size_t count;
	int64_t us[SAMPLES_MAX];
};

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int run_once(char **command)
{
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int status = -1;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	if (posix_spawn(&pid, command[0], &actions, NULL, command, environ) == 0)
		waitpid(pid, &status, 0);
	posix_spawn_file_actions_destroy(&actions);
	return status;
}

static int client(struct samples *samples, int64_t until_us, char **command)
{
	while (clock_monotonic_us() < until_us && samples->count < SAMPLES_MAX) {
		int64_t begun = clock_monotonic_us();

		if (run_once(command) != 0)
			return 1;
		samples->us[samples->count++] = clock_monotonic_us() - begun;
	}
	return 0;
}

/* All samples of all clients in one sorted array; prints its median. */
static int print_median(const struct samples *samples, size_t clients)
{
	auto_free int64_t *all = xcalloc(clients * SAMPLES_MAX, sizeof(*all));
	size_t count = 0;

	for (size_t i = 0; i < clients; i++)
		for (size_t k = 0; k < samples[i].count; k++)
			all[count++] = samples[i].us[k];
	if (count == 0)
		return 1;
	qsort(all, count, sizeof(*all), compare);
	printf("%lld\n", (long long)all[count / 2]);
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t clients, seconds;
	struct samples *samples;
	int failed = 0, status;

	if (argc < 4 || parse_u64(argv[1], 1, CLIENTS_MAX, &clients) < 0 || parse_u64(argv[2], 1, 600, &seconds) < 0) {
		fprintf(stderr, "usage: bare CLIENTS SECONDS COMMAND [ARGUMENT...]\n");
		return 2;
	}
	samples = mmap(NULL, clients * sizeof(*samples), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (samples == MAP_FAILED)
		return 1;
	int64_t until_us = clock_monotonic_us() + (int64_t)seconds * SECOND_US;

	for (uint64_t i = 0; i < clients; i++)
		if (fork() == 0)
			_exit(client(&samples[i], until_us, argv + 3));
	while (wait(&status) > 0)
		failed |= status != 0;
	if (failed)
		fprintf(stderr, "bare: %s failed\n", argv[3]);
	return failed || print_median(samples, clients);
}
