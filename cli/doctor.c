/* doctor.c - what the checks of doctor_jailer.c and doctor_host.c use, see doctor.h. */
#include "doctor.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/util.h"

#define LINE_MAX_BYTES 4096
#define ANSWER_MAX (1024 * 1024)

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
