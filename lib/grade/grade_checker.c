/*
 * grade_checker.c - see grade_checker.h.
 *
 * A checker speaks as the validators of packages do (grade_check.c): by 42 and 43, or testlib's codes where it is one
 * of testlib's. It is the grader's own program, and runs in a jail all the same: what it reads is a sample's.
 */
#include "grade_checker.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "grade_pool.h"
#include "grade_trial.h"
#include "lib/base/util.h"

#define CHECKER_US 60000000LL

#define INPUT    "input"
#define ANSWER   "answer"
#define FEEDBACK "feedback/"

/* Is it the task's: its id with '_' for '/', and perhaps an extension? */
static bool is_named(const char *name, const char *id)
{
	size_t i = 0;

	for (; id[i]; i++)
		if (name[i] != (id[i] == '/' ? '_' : id[i]))
			return false;
	return !name[i] || (name[i] == '.' && !strchr(name + i + 1, '.'));
}

int grade_checker_find(const char *folder, struct grade_tasks *tasks, struct err *err)
{
	DIR *dir = opendir(folder);
	size_t found = 0;

	if (!dir)
		return err_errno(err, "%s", folder);
	for (struct dirent *entry; (entry = readdir(dir));)
		for (size_t i = 0; *entry->d_name != '.' && i < tasks->n_tasks; i++) {
			struct grade_task *task = &tasks->tasks[i];

			if (!task->cases || task->checker || !is_named(entry->d_name, task->id))
				continue;
			task->checker = xasprintf("%s/%s", folder, entry->d_name);
			found++;
		}
	closedir(dir);
	return found > 0 ? 0
			 : err_set(err, ERR_INVALID,
				   "%s has no program that is called as a task with cases of standard input", folder);
}

void grade_checker_make(const struct grade_exam *exam, const struct grade_task *task, struct grade_program *ret)
{
	static const struct grade_package package = {
		.dir = -1, .compile_us = CHECKER_US, .compile_bytes = GRADE_EXAM_MEMORY};
	const struct grade_maker maker = {exam->client, exam->runners, &package, exam->cache, true};
	auto_source struct grade_source source = {0};
	struct err err = ERR_INIT;

	if (grade_source_read(NULL, exam->runners, task->checker, NULL, &source, &err) < 0)
		return GRADE_SAY(ret, GRADE_JE, "the checker: %s", err.text);
	grade_program_make(&maker, &source, ret);
	if (ret->verdict != GRADE_AC) {
		auto_free char *why = xstrdup(ret->message);

		GRADE_SAY(ret, GRADE_JE, "the checker: %s", why);
	}
}

enum grade_verdict grade_checker_run(const struct grade_exam *exam, const struct grade_program *checker,
				     const struct grade_checked *checked)
{
	static const char *const kattis[] = {"/data/" INPUT, "/data/" ANSWER, "/data/" FEEDBACK, NULL};
	static const char *const testlib[] = {"/data/" INPUT, "/dev/stdin", "/data/" ANSWER, NULL};
	enum grade_verdict verdict = GRADE_JE;

	for (int failures = 0; failures < GRADE_TRIES && verdict == GRADE_JE; failures++) {
		auto_close int input = memfd_with(INPUT, checked->input, strlen(checked->input));
		auto_close int answer = memfd_with(ANSWER, checked->answer, strlen(checked->answer));
		auto_close int output = memfd_with("output", checked->output, strlen(checked->output));
		auto_free struct jail_file *files = xcalloc(checker->count + 3, sizeof(*files));
		size_t n = 0;

		for (; n < checker->count; n++)
			files[n] = checker->files[n];
		files[n++] = (struct jail_file){.name = INPUT, .mode = 0444, .fd = input};
		files[n++] = (struct jail_file){.name = ANSWER, .mode = 0444, .fd = answer};
		files[n++] = (struct jail_file){.name = FEEDBACK ".keep", .mode = 0444, .fd = grade_program_no_code()};
		auto_once struct jail_once once = {
			.spec = {.runner = checker->runner,
				 .limits = {.wall_us = 2 * CHECKER_US,
					    .cpu_us = CHECKER_US,
					    .cpu_percent = -1,
					    .memory_bytes = GRADE_EXAM_MEMORY,
					    .pids = GRADE_PIDS,
					    .stack_bytes = -1,
					    .data_bytes = GRADE_DATA_SLACK + 3 * GRADE_EXAM_OUTPUT,
					    .output_bytes = GRADE_EXAM_OUTPUT},
				 .label = "checker"},
			.program = {.code_fd = grade_program_no_code(),
				    .entry = checker->entry,
				    .args = checker->testlib ? testlib : kattis,
				    .env = grade_program_env,
				    .stdin_fd = output},
			.capture = true,
			.files = files,
			.n_files = n,
		};

		if (input >= 0 && answer >= 0 && output >= 0 && jail_once(exam->client, &once, NULL) == 0 &&
		    once.result.verdict != JAIL_XX)
			return grade_check_verdict(checker, &once.result);
	}
	return verdict;
}
