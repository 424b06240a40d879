/* What is left when somebody is killed with SIGKILL in mid-run: the jailer, or the whole process with its engine. */
#include "job_fixture.h"

#include "jail/client/client_runners.h"
#include "lib/job/job_internal.h"

static const char *const endless = "import time; print('partial', flush=True)\nwhile True: time.sleep(1)";

/* The first process that has NAME=VALUE in its environment and runs python; a pidfd that tells of its end. -1: none. */
static int guest_pidfd(const char *variable)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int found = -1;

	assert_non_null(proc);
	while (found < 0 && (entry = readdir(proc))) {
		auto_free char *path = xasprintf("/proc/%s/environ", entry->d_name), *text = NULL;
		uint64_t pid;
		size_t length;

		if (parse_u64(entry->d_name, 1, INT32_MAX, &pid) < 0 ||
		    read_file_at(AT_FDCWD, path, 1 << 20, &text, &length, NULL) < 0)
			continue;
		if (memmem(text, length, variable, strlen(variable)))
			found = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	}
	closedir(proc);
	return found;
}

static void wait_for_end(int pidfd)
{
	struct pollfd poller = {.fd = pidfd, .events = POLLIN};

	assert_int_equal(poll(&poller, 1, PATIENCE_MS), 1);
}

/* The private jailer is this process's only child. */
static pid_t jailer_pid(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	uint64_t pid = 0;

	assert_non_null(tasks);
	while (pid == 0 && (entry = readdir(tasks))) {
		auto_free char *path = xasprintf("/proc/self/task/%s/children", entry->d_name), *text = NULL;
		size_t length;

		if (entry->d_name[0] == '.')
			continue;
		assert_ok(read_file_at(AT_FDCWD, path, 4096, &text, &length, &fixture_err));
		text[strcspn(text, " \n")] = '\0';
		if (*text)
			assert_int_equal(parse_u64(text, 2, INT32_MAX, &pid), 0);
	}
	closedir(tasks);
	assert_true(pid > 0);
	return (pid_t)pid;
}

static struct job_request marked(const char *conversation, const char *code)
{
	static const char *keys[] = {"SP_MARK"}, *values[1];
	static char mark[ID_SIZE];
	struct job_request request = fixture_request(&f, conversation, code);

	id_new(mark);
	values[0] = mark;
	request.environment = (struct bind_map){keys, values, 1};
	return request;
}

static void a_killed_jailer_ends_the_run_with_its_output(void **state)
{
	struct store_execution row = {0};
	auto_close int watch = -1, guest = -1;
	auto_free char *variable = NULL;
	struct job_request request;
	struct job *job;

	(void)state;
	begin("");
	watch = fixture_watch_running(&f);
	request = marked("talk", endless);
	variable = xasprintf("SP_MARK=%s", request.environment.values[0]);
	job = fixture_submit(&f, &request);
	fixture_wait_for_output(watch);
	guest = guest_pidfd(variable);
	assert_true(guest >= 0);
	assert_int_equal(kill(jailer_pid(), SIGKILL), 0);
	wait_for_end(guest);
	assert_int_equal(fixture_wait(job)->jail.verdict, JAIL_XX);
	assert_string_equal(fixture_wait(job)->stdout_text.data, "partial\n");
	assert_ok(store_execution_find(f.store, job_id(job), &row, &fixture_err));
	assert_string_equal(row.verdict, "XX");
	assert_string_equal(row.stdout_text.data, "partial\n");
	store_execution_clear(&row);
	job_release(job);

	request = fixture_request(&f, "talk", "print('again')");
	job = fixture_run(&f, &request, JAIL_OK);
	job_release(job);
	assert_int_equal(guest_pidfd(variable), -1);
}

/* The engine's process: runs one job to its end, acknowledges it, and then waits in an endless one. */
static void engine_process(int acknowledge)
{
	struct job_request request = fixture_request(&f, "talk", "open('/data/kept', 'w').write('acknowledged')");
	struct job *job;

	fixture_open(&f);
	fixture_start(&f);
	job = fixture_run(&f, &request, JAIL_OK);
	if (write(acknowledge, job_id(job), ID_SIZE) != ID_SIZE)
		_exit(1);
	request = marked("talk", endless);
	if (write(acknowledge, request.environment.values[0], ID_SIZE) != ID_SIZE)
		_exit(1);
	job = fixture_submit(&f, &request);
	if (write(acknowledge, job_id(job), ID_SIZE) != ID_SIZE)
		_exit(1);
	job_wait(job, -1, NULL, NULL);
	_exit(1);
}

