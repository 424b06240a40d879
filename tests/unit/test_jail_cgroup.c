/*
 * test_jail_cgroup.c - what the cgroup of a jail counts and limits, in whatever hierarchy this machine has.
 *
 * test_jail.c has the verdicts; this one is for what differs between v1 and v2, and is short, because tests/vm runs it
 * in each way in which a jailer can come to a v2 cgroup. TEST_CGROUP says which kind it must be; without it, a jailer
 * without a cgroup is no failure. Its arguments name the tests that are to run.
 */
#include "jail_service.h"

#define MEBI       (1 << 20)
#define STEP_OVERS 40
#define CPU_US     600000

static bool counted; /* there is a cgroup */

static int start(void **state)
{
	const char *expected = getenv("TEST_CGROUP");
	struct json_object *info = NULL;

	service_setup(state);
	assert_int_equal(jail_client_info(((struct service *)*state)->client, &info, NULL), 0);
	const char *kind = json_get_string(info, "cgroup");
	if (expected)
		assert_string_equal(kind, expected);
	counted = !streq(kind, "none");
	json_object_put(info);
	return 0;
}

static void need_cgroup(void)
{
	if (!counted) {
		print_message("no cgroup here: skipped\n");
		skip();
	}
}

static void run(void **state, struct try *try, const char *code, struct jail_limits limits)
{
	struct jail_spec spec = {.runner = "python", .limits = limits};

	try_program(((struct service *)*state)->client, try, &spec, code);
	if (try->failed)
		fail_msg("%s", try->err.text);
}

static void memory_and_files_share_the_limit(void **state)
{
	need_cgroup();
	auto_try struct try try = {.jail = NULL};
	const struct jail_limits limits = {.memory_bytes = 48 * MEBI};

	run(state, &try, "x = bytearray(24 << 20)", limits);
	assert_int_equal(try.result.verdict, JAIL_OK);
	assert_in_range(try.result.run.memory_peak_bytes, 24 * MEBI, 48 * MEBI);
	try_clear(&try);
	/* The files of /tmp and /data are memory, and there is no swap. */
	run(state, &try, "f = open('/tmp/x', 'wb')\nwhile True: f.write(bytes(1 << 20))", limits);
	assert_int_equal(try.result.verdict, JAIL_ML);
	assert_true(try.result.oom_killed);
	assert_in_range(try.result.run.memory_peak_bytes, 46 * MEBI, 48 * MEBI);
}

static void processes_stop_at_the_limit(void **state)
{
	need_cgroup();
	auto_try struct try try = {.jail = NULL};

	run(state, &try,
	    "import os, time\nn = 1\ntry:\n while True:\n  if os.fork() == 0: time.sleep(60)\n  n += 1\nexcept "
	    "OSError: print(n)",
	    (struct jail_limits){.pids = 12});
	assert_int_equal(try.result.verdict, JAIL_OK);
	assert_string_equal(try.out, "12\n");
	assert_true(try.result.pids_limit_hit);
	assert_true(try.result.run.pids_peak == 12 || try.result.run.pids_peak == 0);
}

/* Used by two processes that were stopped for it. */
static int64_t cpu_used(void **state)
{
	auto_try struct try try = {.jail = NULL};

	run(state, &try, "import os\nos.fork()\nwhile True: pass",
	    (struct jail_limits){.cpu_us = CPU_US, .cpu_percent = 50});
	assert_int_equal(try.result.verdict, JAIL_TO);
	assert_string_equal(try.result.limit, "cpu");
	/* Half a processor for both together: twice the time, less the first period. Where an emulated processor stands
	 * still, that counts as used by both at once: there only `dies_unlimited` looks at the share, by what the
	 * kernel says of it. */
	assert_true(try.result.run.wall_us > 1000000 || try_patience() > 1);
	return try.result.run.cpu_user_us + try.result.run.cpu_system_us;
}

/* A jailer that has to wait for a processor itself sees later that the time is used up: it is exact in some run, not in
 * every one. */
static void cpu_time_stops_at_the_limit(void **state)
{
	need_cgroup();
	const int64_t most = CPU_US + 200000 * try_patience();
	int64_t until = 0, used;

	while ((used = cpu_used(state)) > most && patience_left(&until))
		;
	assert_in_range(used, CPU_US, most);
}

