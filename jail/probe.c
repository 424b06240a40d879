/*
 * probe.c - see probe.h.
 *
 * One command at a time, in a jail that is not one of those for clients. What is next is chosen when the last one ended: the version that
 * a run waits for (runner->awaited), else the next command on the way through all runners. Its end is told by the cell, in the middle of an
 * event; the next one, and the runs that waited, begin in the tick after it. Whatever goes wrong is logged and leaves the runner without
 * what was asked for: runs wait for an answer, not for a good one.
 */
#include "probe.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../lib/log.h"
#include "../lib/utf8.h"
#include "../lib/util.h"
#include "limits.h"

#define OUTPUT_MAX    (256 * 1024)
#define LIBRARIES_MAX 512
#define WALL_US       20000000

void probe_init(struct probe *probe, struct cells *cells, struct runners *runners, const struct config *config, bool all)
{
	*probe = (struct probe){.cells = cells, .runners = runners, .config = config, .output = -1, .all = all};
}

/* First number in the text, "v22.1.0" -> 22; -1 if there is none. */
static int64_t first_number(const char *text)
{
	text += strcspn(text, "0123456789");
	return *text ? strtoll(text, NULL, 10) : -1;
}

static void take_version(struct runner *runner, char *text)
{
	auto_buf struct buf safe;

	text[strcspn(text, "\r\n")] = '\0';
	buf_init(&safe, sizeof(runner->fingerprint) - 1);
	utf8_printable(&safe, text, MIN(strlen(text), sizeof(runner->fingerprint) / 4 - 1));
	snprintf(runner->fingerprint, sizeof(runner->fingerprint), "%s", safe.data);
	if (runner->version_least && first_number(runner->fingerprint) < runner->version_least) {
		log_event(LOG_WARN, "runner too old", "runner", runner->name, "version", runner->fingerprint, NULL);
		runner->interpreter = NULL;
	}
}

static void take_libraries(struct runner *runner, char *text)
{
	struct json_object *array = json_object_new_array();
	size_t n = 0;
	char *state;

	for (char *line = strtok_r(text, "\n", &state); line && n < LIBRARIES_MAX; line = strtok_r(NULL, "\n", &state)) {
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

/* The first line is its name, the rest the file. A wrong name is found when it is put into a jail, by who puts it. */
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

/* The command is through, whatever came of it. */
static void finish(struct probe *probe)
{
	if (probe->command == PROBE_VERSION) {
		probe->told = probe->told || probe->runner->awaited;
		probe->runner->awaited = false;
	}
	if (probe->output >= 0)
		close(steal_fd(&probe->output));
	if (probe->cell)
		cell_destroy(steal(&probe->cell));
}

static void on_done(void *arg, const struct jail_result *result)
{
	struct probe *probe = arg;
	struct runner *runner = probe->runner;
	auto_free char *text = NULL;
	size_t length;

	runner->asked = runner->asked || probe->command == PROBE_VERSION;
	if (result->verdict != JAIL_OK && probe->command == PROBE_CACHE && result->verdict == JAIL_RE) {
		log_event(LOG_DEBUG, "runner has nothing to cache", "runner", runner->name, NULL); /* the library is not installed */
	} else if (result->verdict != JAIL_OK) {
		log_event(LOG_WARN, "runner does not tell its version", "runner", runner->name, "why", result->message, NULL);
		if (result->verdict != JAIL_XX && probe->command == PROBE_VERSION)
			snprintf(runner->fingerprint, sizeof(runner->fingerprint), "unknown");
	} else if (lseek(probe->output, 0, SEEK_SET) == 0 && !read_fd(probe->output, OUTPUT_MAX, &text, &length, NULL)) {
		if (probe->command == PROBE_LIBRARIES)
			take_libraries(runner, text);
		else if (probe->command == PROBE_CACHE)
			take_cache(runner, text, length);
		else
			take_version(runner, text);
	}
	finish(probe);
}

static void on_failed(void *arg, const struct err *why)
{
	struct probe *probe = arg;

	log_event(LOG_WARN, "runner cannot be probed", "runner", probe->runner->name, "why", why->text, NULL);
	finish(probe);
}

static const struct bind_strings *command_of(const struct runner *runner, size_t command)
{
	const struct bind_strings *const commands[] = {&runner->version, &runner->libraries, &runner->cache};

	return commands[command];
}

static int begin(struct probe *probe, struct err *err)
{
	static const struct cell_events events = {.done = on_done, .failed = on_failed};
	struct jail_limits asked = {.output_bytes = OUTPUT_MAX, .wall_us = WALL_US, .cpu_percent = -1}, limits;
	int result;

	asked.wall_us = MIN(asked.wall_us, probe->config->limits.wall_seconds_max * 1000000);
	result = limits_resolve(&probe->config->limits, &asked, &limits, err);
	if (!result)
		result = cell_open(
			probe->cells,
			&(struct cell_request){.runner = probe->runner,
					       .limits = &limits,
					       .label = "probe",
					       .extra = true,
					       .events = &events,
					       .arg = probe},
			&probe->cell, err);
	if (result)
		return result;
	probe->output = memfd_create("probe", MFD_CLOEXEC);
	struct cell_program program = {
		.command = command_of(probe->runner, probe->command),
		.code_fd = -1,
		.stdin_fd = -1,
		.stdout_fd = fcntl(probe->output, F_DUPFD_CLOEXEC, 3),
		.stderr_fd = -1,
	};
	return cell_run(probe->cell, &program, err);
}

/* What is run next: a version that somebody waits for, else what comes next. */
static bool choose(struct probe *probe)
{
	struct runners *runners = probe->runners;

	probe->command = PROBE_VERSION;
	for (size_t i = 0; i < runners->count; i++) {
		probe->runner = &runners->items[i];
		if (probe->runner->awaited)
			return true;
	}
	while (probe->all && probe->next < runners->count) {
		probe->runner = &runners->items[probe->next];
		probe->command = probe->next_step;
		if (++probe->next_step == PROBE_COMMANDS) {
			probe->next_step = 0;
			probe->next++;
		}
		bool known = probe->command == PROBE_VERSION && probe->runner->asked;

		if (probe->runner->interpreter && command_of(probe->runner, probe->command)->count && !known)
			return true;
	}
	probe->done = true;
	return false;
}

void probe_tick(struct probe *probe)
{
	struct err err = ERR_INIT;

	while (!probe->cell && choose(probe))
		if (begin(probe, &err))
			on_failed(probe, &err);
	if (probe->told) {
		probe->told = false;
		cells_advance(probe->cells);
	}
}

void probe_clear(struct probe *probe)
{
	if (probe->cell)
		cell_destroy(steal(&probe->cell));
	if (probe->output >= 0)
		close(steal_fd(&probe->output));
}
