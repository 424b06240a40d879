/*
 * job_fixture.h - a real store, a real jailer (private) and a job engine in a folder of their own, for test_job*.c and
 * test_replay.c.
 *
 * Programs run in real jails, which needs root here (or delegated cgroups); without it the tests say so and are
 * skipped.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first. */
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/util.h"
#include "lib/job/job.h"
#include "lib/store/record/store_execution.h"
#include "lib/store/record/store_token.h"
#include "patience.h"

#define FIXTURE_WALL_SECONDS "120" /* of runs that name no limit: they come to their end however busy the machine is */

struct fixture {
	bool socket; /* set before fixture_make: the jailer is a service that the test starts; else a private one */
	char dir[64];
	char *config_path, *bin;
	pid_t service;
	struct config config;
	struct store *store;
	struct job_engine *engine;
	struct store_token token;
};

#define assert_ok(call)                                                         \
	do {                                                                    \
		struct err *shown_ = &fixture_err;                              \
		*shown_ = ERR_INIT;                                             \
		int got_ = (call);                                              \
		if (got_ < 0)                                                   \
			fail_msg("%s: %s (%d)", #call, shown_->text, got_);     \
	} while (0)
static struct err fixture_err;

static int fixture_remove(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
	(void)status;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void fixture_write_config(struct fixture *f, const char *more)
{
	auto_free char *root = getcwd(NULL, 0);
	auto_free char *text =
		xasprintf("{\"data_dir\": \"data\", \"public_base_url\": \"http://127.0.0.1:8080\",\n"
			  "\"jailer\": {\"socket\": \"%s\", \"program\": \"%s/sallyport-jailer\",\n"
			  "\"runners_dir\": \"%s/../tests/runners\", \"modules_dir\": \"%s/jail/runners/npm\",\n"
			  "\"cgroup\": \"sallyport-test\"}%s}\n",
			  f->socket ? "jailer.sock" : "", f->bin, f->bin, root, more);
	auto_close int fd = -1;

	f->config_path = xasprintf("%s/sallyport.conf", f->dir);
	fd = open(f->config_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write_all(fd, text, strlen(text)), 0);
}

static void fixture_open(struct fixture *f)
{
	assert_ok(store_open(f->config.data_dir, STORE_SERVE, &f->store, &fixture_err));
	job_set_retention(&f->config, f->store);
}

static void fixture_start(struct fixture *f)
{
	assert_ok(job_engine_start(&f->config, f->store, &f->engine, &fixture_err));
}

static void fixture_make(struct fixture *f, const char *more)
{
	auto_free char *here = config_program_dir();
	char text[STORE_TOKEN_TEXT];

	if (geteuid() != 0) {
		print_message("skipped: needs root to make jails with cgroup limits\n");
		skip();
	}
	log_open("test", LOG_ERROR + 1);
	setenv("SALLYPORT_LIMITS_WALL_SECONDS", FIXTURE_WALL_SECONDS, 0); /* tests add members to "limits" themselves */
	*f = (struct fixture){.socket = f->socket, .dir = "/tmp/sp-job-XXXXXX"};
	assert_non_null(mkdtemp(f->dir));
	assert_int_equal(chmod(f->dir, 0755), 0);
	f->bin = xasprintf("%s/../bin", here);
	fixture_write_config(f, more);
	assert_ok(config_load(f->config_path, &f->config, &fixture_err));
	fixture_open(f);
	assert_ok(store_token_add(f->store, "alice", "test", text, &f->token, &fixture_err));
}

static inline void fixture_service_kill(struct fixture *f)
{
	assert_int_equal(kill(f->service, SIGKILL), 0);
	assert_int_equal(waitpid(f->service, NULL, 0), f->service);
	f->service = 0;
}

static void fixture_end(struct fixture *f)
{
	job_engine_stop(f->engine);
	if (f->service > 0)
		fixture_service_kill(f);
	store_close(f->store);
	config_clear(&f->config);
	free(f->config_path);
	free(f->bin);
	nftw(f->dir, fixture_remove, 16, FTW_DEPTH | FTW_PHYS);
}

static struct job_request fixture_request(const struct fixture *f, const char *conversation, const char *code)
{
	return (struct job_request){
		.owner = "alice",
		.token_id = f->token.id,
		.conversation = conversation,
		.language = "python",
		.code = {.data = code, .length = strlen(code)},
	};
}

static inline const struct job_result *fixture_wait(struct job *job)
{
	const struct job_result *result;

	assert_ok(job_wait(job, -1, &result, &fixture_err));
	return result;
}

/* The job's line in the engine's list; false: it is not there. */
static inline bool fixture_listed(const struct fixture *f, const char *id, struct job_listing *ret)
{
	auto_free struct job_listing *lines = NULL;
	size_t count = job_engine_list(f->engine, &lines);

	for (size_t i = 0; i < count; i++)
		if (streq(lines[i].id, id)) {
			*ret = lines[i];
			return true;
		}
	return false;
}

static inline struct job_listing fixture_wait_step(const struct fixture *f, const char *id, enum job_step step)
{
	struct job_listing line = {0};
	int64_t until = 0;

	while (!fixture_listed(f, id, &line) || line.step != step)
		if (!patience_left(&until))
			fail_msg("%s is %s, not %s", id, job_step_text(line.step), job_step_text(step));
	return line;
}

static inline struct job *fixture_submit(const struct fixture *f, const struct job_request *request)
{
	struct job *job;

	assert_ok(job_submit(f->engine, request, &job, &fixture_err));
	return job;
}

/* Runs it and expects a verdict; the job is the caller's. */
static inline struct job *fixture_run(const struct fixture *f, const struct job_request *request,
				      enum jail_verdict verdict)
{
	struct job *job = fixture_submit(f, request);
	const struct job_result *result = fixture_wait(job);

	if (result->jail.verdict != verdict)
		fail_msg("verdict %s (%s), expected %s; stderr: %s", jail_verdict_text(result->jail.verdict),
			 result->jail.message, jail_verdict_text(verdict), result->stderr_text.data);
	return job;
}

/* How many entries a folder has, folders below it not counted. */
static inline size_t fixture_files_below(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	size_t count = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		auto_free char *child = xasprintf("%s/%s", path, entry->d_name);
		struct stat status;

		if (entry->d_name[0] == '.' || lstat(child, &status) < 0)
			continue;
		count += S_ISDIR(status.st_mode) ? fixture_files_below(child) : 1;
	}
	closedir(dir);
	return count;
}

static inline int fixture_count_one(void *arg, const struct store_execution *execution)
{
	(void)execution;
	++*(size_t *)arg;
	return 0;
}

static inline size_t fixture_executions(const struct fixture *f)
{
	struct store_filter filter = {.running_too = true};
	size_t count = 0;

	assert_ok(store_execution_list(f->store, &filter, fixture_count_one, &count, &fixture_err));
	return count;
}

/* Output of a running program: watch before it is submitted, then wait. */
static inline int fixture_watch_running(const struct fixture *f)
{
	auto_free char *path = xasprintf("%s/running", f->config.data_dir);
	int fd = inotify_init1(IN_CLOEXEC);

	assert_true(inotify_add_watch(fd, path, IN_MODIFY) >= 0);
	return fd;
}

static inline void fixture_wait_for_output(int watch)
{
	struct pollfd poller = {.fd = watch, .events = POLLIN};

	assert_int_equal(poll(&poller, 1, PATIENCE_MS), 1);
}

/* The jailer as a service of its own (f->socket). */
static inline void fixture_service_start(struct fixture *f)
{
	auto_free char *program = xasprintf("%s/sallyport-jailer", f->bin);
	char *argv[] = {program, (char[]){"--config"}, f->config_path, NULL};
	struct jail_client *client = NULL;
	int64_t until = 0;

	assert_int_equal(posix_spawn(&f->service, program, NULL, NULL, argv, environ), 0);
	while (jail_client_connect(f->config.jailer.socket, &client, &fixture_err) < 0)
		if (!patience_left(&until))
			fail_msg("the jailer does not come up: %s", fixture_err.text);
	jail_client_free(client);
}

/* The test program's own: a test begins it, perhaps with further members of the configuration (", …"), and `end` is its
 * teardown. */
static struct fixture f;

static inline void begin(const char *more)
{
	fixture_make(&f, more);
	fixture_start(&f);
}

static inline int end(void **state)
{
	(void)state;
	fixture_end(&f);
	f = (struct fixture){0};
	return 0;
}

/* Alice's file into a conversation. */
static inline struct store_file upload(const char *conversation, const char *name, const char *text)
{
	const struct job_request who = {.owner = "alice", .token_id = f.token.id, .conversation = conversation};
	const struct job_file file = {.name = name, .data = text, .length = strlen(text)};
	char hash[SHA256_HEX_SIZE];
	struct store_file ret;

	assert_ok(job_upload(f.engine, &who, &file, &ret, hash, &fixture_err));
	assert_int_equal(strlen(hash), SHA256_HEX_SIZE - 1);
	assert_int_equal(ret.size, strlen(text));
	return ret;
}
