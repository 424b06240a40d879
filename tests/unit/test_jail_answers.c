/* test_jail_answers.c - what runners' version commands answered outlives the jailer, as long as nothing changed on
 * which it depends. */
#include "jail_service.h"

#include "jail/answers.h"

#define RUNNER                                                                                                         \
	"{\"name\":\"%s\",\"source\":\"main\",\"install\":\"none\",\"interpreters\":[\"/bin/sh\"],"                   \
	"\"run\":[\"{interpreter}\",\"/code/main\"],\"answers_are\":[\"%s/%s\"],"                                   \
	"\"version\":[\"{interpreter}\",\"-c\",\"%s\"]}"

/* -------- the file ------------------------------------------------------------------------------------ */

struct place {
	char dir[64];
	char *socket_path, *path;
};

static int make_place(void **state)
{
	struct place *place = xcalloc(1, sizeof(*place));

	snprintf(place->dir, sizeof(place->dir), "/tmp/test_jail_answers.XXXXXX");
	assert_non_null(mkdtemp(place->dir));
	place->socket_path = xasprintf("%s/socket", place->dir);
	place->path = xasprintf("%s.answers", place->socket_path);
	*state = place;
	return 0;
}

static int remove_place(void **state)
{
	struct place *place = *state;

	unlink(place->path);
	assert_int_equal(rmdir(place->dir), 0);
	free(place->socket_path);
	free(place->path);
	free(place);
	return 0;
}

/* Binary, with NULs and what could be taken for a record. */
static char first_text[] = "\0\1answer a version 1 ok 0 0\n\n\0", second_text[] = "second";
static const struct answer first = {
	.runner = "a", .command = "version", .key = 1, .text = first_text, .length = sizeof(first_text)};
static const struct answer second = {
	.runner = "b", .command = "cache", .key = 2, .text = second_text, .length = sizeof(second_text)};
static const struct answer failed = {.runner = "b", .command = "show", .key = 3, .failed = true};

static void keep(const struct place *place, const struct answer *answer)
{
	auto_close int fd = answers_open(place->socket_path, getuid());
	const struct answers answers = {.fd = fd};

	assert_true(fd >= 0);
	answers_keep(&answers, answer);
}

/* How a jailer starts that has a use for these answers and no others. Are they there? */
static void assert_kept(const struct place *place, const struct answer *const *wanted, const bool *there, size_t n)
{
	struct answers answers;

	answers_load(&answers, answers_open(place->socket_path, getuid()));
	for (size_t i = 0; i < n; i++) {
		const struct answer *found =
			answers_find(&answers, wanted[i]->runner, wanted[i]->command, wanted[i]->key);

		assert_int_equal(found != NULL, there[i]);
		assert_null(answers_find(&answers, wanted[i]->runner, wanted[i]->command, wanted[i]->key + 1));
		if (!found)
			continue;
		assert_int_equal(found->failed, wanted[i]->failed);
		assert_int_equal(found->length, wanted[i]->length);
		assert_memory_equal(found->text, wanted[i]->text ? wanted[i]->text : "", found->length);
	}
	answers_loaded(&answers);
	close(answers.fd);
}

static void answers_outlive_the_process(void **state)
{
	const struct answer *const all[] = {&first, &second, &failed};

	keep(*state, &first);
	keep(*state, &second);
	keep(*state, &failed);
	assert_kept(*state, all, (bool[]){true, true, true}, 3);
	assert_kept(*state, all, (bool[]){true, true, true}, 3);
}

static void unused_answers_are_dropped(void **state)
{
	const struct answer *const all[] = {&first, &second}, *const one[] = {&second};

	keep(*state, &first);
	keep(*state, &second);
	assert_kept(*state, one, (bool[]){true}, 1);
	assert_kept(*state, all, (bool[]){false, true}, 2);
}

static void torn_answer_costs_only_itself(void **state)
{
	const struct answer *const all[] = {&first, &second, &failed};
	const struct place *place = *state;
	struct stat st;

	keep(place, &first);
	assert_int_equal(stat(place->path, &st), 0);
	keep(place, &second);
	assert_int_equal(truncate(place->path, st.st_size + 25), 0);
	assert_kept(place, all, (bool[]){true, false, false}, 3);
	keep(place, &failed);
	assert_kept(place, all, (bool[]){true, false, true}, 3);
}

