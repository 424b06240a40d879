/*
 * job_runtime.c - see job_runtime.h.
 *
 * The interpreter's SHA-256 is the only part that costs anything. It is kept for as long as the file has the same
 * place, size and times; so few interpreters are ever met that the list needs no order.
 */
#include "job_runtime.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "jail/client/client_runners.h"
#include "job_internal.h"
#include "lib/base/util.h"
#include "lib/store/db/crypto.h"

#define KNOWN_MAX 64
#define CPU_INFO  "/proc/cpuinfo"
#define CPU_LINE  256

#define RUNNERS_SECONDS 20 /* a lister waits for versions; one slow interpreter does not cost it more */

struct known {
	struct stat file;
	char hash[SHA256_HEX_SIZE];
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct known known[KNOWN_MAX];
static size_t n_known;

static bool same_file(const struct stat *one, const struct stat *other)
{
	return one->st_dev == other->st_dev && one->st_ino == other->st_ino && one->st_size == other->st_size &&
	       one->st_mtim.tv_sec == other->st_mtim.tv_sec && one->st_mtim.tv_nsec == other->st_mtim.tv_nsec &&
	       one->st_ctim.tv_sec == other->st_ctim.tv_sec && one->st_ctim.tv_nsec == other->st_ctim.tv_nsec;
}

static bool find_hash(const char *path, char ret[SHA256_HEX_SIZE])
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat file;
	size_t place = 0;

	if (fd < 0 || fstat(fd, &file) < 0 || !S_ISREG(file.st_mode))
		return false;
	pthread_mutex_lock(&lock); /* two threads that meet a new one wait for each other rather than read it twice */
	while (place < n_known && !same_file(&known[place].file, &file))
		place++;
	bool found = place < n_known;

	if (found) {
		memcpy(ret, known[place].hash, SHA256_HEX_SIZE);
	} else if (sha256_fd(fd, ret, NULL) == 0) {
		found = true;
		place = n_known < KNOWN_MAX ? n_known++ : 0;
		known[place].file = file;
		memcpy(known[place].hash, ret, SHA256_HEX_SIZE);
	}
	pthread_mutex_unlock(&lock);
	return found;
}

static void add_processor(struct json_object *object)
{
	FILE *file = fopen(CPU_INFO, "re");
	char line[CPU_LINE];

	while (file && fgets(line, sizeof(line), file)) {
		char *text = strchr(line, ':');

		if (!str_starts(line, "model name") || !text)
			continue;
		line[strcspn(line, "\n")] = '\0';
		json_add_bytes(object, "processor", text + 2, strlen(text + 2));
		break;
	}
	if (file)
		fclose(file);
}

struct json_object *job_runtime(struct json_object *runners, const char *name, const char *version)
{
	struct json_object *runner = jail_runner_named(runners, name), *object = json_object_new_object();
	struct json_object *list = runner ? json_get(runner, "libraries", json_type_array) : NULL;
	const char *interpreter = runner ? json_get_string(runner, "interpreter") : NULL;
	const size_t n_libraries = list ? json_object_array_length(list) : 0;
	struct json_object *libraries = json_object_new_object();
	char hash[SHA256_HEX_SIZE];
	struct utsname host;

	json_add_string(object, "runner", name);
	if (version && *version)
		json_add_string(object, "version", version);
	if (interpreter)
		json_add_string(object, "interpreter", interpreter);
	if (interpreter && find_hash(interpreter, hash))
		json_add_string(object, "sha256", hash);
	for (size_t i = 0; i < n_libraries; i++) {
		struct json_object *library = json_object_array_get_idx(list, i);
		const char *library_name = json_get_string(library, "name");

		if (library_name)
			json_add_string(libraries, library_name, json_get_string(library, "version"));
	}
	if (n_libraries > 0)
		json_add(object, "libraries", libraries);
	else
		json_object_put(libraries);
	uname(&host);
	json_add_string(object, "kernel", host.release);
	json_add_string(object, "architecture", host.machine);
	add_processor(object);
	return object;
}

struct comparing {
	void (*each)(void *arg, const char *member, const char *recorded, const char *now);
	void *arg;
};

static void compare_libraries(struct json_object *recorded, struct json_object *now, const struct comparing *to)
{
	json_object_object_foreach(recorded, name, version)
	{
		const char *before = json_object_get_string(version), *after = json_get_string(now, name);
		auto_free char *member = xasprintf("library %s", name);

		if (!after || !streq(before, after))
			to->each(to->arg, member, before, after ? after : "none");
	}
	json_object_object_foreach(now, other, new_version)
	{
		auto_free char *member = xasprintf("library %s", other);

		if (!json_get_string(recorded, other))
			to->each(to->arg, member, "none", json_object_get_string(new_version));
	}
}

