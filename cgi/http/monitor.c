/*
 * monitor.c - see monitor.h.
 *
 * Gauges are set when somebody asks; counters count by themselves (lib/base/metrics.h). The checks are one table:
 * /readyz answers with all of them, the admin page shows those that fail. None of them writes or waits.
 */
#include "monitor.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "access.h"
#include "lib/base/metrics.h"
#include "lib/base/util.h"
#include "lib/job/job.h"
#include "lib/store/blob/store_search.h"
#include "lib/store/record/store_drain.h"
#include "lib/store/record/store_space.h"
#include "lib/store/record/store_view.h"

#define RETRY_SECONDS 5
#define SAMPLE_US     (60 * INT64_C(1000000))
#define KINDS_US      (600 * INT64_C(1000000))

bool monitor_token(const struct http_exchange *exchange)
{
	const char *token = exchange->server->config->metrics.token;

	return token && *token && access_bearer_is(exchange, token);
}

/* NULL: the engine is not started. */
static struct job_engine *engine_of(struct server *server)
{
	pthread_mutex_lock(&server->lock);
	struct job_engine *engine = server->stopping ? NULL : server->engine;

	pthread_mutex_unlock(&server->lock);
	return engine;
}

/* -------- /metrics ------------------------------------------------------------------------------------ */

static void set_jails(void *arg, const char *state, int64_t count)
{
	(void)arg;
	metrics_set(METRIC_JAILS, state, count);
}

static void set_tasks(void *arg, const char *state, int64_t count)
{
	(void)arg;
	metrics_set(METRIC_TASKS, state, count);
}

static void set_kind(void *arg, const char *kind, int64_t bytes)
{
	(void)arg;
	metrics_set(METRIC_CONTENT, kind, bytes);
}

/* Counting all contents takes milliseconds: once a minute. What cannot be read stays as it was: /readyz says why. */
static void sample_record(struct server *server)
{
	static _Atomic int64_t next_us, next_kinds_us;
	const int64_t now = clock_monotonic_us();
	struct store_view_sizes sizes;
	int64_t backlog;

	store_view_tasks(server->store, set_tasks, NULL, NULL);
	if (store_search_backlog(server->store, &backlog, NULL) == 0)
		metrics_set(METRIC_INDEX, NULL, backlog);
	if (now >= next_kinds_us) {
		next_kinds_us = now + KINDS_US;
		store_view_kinds(server->store, set_kind, NULL, NULL);
	}
	if (now < next_us || store_view_sizes(server->store, &sizes, NULL) < 0)
		return;
	next_us = now + SAMPLE_US;
	metrics_set(METRIC_BLOBS, NULL, sizes.blobs_bytes);
	metrics_set(METRIC_AUDIT, NULL, sizes.audit_entries);
	metrics_set(METRIC_BACKUP, NULL, sizes.backup_us / 1000000);
}

static int64_t size_of(const char *folder, const char *name)
{
	auto_free char *path = xasprintf("%s/%s", folder, name);
	struct stat status;

	return stat(path, &status) == 0 ? status.st_size : 0;
}

/* Of /proc/meminfo, in bytes. */
static int64_t meminfo(const char *text, const char *name)
{
	const char *line = strstr(text, name);

	return line ? strtoll(line + strlen(name), NULL, 10) << 10 : 0;
}

#define HOST_TEXT_MAX 16384

/* What the next jails find. A kernel without pressure figures has no such files. */
static void sample_host(void)
{
	static const char *const resources[] = {"cpu", "memory", "io"};
	auto_free char *memory = NULL;
	size_t length;

	if (read_file_at(AT_FDCWD, "/proc/meminfo", HOST_TEXT_MAX, &memory, &length, NULL) == 0) {
		metrics_set(METRIC_HOST_MEMORY, "total", meminfo(memory, "MemTotal:"));
		metrics_set(METRIC_HOST_MEMORY, "available", meminfo(memory, "MemAvailable:"));
	}
	for (size_t i = 0; i < ARRAY_SIZE(resources); i++) {
		auto_free char *path = xasprintf("/proc/pressure/%s", resources[i]), *text = NULL;

		if (read_file_at(AT_FDCWD, path, HOST_TEXT_MAX, &text, &length, NULL) < 0)
			continue;
		const char *share = strstr(text, "avg60="); /* per cent, of the line "some" */

		metrics_set(METRIC_PRESSURE, resources[i],
			    share ? (int64_t)(strtod(share + strlen("avg60="), NULL) * 100 + 0.5) : 0);
	}
}

static void set_ready(void *arg, const char *name, const struct err *err)
{
	(void)arg;
	metrics_set(METRIC_READY, name, err->code == ERR_NONE);
}

static void sample(struct server *server)
{
	const char *folder = server->config->data_dir;
	struct job_engine *engine = engine_of(server);
	struct store_free space = {0};

	auto_free struct job_listing *jobs = NULL;
	size_t count = engine ? job_engine_list(engine, &jobs) : 0;
	int64_t steps[JOB_STEPS] = {0}, all = 0;

	if (engine)
		job_engine_jails(engine, set_jails, NULL);
	for (size_t i = 0; i < count; i++)
		steps[jobs[i].step]++;
	for (int step = 0; step < JOB_OVER; step++) {
		metrics_set(METRIC_JOBS, job_step_text(step), steps[step]);
		all += steps[step];
	}
	metrics_set(METRIC_CALLS_WAITING, NULL, access_waiting(server->limiter));
	metrics_set(METRIC_QUEUE, NULL, steps[JOB_WAITING]);
	metrics_set(METRIC_RUNNING, NULL, all - steps[JOB_WAITING] - steps[JOB_RECEIVING]);
	sample_record(server);
	metrics_set(METRIC_DATABASE, "main", size_of(folder, "sallyport.db"));
	metrics_set(METRIC_DATABASE, "wal", size_of(folder, "sallyport.db-wal"));
	store_free_space(folder, &space, NULL);
	metrics_set(METRIC_DISK, NULL, space.bytes);
	metrics_set(METRIC_JAILS_MAX, NULL, server->config->jailer.jails);
	metrics_set(METRIC_QUEUE_MAX, NULL, server->config->limits.queue);
	monitor_checks(server, set_ready, NULL);
	sample_host();
	metrics_process();
}