static void changed_byte_costs_the_answer(void **state)
{
	const struct answer *const all[] = {&first};
	const struct place *place = *state;

	keep(place, &first);
	auto_close int fd = open(place->path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "x", 1, lseek(fd, 0, SEEK_END) - 3), 1);
	assert_kept(place, all, (bool[]){false}, 1);
}

static void foreign_file_is_replaced(void **state)
{
	const struct answer *const all[] = {&first};
	const struct place *place = *state;
	struct stat st;

	keep(place, &first);
	assert_int_equal(chmod(place->path, 0644), 0);
	assert_kept(place, all, (bool[]){false}, 1);
	assert_int_equal(stat(place->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);

	keep(place, &first);
	auto_free char *other = xasprintf("%s/other", place->dir);
	assert_int_equal(link(place->path, other), 0);
	assert_kept(place, all, (bool[]){false}, 1);

	assert_int_equal(unlink(place->path), 0);
	assert_int_equal(symlink(other, place->path), 0);
	assert_int_equal(stat(other, &st), 0);
	const off_t size = st.st_size;
	keep(place, &second);
	assert_int_equal(stat(other, &st), 0);
	assert_int_equal(st.st_size, size);
	assert_int_equal(lstat(place->path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	unlink(other);
}

static void nothing_is_kept_where_others_may_write(void **state)
{
	const struct place *place = *state;

	assert_int_equal(chmod(place->dir, 0777), 0);
	assert_int_equal(answers_open(place->socket_path, getuid()), -1);
	assert_int_equal(access(place->path, F_OK), -1);
}

/* -------- a service ----------------------------------------------------------------------------------- */

static void put(const char *path, const char *text)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_int_equal(write_all(fd, text, strlen(text)), 0);
}

static void put_runner(const char *dir, const char *name, const char *command)
{
	auto_free char *path = xasprintf("%s/%s.json", dir, name), *text = xasprintf(RUNNER, name, dir, name, command);

	put(path, text);
}

/* Runners "one" and "two", whose answers depend on files of these names. */
static int service_of_two(void **state)
{
	struct service *service = xcalloc(1, sizeof(*service));

	snprintf(service->dir, sizeof(service->dir), "/tmp/test_jail_answers.XXXXXX");
	assert_non_null(mkdtemp(service->dir));
	chmod(service->dir, 0755);
	service->socket_path = xasprintf("%s/socket", service->dir);
	service->config_path = xasprintf("%s/config", service->dir);
	service->log_path = xasprintf("%s/log", service->dir);
	auto_free char *config =
		xasprintf("{\"jailer\":{\"socket\":\"%s\",\"runners_dir\":\"%s\",%s}," TRY_LIMITS "}",
			  service->socket_path, service->dir, try_jailer_members());
	put(service->config_path, config);
	put_runner(service->dir, "one", "echo one 1");
	put_runner(service->dir, "two", "echo two 2");
	service_start(service);
	*state = service;
	return 0;
}

static int remove_service_of_two(void **state)
{
	static const char *const names[] = {"one", "two", "one.json", "two.json"};
	struct service *service = *state;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		auto_free char *path = xasprintf("%s/%s", service->dir, names[i]);

		unlink(path);
	}
	return service_teardown(state);
}

static int64_t count_probes(struct jail_client *client)
{
	struct json_object *info = NULL;

	assert_int_equal(jail_client_info(client, &info, NULL), 0);
	const int64_t count = json_object_get_int64(json_get(info, "probes", json_type_int));
	json_object_put(info);
	return count;
}

static void assert_versions(struct jail_client *client, const char *one, const char *two)
{
	auto_json struct json_object *list = NULL;

	assert_int_equal(jail_client_runners(client, &list, NULL), 0);
	assert_int_equal(json_object_array_length(list), 2);
	assert_string_equal(json_get_string(json_object_array_get_idx(list, 0), "version"), one);
	assert_string_equal(json_get_string(json_object_array_get_idx(list, 1), "version"), two);
}

static void start_again(struct service *service)
{
	kill(service->pid, SIGKILL);
	waitpid(service->pid, NULL, 0);
	jail_client_free(service->client);
	service_start(service);
}

static void killed_jailer_is_followed_by_no_probe(void **state)
{
	struct service *service = *state;

	assert_versions(service->client, "one 1", "two 2");
	assert_int_equal(count_probes(service->client), 2);
	start_again(service);
	assert_versions(service->client, "one 1", "two 2");
	assert_int_equal(count_probes(service->client), 0);
}

static void changed_file_asks_its_runner_again(void **state)
{
	struct service *service = *state;
	auto_free char *path = xasprintf("%s/two", service->dir);

	assert_versions(service->client, "one 1", "two 2");
	put(path, "");
	start_again(service);
	assert_versions(service->client, "one 1", "two 2");
	assert_int_equal(count_probes(service->client), 1);
	put_runner(service->dir, "one", "echo one 3");
	start_again(service);
	assert_versions(service->client, "one 3", "two 2");
	assert_int_equal(count_probes(service->client), 1);
	start_again(service);
	assert_int_equal(count_probes(service->client), 0);
}

static void on_known(void *arg, struct json_object *runners)
{
	struct json_object **ret = arg;

	*ret = runners;
}

static void assert_second_unknown(const struct service *service)
{
	auto_json struct json_object *list = NULL;
	struct jail_client *client;

	assert_int_equal(jail_client_connect(service->socket_path, &client, NULL), 0);
	assert_int_equal(jail_client_runners_known(client, &list, NULL), 0);
	jail_client_free(client);
	assert_string_equal(json_get_string(json_object_array_get_idx(list, 1), "version"), "");
}

/* "two" does not answer, and a run of its waits for it. Those of "one" are not held up, and the client that follows
 * hears of the end. */
static void slow_probe_holds_up_only_its_own_runs(void **state)
{
	const struct jail_spec first_spec = {.runner = "one", .fingerprint = true},
			       second_spec = {.runner = "two", .fingerprint = true};
	struct service *service = *state;
	struct json_object *known = NULL;
	struct try waits = {.jail = NULL};

	assert_versions(service->client, "one 1", "two 2");
	put_runner(service->dir, "one", "echo one 3");
	put_runner(service->dir, "two", "sleep 1000");
	start_again(service);
	assert_int_equal(jail_client_runners_follow(service->client, on_known, &known, NULL), 0);
	try_begin(service->client, &waits, &second_spec);
	const struct jail_program program = {
		.code_fd = memfd_with("code", "echo fine", 9),
		.stdin_fd = -1,
		.stdout_fd = waits.out_fd,
		.stderr_fd = -1,
	};
	assert_int_equal(jail_run(waits.jail, &program, NULL), 0);
	close(program.code_fd);

	auto_try struct try runs = {.jail = NULL};
	try_program(service->client, &runs, &first_spec, "echo fine");
	assert_int_equal(runs.result.verdict, JAIL_OK);
	assert_string_equal(runs.result.fingerprint, "one 3");
	assert_second_unknown(service);
	assert_false(waits.done);
	assert_null(known);

	while (!known)
		assert_true(try_hear(service->client, PATIENCE_MS));
	assert_string_equal(json_get_string(json_object_array_get_idx(known, 1), "version"), "unknown");
	json_object_put(known);
	try_end(service->client, &waits);
	assert_int_equal(waits.result.verdict, JAIL_OK);
	try_clear(&waits);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(answers_outlive_the_process, make_place, remove_place),
		cmocka_unit_test_setup_teardown(unused_answers_are_dropped, make_place, remove_place),
		cmocka_unit_test_setup_teardown(torn_answer_costs_only_itself, make_place, remove_place),
		cmocka_unit_test_setup_teardown(changed_byte_costs_the_answer, make_place, remove_place),
		cmocka_unit_test_setup_teardown(foreign_file_is_replaced, make_place, remove_place),
		cmocka_unit_test_setup_teardown(nothing_is_kept_where_others_may_write, make_place, remove_place),
		cmocka_unit_test_setup_teardown(killed_jailer_is_followed_by_no_probe, service_of_two,
						remove_service_of_two),
		cmocka_unit_test_setup_teardown(changed_file_asks_its_runner_again, service_of_two,
						remove_service_of_two),
		cmocka_unit_test_setup_teardown(slow_probe_holds_up_only_its_own_runs, service_of_two,
						remove_service_of_two),
	};

	return cmocka_run_group_tests_name("jail answers", tests, NULL, NULL);
}
