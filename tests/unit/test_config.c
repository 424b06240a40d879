/* The configuration: file, variables, paths, and errors that name what is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/config.h"
#include "lib/base/util.h"

#define CONFIG_BYTES_MAX (1 << 20)

static char folder[] = "/tmp/sallyport-config-XXXXXX";

static int set_up(void **state)
{
	(void)state;
	/* The variables of whoever runs the tests must not decide them. */
	for (char **variable = environ; *variable != NULL;) {
		auto_free char *name = xstrndup(*variable, strcspn(*variable, "="));

		if (str_starts(name, "SALLYPORT_"))
			unsetenv(name); /* moves the rest up */
		else
			variable++;
	}
	if (mkdtemp(folder) == NULL)
		return -1;
	setenv("SALLYPORT_CONFIG", "", 1); /* nor their files */
	return 0;
}

static int tear_down(void **state)
{
	auto_free char *path = xasprintf("%s/c.json", folder);

	(void)state;
	unlink(path);
	return rmdir(folder);
}

static int load(const char *text, struct config *ret, struct err *err)
{
	auto_free char *path = xasprintf("%s/c.json", folder);
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_int_equal(write_all(fd, text, strlen(text)), 0);
	return config_load(path, ret, err);
}

static void test_defaults(void **state)
{
	struct config config;

	(void)state;
	assert_int_equal(config_load(NULL, &config, NULL), 0);
	assert_int_equal(config.limits.wall_seconds, 30);
	assert_int_equal(config.limits.wall_seconds_max, 300);
	assert_int_equal(config.limits.cpu_percent, 100);
	assert_int_equal(config.limits.memory_mb, 512);
	assert_int_equal(config.limits.memory_mb_max, 2048);
	assert_int_equal(config.limits.pids, 64);
	assert_int_equal(config.limits.pids_max, 512);
	assert_int_equal(config.limits.data_mb, 64);
	assert_int_equal(config.limits.data_mb_max, 1024);
	assert_int_equal(config.limits.data_inodes, 4096);
	assert_int_equal(config.limits.tmp_mb, 64);
	assert_int_equal(config.limits.output_mb, 16);
	assert_int_equal(config.limits.answer_kb, 9);
	assert_int_equal(config.limits.compile_seconds, 60);
	assert_int_equal(config.limits.compile_memory_mb, 1024);
	assert_int_equal(config.limits.body_mb, 32);
	assert_int_equal(config.limits.in_flight, 8);
	assert_int_equal(config.limits.queue, 64);
	assert_int_equal(config.gateway.threads, 16);
	assert_int_equal(config.jailer.jails, 64);
	assert_int_equal(config.retention.owner_mb, 10240);
	assert_int_equal(config.retention.conversation_days, 30);
	assert_string_equal(config.jailer.socket, "");
	assert_null(config.path);
	/* Every string has a value: nobody needs to test for NULL. */
	assert_non_null(config.data_dir);
	assert_non_null(config.public_base_url);
	assert_non_null(config.gateway.socket);
	assert_non_null(config.gateway.accel_prefix);
	assert_non_null(config.jailer.program);
	assert_non_null(config.jailer.runners_dir);
	assert_non_null(config.jailer.modules_dir);
	config_clear(&config);
}