void job_runtime_compare(struct json_object *recorded, struct json_object *now,
			 void (*each)(void *arg, const char *member, const char *recorded, const char *now), void *arg)
{
	const struct comparing to = {each, arg};

	json_object_object_foreach(recorded, member, value)
	{
		struct json_object *other = NULL;

		if (!json_object_object_get_ex(now, member, &other) || json_object_equal(value, other))
			continue;
		if (json_object_is_type(value, json_type_object) && json_object_is_type(other, json_type_object))
			compare_libraries(value, other, &to);
		else
			each(arg, member, json_object_get_string(value), json_object_get_string(other));
	}
}

/* -------- an engine's --------------------------------------------------------------------------------- */

struct met {
	struct met *next;
	uint64_t generation; /* of the engine's runners */
	char *name, *version;
	struct store_runtime runtime;
};
struct job_runtimes {
	pthread_mutex_t lock;
	struct met *first;
};

struct job_runtimes *job_runtimes_new(void)
{
	struct job_runtimes *runtimes = xcalloc(1, sizeof(*runtimes));

	pthread_mutex_init(&runtimes->lock, NULL);
	return runtimes;
}

void job_runtimes_free(struct job_runtimes *runtimes)
{
	struct met *next;

	for (struct met *met = runtimes ? runtimes->first : NULL; met; met = next) {
		next = met->next;
		free(met->name);
		free(met->version);
		free(met->runtime.text);
		free(met);
	}
	if (runtimes)
		pthread_mutex_destroy(&runtimes->lock);
	free(runtimes);
}

uint64_t job_engine_generation(struct job_engine *engine)
{
	pthread_mutex_lock(&engine->lock);
	uint64_t generation = engine->generation;

	pthread_mutex_unlock(&engine->lock);
	return generation;
}

const struct store_runtime *job_runtime_of(struct job_engine *engine, const char *name, const char *version)
{
	const uint64_t generation = job_engine_generation(engine);
	auto_json struct json_object *runners = NULL, *object = NULL;
	struct met *met;
	struct buf text;

	if (generation == 0)
		return NULL;
	pthread_mutex_lock(&engine->runtimes->lock);
	met = engine->runtimes->first;
	while (met && (met->generation != generation || !streq(met->name, name) || !streq(met->version, version)))
		met = met->next;
	if (!met) { /* the list grows by a jailer's start, a runner and a version */
		pthread_mutex_lock(&engine->lock);
		if (engine->runners)
			json_object_deep_copy(engine->runners, &runners, NULL);
		pthread_mutex_unlock(&engine->lock);
		object = job_runtime(runners, name, version);
		buf_init(&text, SIZE_MAX / 2);
		json_print(&text, object);
		met = xcalloc(1, sizeof(*met));
		met->generation = generation;
		met->name = xstrdup(name);
		met->version = xstrdup(version);
		met->runtime.text = buf_steal(&text, NULL);
		sha256_hex(met->runtime.text, strlen(met->runtime.text), met->runtime.hash);
		met->next = engine->runtimes->first;
		engine->runtimes->first = met;
	}
	pthread_mutex_unlock(&engine->runtimes->lock);
	return &met->runtime;
}

void job_engine_await_runners(struct job_engine *engine)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += RUNNERS_SECONDS;
	pthread_mutex_lock(&engine->lock);
	while (engine->connected && !engine->runners_known && !engine->stopping)
		if (pthread_cond_timedwait(&engine->runners_wake, &engine->lock, &until) != 0)
			break;
	pthread_mutex_unlock(&engine->lock);
}

void job_engine_learn(struct job_engine *engine)
{
	static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
	const struct config *config = engine->config;
	struct json_object *found = NULL;
	struct err err = ERR_INIT;

	job_engine_await_runners(engine);
	if (!config->stays || (config->jailer.socket && *config->jailer.socket))
		return;
	pthread_mutex_lock(&once); /* who comes second finds them */
	if (!engine->learned && jail_client_learn(config, &found, &err) < 0)
		log_event(LOG_WARN, "versions and libraries are not known", "cause", err.text, NULL);
	if (found) {
		pthread_mutex_lock(&engine->lock);
		struct json_object *old = engine->runners;

		engine->runners = jail_runners_offered(found);
		engine->learned = true;
		engine->generation++;
		pthread_mutex_unlock(&engine->lock);
		json_object_put(old);
	}
	pthread_mutex_unlock(&once);
}
