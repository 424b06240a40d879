/*
 * versions.c - see versions.h.
 *
 * Each command has a jail that is not one of those for clients. Its end is reported by the cell, in the middle of an
 * event; the next one, and the runs that waited, begin in the tick after it. Whatever goes wrong is logged and leaves
 * the runner without what was asked for: runs wait for an answer, not for a good one.
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

static const struct {
	const char *name; /* in the file of answers */
	size_t strings;   /* of struct runner */
} commands[VERSIONS_COMMANDS] = {
	[VERSIONS_VERSION] = {"version", offsetof(struct runner, version)},
	[VERSIONS_LIBRARIES] = {"libraries", offsetof(struct runner, libraries)},
	[VERSIONS_CACHE] = {"cache", offsetof(struct runner, cache)},
};

static const struct bind_strings *command_of(const struct runner *runner, enum versions_command command)
{
	return (const void *)((const char *)runner + commands[command].strings);
}

/* What the command printed, or (`failed`) that it ended otherwise. */
static void take_answer(struct runner *runner, enum versions_command command, const struct answer *answer)
{
	if (answer->failed)
		return;
	auto_free char *text = xmemdup(answer->text, answer->length);
	if (command == VERSIONS_VERSION) {
		take_version(runner, text);
	} else if (command == VERSIONS_LIBRARIES) {
		take_libraries(runner, text);
	} else {
		take_cache(runner, text, answer->length);
	}
}

/* The command is through, whatever came of it. */
static void finish(struct versions_probe *probe)
{
	struct versions *versions = probe->versions;

	if (probe->command == VERSIONS_VERSION) {
		versions->answered_run = versions->answered_run || probe->runner->awaited;
		probe->runner->awaited = false;
	}
	if (versions->way == probe)
		versions->way = NULL;
	fd_close(&probe->output);
	if (probe->cell)
		cell_destroy(steal(&probe->cell));
}

static void on_done(void *arg, const struct jail_result *result)
{
	struct versions_probe *probe = arg;
	struct versions *versions = probe->versions;
	struct runner *runner = probe->runner;
	auto_free char *text = NULL;
	struct answer answer = {.key = runner->answers_key};

	snprintf(answer.runner, sizeof(answer.runner), "%s", runner->name);
	snprintf(answer.command, sizeof(answer.command), "%s", commands[probe->command].name);
	answer.failed = result->verdict != JAIL_OK;
	runner->asked = runner->asked || probe->command == VERSIONS_VERSION;
	if (!answer.failed && lseek(probe->output, 0, SEEK_SET) == 0 &&
	    !read_fd(probe->output, OUTPUT_MAX, &text, &answer.length, NULL)) {
		answer.text = text;
		answers_keep(&versions->answers, &answer);
		take_answer(runner, probe->command, &answer);
	} else if (result->verdict == JAIL_RE && probe->command == VERSIONS_CACHE) {
		/* the library is not installed */
		log_event(LOG_DEBUG, "the cache command of a runner failed", "runner", runner->name, NULL);
		answers_keep(&versions->answers, &answer);
	} else {
		log_event(LOG_WARN, "the version command of a runner failed", "runner", runner->name, "why",
			  result->message, NULL);
		if (result->verdict != JAIL_XX && probe->command == VERSIONS_VERSION)
			snprintf(runner->fingerprint, sizeof(runner->fingerprint), "unknown");
	}
	if (versions->answered && probe->command == VERSIONS_VERSION)
		versions->answered(versions->arg, runner, result, NULL);
	finish(probe);
}

static void on_failed(void *arg, const struct err *why)
{
	struct versions_probe *probe = arg;
	struct versions *versions = probe->versions;

	log_event(LOG_WARN, "there is no jail for the version command of a runner", "runner", probe->runner->name,
		  "why", why->text, NULL);
	if (versions->answered && probe->command == VERSIONS_VERSION)
		versions->answered(versions->arg, probe->runner, NULL, why);
	finish(probe);
}