/* Two programs in one jail: what the first one reached is not told of the second. */
static void peaks_are_of_one_program(void **state)
{
	struct service *service = *state;
	auto_try struct try try = {.jail = NULL};
	struct jail_spec spec = {.runner = "python", .limits = {.memory_bytes = 128 * MEBI}};
	const char *codes[] = {
		"import os, time\nx = bytearray(64 << 20)\nfor i in range(5):\n if os.fork() == 0: time.sleep(60)",
		"pass"};
	struct jail_usage used[2];

	try_begin(service->client, &try, &spec);
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		auto_close int code_fd = memfd_with("code", codes[i], strlen(codes[i]));
		struct jail_program program = {
			.code_fd = code_fd, .stdin_fd = -1, .stdout_fd = try.out_fd, .stderr_fd = try.error_fd};

		assert_int_equal(jail_run(try.jail, &program, NULL), 0);
		assert_int_equal(jail_client_wait(service->client, try.jail, NULL), 0);
		assert_int_equal(try.result.verdict, JAIL_OK);
		used[i] = try.result.run;
	}
	try_end(service->client, &try);
	assert_in_range(used[0].memory_peak_bytes, 64 * MEBI, 128 * MEBI);
	assert_in_range(used[1].memory_peak_bytes, MEBI, 60 * MEBI);
	assert_true(used[0].pids_peak == 6 || used[0].pids_peak == 0);
	assert_true(used[1].pids_peak <= 2);
}

/* Groups that somebody else made are not entered, nor removed. */
static void stepped_over(void **state)
{
	struct service *service = *state;
	char path[512], name[600];
	bool made[STEP_OVERS] = {false};

	bool v2 = service_cgroup(service, path, sizeof(path));
	if (!v2 && (getuid() || access(path, W_OK))) {
		print_message("the groups are out of reach: skipped\n");
		skip();
	}
	for (int i = 0; i < STEP_OVERS; i++) {
		snprintf(name, sizeof(name), "%s/%d", path, i);
		made[i] = mkdir(name, 0755) == 0;
	}
	for (int i = 0; i < 5; i++) {
		auto_try struct try try = {.jail = NULL};

		run(state, &try, "print(1)", (struct jail_limits){0});
		assert_int_equal(try.result.verdict, JAIL_OK);
	}
	int kept = 0;
	for (int i = 0; i < STEP_OVERS; i++) {
		snprintf(name, sizeof(name), "%s/%d", path, i);
		if (made[i])
			kept += rmdir(name) == 0 ? 1 : -STEP_OVERS;
	}
	assert_in_range(kept, STEP_OVERS / 2, STEP_OVERS);
}

/* The file with a group's CPU share, in the folder of an instance: the one that begins with `text`. */
static bool find_share(const char *path, const char *file, const char *text, char ret[1024])
{
	DIR *list = opendir(path);
	bool found = false;

	assert_non_null(list);
	for (struct dirent *entry; !found && (entry = readdir(list));) {
		auto_free char *value = NULL;
		size_t length;

		snprintf(ret, 1024, "%s/%s/%s", path, entry->d_name, file);
		found = read_file_at(AT_FDCWD, ret, 4096, &value, &length, NULL) == 0 &&
			strncmp(value, text, strlen(text)) == 0;
	}
	closedir(list);
	return found;
}

/* A CPU share holds a program up, and what is killed has none any more: it would take whole periods to die in. */
static void dies_unlimited(void **state)
{
	struct service *service = *state;
	auto_try struct try try = {.jail = NULL};
	/* A share that no other group has. The set-up is done with it, too: that takes an emulated processor too long.
	 */
	const int percent = try_patience() > 1 ? 37 : 7;
	auto_free char *quota = xasprintf("%d000", percent);
	struct jail_spec spec = {.runner = "python",
				 .limits = {.cpu_percent = percent, .wall_us = 200000 * try_patience()}};
	auto_close int code_fd = memfd_with("code", "while True: pass", 16);
	char path[512], name[1024];

	need_cgroup();
	bool v2 = service_cgroup(service, path, sizeof(path));
	if (!v2)
		memcpy(strstr(path, "/memory/"), "/cpu////", 8);
	if (access(path, R_OK)) {
		print_message("the groups are out of reach: skipped\n");
		skip();
	}
	try_begin(service->client, &try, &spec);
	struct json_object *info = NULL;
	assert_int_equal(jail_client_info(service->client, &info, NULL), 0); /* a round trip: it is made */
	json_object_put(info);
	const char *file = v2 ? "cpu.max" : "cpu.cfs_quota_us";
	assert_true(find_share(path, file, quota, name));
	struct jail_program program = {
		.code_fd = code_fd, .stdin_fd = -1, .stdout_fd = try.out_fd, .stderr_fd = try.error_fd};
	assert_int_equal(jail_run(try.jail, &program, NULL), 0);
	assert_int_equal(jail_client_wait(service->client, try.jail, NULL), 0);
	assert_int_equal(try.result.verdict, JAIL_TO);
	auto_free char *value = NULL;
	size_t length;
	assert_int_equal(read_file_at(AT_FDCWD, name, 4096, &value, &length, NULL), 0);
	assert_int_equal(strncmp(value, v2 ? "max" : "-1", 2), 0);
	/* Until then it had one that held it up. Where others want the processor, nobody may use up a share: see `cpu`
	 * instead. */
	*strrchr(name, '/') = '\0';
	auto_free char *stat = xasprintf("%s/cpu.stat", name);
	auto_free char *counts = NULL;
	unsigned throttled = 0;
	assert_int_equal(read_file_at(AT_FDCWD, stat, 4096, &counts, &length, NULL), 0);
	const char *line = strstr(counts, "nr_throttled ");
	assert_true(line && sscanf(line, "nr_throttled %u", &throttled) == 1);
	assert_true(throttled > 0 || try_patience() == 1);
	try_end(service->client, &try);
}

