/*
 * grade_check.c - what a validator is given, and what it says: the checking half of grade_trial.h.
 *
 * A validator is untrusted like any program of a package: it sees the input, the answer and the output, writes feedback
 * to a folder of its jail, and its exit status is its verdict: 42 and 43 of the package format, or testlib's codes
 * where it is one of testlib's checkers. Any other end is the judge's error. Its files are read with bounds, and only
 * by name.
 */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "grade_trial.h"
#include "lib/base/util.h"

#define FEEDBACK_MAX   (64 << 20) /* one feedback file, nextpass.in among them */
#define FEEDBACK_FILES 256
#define TEXT_MAX       4096 /* of judgemessage.txt and score.txt */
#define ACCEPTED       42
#define REJECTED       43

#define JUDGE_IN  "judge.in"
#define JUDGE_ANS "judge.ans"
#define FEEDBACK  "feedback/"

/* -------- feedback ------------------------------------------------------------------------------------ */

void grade_feedback_clear(struct grade_feedback *feedback)
{
	for (size_t i = 0; i < feedback->count; i++) {
		free((void *)(uintptr_t)feedback->files[i].name);
		close_pointer(&feedback->files[i].fd);
	}
	free(feedback->files);
	close_pointer(&feedback->next);
	*feedback = (struct grade_feedback){.next = -1};
}

/* Takes the descriptor over; a file of this name is replaced. */
static void keep_file(struct grade_feedback *feedback, const char *name, int fd)
{
	for (size_t i = 0; i < feedback->count; i++)
		if (streq(feedback->files[i].name, name)) {
			close(feedback->files[i].fd);
			feedback->files[i].fd = fd;
			return;
		}
	if (feedback->count == FEEDBACK_FILES) {
		close(fd);
		return;
	}
	feedback->files = xrealloc(feedback->files, feedback->count + 1, sizeof(*feedback->files));
	feedback->files[feedback->count++] = (struct jail_file){.name = xstrdup(name), .mode = 0644, .fd = fd};
}

static void on_feedback(void *arg, const struct jail_change *change)
{
	struct grade_feedback *feedback = arg;
	auto_close int fd = change->fd;

	if (fd < 0 || !str_starts(change->name, FEEDBACK) || change->size > FEEDBACK_MAX)
		return;
	if (streq(change->name, FEEDBACK "nextpass.in")) {
		close_pointer(&feedback->next);
		feedback->next = steal_fd(&fd);
		return;
	}
	keep_file(feedback, change->name, steal_fd(&fd));
}

/* The text of a feedback file, cut; the caller's, NULL: it is not there. */
static char *feedback_text(const struct grade_feedback *feedback, const char *name)
{
	for (size_t i = 0; i < feedback->count; i++)
		if (streq(feedback->files[i].name + strlen(FEEDBACK), name)) {
			char *text = xcalloc(1, TEXT_MAX + 1);

			if (pread(feedback->files[i].fd, text, TEXT_MAX, 0) < 0)
				*text = '\0';
			return text;
		}
	return NULL;
}

static int read_score(const struct grade_trial *trial, const char *name, double *ret)
{
	auto_free char *text = feedback_text(&trial->feedback, name);
	char *end = text;

	if (!text)
		return 0;
	double number = strtod(text, &end);
	if (end == text || end[strspn(end, " \t\r\n")] || !isfinite(number)) {
		GRADE_SAY(trial->outcome, GRADE_JE, "the validator wrote no number to %s", name);
		return -1;
	}
	*ret = number;
	return 0;
}

/* -------- the run ------------------------------------------------------------------------------------- */

static int64_t size_of(int fd)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 ? st.st_size : 0;
}

