/*
 * versions.c - see versions.h.
 *
 * One command at a time, in a jail that is not one of those for clients. What is next is chosen when the last one
 * ended: the version that a run waits for (runner->awaited), else the next command on the way through all runners. Its
 * end is reported by the cell, in the middle of an event; the next one, and the runs that waited, begin in the tick
 * after it. Whatever goes wrong is logged and leaves the runner without what was asked for: runs wait for an answer,
 * not for a good one.
 */
#include "versions.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"

#define OUTPUT_MAX    (256 * 1024)
#define LIBRARIES_MAX 512
#define WALL_US       20000000

void versions_init(struct versions *versions, struct cells *cells, struct runners *runners, const struct config *config,
		   bool all)
{
	*versions = (struct versions){.cells = cells, .runners = runners, .config = config, .output = -1, .all = all};
}

static void take_version(struct runner *runner, char *text)
{
	auto_buf struct buf safe;

	text[strcspn(text, "\r\n")] = '\0';
	buf_init(&safe, sizeof(runner->fingerprint) - 1);
	utf8_printable(&safe, text, MIN(strlen(text), sizeof(runner->fingerprint) / 4 - 1));
	snprintf(runner->fingerprint, sizeof(runner->fingerprint), "%s", safe.data);
	const char *number = safe.data + strcspn(safe.data, "0123456789"); /* "v22.1.0": 22 */
	if (runner->version_least && (*number ? strtoll(number, NULL, 10) : -1) < runner->version_least) {
		log_event(LOG_WARN, "a runner is too old", "runner", runner->name, "version", runner->fingerprint,
			  NULL);
		runner->interpreter = NULL;
	}
}

static void take_libraries(struct runner *runner, char *text)
{
	struct json_object *array = json_object_new_array();
	size_t n = 0;
	char *state;

	for (char *line = strtok_r(text, "\n", &state); line && n < LIBRARIES_MAX;
	     line = strtok_r(NULL, "\n", &state)) {
		char *blank = strchr(line, ' ');

		if (!blank || !utf8_valid(line, strlen(line)))
			continue;
		*blank++ = '\0';
		struct json_object *library = json_object_new_object();
		json_add_string(library, "name", line);
		json_add_string(library, "version", blank);
		json_object_array_add(array, library);
		n++;
	}
	json_put_pointer(&runner->found_libraries);
	runner->found_libraries = array;
}

/* The first line is its name, the rest the file. A wrong name is found by init, which puts the file into a jail. */
static void take_cache(struct runner *runner, char *text, size_t length)
{
	char *end = memchr(text, '\n', length);

	if (!end || end == text || runner->cache_fd >= 0)
		return;
	*end++ = '\0';
	runner->cache_fd = memfd_with("cache", end, length - (size_t)(end - text));
	if (runner->cache_fd >= 0)
		runner->cache_name = xstrdup(text);
}

/* What the command reads: the file that it compiles; NULL: nothing. */
static int *source_of(struct runner *runner, size_t command)
{
	return command == VERSIONS_DRIVER ? &runner->driver_fd
	       : command == VERSIONS_SHOW ? &runner->show_fd
	       : command == VERSIONS_CALL ? &runner->call_fd
					  : NULL;
}

/* The command is through, whatever came of it. */
static void finish(struct versions *versions)
{
	if (versions->command == VERSIONS_VERSION) {
		versions->answered_run = versions->answered_run || versions->runner->awaited;
		versions->runner->awaited = false;
	}
	fd_close(&versions->output);
	if (versions->cell)
		cell_destroy(steal(&versions->cell));
}

static void answer(struct versions *versions, const struct jail_result *result, const struct err *why)
{
	if (versions->answered && versions->command == VERSIONS_VERSION)
		versions->answered(versions->arg, versions->runner, result, why);
}

