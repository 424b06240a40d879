/*
 * history.h - hosts with records on which random honest histories are played (test_history.c): opening and closing,
 * chance, the program, and the verdicts.
 *
 * A history is made from its seed alone: each step draws from a generator of its own, which begins with the seed and
 * the number of the step. A process that is killed dies at its n-th call that changes a file (faults.h), so it dies
 * at the same place each time, as far as its threads allow.
 */
#pragma once

#include "faults.h"
#include "store_fixture.h"

#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/audit/audit_signer.h"
#include "lib/audit/audit_verify.h"
#include "lib/base/log.h"
#include "lib/job/job.h"

#define HOSTS      2
#define TRACE_SIZE (64 * 1024)

struct host {
	struct fixture f; /* base: not used */
	int number;
	char *config_path, *signer; /* signer: NULL until the first checkpoint */
	struct config config;
	struct job_engine *engine;
	sqlite3 *asking; /* NULL: nothing was asked yet */
};
struct history {
	char base[64];
	uint64_t seed, state;
	int step, folders, signers;
	struct host hosts[HOSTS];
	char *trace; /* what was done; shared with the child */
	bool child;  /* this is the one that is going to be killed */
	/* Up to `most` further steps, which start no program. */
	void (*play_some)(struct history *h, struct host *host, int most);
};

/* -------- what goes wrong ------------------------------------------------------------------------------ */