/* The validator's files and arguments; both arrays are the caller's. */
struct jail_once grade_check_run(struct grade_trial *trial, int output, struct jail_file **ret_files,
				   const char ***ret_args)
{
	const struct grade_program *validator = trial->validator;
	const struct grade_feedback *feedback = &trial->feedback;
	const struct grade_package *package = trial->bench->package;
	const struct jail_limits limits = {
		.wall_us = package->validation_us,
		.cpu_us = package->validation_us,
		.cpu_percent = -1,
		.memory_bytes = package->validation_bytes,
		.pids = GRADE_PIDS,
		.data_bytes = size_of(trial->input) + size_of(trial->answer) + size_of(output) + FEEDBACK_MAX +
			      GRADE_DATA_SLACK,
		.output_bytes = package->validation_output_bytes,
		.stack_bytes = -1,
	};
	char **flags = trial->node->settings.validator_flags;
	static const char *const kattis[] = {"/data/" JUDGE_IN, "/data/" JUDGE_ANS, "/data/" FEEDBACK};
	static const char *const checker[] = {"/data/" JUDGE_IN, "/dev/stdin", "/data/" JUDGE_ANS};
	/* The second is a file that it writes, for a checker of later, which packages do not have. */
	static const char *const interactor[] = {"/data/" JUDGE_IN, "/data/" FEEDBACK "output", "/data/" JUDGE_ANS};
	const char *const *first = !validator->testlib ? kattis : package->interactive ? interactor : checker;
	size_t n = 0, n_flags = 0;

	grade_feedback_clear(&trial->news);
	while (flags && flags[n_flags])
		n_flags++;
	const char **args = xcalloc(ARRAY_SIZE(kattis) + n_flags + 1, sizeof(*args));
	struct jail_file *files = xcalloc(validator->count + feedback->count + 3, sizeof(*files));
	for (size_t i = 0; i < ARRAY_SIZE(kattis); i++)
		args[i] = first[i];
	for (size_t i = 0; i < n_flags; i++)
		args[ARRAY_SIZE(kattis) + i] = flags[i];
	for (size_t i = 0; i < validator->count; i++)
		files[n++] = validator->files[i];
	files[n++] = (struct jail_file){.name = JUDGE_IN, .mode = 0444, .fd = trial->input};
	files[n++] = (struct jail_file){.name = JUDGE_ANS, .mode = 0444, .fd = trial->answer};
	/* The folder has to be there, also when nothing was written to it yet. */
	files[n++] = (struct jail_file){.name = FEEDBACK ".keep", .mode = 0444, .fd = trial->answer};
	for (size_t i = 0; i < feedback->count; i++)
		files[n++] = feedback->files[i];
	*ret_files = files;
	*ret_args = args;
	return (struct jail_once){
		.spec = {.runner = validator->runner, .limits = limits, .label = "validator"},
		.program = {.code_fd = grade_program_no_code(),
			    .entry = validator->entry,
			    .args = args,
			    .env = grade_program_env,
			    .stdin_fd = output,
			    .stdout_fd = -1,
			    .stderr_fd = -1},
		.files = files,
		.n_files = n,
		.file = on_feedback,
		.arg = &trial->news,
	};
}

/* -------- the verdict --------------------------------------------------------------------------------- */

/* A validator's exit status as a verdict: two tables, for the two ways to speak. */
enum grade_verdict grade_check_verdict(const struct grade_program *validator, const struct jail_result *result)
{
	static const struct {
		int status;
		enum grade_verdict verdict;
	} kattis[] = {{ACCEPTED, GRADE_AC}, {REJECTED, GRADE_WA}},
	  testlib[] = {{0, GRADE_AC}, {1, GRADE_WA}, {2, GRADE_PE}, {4, GRADE_WA}, {7, GRADE_AC}, {8, GRADE_WA}};
	size_t n = validator->testlib ? ARRAY_SIZE(testlib) : ARRAY_SIZE(kattis);

	if (result->verdict != JAIL_OK && result->verdict != JAIL_RE)
		return GRADE_JE;
	for (size_t i = 0; i < n; i++)
		if ((validator->testlib ? testlib : kattis)[i].status == result->exit_code)
			return (validator->testlib ? testlib : kattis)[i].verdict;
	return GRADE_JE;
}

/* Does what it writes to score.txt count? */
static bool gives_score(const struct grade_trial *trial)
{
	const struct grade_package *package = trial->bench->package;

	return package->custom_score &&
	       !(package->format == GRADE_2025_09 && str_starts(trial->node->name, "sample/"));
}

/* How much of a message is shown, without the blanks and newlines at its end. */
static size_t without_end(const char *message)
{
	size_t length = message ? strnlen(message, GRADE_MESSAGE / 4) : 0;

	while (length > 0 && strchr(" \t\r\n", message[length - 1]))
		length--;
	return length;
}