static void on_done(void *arg, const struct jail_result *result)
{
	struct versions *versions = arg;
	struct runner *runner = versions->runner;
	int *source = source_of(runner, versions->command);
	auto_free char *text = NULL;
	size_t length;

	runner->asked = runner->asked || versions->command == VERSIONS_VERSION;
	if (result->verdict == JAIL_OK && source) {
		/* Jails get what the command wrote instead of the file. */
		close(*source);
		*source = steal_fd(&versions->output);
	} else if (result->verdict != JAIL_OK && versions->command >= VERSIONS_CACHE && result->verdict == JAIL_RE) {
		/* the library is not installed */
		log_event(LOG_DEBUG, "the cache command of a runner failed", "runner", runner->name, NULL);
	} else if (result->verdict != JAIL_OK) {
		log_event(LOG_WARN, "the version command of a runner failed", "runner", runner->name, "why",
			  result->message, NULL);
		if (result->verdict != JAIL_XX && versions->command == VERSIONS_VERSION)
			snprintf(runner->fingerprint, sizeof(runner->fingerprint), "unknown");
	} else if (lseek(versions->output, 0, SEEK_SET) == 0 &&
		   !read_fd(versions->output, OUTPUT_MAX, &text, &length, NULL)) {
		if (versions->command == VERSIONS_LIBRARIES)
			take_libraries(runner, text);
		else if (versions->command == VERSIONS_CACHE)
			take_cache(runner, text, length);
		else
			take_version(runner, text);
	}
	answer(versions, result, NULL);
	finish(versions);
}

static void on_failed(void *arg, const struct err *why)
{
	struct versions *versions = arg;

	log_event(LOG_WARN, "there is no jail for the version command of a runner", "runner", versions->runner->name,
		  "why", why->text, NULL);
	answer(versions, NULL, why);
	finish(versions);
}

static const struct bind_strings *command_of(const struct runner *runner, size_t command)
{
	const struct bind_strings *const commands[] = {
		[VERSIONS_VERSION] = &runner->version, [VERSIONS_LIBRARIES] = &runner->libraries,
		[VERSIONS_CACHE] = &runner->cache,     [VERSIONS_DRIVER] = &runner->precompile,
		[VERSIONS_SHOW] = &runner->precompile, [VERSIONS_CALL] = &runner->precompile,
	};

	return commands[command];
}

static int begin(struct versions *versions, struct err *err)
{
	static const struct cell_callbacks callbacks = {.done = on_done, .failed = on_failed};
	struct jail_limits asked = {.output_bytes = OUTPUT_MAX, .wall_us = WALL_US, .cpu_percent = -1}, limits;
	int result;

	asked.wall_us = MIN(asked.wall_us, versions->config->limits.wall_seconds_max * 1000000);
	result = limits_resolve(&versions->config->limits, &asked, &limits, err);
	if (result == 0)
		result = cell_open(versions->cells,
				   &(struct cell_request){.runner = versions->runner,
							  .limits = &limits,
							  .label = "versions",
							  .extra = true,
							  .callbacks = &callbacks,
							  .arg = versions},
				   &versions->cell, err);
	if (result < 0)
		return result;
	const int *source = source_of(versions->runner, versions->command);

	versions->output = memfd_create("versions", MFD_CLOEXEC);
	struct cell_program program = {
		.command = command_of(versions->runner, versions->command),
		.code_fd = -1,
		.stdin_fd = source ? fcntl(*source, F_DUPFD_CLOEXEC, 3) : -1,
		.stdout_fd = fcntl(versions->output, F_DUPFD_CLOEXEC, 3),
		.stderr_fd = -1,
	};
	return cell_queue_run(versions->cell, &program, err);
}

/* Chooses the next command: a version that a run waits for, else the next on the way. */
static bool choose(struct versions *versions)
{
	struct runners *runners = versions->runners;

	versions->command = VERSIONS_VERSION;
	for (size_t i = 0; i < runners->count; i++) {
		versions->runner = &runners->items[i];
		if (versions->runner->awaited)
			return true;
	}
	while (versions->all && versions->next < runners->count) {
		versions->runner = &runners->items[versions->next];
		versions->command = versions->next_step;
		if (++versions->next_step == VERSIONS_COMMANDS) {
			versions->next_step = 0;
			versions->next++;
		}
		bool known = versions->command == VERSIONS_VERSION && versions->runner->asked;

		const int *source = source_of(versions->runner, versions->command);

		if (versions->runner->interpreter && command_of(versions->runner, versions->command)->count && !known &&
		    (!source || *source >= 0))
			return true;
	}
	versions->done = true;
	return false;
}

void versions_tick(struct versions *versions)
{
	struct err err = ERR_INIT;

	while (!versions->cell && choose(versions))
		if (begin(versions, &err) < 0)
			on_failed(versions, &err);
	if (versions->answered_run) {
		versions->answered_run = false;
		cells_advance(versions->cells);
	}
}

void versions_clear(struct versions *versions)
{
	if (versions->cell)
		cell_destroy(steal(&versions->cell));
	fd_close(&versions->output);
}