/* A profile's members are defaults: what the file or the environment sets counts. */
static void test_profile(void **state)
{
	struct config config;
	struct err err = ERR_INIT;

	(void)state;
	assert_int_equal(load("{\"profile\": \"grader\", \"limits\": {\"queue\": 7}}", &config, &err), 0);
	assert_true(config.doors.fusion && config.doors.piston);
	assert_int_equal(config.limits.in_flight, 1024);
	assert_int_equal(config.limits.wall_seconds_max, 1800);
	assert_int_equal(config.limits.answer_kb, 1024);
	assert_int_equal(config.limits.queue, 7);
	assert_int_equal(config.jailer.jails, MIN(8 * sysconf(_SC_NPROCESSORS_ONLN), 4096));
	assert_int_equal(config.limits.wall_seconds, 30);
	config_clear(&config);
	setenv("SALLYPORT_DOORS_PISTON", "false", 1);
	assert_int_equal(load("{\"profile\": \"grader\"}", &config, &err), 0);
	assert_false(config.doors.piston);
	config_clear(&config);
	unsetenv("SALLYPORT_DOORS_PISTON");
	assert_int_equal(load("{\"profile\": \"fast\"}", &config, &err), -ERR_INVALID);
	assert_non_null(strstr(err.text, "profile: must be grader or empty"));
}