static void take_id(int fd, char ret[ID_SIZE])
{
	for (size_t at = 0; at < ID_SIZE;) {
		ssize_t got = read(fd, ret + at, ID_SIZE - at);

		assert_true(got > 0);
		at += (size_t)got;
	}
}

static void a_killed_engine_leaves_an_interrupted_run(void **state)
{
	char first[ID_SIZE], mark[ID_SIZE], second[ID_SIZE];
	struct store_execution row = {0};
	struct store_conversation conversation;
	struct store_file found;
	auto_close int watch = -1, guest = -1;
	auto_free char *variable = NULL;
	int acknowledge[2], status;
	pid_t pid;

	(void)state;
	fixture_make(&f, "");
	store_close(f.store);
	f.store = NULL;
	assert_int_equal(pipe2(acknowledge, O_CLOEXEC), 0);
	watch = fixture_watch_running(&f); /* before there is any: the first run prints nothing */
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		engine_process(acknowledge[1]);
	take_id(acknowledge[0], first);
	take_id(acknowledge[0], mark);
	take_id(acknowledge[0], second);
	fixture_wait_for_output(watch);
	variable = xasprintf("SP_MARK=%s", mark);
	guest = guest_pidfd(variable);
	assert_true(guest >= 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	wait_for_end(guest);
	assert_int_equal(guest_pidfd(variable), -1);

	fixture_open(&f);
	assert_ok(store_execution_find(f.store, second, &row, &fixture_err));
	assert_int_equal(row.state, STORE_INTERRUPTED);
	assert_string_equal(row.stdout_text.data, "partial\n");
	store_execution_clear(&row);
	assert_ok(store_execution_find(f.store, first, &row, &fixture_err));
	assert_int_equal(row.state, STORE_FINISHED);
	store_execution_clear(&row);
	assert_ok(store_conversation_find(f.store, "alice", "talk", &conversation, &fixture_err));
	assert_ok(store_file_find(f.store, conversation.row, "kept", 4, &found, &fixture_err));
	close(acknowledge[0]);
	close(acknowledge[1]);
}

/* -------- the jailer as a service of its own ---------------------------------------------------------- */

static void service_lost(void)
{
	struct json_object *runners;

	fixture_service_kill(&f);
	while ((runners = job_engine_runners(f.engine))) { /* until the engine has noticed */
		json_object_put(runners);
		sched_yield();
	}
}

static void calls_run_again_when_the_jailer_is_back(void **state)
{
	struct err err = ERR_INIT;
	struct job_request request;
	struct job *job;

	(void)state;
	f.socket = true;
	fixture_make(&f, "");
	fixture_service_start(&f);
	fixture_start(&f);
	request = fixture_request(&f, NULL, "print('ran')");
	job_release(fixture_run(&f, &request, JAIL_OK));

	service_lost();
	job = fixture_submit(&f, &request); /* waits for its return */
	fixture_service_start(&f);
	assert_string_equal(fixture_wait(job)->stdout_text.data, "ran\n");
	job_release(job);

	/* Patience has an end, for those that wait and for those that come. The clock is put forward, not waited for.
	 */
	service_lost();
	job = fixture_submit(&f, &request);
	fixture_wait_step(&f, job_id(job), JOB_WAITING);
	pthread_mutex_lock(&f.engine->lock);
	f.engine->away_since_us -= JOB_JAILER_WAIT_US + 1;
	job->turn.since_us -= JOB_JAILER_WAIT_US + 1;
	pthread_mutex_unlock(&f.engine->lock);
	job_wake_reactor(f.engine);
	assert_int_equal(job_wait(job, -1, NULL, &err), -ERR_UNAVAILABLE);
	assert_non_null(strstr(err.text, "the jailer does not answer"));
	job_release(job);
	assert_int_equal(job_submit(f.engine, &request, &job, &err), -ERR_UNAVAILABLE);
}

/* The engine was first. Nobody knows the languages before the jailer is there; files can be put into conversations. */
static void the_engine_starts_without_its_jailer(void **state)
{
	const struct job_file file = {"a.txt", "x", 1};
	struct err err = ERR_INIT;
	char hash[SHA256_HEX_SIZE];
	struct json_object *runners;
	struct job_request request;
	struct store_file stored;
	struct job *job;

	(void)state;
	f.socket = true;
	begin("");
	assert_null(job_engine_runners(f.engine));
	request = fixture_request(&f, "talk", "print(open('a.txt').read())");
	assert_int_equal(job_submit(f.engine, &request, &job, &err), -ERR_UNAVAILABLE);
	assert_non_null(strstr(err.text, "try again in a few seconds"));
	assert_ok(job_upload(f.engine, &request, &file, &stored, hash, &fixture_err));
	assert_null(job_engine_runner_name(f.engine, "py")); /* not there yet */
	fixture_service_start(&f);
	while (!(runners = job_engine_runners(f.engine)))
		sched_yield();
	json_object_put(runners);
	auto_free char *name = job_engine_runner_name(f.engine, "py");
	auto_free char *none = job_engine_runner_name(f.engine, "latin");

	assert_string_equal(name, "python");
	assert_null(none);
	job = fixture_run(&f, &request, JAIL_OK);
	assert_string_equal(fixture_wait(job)->stdout_text.data, "x\n");
	job_release(job);
}

static void put_runner(const char *folder, const char *name, const char *interpreter, const char *version)
{
	auto_free char *path = xasprintf("%s/%s.json", folder, name);
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	fprintf(file,
		"{\"name\":\"%s\",\"source\":\"main\",\"install\":\"none\",\"interpreters\":[\"%s\"],"
		"\"run\":[\"{interpreter}\",\"/code/main\"],\"version\":[\"/bin/sh\",\"-c\",\"%s\"]}",
		name, interpreter, version);
	fclose(file);
}

/* The first on the jailer's way through its runners does not answer. */
static void runs_go_on_while_a_version_is_awaited(void **state)
{
	char folder[] = "/tmp/sp-job-runners-XXXXXX";
	struct job_request request;
	struct job *job;

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chmod(folder, 0755), 0);
	put_runner(folder, "a", "/bin/sh", "sleep 1000");
	put_runner(folder, "python", "/usr/bin/python3", "echo python 1");
	setenv("SALLYPORT_JAILER_RUNNERS_DIR", folder, 1);
	f.socket = true;
	fixture_make(&f, "");
	fixture_service_start(&f);
	fixture_start(&f);
	for (int i = 0; i < 2; i++) {
		request = fixture_request(&f, "talk", "print(1)");
		job = fixture_run(&f, &request, JAIL_OK);
		assert_string_equal(fixture_wait(job)->jail.fingerprint, "python 1");
		job_release(job);
		auto_json struct json_object *runners = job_engine_runners(f.engine);
		struct json_object *slow = jail_runner_named(runners, "a");

		assert_string_equal(json_get_string(slow, "version"), "");
		if (i == 1)
			break;
		fixture_service_kill(&f);
		while (job_engine_connected(f.engine))
			sched_yield();
		fixture_service_start(&f);
		while (!job_engine_connected(f.engine))
			sched_yield();
	}
	unsetenv("SALLYPORT_JAILER_RUNNERS_DIR");
	nftw(folder, fixture_remove, 16, FTW_DEPTH | FTW_PHYS);
}

/* The jailer cannot be started at all: the engine says so and does not start. */
static void a_private_jailer_must_start(void **state)
{
	struct err err = ERR_INIT;

	(void)state;
	fixture_make(&f, "");
	f.config.jailer.program = "/nonexistent/sallyport-jailer";
	assert_true(job_engine_start(&f.config, f.store, &f.engine, &err) < 0);
	assert_non_null(strstr(err.text, "/nonexistent/sallyport-jailer"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_killed_jailer_ends_the_run_with_its_output, end),
		cmocka_unit_test_teardown(a_killed_engine_leaves_an_interrupted_run, end),
		cmocka_unit_test_teardown(calls_run_again_when_the_jailer_is_back, end),
		cmocka_unit_test_teardown(the_engine_starts_without_its_jailer, end),
		cmocka_unit_test_teardown(runs_go_on_while_a_version_is_awaited, end),
		cmocka_unit_test_teardown(a_private_jailer_must_start, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
