/*
 * doctor_runners.c - can every language be run here, and by which interpreter?
 *
 * A jailer that serves finds versions by itself. A private one does not, it lives for one program; so doctor runs the
 * version commands of the runner files in jails of it, through the bash runner, which proves at once that jails work:
 * names and paths are those that a program would see.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "doctor.h"
#include "lib/base/util.h"

#define RUNNER_FILE_MAX (256 * 1024)
#define VERSION_ARGS_MAX 16
#define VERSION_OUTPUT_MAX 4096

/* Runs its arguments: {interpreter} is the first of INTERPRETERS that is there. */
static const char script[] = "for i in $INTERPRETERS; do [ -x \"$i\" ] && break; done\n"
			     "exec \"${@/#\\{interpreter\\}/$i}\" 2>&1\n";

struct version_run {
	bool over, ran;
};

static void on_done(void *arg, const struct jail_result *result)
{
	struct version_run *run = arg;

	run->ran = result->verdict == JAIL_OK;
	run->over = true;
}

static void on_failed(void *arg, const struct err *err)
{
	(void)err;
	((struct version_run *)arg)->over = true;
}

/* Runs the script with these arguments and environment in a jail; what it printed is in output_fd. */
static bool run_in_jail(struct jail_client *client, const char *const *args, const char *const *env, int output_fd)
{
	static const struct jail_events events = {.done = on_done, .failed = on_failed};
	auto_close int code_fd = memfd_with("version", script, sizeof(script) - 1);
	const struct jail_spec spec = {.runner = "bash", .label = "doctor"};
	const struct jail_program program = {
		.code_fd = code_fd, .args = args, .env = env, .stdin_fd = -1, .stdout_fd = output_fd, .stderr_fd = -1};
	struct version_run run = {0};
	struct jail *jail = NULL;

	if (code_fd < 0 || jail_open(client, &spec, &events, &run, &jail, NULL))
		return false;
	if (!jail_run(jail, &program, NULL))
		jail_client_wait(client, jail, NULL);
	jail_close(jail);
	return run.over && run.ran;
}

/* The member's strings, at most VERSION_ARGS_MAX, into a NULL-terminated array; they live as long as the document. */
static size_t strings_of(struct json_object *document, const char *key, const char *ret[VERSION_ARGS_MAX + 1])
{
	struct json_object *list = json_get(document, key, json_type_array);
	size_t count = 0;

	for (size_t i = 0; list && i < json_object_array_length(list) && count < VERSION_ARGS_MAX; i++)
		ret[count++] = json_object_get_string(json_object_array_get_idx(list, i));
	ret[count] = NULL;
	return count;
}

/* First line of what the runner's version command prints in a jail; NULL if it does not. */
static char *version_ask(struct doctor *doctor, struct jail_client *client, const char *name)
{
	auto_free char *path = xasprintf("%s/%s.json", doctor->config->jailer.runners_dir, name);
	auto_free char *text = NULL, *interpreters = xstrdup("INTERPRETERS="), *output = NULL;
	auto_json struct json_object *document = NULL;
	auto_close int output_fd = memfd_create("version", MFD_CLOEXEC);
	const char *args[VERSION_ARGS_MAX + 1], *paths[VERSION_ARGS_MAX + 1];
	size_t length;

	if (output_fd < 0 || read_file_at(AT_FDCWD, path, RUNNER_FILE_MAX, &text, &length, NULL) ||
	    json_parse_commented(text, length, &document, NULL))
		return NULL;
	if (!strings_of(document, "version", args) || !strings_of(document, "interpreters", paths))
		return NULL;
	for (size_t i = 0; paths[i]; i++) {
		char *longer = xasprintf("%s %s", interpreters, paths[i]);

		free(interpreters);
		interpreters = longer;
	}
	if (!run_in_jail(client, args, (const char *const[]){interpreters, NULL}, output_fd) ||
	    lseek(output_fd, 0, SEEK_SET) || read_fd(output_fd, VERSION_OUTPUT_MAX, &output, &length, NULL))
		return NULL;
	output[strcspn(output, "\n")] = '\0';
	return steal(&output);
}

/* true if programs of this language can be run. */
static bool check_runner(struct doctor *doctor, struct jail_client *client, struct json_object *runner)
{
	struct json_object *available = json_get(runner, "available", json_type_boolean);
	const char *name = json_get_string(runner, "name"), *version = json_get_string(runner, "version");
	auto_free char *asked = NULL;

	if (!name || !available || !json_object_get_boolean(available)) {
		doctor_add(doctor, "runner", DOCTOR_WEAKER, json_get_string(runner, "install"),
			   "%s: its interpreter is missing", name ? name : "?");
		return false;
	}
	if (!version || !*version)
		version = asked = version_ask(doctor, client, name);
	if (!version) {
		doctor_add(doctor, "runner", DOCTOR_WEAKER, json_get_string(runner, "install"),
			   "%s: its version command fails in a jail", name);
		return false;
	}
	doctor_add(doctor, "runner", DOCTOR_OK, NULL, "%s: %s", name, version);
	return true;
}

void doctor_runners(struct doctor *doctor, struct jail_client *client)
{
	auto_json struct json_object *runners = NULL;
	struct err err = ERR_INIT;
	size_t usable = 0;

	if (jail_client_runners(client, &runners, &err)) {
		doctor_add(doctor, "runners", DOCTOR_MISSING, "see the jailer's log", "%s", err.text);
		return;
	}
	for (size_t i = 0; i < json_object_array_length(runners); i++)
		usable += check_runner(doctor, client, json_object_array_get_idx(runners, i));
	if (!usable)
		doctor_add(doctor, "runners", DOCTOR_MISSING, "install one of the interpreters above",
			   "no program can be run");
}