static void history_say(struct history *h, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void history_say(struct history *h, const char *format, ...)
{
	const size_t length = strlen(h->trace);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(h->trace + length, TRACE_SIZE - length, format, arguments);
	va_end(arguments);
}

static void history_fail(struct history *h, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));
static void history_fail(struct history *h, const char *format, ...)
{
	char text[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	print_error("%s\nHISTORY_SEED=%llu HISTORIES=1, in %s: %s\n", h->trace, (unsigned long long)h->seed, h->base,
		    text);
	if (h->child)
		_exit(90);
	fail();
	abort(); /* never reached */
}

/* What may be refused on an honest host; anything else is a fault of ours. True: it was done. */
static bool done(struct history *h, int result, const struct err *err)
{
	static const enum err_code honest[] = {ERR_INVALID,  ERR_NOT_FOUND, ERR_CONFLICT,
					       ERR_LIMIT,    ERR_BUSY,      ERR_UNAVAILABLE};

	for (size_t i = 0; i < ARRAY_SIZE(honest); i++)
		if (result == -(int)honest[i]) {
			history_say(h, " (refused: %s)", err->text);
			return false;
		}
	if (result < 0)
		history_fail(h, "%d: %s", result, err->text);
	return true;
}

static void must(struct history *h, int result, const struct err *err)
{
	if (result < 0)
		history_fail(h, "%d: %s", result, err->text);
}

static void remove_file(struct history *h, const char *path)
{
	if (unlink(path) < 0)
		history_fail(h, "%s: %s", path, strerror(errno));
}

/* -------- chance --------------------------------------------------------------------------------------- */

static uint64_t random_next(struct history *h)
{
	uint64_t z = h->state += 0x9e3779b97f4a7c15u; /* splitmix64 */

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static int pick(struct history *h, int n)
{
	if (n <= 0)
		history_fail(h, "one of %d", n);
	return (int)(random_next(h) % (uint64_t)n);
}

static bool chance(struct history *h, int percent)
{
	return pick(h, 100) < percent;
}

#define ONE_OF(h, items) ((items)[pick((h), ARRAY_SIZE(items))])

/* First column of the first row; "" for none. The caller frees. */
static char *host_ask(struct host *host, const char *select)
{
	auto_free char *path = xasprintf("%s/sallyport.db", host->f.data);
	sqlite3_stmt *statement = NULL;
	char *answer = NULL;

	if (host->asking == NULL) {
		assert_int_equal(sqlite3_open_v2(path, &host->asking, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
		sqlite3_busy_timeout(host->asking, 10000);
	}
	if (sqlite3_prepare_v2(host->asking, select, -1, &statement, NULL) != SQLITE_OK)
		fail_msg("%s: %s", select, sqlite3_errmsg(host->asking));
	if (sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_text(statement, 0) != NULL)
		answer = xstrdup((const char *)sqlite3_column_text(statement, 0));
	sqlite3_finalize(statement);
	return answer ? answer : xstrdup("");
}

static int64_t ask_number(struct host *host, const char *select)
{
	auto_free char *text = host_ask(host, select);

	return strtoll(text, NULL, 10);
}

/* One of the first column's values, "" where there are none; the caller frees. */
static char *pick_row(struct history *h, struct host *host, const char *select)
{
	auto_free char *count = xasprintf("SELECT count(*) FROM (%s)", select);
	const int64_t there = ask_number(host, count);

	if (there == 0)
		return xstrdup("");
	auto_free char *one = xasprintf("%s LIMIT 1 OFFSET %d", select, pick(h, (int)there));

	return host_ask(host, one);
}

/* -------- hosts ---------------------------------------------------------------------------------------- */

static void host_open(struct history *h, struct host *host)
{
	struct err err = ERR_INIT;

	if (host->f.store != NULL)
		return;
	must(h, store_open(host->f.data, STORE_SERVE, &host->f.store, &err), &err);
	must(h, job_engine_start(&host->config, host->f.store, &host->engine, &err), &err);
}

static void host_close(struct host *host)
{
	job_engine_stop(host->engine);
	store_close(host->f.store);
	sqlite3_close(host->asking);
	host->asking = NULL;
	host->engine = NULL;
	host->f.store = NULL;
}

/* A folder that nothing is in yet; the signer of the one before it has nothing to do with it. */
static void host_name(struct history *h, struct host *host)
{
	const int folder = h->folders++;
	struct err err = ERR_INIT;

	free(host->f.data);
	free(host->config_path);
	free(host->signer);
	config_clear(&host->config);
	host->f.data = xasprintf("%s/data-%d", h->base, folder);
	host->config_path = xasprintf("%s/%d.json", h->base, folder);
	host->signer = NULL;
	auto_free char *text = xasprintf("{\"data_dir\": \"%s\", \"public_base_url\": \"http://127.0.0.1:8080\", "
					 "\"jailer\": {\"socket\": \"%s/nobody.sock\"}}\n",
					 host->f.data, h->base);
	auto_close int fd = open(host->config_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || write_all(fd, text, strlen(text)) < 0)
		history_fail(h, "writing %s", host->config_path);
	must(h, config_load(host->config_path, &host->config, &err), &err);
}

static void host_clear(struct host *host)
{
	host_close(host);
	config_clear(&host->config);
	free(host->f.data);
	free(host->config_path);
	free(host->signer);
	*host = (struct host){0};
}

/* -------- the program ---------------------------------------------------------------------------------- */

#define ARGUMENTS_MAX 10

/* `sallyport COMMAND…` with this host's configuration; returns its exit code. */
static int cli(struct history *h, const struct host *host, const char *const arguments[ARGUMENTS_MAX])
{
	static char program[4096];
	char *argv[ARGUMENTS_MAX + 4] = {program, unconst(arguments[0]), (char[]){"--config"}, host->config_path};
	auto_free char *said = xasprintf("%s/said", h->base);
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int status;

	if (!*program) {
		auto_free char *here = config_program_dir();

		snprintf(program, sizeof(program), "%s/../bin/sallyport", here);
	}
	for (size_t i = 1; arguments[i] != NULL; i++)
		argv[i + 3] = unconst(arguments[i]);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 1, said, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	posix_spawn_file_actions_adddup2(&actions, 1, 2);
	if (posix_spawn(&pid, program, &actions, NULL, argv, environ) != 0 || waitpid(pid, &status, 0) != pid)
		history_fail(h, "starting %s", program);
	posix_spawn_file_actions_destroy(&actions);
	history_say(h, " [%s: %d]", arguments[0], WIFEXITED(status) ? WEXITSTATUS(status) : 128);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}
#define CLI(h, host, ...) cli((h), (host), (const char *const[ARGUMENTS_MAX]){__VA_ARGS__, NULL})

/* Its exit code must be one of two. */
static bool cli_done(struct history *h, int code, int refused)
{
	auto_free char *path = xasprintf("%s/said", h->base), *said = NULL;
	struct err err = ERR_INIT;
	size_t length;

	if (code == 0 || code == refused)
		return code == 0;
	must(h, read_file_at(AT_FDCWD, path, 1 << 16, &said, &length, &err), &err);
	history_fail(h, "the program ended with %d: %s", code, said);
}

/* -------- verdicts ------------------------------------------------------------------------------------- */

static int history_quiet(void *arg, const char *what, int64_t at, int64_t total)
{
	(void)arg, (void)what, (void)at, (void)total;
	return 0;
}

/* Of a data folder, a backup, or a bundle. */
static void verdicts(struct history *h, const char *path, const char *signer, struct audit_report *ret)
{
	auto_free char *blobs = xasprintf("%s/blobs", path);
	const struct audit_request request = {.path = path,
					      .signer = signer,
					      .blobs = access(blobs, F_OK) == 0 ? blobs : NULL,
					      .progress = history_quiet};
	struct err err = ERR_INIT;

	must(h, audit_verify(&request, ret, &err), &err);
}

static int broken_part(const struct audit_report *report)
{
	for (int i = 0; i < AUDIT_PARTS; i++)
		if (report->parts[i].state == AUDIT_BROKEN)
			return i;
	return -1;
}

static void holds(struct history *h, const char *path, const char *signer)
{
	struct audit_report report;

	verdicts(h, path, signer, &report);
	const int part = broken_part(&report);

	if (part >= 0)
		history_fail(h, "%s: %s does not hold: %s", path, audit_part_names[part], report.parts[part].text);
}

static void host_holds(struct history *h, const struct host *host)
{
	holds(h, host->f.data, host->signer);
}

static void host_sign(struct history *h, struct host *host)
{
	auto_buf struct buf note = {0};
	struct audit_signer signer;
	struct err err = ERR_INIT;

	buf_init(&note, AUDIT_NOTE_MAX);
	if (host->signer == NULL) {
		auto_buf struct buf vkey = {0};

		buf_init(&vkey, AUDIT_NOTE_MAX);
		host->signer = xasprintf("%s/signer-%d", h->base, h->signers++);
		must(h, audit_signer_init(host->signer, "test.example/audit", &vkey, &err), &err);
	}
	must(h, audit_signer_open(host->signer, NULL, &signer, &err), &err);
	must(h, audit_signer_sign(&signer, host->f.data, &note, &err), &err);
	audit_signer_close(&signer);
}