/* What the validator said, with its files; sets the outcome. */
void grade_check_judge(struct grade_trial *trial, const struct jail_once *once)
{
	const struct jail_result *result = &once->result;
	struct grade_outcome *outcome = trial->outcome;
	enum grade_verdict verdict = grade_check_verdict(trial->validator, result);

	/* What the run wrote becomes part of the feedback. */
	for (size_t i = 0; i < trial->news.count; i++)
		keep_file(&trial->feedback, trial->news.files[i].name, steal_fd(&trial->news.files[i].fd));
	close_pointer(&trial->feedback.next);
	trial->feedback.next = steal_fd(&trial->news.next);
	grade_feedback_clear(&trial->news);
	auto_free char *message = feedback_text(&trial->feedback, "judgemessage.txt");

	if (verdict == GRADE_JE && result->verdict == JAIL_RE)
		return GRADE_SAY(outcome, verdict, "the validator exited with status %d", result->exit_code);
	if (verdict == GRADE_JE)
		return GRADE_SAY(outcome, verdict, "the validator failed: %s", result->message);
	outcome->verdict = verdict;
	grade_message(outcome->message, message, without_end(message));
	if (gives_score(trial) && (read_score(trial, "score.txt", &outcome->score) ||
				   read_score(trial, "score_multiplier.txt", &outcome->multiplier)))
		return;
	if (verdict != GRADE_AC && trial->feedback.next >= 0)
		return GRADE_SAY(outcome, GRADE_JE, "the validator wrote nextpass.in and did not accept");
	/* In the legacy format a rejected case has its group's reject_score, whatever the validator wrote. */
	bool legacy = trial->bench->package->format == GRADE_LEGACY;
	if (legacy && verdict != GRADE_AC)
		outcome->score = outcome->multiplier = NAN;
	else if (verdict != GRADE_AC && !(isnan(outcome->score) && isnan(outcome->multiplier)))
		GRADE_SAY(outcome, GRADE_JE, "the validator gave a score and did not accept");
}

void grade_check_compare(struct grade_trial *trial, int output)
{
	struct grade_compare how;
	char **flags = trial->node->settings.validator_flags;
	size_t n_flags = 0, length[2] = {0};
	const char *text[2] = {"", ""};
	const int fds[2] = {trial->answer, output};
	char why[GRADE_COMPARE_TEXT];
	struct err err = ERR_INIT;

	while (flags && flags[n_flags])
		n_flags++;
	if (grade_compare_flags((const char *const *)flags, n_flags, &how, &err) < 0)
		return GRADE_SAY(trial->outcome, GRADE_JE, "%s", err.text);
	for (int i = 0; i < 2; i++) {
		length[i] = (size_t)size_of(fds[i]);
		if (length[i] && (text[i] = mmap(NULL, length[i], PROT_READ, MAP_PRIVATE, fds[i], 0)) == MAP_FAILED) {
			GRADE_SAY(trial->outcome, GRADE_JE, "the output cannot be read: %s", strerror(errno));
			length[i] = 0;
			text[i] = "";
		}
	}
	if (trial->outcome->verdict != GRADE_JE &&
	    !grade_compare(&how, text[0], length[0], text[1], length[1], why))
		GRADE_SAY(trial->outcome, GRADE_WA, "%s", why);
	for (int i = 0; i < 2; i++)
		if (length[i])
			munmap((void *)(uintptr_t)text[i], length[i]);
}

int grade_check_grader(const struct grade_bench *bench, struct jail_client *client, const char *results,
		       char *const *flags, struct grade_outcome *ret, struct err *err)
{
	auto_close int input = memfd_with("results", results, strlen(results));
	auto_free char *text = NULL;
	char verdict[8];
	double score;
	int result;
	auto_once struct jail_once once = {
		.spec = {.runner = bench->grader->runner,
			 .limits = {.wall_us = bench->package->validation_us,
				    .cpu_us = bench->package->validation_us,
				    .cpu_percent = -1,
				    .memory_bytes = bench->package->validation_bytes,
				    .pids = GRADE_PIDS},
			 .label = "grader"},
		.program = {.code_fd = grade_program_no_code(),
			    .entry = bench->grader->entry,
			    .args = (const char *const *)flags,
			    .env = grade_program_env,
			    .stdin_fd = input},
		.capture = true,
		.files = bench->grader->files,
		.n_files = bench->grader->count,
	};

	if ((result = jail_once(client, &once, err)) < 0)
		return result;
	if (once.result.verdict != JAIL_OK)
		return err_set(err, ERR_INVALID, "the grader failed: %s", once.result.message);
	if ((result = jail_once_output(&once, 1, TEXT_MAX, &text, NULL, err)) < 0)
		return result;
	if (sscanf(text, "%7s %lf", verdict, &score) != 2 || !isfinite(score) ||
	    grade_verdict_parse(verdict, &ret->verdict))
		return err_set(err, ERR_INVALID, "the grader printed no verdict and score");
	ret->score = score;
	return 0;
}
