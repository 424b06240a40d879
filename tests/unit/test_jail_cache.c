/* test_jail_cache.c - what a library would make again at each start is made once: a service, whose runners have told
 * their caches. */
#include "jail_service.h"

#include <string.h>

static void run_for(struct jail_client *client, const char *runner, struct try *try, const char *code)
{
	struct jail_spec spec = {.runner = runner};

	try_program(client, try, &spec, code);
	if (try->failed)
		fail_msg("%s", try->err.text);
}

/* The runner's cache file lies in each jail, is taken by the library as it is, and belongs to that jail alone. */
static void cache_file_lies_in_each_jail(void **state)
{
	struct service *service = *state;
	struct json_object *list = NULL;
	static const char look[] =
		"import os\n"
		"folder = '/tmp/matplotlib'\n"
		"name, = os.listdir(folder)\n"
		"path = folder + '/' + name\n"
		"before = os.stat(path)\n"
		"import matplotlib.font_manager as f\n"
		"after = os.stat(path)\n"
		"print(before.st_ino == after.st_ino, before.st_mtime_ns == after.st_mtime_ns, before.st_size > 1000)\n"
		"print(os.path.exists('/tmp/.cache/fontconfig'), os.path.exists(f.findfont('DejaVu Sans')))\n"
		"open(path, 'w').write('spoiled')\n";

	assert_int_equal(jail_client_runners(service->client, &list, NULL), 0);
	bool there = strstr(json_object_to_json_string(list), "\"matplotlib\"") != NULL;
	json_object_put(list);
	auto_try struct try other = {.jail = NULL};
	run_for(service->client, "bash", &other, "ls -A /tmp");
	assert_string_equal(other.out, "");
	if (!there) {
		print_message("matplotlib is not installed, no other library has a cache: skipped\n");
		return;
	}
	for (int i = 0; i < 2; i++) {
		auto_try struct try try = {.jail = NULL};

		run_for(service->client, "python", &try, look);
		if (try.result.verdict != JAIL_OK)
			fail_msg("%s", try.error);
		assert_string_equal(try.out, "True True True\nFalse True\n");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(cache_file_lies_in_each_jail, service_setup, service_teardown)};
	auto_config struct config config = {0};
	struct err err = ERR_INIT;

	if (config_load(NULL, &config, &err))
		return fprintf(stderr, "%s\n", err.text), 1;
	setenv("SALLYPORT_JAILER_RUNNERS_DIR", config.jailer.runners_dir,
	       1); /* service_setup takes those without caches */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