static void test_file(void **state)
{
	struct config config;
	struct err err = ERR_INIT;
	auto_free char *expected = xasprintf("%s/state", folder);

	(void)state;
	if (load("{ // development\n \"data_dir\": \"state\", \"public_base_url\": \"http://127.0.0.1:8080\",\n"
		 "\"jailer\": {\"socket\": \"/run/j\", \"program\": \"\", \"allowed_users\": [\"www-data\"], "
		 "\"weaker_limits\": true},\n"
		 "/* more */ \"limits\": {\"wall_seconds\": 5.0}}",
		 &config, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(config.data_dir, expected);
	assert_string_equal(config.jailer.socket, "/run/j"); /* absolute stays */
	assert_string_equal(config.jailer.program, "");      /* empty stays */
	assert_string_equal(config.jailer.allowed_users.items[0], "www-data");
	assert_true(config.jailer.weaker_limits);
	assert_int_equal(config.limits.wall_seconds, 5);
	assert_int_equal(config.limits.memory_mb, 512);
	assert_true(str_starts(config.path, folder));
	config_clear(&config);
}

static void test_variables(void **state)
{
	struct config config;
	struct err err = ERR_INIT;
	auto_free char *path = xasprintf("%s/c.json", folder), *expected = xasprintf("%s/else/where", folder);

	(void)state;
	setenv("SALLYPORT_LIMITS_WALL_SECONDS", "7", 1);
	setenv("SALLYPORT_LIMITS_CPU_PERCENT", "-1", 1);
	setenv("SALLYPORT_JAILER_WEAKER_LIMITS", "true", 1);
	setenv("SALLYPORT_JAILER_SOCKET", "else/where", 1);
	setenv("SALLYPORT_GATEWAY_ALLOWED_HOSTS", "a.example,b.example", 1);
	if (load("{\"limits\":{\"wall_seconds\":9,\"pids\":3}}", &config, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(config.limits.wall_seconds, 7);
	assert_int_equal(config.limits.pids, 3);
	assert_int_equal(config.limits.cpu_percent, -1);
	assert_true(config.jailer.weaker_limits);
	assert_string_equal(config.jailer.socket, expected);
	assert_int_equal(config.gateway.allowed_hosts.count, 2);
	assert_string_equal(config.gateway.allowed_hosts.items[1], "b.example");
	config_clear(&config);

	setenv("SALLYPORT_CONFIG", path, 1);
	assert_int_equal(config_load(NULL, &config, &err), 0);
	assert_int_equal(config.limits.pids, 3);
	config_clear(&config);
	setenv("SALLYPORT_CONFIG", "", 1);
	unsetenv("SALLYPORT_LIMITS_WALL_SECONDS");
	unsetenv("SALLYPORT_LIMITS_CPU_PERCENT");
	unsetenv("SALLYPORT_JAILER_WEAKER_LIMITS");
	unsetenv("SALLYPORT_JAILER_SOCKET");
	unsetenv("SALLYPORT_GATEWAY_ALLOWED_HOSTS");
}

static void test_bad_variables(void **state)
{
	static const char *const cases[][3] = {
		{"SALLYPORT_LIMITS_WALL_SECONDS", "abc",
		 "environment variable SALLYPORT_LIMITS_WALL_SECONDS: limits.wall_seconds: must be an integer"},
		{"SALLYPORT_LIMITS_WALL_SECONDS", "0", "must be between 1 and"},
		{"SALLYPORT_LIMITS_WALL_SECONDS", "99999999999999999999", "must be an integer"},
		{"SALLYPORT_JAILER_WEAKER_LIMITS", "maybe", "must be a boolean"},
		{"SALLYPORT_LIMITS_WALL_SECOND", "7", "did you mean SALLYPORT_LIMITS_WALL_SECONDS?"},
		{"SALLYPORT_DATADIR", "/x", "did you mean SALLYPORT_DATA_DIR?"},
		{"SALLYPORT_SOMETHING", "7", "SALLYPORT_SOMETHING: unknown environment variable"},
		{"SALLYPORT_GATEWAY", "7", "unknown environment variable"},
		{"SALLYPORT_", "7", "unknown environment variable"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct config config;
		struct err err = ERR_INIT;

		setenv(cases[i][0], cases[i][1], 1);
		assert_int_equal(config_load(NULL, &config, &err), -ERR_INVALID);
		if (strstr(err.text, cases[i][2]) == NULL)
			fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i][2]);
		unsetenv(cases[i][0]);
	}
}

static void test_bad_files(void **state)
{
	static const char *const cases[][2] = {
		{"[]", "must be an object"},
		{"{\"limits\":{\"wall_secs\":1}}", "limits.wall_secs: unknown member"},
		{"{\"limit\":{}}", "limit: unknown member, did you mean \"limits\"?"},
		{"{\"limits\":{\"wall_seconds\":301}}",
		 "limits.wall_seconds: is 301, more than limits.wall_seconds_max (300)"},
		{"{\"limits\":{\"memory_mb_max\":100}}",
		 "limits.memory_mb: is 512, more than limits.memory_mb_max (100)"},
		{"{\"limits\":{\"pids\":513}}", "limits.pids: is 513, more than limits.pids_max (512)"},
		{"{\"limits\":{\"data_mb\":2000}}", "limits.data_mb: is 2000, more than limits.data_mb_max (1024)"},
		{"{\"limits\":{\"synchronous_seconds\":29}}",
		 "limits.synchronous_seconds: must be 0, or at least limits.wall_seconds"},
		{"{\"limits\":{\"task_seconds\":90000}}",
		 "limits.task_seconds: is 90000, more than limits.task_seconds_max (86400)"},
		{"{\"limits\":{\"cpu_percent\":0}}", "limits.cpu_percent: must be at least 1"},
		{"{\"oauth\":{\"mode\":\"on\"}}", "oauth.mode: must be off, builtin or external"},
		{"{\"oauth\":{\"mode\":\"external\"}}", "public_base_url: must be https:// and a host"},
		{"{\"oauth\":{\"mode\":\"external\"},\"public_base_url\":\"https://box.example/x\"}",
		 "public_base_url: must be https:// and a host"},
		{"{\"oauth\":{\"mode\":\"external\"},\"public_base_url\":\"http://box.example\"}",
		 "public_base_url: must be https:// and a host"},
		{"{\"limits\":{\"memory_mb\":\"256\"}}", "limits.memory_mb: must be an integer, not a string"},
		{"{\"data_dir\":\"a\\u0000b\"}", "data_dir: must not contain a NUL"},
		{"{\"public_base_url\":\"ftp://x\"}", "public_base_url: must begin with http"},
		{"{\"public_base_url\":\"http://x/\"}", "public_base_url: must be scheme, host"},
		{"{\"gateway\":{\"profile\":\"production\"}}", "gateway.profile: was removed"},
		{"{\"tools\":{\"results\":\"both\"}}", "tools.results: was removed"},
		{"{\"gateway\":{\"accel_prefix\":\"blobs\"}}", "gateway.accel_prefix: must begin and end with a slash"},
		{"{\"jailer\":{\"cgroup\":\"../x\"}}", "jailer.cgroup: must be a plain name"},
		{"{\"jailer\":{\"id_base\":100000}}", "jailer.id_base: must be set together with jailer.id_count"},
		{"{\"jailer\":{\"id_base\":1000,\"id_count\":65536}}",
		 "jailer.id_base: is 1000: guests must not have the ids of accounts"},
		{"{\"jailer\":{\"id_base\":65535,\"id_count\":65536}}", "jailer.id_base: is 65535"},
		{"{\"jailer\":{\"id_base\":4294901760,\"id_count\":65536}}",
		 "jailer.id_count: 65536 ids from 4294901760 go beyond"},
		{"{\"jailer\":{\"id_base\":4294967295,\"id_count\":4294967295}}", "jailer.id_count: "},
		{"{\"jailer\":{\"socket\":\"/tmp/"
		 "a-path-that-is-longer-than-what-the-kernel-takes-for-a-unix-socket-which-are-a-hundred-"
		 "and-seven"
		 "-bytes-in-all\"}}",
		 "jailer.socket: must have at most 107 bytes"},
		{"{\"a\":1", "not JSON"},
	};
	struct config config;
	struct err err = ERR_INIT;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(load(cases[i][0], &config, &err), -ERR_INVALID);
		if (strstr(err.text, cases[i][1]) == NULL)
			fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i][1]);
		assert_true(str_starts(err.text, folder)); /* and which file */
	}
	auto_free char *large = xcalloc(CONFIG_BYTES_MAX + 2, 1);

	memset(large, ' ', CONFIG_BYTES_MAX);
	memcpy(large, "{}", 2);
	assert_int_equal(load(large, &config, &err), 0); /* exactly the maximum */
	config_clear(&config);
	large[CONFIG_BYTES_MAX] = ' ';
	assert_int_equal(load(large, &config, &err), -ERR_LIMIT);
	assert_int_equal(config_load("/no/such.json", &config, &err), -ERR_NOT_FOUND);
	assert_string_equal(err.text,
			"there is no configuration /no/such.json: name another file with --config or in SALLYPORT_CONFIG");
}