void monitor_metrics(struct http_exchange *exchange, const char *method, const char *rest)
{
	const char *accept = request_param(exchange->request, "HTTP_ACCEPT");
	const bool open_metrics = accept && strstr(accept, "application/openmetrics-text");
	struct reply *reply = exchange->reply;

	(void)method;
	(void)rest;
	if (!exchange->server->config->metrics.enabled) {
		reply_refuse(reply, 404, "metrics.enabled is false in the configuration");
		return;
	}
	sample(exchange->server);
	reply->status = 200;
	reply_header(reply, "Content-Type", "%s", open_metrics ? METRICS_TYPE_OPEN : METRICS_TYPE_TEXT);
	metrics_print(&reply->body, open_metrics);
}

/* -------- /readyz ------------------------------------------------------------------------------------- */

static int check_database(struct server *server, struct err *err)
{
	const char *folder = server->config->data_dir;
	auto_free char *path = xasprintf("%s/sallyport.db", folder);
	struct statvfs space;
	int version;
	int result = store_schema_version(folder, &version, err);

	if (result < 0)
		return result;
	if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) < 0)
		return err_errno(err, "the database cannot be written");
	if (statvfs(folder, &space) == 0 && (space.f_flag & ST_RDONLY))
		return err_set(err, ERR_UNAVAILABLE, "the file system of data_dir is read-only");
	return 0;
}

static int check_jailer(struct server *server, struct err *err)
{
	struct job_engine *engine = engine_of(server);

	if (!engine)
		return err_set(err, ERR_UNAVAILABLE, "this gateway is starting or stopping");
	if (!job_engine_connected(engine))
		return err_set(err, ERR_UNAVAILABLE, JOB_JAILER_AWAY);
	return 0;
}

static int check_disk(struct server *server, struct err *err)
{
	const int64_t least = server->config->health.disk_mb << 20;
	/* Nothing runs below the floor; this check fails at twice as many. */
	const int64_t inodes = least > 0 ? 2 * server->config->retention.free_inodes : 0;
	struct store_free space;
	int result = store_free_space(server->config->data_dir, &space, err);

	if (result < 0)
		return result;
	if (space.bytes < least)
		return err_set(err, ERR_UNAVAILABLE, "data_dir has %lld MiB left, less than health.disk_mb (%lld)",
			       (long long)space.bytes >> 20, (long long)least >> 20);
	if (space.inodes < inodes)
		return err_set(err, ERR_UNAVAILABLE,
			       "data_dir has %lld inodes left, less than twice retention.free_inodes (%lld)",
			       (long long)space.inodes, (long long)inodes / 2);
	return 0;
}

static int check_drain(struct server *server, struct err *err)
{
	bool drained = false;
	int result = store_drained(server->store, STORE_DRAIN_ALL, &drained, err);

	if (result == 0 && drained)
		result = err_set(err, ERR_UNAVAILABLE, "this host is being emptied (sallyport drain)");
	return result;
}

static const struct {
	const char *name;
	int (*check)(struct server *server, struct err *err);
} checks[] = {{"database", check_database}, {"jailer", check_jailer}, {"disk", check_disk}, {"drain", check_drain}};

void monitor_checks(struct server *server, void (*each)(void *arg, const char *name, const struct err *err), void *arg)
{
	for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
		struct err err = ERR_INIT;

		if (checks[i].check(server, &err) == 0)
			err.code = ERR_NONE;
		each(arg, checks[i].name, &err);
	}
}

struct readiness {
	struct json_object *results;
	bool ready;
};

static void add_check(void *arg, const char *name, const struct err *err)
{
	struct json_object *one = json_object_new_object();
	struct readiness *readiness = arg;
	const bool passed = err->code == ERR_NONE;

	readiness->ready = readiness->ready && passed;
	json_add(one, "ok", json_object_new_boolean(passed));
	if (!passed)
		json_add_string(one, "error", err->text);
	json_add(readiness->results, name, one);
}

void monitor_ready(struct http_exchange *exchange, const char *method, const char *rest)
{
	auto_json struct json_object *body = json_object_new_object();
	struct readiness readiness = {.ready = true};

	(void)method;
	(void)rest;
	if (!exchange->server->config->health.ready) {
		reply_refuse(exchange->reply, 404, "health.ready is false in the configuration");
		return;
	}
	readiness.results = json_object_new_object();
	monitor_checks(exchange->server, add_check, &readiness);
	json_add(body, "ready", json_object_new_boolean(readiness.ready));
	json_add(body, "checks", readiness.results);
	if (!readiness.ready)
		reply_header(exchange->reply, "Retry-After", "%d", RETRY_SECONDS);
	reply_json(exchange->reply, readiness.ready ? 200 : 503, body);
}
