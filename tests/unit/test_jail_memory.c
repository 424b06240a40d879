/*
 * test_jail_memory.c - what a run was given in environment and arguments is nowhere in the memory of our processes when
 * it has ended: the jailer, its id-map helper and relay, and the inits of jails that were made meanwhile and that
 * others get.
 *
 * All memory that can be read of every process below the jailer is searched, which takes root. That the search finds
 * what is there is tried first, in this process.
 */
#include "jail_service.h"

#include <errno.h>
#include <string.h>

#define RUNS       6
#define CHUNK      (1 << 20)
#define MARKER_MAX 64

static char marker[MARKER_MAX];

static size_t count_marker(const char *bytes, size_t length)
{
	size_t found = 0;

	for (const char *at = bytes; (at = memmem(at, length - (size_t)(at - bytes), marker, strlen(marker))); at++)
		found++;
	return found;
}

/* How often the marker is in one mapping; one across two chunks is found in the second, which begins earlier. */
static size_t search_mapping(int memory, uint64_t from, uint64_t to)
{
	auto_free char *chunk = xmalloc(CHUNK);
	size_t found = 0;

	while (from < to) {
		ssize_t n = pread(memory, chunk, MIN(CHUNK, to - from), (off_t)from);

		if (n <= 0)
			break;
		found += count_marker(chunk, (size_t)n);
		explicit_bzero(chunk, (size_t)n);
		from += (uint64_t)n < MARKER_MAX || (uint64_t)n == to - from ? (uint64_t)n
									     : (uint64_t)n - strlen(marker) + 1;
	}
	return found;
}

static size_t search_process(pid_t pid)
{
	auto_free char *maps_path = xasprintf("/proc/%d/maps", pid), *memory_path = xasprintf("/proc/%d/mem", pid);
	auto_fclose FILE *maps = fopen(maps_path, "re");
	auto_close int memory = open(memory_path, O_RDONLY | O_CLOEXEC);
	char line[4096], rights[8];
	unsigned long from, to;
	size_t found = 0;

	if (!maps || memory < 0) {
		assert_true(errno == ENOENT || errno == ESRCH); /* it has ended */
		return 0;
	}
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %7s", &from, &to, rights) == 3 && rights[0] == 'r' && !strstr(line, "[v"))
			found += search_mapping(memory, from, to);
	return found;
}

/* The process and all below it; the number of those that were searched is added. */
static size_t search_tree(pid_t pid, size_t *processes)
{
	auto_free char *path = xasprintf("/proc/%d/task/%d/children", pid, pid);
	auto_free char *children = NULL;
	size_t length, found = search_process(pid);
	char *state;
	uint64_t number;

	++*processes;
	if (read_file_at(AT_FDCWD, path, 1 << 16, &children, &length, NULL))
		return found;
	for (char *child = strtok_r(children, " ", &state); child; child = strtok_r(NULL, " ", &state))
		if (parse_u64(child, 1, INT32_MAX, &number) == 0)
			found += search_tree((pid_t)number, processes);
	return found;
}

static void begin(struct service *service, struct try *try)
{
	static const char code[] = "echo \"${#SECRET} ${#1}\"";
	const struct jail_spec spec = {.runner = "bash"};
	auto_free char *variable = xasprintf("SECRET=%s", marker);
	const char *const env[] = {variable, NULL}, *const args[] = {marker, NULL};
	auto_close int code_fd = memfd_with("code", code, strlen(code));

	try_begin(service->client, try, &spec);
	struct jail_program program = {.code_fd = code_fd,
				       .args = args,
				       .env = env,
				       .stdin_fd = -1,
				       .stdout_fd = try->out_fd,
				       .stderr_fd = try->error_fd};
	assert_int_equal(jail_run(try->jail, &program, NULL), 0);
	explicit_bzero(variable, strlen(variable));
}

/* More at once than are made ahead, so that jails are made while others' steps wait. */
static void nothing_stays(void **state)
{
	struct service *service = *state;
	struct try tries[RUNS] = {{.jail = NULL}};
	size_t processes = 0;
	int64_t until = 0;

#ifdef __SANITIZE_ADDRESS__ /* keeps what was freed for a while, in terabytes of shadow */
	skip();
#endif
	if (geteuid() != 0)
		skip(); /* another account's memory cannot be read, and ours is not dumpable */
	snprintf(marker, sizeof(marker), "secret-%d-%lld", getpid(), (long long)clock_now_us());
	assert_true(search_process(getpid()) > 0);
	service_run_ok(service->client);
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < RUNS; i++)
			begin(service, &tries[i]);
		for (size_t i = 0; i < RUNS; i++) {
			auto_free char *expected = xasprintf("%zu %zu\n", strlen(marker), strlen(marker));

			try_end(service->client, &tries[i]);
			assert_string_equal(tries[i].out, expected);
			try_clear(&tries[i]);
			tries[i] = (struct try){.jail = NULL};
		}
	}
	/* The jails that had it are being taken apart. */
	while (search_tree(service->pid, &processes) > 0)
		if (!patience_left(&until))
			fail_msg("what a run was given is still in the memory of our processes");
	assert_true(processes > 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_stays, service_setup, service_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