/* Without a name: the file below the user's folder, unless it is somebody else's; SALLYPORT_CONFIG= is no file at all.
 */
static void test_found(void **state)
{
	auto_free char *above = xasprintf("%s/sallyport", folder), *path = xasprintf("%s/sallyport.conf", above);
	static const char text[] = "{\"limits\":{\"pids\":77}}";
	struct config config;
	struct err err = ERR_INIT;

	(void)state;
	assert_int_equal(mkdir(above, 0755), 0);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	assert_int_equal(write_all(fd, text, strlen(text)), 0);
	close(fd);
	setenv("XDG_CONFIG_HOME", folder, 1);
	assert_int_equal(config_load(NULL, &config, &err), 0); /* SALLYPORT_CONFIG is empty */
	assert_int_not_equal(config.limits.pids, 77);
	config_clear(&config);
	unsetenv("SALLYPORT_CONFIG");
	assert_int_equal(config_load(NULL, &config, &err), 0);
	assert_int_equal(config.limits.pids, 77);
	assert_string_equal(config.path, path);
	config_clear(&config);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 12345, 12345), 0);
		auto_free char *found = config_find();

		assert_true(found == NULL || !streq(found, path));
	}
	setenv("SALLYPORT_CONFIG", "", 1);
	unsetenv("XDG_CONFIG_HOME");
	unlink(path);
	rmdir(above);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),  cmocka_unit_test(test_profile), cmocka_unit_test(test_file),
		cmocka_unit_test(test_variables), cmocka_unit_test(test_bad_variables),
		cmocka_unit_test(test_bad_files), cmocka_unit_test(test_found),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