/* A jail of batch work is idle, or has the least weight where the kernel knows no idle groups; others are not. */
static void background_jails_give_way(void **state)
{
	struct service *service = *state;
	static const int percents[] = {41, 43}; /* shares that no other group has */

	need_cgroup();
	for (int i = 0; i < 2; i++) {
		auto_try struct try try = {.jail = NULL};
		struct jail_spec spec = {.runner = "python", .limits = {.cpu_percent = percents[i]}};
		auto_free char *quota = xasprintf("%d000", percents[i]);
		char path[512], name[1024];
		bool v2 = service_cgroup(service, path, sizeof(path));

		if (!v2)
			memcpy(strstr(path, "/memory/"), "/cpu////", 8);
		if (access(path, R_OK)) {
			print_message("the groups are out of reach: skipped\n");
			skip();
		}
		if (i == 1)
			jail_client_background(service->client);
		try_begin(service->client, &try, &spec);
		struct json_object *info = NULL;
		assert_int_equal(jail_client_info(service->client, &info, NULL), 0); /* a round trip: it is made */
		json_object_put(info);
		assert_true(find_share(path, v2 ? "cpu.max" : "cpu.cfs_quota_us", quota, name));
		*strrchr(name, '/') = '\0';
		auto_free char *idle = xasprintf("%s/cpu.idle", name);
		auto_free char *weight = xasprintf("%s/%s", name, v2 ? "cpu.weight" : "cpu.shares");
		auto_free char *value = NULL;
		size_t length;
		bool known = !access(idle, R_OK);

		assert_int_equal(read_file_at(AT_FDCWD, known ? idle : weight, 64, &value, &length, NULL), 0);
		const char *const usual = known ? "0\n" : v2 ? "100\n" : "1024\n";
		const char *const least = known || v2 ? "1\n" : "2\n";

		assert_string_equal(value, i ? least : usual);
		try_end(service->client, &try);
	}
}

/* -------- reading from the host's disks --------------------------------------------------------------- */
/* Two files of the same size on a disk, which nobody has read: one is read by a jail, at READ_MB a second, and one by
 * us. Only the machine of tests/vm has such a disk. */
#define READ_MB    4
#define READ_BYTES (INT64_C(16) << 20)

static int64_t read_bare_us(const char *path)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	auto_free char *block = xcalloc(1, MEBI);
	const int64_t begin = clock_monotonic_us();
	ssize_t n;

	assert_true(fd >= 0);
	while ((n = read(fd, block, MEBI)) > 0)
		;
	assert_int_equal(n, 0);
	return clock_monotonic_us() - begin;
}

static void disk_reads(void **state)
{
	const char *disk = getenv("TEST_DISK");
	auto_try struct try try = {.jail = NULL};

	if (!disk) {
		print_message("no disk of the tests here: skipped\n");
		skip();
	}
	auto_free char *code = xasprintf("n = 0\n"
					 "for part in iter(lambda f=open('%s/jailed', 'rb', 0): f.read(1 << 20), b''): "
					 "n += len(part)\n"
					 "print(n)",
					 disk);
	auto_free char *ours = xasprintf("%s/ours", disk), *said = xasprintf("%lld\n", (long long)READ_BYTES);
	run(state, &try, code, (struct jail_limits){.wall_us = 0});
	assert_string_equal(try.out, said);
	/* The first slice of time may carry as much again. */
	assert_true(try.result.run.wall_us > READ_BYTES / READ_MB / 2);
	assert_true(read_bare_us(ours) < try.result.run.wall_us / 2);
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_and_files_share_the_limit),
		cmocka_unit_test(processes_stop_at_the_limit),
		cmocka_unit_test(cpu_time_stops_at_the_limit),
		cmocka_unit_test(peaks_are_of_one_program),
		cmocka_unit_test(stepped_over),
		cmocka_unit_test(dies_unlimited),
		cmocka_unit_test(disk_reads),
		cmocka_unit_test(background_jails_give_way), /* last: its client stays so */
	};

	return try_run(tests, argc, argv, start, service_teardown);
}