static int begin(struct versions_probe *probe, struct err *err)
{
	static const struct cell_callbacks callbacks = {.done = on_done, .failed = on_failed};
	struct versions *versions = probe->versions;
	struct jail_limits asked = {.output_bytes = OUTPUT_MAX, .wall_us = WALL_US, .cpu_percent = -1}, limits;
	int result;

	versions->begun++;
	asked.wall_us = MIN(asked.wall_us, versions->config->limits.wall_seconds_max * 1000000);
	result = limits_resolve(&versions->config->limits, &asked, &limits, err);
	if (result == 0)
		result = cell_open(versions->cells,
				   &(struct cell_request){.runner = probe->runner,
							  .limits = &limits,
							  .label = "versions",
							  .extra = true,
							  .callbacks = &callbacks,
							  .arg = probe},
				   &probe->cell, err);
	if (result < 0)
		return result;
	probe->output = memfd_create("versions", MFD_CLOEXEC);
	struct cell_program program = {
		.command = command_of(probe->runner, probe->command),
		.code_fd = -1,
		.stdin_fd = -1,
		.stdout_fd = fcntl(probe->output, F_DUPFD_CLOEXEC, 3),
		.stderr_fd = -1,
	};
	return cell_queue_run(probe->cell, &program, err);
}

static void start(struct versions_probe *probe, enum versions_command command)
{
	struct err err = ERR_INIT;

	probe->command = command;
	if (begin(probe, &err) < 0)
		on_failed(probe, &err);
}

/* Goes on to the next command on the way. False: there is none. */
static bool advance(struct versions *versions)
{
	while (versions->all && versions->next < versions->runners->count) {
		struct versions_probe *probe = &versions->probes[versions->next];
		const enum versions_command command = versions->next_step;
		struct runner *runner = probe->runner;

		if (probe->cell) { /* a run waits for its version */
			versions->way = probe;
			return true;
		}
		if (++versions->next_step == VERSIONS_COMMANDS) {
			versions->next_step = 0;
			versions->next++;
		}
		bool known = probe->known & 1U << command || (command == VERSIONS_VERSION && runner->asked);

		if (!runner->interpreter || !command_of(runner, command)->count || known)
			continue;
		versions->way = probe;
		start(probe, command);
		return true;
	}
	return false;
}

void versions_tick(struct versions *versions)
{
	for (size_t i = 0; i < versions->runners->count; i++) {
		struct versions_probe *probe = &versions->probes[i];

		if (probe->runner->awaited && !probe->cell)
			start(probe, VERSIONS_VERSION);
	}
	while (!versions->way && advance(versions))
		;
	if (versions->answered_run) {
		versions->answered_run = false;
		cells_advance(versions->cells);
	}
}

bool versions_done(const struct versions *versions)
{
	for (size_t i = 0; i < versions->runners->count; i++)
		if (versions->probes[i].cell || versions->probes[i].runner->awaited)
			return false;
	return !versions->all || versions->next == versions->runners->count;
}

void versions_init(struct versions *versions, struct cells *cells, struct runners *runners, const struct config *config,
		   bool all, int answers_fd)
{
	*versions = (struct versions){.cells = cells, .runners = runners, .config = config, .all = all};
	versions->probes = xcalloc(runners->count + 1, sizeof(*versions->probes));
	answers_load(&versions->answers, answers_fd);
	auto_free char *kept = xasprintf("%zu", versions->answers.count);
	log_event(LOG_DEBUG, "answers of version commands are kept from before", "answers", kept, NULL);
	for (size_t i = 0; i < runners->count; i++) {
		struct versions_probe *probe = &versions->probes[i];
		struct runner *runner = &runners->items[i];

		*probe = (struct versions_probe){.versions = versions, .runner = runner, .output = -1};
		for (enum versions_command command = 0; command < VERSIONS_COMMANDS; command++) {
			const struct answer *answer = answers_find(&versions->answers, runner->name,
								   commands[command].name, runner->answers_key);

			if (!answer || !runner->interpreter)
				continue;
			probe->known |= 1U << command;
			runner->asked = runner->asked || command == VERSIONS_VERSION;
			take_answer(runner, command, answer);
		}
	}
	answers_loaded(&versions->answers);
}

void versions_clear(struct versions *versions)
{
	for (size_t i = 0; i < versions->runners->count; i++) {
		if (versions->probes[i].cell)
			cell_destroy(steal(&versions->probes[i].cell));
		fd_close(&versions->probes[i].output);
	}
	free(steal(&versions->probes));
	fd_close(&versions->answers.fd);
}
