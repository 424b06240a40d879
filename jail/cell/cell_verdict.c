/*
 * cell_verdict.c - how a run ended, and the sentence that says so.
 *
 * Order of the tests: what the client asked for (cancel), what the kernel's counter says (memory), what we ended it for
 * (output, time), what the program did itself. The kernel's OOM counter comes before the time limits because a program
 * whose helper was killed often just waits for it.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "cell_internal.h"
#include "jail/init/seccomp.h"
#include "lib/base/util.h"

#define MEBI 1048576

static void say(struct jail_result *result, enum jail_verdict verdict, const char *limit, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
static void say(struct jail_result *result, enum jail_verdict verdict, const char *limit, const char *format, ...)
{
	va_list arguments;

	result->verdict = verdict;
	snprintf(result->limit, sizeof(result->limit), "%s", limit);
	va_start(arguments, format);
	vsnprintf(result->message, sizeof(result->message), format, arguments);
	va_end(arguments);
}

static void seconds(char *text, size_t size, int64_t us)
{
	if (us % 1000000)
		snprintf(text, size, "%.3g s", (double)us / 1e6);
	else
		snprintf(text, size, "%lld s", (long long)(us / 1000000));
}

static void decide_program(struct jail_result *result, const char *what, int status)
{
	if (WIFSIGNALED(status)) {
		result->signal = WTERMSIG(status);
		say(result, JAIL_SG, "", "The %s was ended by signal %d (%s).", what, result->signal,
		    strsignal(result->signal));
		return;
	}
	result->exit_code = WEXITSTATUS(status);
	if (result->exit_code)
		say(result, JAIL_RE, "", "The %s ended with exit status %d.", what, result->exit_code);
	else
		say(result, JAIL_OK, "", "The %s ended normally.", what);
}

void cell_verdict_decide(struct jail_result *result, const struct cell *cell, enum cell_stop stop, const int *status)
{
	bool compile = cell->run.phase == PHASE_COMPILE;
	const char *what = compile ? "compile step" : "program";
	int64_t memory = compile ? cell->limits.compile_memory_bytes : cell->limits.memory_bytes;
	char limit[32];

	if (stop == STOP_CANCEL || stop == STOP_CLOSE)
		say(result, JAIL_CX, "", "The run was cancelled.");
	else if (result->oom_killed)
		say(result, JAIL_ML, "memory", "The %s needed more memory than its limit of %lld MiB.", what,
		    (long long)(memory / MEBI));
	else if (stop == STOP_OUTPUT)
		say(result, JAIL_OL, "output",
		    "The %s wrote more than its limit of %lld KiB of output and was stopped.", what,
		    (long long)(cell->limits.output_bytes / 1024));
	else if (stop == STOP_WALL) {
		seconds(limit, sizeof(limit), cell->run.wall_limit_us);
		say(result, JAIL_TO, "wall", "The %s was stopped after %s, its time limit.", what, limit);
	} else if (stop == STOP_CPU || (status && WIFSIGNALED(*status) && WTERMSIG(*status) == SIGXCPU)) {
		seconds(limit, sizeof(limit), cell->run.cpu_limit_us);
		say(result, JAIL_TO, "cpu", "The %s was stopped when it had used %s of CPU time, its limit.", what,
		    limit);
	} else if (status)
		decide_program(result, what, *status);
	else
		cell_verdict_sandbox(result, "init", 0);
	if (result->pids_limit_hit && (result->verdict == JAIL_RE || result->verdict == JAIL_SG))
		snprintf(result->limit, sizeof(result->limit), "pids");
	/* Whatever ended a compile step: what the person needs to know is that it is not the program that was run. */
	if (compile && result->verdict != JAIL_CX && result->verdict != JAIL_XX && result->verdict != JAIL_OK)
		result->verdict = JAIL_CE;
}

void cell_verdict_denied(struct cell *cell, int number)
{
	struct jail_result *result = &cell->run.result;
	char name[32];

	seccomp_name(number, name, sizeof(name));
	for (size_t i = 0; i < cell->runner->quiet.count; i++)
		if (streq(cell->runner->quiet.items[i], name))
			return;
	if (!result->denied)
		result->denied = json_object_new_array();
	size_t count = json_object_array_length(result->denied);
	for (size_t i = 0; i < count; i++) /* the compile step may have done it, too */
		if (streq(json_get_string(json_object_array_get_idx(result->denied, i), "name"), name))
			return;
	if (count >= JAIL_DENIED_MAX)
		return;
	struct json_object *call = json_object_new_object();
	json_add_string(call, "name", name);
	json_add_int(call, "number", number);
	json_object_array_add(result->denied, call);
}

/* A program that failed may have failed for that. */
void cell_verdict_mention(struct jail_result *result)
{
	size_t n = result->denied ? json_object_array_length(result->denied) : 0;

	if (result->verdict != JAIL_RE && result->verdict != JAIL_SG)
		return;
	for (size_t i = 0; i < n; i++) {
		size_t length = strlen(result->message);

		snprintf(result->message + length, sizeof(result->message) - length, "%s%s%s",
			 i ? ", " : " The jail refused it: ",
			 json_get_string(json_object_array_get_idx(result->denied, i), "name"), i + 1 == n ? "." : "");
	}
}

void cell_verdict_sandbox(struct jail_result *result, const char *step, int error)
{
	bool missing = error == ENOENT && streq(step, INIT_STEP_EXEC);
	const char *remedy = "";

	if (missing)
		remedy = " The interpreter, or the loader that it needs, is not in the jail's root: install it and "
			 "restart the jailer.";
	else if (streq(step, INIT_STEP_CWD))
		remedy = " The directory in which the program is to start (cwd) must be one of the jail, below /data "
			 "or a folder that is shown, and the program must be allowed to enter it.";

	say(result, JAIL_XX, "", "The sandbox failed at \"%s\"%s%s.%s", step, error ? ": " : "",
	    error ? strerror(error) : "", remedy);
	snprintf(result->step, sizeof(result->step), "%s", step);
	result->step_errno = error;
}
