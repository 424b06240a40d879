/*
 * test_jail_probe.c - every probe of tests/probe in jails of its own (cli/selftest.h runs and judges them), and the
 * host looked at before and after each of them (host_eye.h), and its memory and tables measured all the time
 * (host_gauge.h). Last of all the files that everybody shares are compared with what they were, through the page cache
 * and without it.
 *
 * TEST_PROBES names the folder of the program and the scripts, TEST_PROBE_RESULTS a file that gets a line "NAME RESULT"
 * for each probe, TEST_PROBE_LIVE=1 has live sandboxes instead of jails for one run, the arguments the beginnings of
 * the names that alone are to run.
 */
#include "host_eye.h"
#include "host_gauge.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "cli/selftest.h"

#define SHARED_MAX (64 << 20)
#define MEASURED   3 /* times at most: a meter is too high only if it is each time */

static struct service *service;
static struct probe_place place;
static struct probe_list list;
static struct eye before;
static int results = -1;
static int abstract = -1;
static int64_t usual_memory; /* limit of a probe that names none */

/* True: it is measured, or the host did something else meanwhile and it is to be tried again. */
static bool measured(const struct gauge *gauge, const struct probe_entry *entry, int round)
{
	const int64_t limit = entry->terms.limits.memory_bytes;
	int64_t by;
	enum gauge_meter meter = gauge_wrong(gauge, limit ? limit : usual_memory, &by);

	if (meter == GAUGE_METERS)
		return true;
	print_message("%s: %s of the host rose by %lld\n", entry->name, gauge_names[meter], (long long)by);
	if (round == MEASURED)
		fail_msg("%s takes what its limits do not count", entry->name);
	return false;
}

static enum probe_result tried(const struct probe_entry *entry)
{
	struct probe_outcome outcome;
	struct err err = ERR_INIT;

	if (selftest_probe_run(&place, entry, &outcome, &err) < 0)
		fail_msg("%s: %s", entry->name, err.text);
	if (outcome.result == PROBE_BROKEN)
		print_error("%s: %s\n%.2000s\n", entry->name, outcome.message, outcome.said);
	enum probe_result result = outcome.result;
	selftest_outcome_clear(&outcome);
	return result;
}

static void probe_is_held(void **state)
{
	static const char *const texts[] = {"held", "broken", "weaker", "absent"};
	const struct probe_entry *entry = *state;
	enum probe_result result;
	struct gauge gauge;
	int round = 0;

	do {
		assert_int_equal(gauge_start(&gauge), 0);
		result = tried(entry);
		gauge_stop(&gauge);
	} while (result == PROBE_HELD && !measured(&gauge, entry, ++round));
	if (results >= 0)
		dprintf(results, "%s %s\n", entry->name, texts[result]);
	assert_int_not_equal(result, PROBE_BROKEN);
	eye_assert_same(service, &before, entry->name);
	if (result != PROBE_HELD) {
		print_message("not tried: %s\n",
			      result == PROBE_WEAKER ? "this account cannot hold it"
						     : "its runner is not installed, or it would take too long here");
		skip();
	}
}

/* -------- X07: nothing that a guest did has changed what everybody shares, in memory or on the disk ---- */
static const char *const shared_files[] = {"/usr/bin/env", "/usr/bin/python3", "/usr/bin/bash",
					   "/usr/lib/x86_64-linux-gnu/libc.so.6"};
static struct content {
	char *bytes; /* NULL: not there */
	size_t length;
} shared[ARRAY_SIZE(shared_files)];

/* Bytes NULL: not there, or (with O_DIRECT) the file system cannot read past the cache. */
static struct content read_shared(const char *path, int flags)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | flags);
	struct content content = {.bytes = NULL};
	struct stat st;
	void *memory = NULL;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) || st.st_size > SHARED_MAX ||
	    posix_memalign(&memory, 4096, (size_t)st.st_size + 8192))
		return content;
	content.bytes = memory;
	while ((n = read(fd, content.bytes + content.length,
			 ((size_t)st.st_size - content.length + 4096) & ~(size_t)4095)) > 0)
		content.length += (size_t)n;
	if (n < 0)
		free(steal(&content.bytes));
	return content;
}

static void page_cache(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(shared_files); i++)
		for (int past = 0; past < 2; past++) {
			struct content now = read_shared(shared_files[i], past ? O_DIRECT : 0);

			if (shared[i].bytes && (now.bytes || !past)) {
				assert_int_equal(now.length, shared[i].length);
				assert_memory_equal(now.bytes, shared[i].bytes, now.length);
			}
			free(now.bytes);
		}
}

/* -------- the group ----------------------------------------------------------------------------------- */
/* A socket of the host that a guest must not reach. */
static void listen_abstract(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	static const char name[] = "\0" PROBE_MARK;

	abstract = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	memcpy(address.sun_path, name, sizeof(name) - 1);
	/* Another run of this test may have it: then that one listens. */
	if (bind(abstract, (struct sockaddr *)&address, sizeof(sa_family_t) + sizeof(name) - 1) == 0)
		listen(abstract, 1);
}

static int64_t read_usual_memory(void)
{
	struct json_object *info = NULL, *limits, *memory;

	assert_int_equal(jail_client_info(service->client, &info, NULL), 0);
	limits = json_get(info, "limits", json_type_object);
	memory = json_get(limits, "memory_bytes", json_type_object);
	int64_t bytes = json_object_get_int64(json_get(memory, "default", json_type_int));
	json_object_put(info);
	assert_true(bytes > 0);
	return bytes;
}

static int setup(void **state)
{
	const char *given = getenv("TEST_PROBES"), *file = getenv("TEST_PROBE_RESULTS");
	auto_free char *folder = given ? xstrdup(given) : config_program_dir();
	struct err err = ERR_INIT;

	service_setup((void **)&service);
	if (selftest_place_open(service->client, folder, &place, &err) ||
	    selftest_list_read(&place, folder, &list, &err))
		fail_msg("%s", err.text);
	usual_memory = read_usual_memory();
	place.patience = try_patience();
	place.live = getenv("TEST_PROBE_LIVE") && getenv("TEST_PROBE_LIVE")[0];
	if (file)
		results = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	listen_abstract();
	for (size_t i = 0; i < ARRAY_SIZE(shared_files); i++)
		shared[i] = read_shared(shared_files[i], 0);
	eye_look(service, &before);
	*state = NULL;
	return 0;
}

static bool wanted(const char *name, int argc, char **argv)
{
	bool found = argc < 2;

	for (int i = 1; i < argc; i++)
		found |= str_starts(name, argv[i]);
	return found;
}

int main(int argc, char **argv)
{
	struct CMUnitTest *tests;
	size_t n = 0;

	/* The list is known only from a jail, so the group's own set-up comes too late for it. */
	void *state = NULL;
	setup(&state);
	tests = xcalloc(list.count + 1, sizeof(*tests));
	for (size_t i = 0; i < list.count; i++)
		if (wanted(list.entries[i].name, argc, argv))
			tests[n++] = (struct CMUnitTest){.name = list.entries[i].name,
							 .test_func = probe_is_held,
							 .initial_state = &list.entries[i]};
	tests[n++] = (struct CMUnitTest){.name = "X07", .test_func = page_cache};
	int failed = _cmocka_run_group_tests("probes", tests, n, NULL, NULL);
	free(tests);
	eye_clear(&before);
	selftest_list_clear(&list);
	selftest_place_close(&place);
	state = service;
	service_teardown(&state);
	for (size_t i = 0; i < ARRAY_SIZE(shared); i++)
		free(shared[i].bytes);
	close(abstract);
	return failed;
}
