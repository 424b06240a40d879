/* cmd_doctor.c - `sallyport doctor`: what this host has, lacks, and what to do about it. */
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor.h"
#include "lib/base/util.h"

#define LINE_MAX_BYTES 4096
#define ANSWER_MAX (1024 * 1024)

struct doctor_command {
	struct cli_common common;
};

extern char **environ;

void doctor_add(struct doctor *doctor, const char *name, enum doctor_state state, const char *remedy,
		const char *format, ...)
{
	va_list args;
	char found[512];

	va_start(args, format);
	vsnprintf(found, sizeof(found), format, args);
	va_end(args);
	if (doctor->count == doctor->size) {
		doctor->size = doctor->size ? 2 * doctor->size : 64;
		doctor->findings = xrealloc(doctor->findings, doctor->size, sizeof(*doctor->findings));
	}
	doctor->findings[doctor->count++] = (struct doctor_finding){
		.name = xstrdup(name),
		.state = state,
		.found = xstrdup(found),
		.remedy = state != DOCTOR_OK && remedy ? xstrdup(remedy) : NULL,
	};
}

static void doctor_clear(struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->count; i++) {
		free(doctor->findings[i].name);
		free(doctor->findings[i].found);
		free(doctor->findings[i].remedy);
	}
	free(doctor->findings);
}

char *doctor_read_line(const char *path)
{
	auto_free char *text = NULL;
	size_t length;

	if (read_file_at(AT_FDCWD, path, LINE_MAX_BYTES, &text, &length, NULL) < 0)
		return NULL;
	text[strcspn(text, "\n")] = '\0';
	return steal(&text);
}

char *doctor_ask(char *const argv[], bool both, int *ret_status)
{
	posix_spawn_file_actions_t actions;
	int ends[2], status = -1, error;
	auto_free char *text = NULL;
	size_t length = 0;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return NULL;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	if (both)
		posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
	error = posix_spawnp(&child, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	if (error == 0) {
		read_fd(ends[0], ANSWER_MAX, &text, &length, NULL);
		waitpid(child, &status, 0);
	}
	close(ends[0]);
	if (ret_status)
		*ret_status = status;
	return error == 0 ? steal(&text) : NULL;
}

static const char *const state_texts[] = {[DOCTOR_OK] = "ok", [DOCTOR_WEAKER] = "weaker", [DOCTOR_MISSING] = "missing"};

static enum doctor_state doctor_worst(const struct doctor *doctor)
{
	enum doctor_state worst = DOCTOR_OK;

	for (size_t i = 0; i < doctor->count; i++)
		worst = MAX(worst, doctor->findings[i].state);
	return worst;
}

static void print_json(const struct doctor *doctor)
{
	auto_json struct json_object *object = json_object_new_object();
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < doctor->count; i++) {
		const struct doctor_finding *finding = &doctor->findings[i];
		struct json_object *check = json_object_new_object();

		json_add_string(check, "name", finding->name);
		json_add_string(check, "state", state_texts[finding->state]);
		json_add_bytes(check, "found", finding->found, strlen(finding->found));
		json_add_string(check, "remedy", finding->remedy);
		json_object_array_add(list, check);
	}
	json_add_string(object, "result", state_texts[doctor_worst(doctor)]);
	json_add(object, "checks", list);
	cli_print_json(stdout, object, true);
}

static void print_table(const struct doctor *doctor)
{
	static const enum cli_colour colours[] = {
		[DOCTOR_OK] = CLI_GREEN, [DOCTOR_WEAKER] = CLI_YELLOW, [DOCTOR_MISSING] = CLI_RED};
	size_t counts[3] = {0};

	for (size_t i = 0; i < doctor->count; i++) {
		const struct doctor_finding *finding = &doctor->findings[i];

		counts[finding->state]++;
		printf("%s%-8s%s %-17s ", cli_colour_on(stdout, colours[finding->state]), state_texts[finding->state],
		       cli_colour_off(stdout), finding->name);
		cli_print_safe(stdout, finding->found, strlen(finding->found));
		putchar('\n');
		if (finding->remedy)
			printf("%27s-> %s\n", "", finding->remedy);
	}
	printf("\n%zu ok, %zu weaker, %zu missing\n", counts[DOCTOR_OK], counts[DOCTOR_WEAKER], counts[DOCTOR_MISSING]);
}

static int doctor_run(void *options, struct err *err)
{
	const struct doctor_command *command = options;
	auto_config struct config config = {0};
	struct doctor doctor = {.config = &config};
	int result = config_load(command->common.config, &config, err);

	if (result < 0)
		return result;
	doctor_jailer(&doctor);
	doctor_host(&doctor);
	doctor_network(&doctor);
	if (command->common.json)
		print_json(&doctor);
	else
		print_table(&doctor);
	result = doctor_worst(&doctor) == DOCTOR_MISSING ? CLI_DIFFERENT : CLI_OK;
	doctor_clear(&doctor);
	return result;
}

const struct cli_command cmd_doctor = {
	.name = "doctor",
	.summary = "Check that kernel and host have all that jails need",
	.help = "A jailer starts, runs a program in each language and ends (sallyport-jailer --check), under the account that runs doctor: use the account of the jailer. "
		"Each line is `ok`, `weaker` (programs run with less isolation, or a part of Sallyport is not usable) or `missing` (no program can run), with a remedy.",
	.examples = "sallyport doctor --json | jq '.checks[] | select(.state != \"ok\")'\n",
	.exits = "0 nothing is missing\n"
		"1 something is missing\n",
	.size = sizeof(struct doctor_command),
	.run = doctor_run,
};
