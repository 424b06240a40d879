/*
 * grade_case.c - see grade_case.h.
 *
 * Order of blame: a validator that crashed or exited with another status than it may is the judge's error; then, where
 * both programs run at the same time, a validator that rejected before the submission ended; then the submission's own
 * end (time, memory, output, exit status); then the validator's word. In an interactive run we hold both ends of both
 * pipes too: a write end until we know that its owner has ended, or has closed it and goes on, so that the other one
 * does not end of the end of its input before (which of the two was first decides), and the read ends, to read on in
 * the place of one that has ended: nobody dies of SIGPIPE. A submission that has been rejected is ended.
 *
 * A run that was too slow because other work had the processors is repeated (grade_load.h).
 *
 * Making a jail takes as long as a short program, and is mostly waiting. So the jail for the thread's next run is asked
 * for when the program of this one has been: it serves every run with the same runner and the same limits, whatever the
 * program and the case. Nothing is in it before, and no two runs share one.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "grade_pool.h"
#include "grade_source.h"
#include "grade_trial.h"
#include "lib/base/util.h"

#define CLOSED_MS   200 /* after it closed its output a program has ended, or goes on without */
#define PATIENCE_MAX 290.0 /* seconds that a program runs on which has to be too slow */
#define FOLDERS_MAX  8     /* below each other, of a case's own files */

/* -------- the submission's folder: its own files, and over them those of the case (NAME.files) --------- */

/* In the place of the submission's file of this name, else behind all others. */
static int give(struct grade_trial *trial, const char *path, const char *name, struct err *err)
{
	auto_close int fd = -1;
	int result = grade_package_file(trial->bench->package, path, &fd, err);

	if (result < 0)
		return result;
	if (trial->n_own == GRADE_SOURCE_FILES)
		return err_set(err, ERR_LIMIT, "%s: more than %d files", trial->node->files, GRADE_SOURCE_FILES);
	for (size_t i = 0; i + trial->n_own < trial->n_files; i++)
		if (streq(trial->files[i].name, name)) {
			memmove(trial->files + i, trial->files + i + 1,
				(trial->n_files - i - 1) * sizeof(*trial->files));
			trial->n_files--;
			break;
		}
	trial->files = xrealloc(trial->files, trial->n_files + 1, sizeof(*trial->files));
	trial->files[trial->n_files++] = (struct jail_file){.name = xstrdup(name), .mode = 0644, .fd = steal_fd(&fd)};
	trial->n_own++;
	return 0;
}

static int give_folder(struct grade_trial *trial, const char *path, const char *below, int depth, struct err *err)
{
	struct dirent **entries = NULL;
	int n = scandir(path, &entries, NULL, alphasort), result = n < 0 ? err_errno(err, "%s", path) : 0;

	for (int i = 0; i < n; i++) {
		auto_free char *place = xasprintf("%s/%s", path, entries[i]->d_name);
		auto_free char *name = xasprintf("%s%s", below, entries[i]->d_name);
		bool self = streq(entries[i]->d_name, ".") || streq(entries[i]->d_name, "..");
		struct stat st;

		if (!self && result == 0 && stat(place, &st) == 0) {
			auto_free char *deeper = xasprintf("%s/", name);

			if (S_ISDIR(st.st_mode) && depth < FOLDERS_MAX)
				result = give_folder(trial, place, deeper, depth + 1, err);
			else if (S_ISREG(st.st_mode))
				result = give(trial, place, name, err);
		}
		free(entries[i]);
	}
	free(entries);
	return result;
}

/* -------- what jails are given ------------------------------------------------------------------------ */

/* The CPU time that a submission may run, which may be more than the limit. */
static int64_t allowed_us(const struct grade_trial *trial)
{
	return (int64_t)(MIN(trial->bench->time_limit * MAX(trial->bench->patience, 1), PATIENCE_MAX) * 1e6);
}

static int64_t base_wall_us(const struct grade_trial *trial)
{
	return MIN(2 * allowed_us(trial) + 1000000, GRADE_LOAD_WALL_US);
}

static struct jail_once submission(const struct grade_trial *trial, const struct grade_load *load)
{
	const struct grade_bench *bench = trial->bench;
	const struct jail_limits limits = {
		.wall_us = grade_load_wall(load, base_wall_us(trial)),
		.cpu_us = allowed_us(trial),
		.cpu_percent = -1,
		.memory_bytes = bench->package->memory_bytes,
		.pids = GRADE_PIDS,
		.data_bytes = 4 * GRADE_DATA_SLACK,
		.output_bytes = bench->package->output_bytes,
		.stack_bytes = -1,
	};

	return (struct jail_once){
		.spec = {.runner = trial->program->runner, .limits = limits, .label = "submission"},
		.program = {.code_fd = grade_program_no_code(),
			    .entry = trial->program->entry,
			    .args = (const char *const *)trial->node->settings.args,
			    .env = grade_program_env,
			    .read_only = !bench->package->writing,
			    .stdin_fd = trial->input,
			    .stdout_fd = -1,
			    .stderr_fd = -1},
		.files = trial->files,
		.n_files = trial->n_files,
	};
}

/* -------- judging an end ------------------------------------------------------------------------------ */

/* The submission's own end; GRADE_AC: its output decides. */
static enum grade_verdict judge_end(struct grade_trial *trial, const struct jail_once *once)
{
	struct grade_outcome *outcome = trial->outcome;
	const struct jail_usage *run = &once->result.run;
	enum grade_verdict verdict = grade_verdict_of(&once->result);
	int64_t cpu_us = run->cpu_user_us + run->cpu_system_us;

	outcome->cpu_us = MAX(outcome->cpu_us, cpu_us);
	outcome->wall_us = MAX(outcome->wall_us, run->wall_us);
	outcome->memory_bytes = MAX(outcome->memory_bytes, run->memory_peak_bytes);
	if (trial->word == GRADE_LOAD_STARVED) {
		GRADE_SAY(outcome, GRADE_JE, GRADE_LOAD_TEXT, (double)cpu_us * 1e-6, (double)run->wall_us * 1e-6,
			  GRADE_LOAD_TRIES);
		return GRADE_JE;
	}
	if (trial->word == GRADE_LOAD_WAITS)
		verdict = GRADE_TLE;
	if (verdict != GRADE_JE && (double)cpu_us > trial->bench->time_limit * 1e6) {
		outcome->late = verdict != GRADE_TLE;
		verdict = GRADE_TLE;
	}
	if (verdict == GRADE_TLE)
		GRADE_SAY(outcome, verdict, "more than %g s: %.2f s of processor time in %.2f s",
			  trial->bench->time_limit, (double)cpu_us * 1e-6, (double)run->wall_us * 1e-6);
	else if (verdict != GRADE_AC)
		GRADE_SAY(outcome, verdict, "%s", once->result.message);
	return verdict;
}

/* -------- one pass ------------------------------------------------------------------------------------ */

/* As jail_once, again while the sandbox fails; -1: it went on failing. */
static int run_once(struct grade_trial *trial, struct jail_once *once)
{
	const struct jail_once fresh = *once;
	struct err err = ERR_INIT;

	for (int try = 0; try < GRADE_TRIES; try++) {
		if (try > 0) {
			grade_feedback_clear(&trial->news);
			jail_once_clear(once);
			*once = fresh;
		}
		err = ERR_INIT;
		if (jail_once(trial->client, once, &err) == 0 && once->result.verdict != JAIL_XX)
			return 0;
	}
	GRADE_SAY(trial->outcome, GRADE_JE, "the sandbox of the validator failed: %s",
			err.code ? err.text : once->result.message);
	return -1;
}

/* Says what the load means for a run; `other` ran at its side, or NULL. True: it is to be repeated. */
static bool again(struct grade_trial *trial, struct grade_load *load, const struct jail_once *once,
		  const struct jail_once *other)
{
	const struct jail_usage *run = &once->result.run;
	const struct grade_load_run seen = {
		.late = once->result.verdict == JAIL_TO,
		.cpu_us = run->cpu_user_us + run->cpu_system_us,
		.wall_us = run->wall_us,
		.other_us = other ? other->result.run.cpu_user_us + other->result.run.cpu_system_us : 0,
		.cpu_limit_us = allowed_us(trial),
		.wall_limit_us = base_wall_us(trial),
	};

	trial->word = grade_load_word(load, &seen);
	return trial->word == GRADE_LOAD_AGAIN;
}

/* -------- jails made ahead ---------------------------------------------------------------------------- */

struct grade_ahead {
	struct jail_once once;
	char runner[32];
};

void grade_ahead_free(void *pointer)
{
	struct grade_ahead *ahead = pointer;

	if (ahead)
		jail_once_clear(&ahead->once);
	free(ahead);
}

static void ahead_pointer(struct grade_ahead **ahead)
{
	grade_ahead_free(*ahead);
}

/* Where it fails, the next run makes its jail itself, and says what is wrong. */
static void make_ahead(const struct grade_trial *trial, const struct jail_spec *spec)
{
	if (!trial->ahead || *trial->ahead)
		return;
	struct grade_ahead *ahead = xcalloc(1, sizeof(*ahead));

	ahead->once.spec = *spec;
	snprintf(ahead->runner, sizeof(ahead->runner), "%s", spec->runner);
	if (jail_once_open(trial->client, &ahead->once, NULL) < 0)
		grade_ahead_free(steal(&ahead));
	*trial->ahead = ahead;
}

/* As run_once: the submission, and meanwhile the jail for the next run. */
static int run_submission(const struct grade_trial *trial, const struct grade_load *load, struct grade_ahead **ret)
{
	struct err err = ERR_INIT;

	for (int try = 0; try < GRADE_TRIES; try++) {
		struct jail_once wanted = submission(trial, load);
		struct grade_ahead *run = try == 0 && trial->ahead ? steal(trial->ahead) : NULL;

		/* The thread's jail, where it fits, or a new one. */
		if (run && (run->once.over || !streq(run->runner, wanted.spec.runner) ||
			    memcmp(&run->once.spec.limits, &wanted.spec.limits, sizeof(wanted.spec.limits)) != 0))
			grade_ahead_free(steal(&run));
		if (!run)
			run = xcalloc(1, sizeof(*run));
		wanted.capture = true;
		wanted.jail = run->once.jail;
		run->once = wanted;
		grade_ahead_free(*ret);
		*ret = run;
		struct jail_once *once = &run->once;

		err = ERR_INIT;
		int result = jail_once_begin(trial->client, once, &err);
		if (result == 0) {
			make_ahead(trial, &wanted.spec);
			result = jail_once_end(trial->client, once, &err);
		}
		if (result == 0 && once->result.verdict != JAIL_XX)
			return 0;
		if (result == 0)
			err_set(&err, ERR_SYSTEM, "%s", once->result.message);
	}
	GRADE_SAY(trial->outcome, GRADE_JE, "the sandbox of the submission failed: %s", err.text);
	return -1;
}

static void batch_pass(struct grade_trial *trial)
{
	const struct grade_bench *bench = trial->bench;
	__attribute__((cleanup(ahead_pointer))) struct grade_ahead *own = NULL;

	struct grade_load load = GRADE_LOAD_INIT;
	int failed;

	do {
		struct grade_load next = load; /* whose limits are those of the next run */

		grade_load_begin(&load);
		failed = run_submission(trial, &next, &own);
		grade_load_end(&load);
		if (failed < 0)
			return;
	} while (again(trial, &load, &own->once, NULL));
	const struct jail_once *run = &own->once;

	if (judge_end(trial, run) != GRADE_AC)
		return;
	if (bench->n_validators == 0)
		return grade_check_compare(trial, run->program.stdout_fd);
	for (size_t i = 0; i < bench->n_validators && trial->outcome->verdict == GRADE_AC; i++) {
		auto_once struct jail_once check = {0};
		auto_free struct jail_file *files = NULL;
		auto_free const char **args = NULL;

		if (bench->n_validators > 1) /* each has a feedback folder of its own */
			grade_feedback_clear(&trial->feedback);
		trial->validator = &bench->validators[i];
		lseek(run->program.stdout_fd, 0, SEEK_SET);
		check = grade_check_run(trial, run->program.stdout_fd, &files, &args);
		if (run_once(trial, &check) == 0)
			grade_check_judge(trial, &check);
	}
}

/* -------- both at the same time ----------------------------------------------------------------------- */

struct pair {
	struct jail_once *once[2]; /* submission, validator */
	int read_end[2];           /* of the pipe that once[i] reads */
	int write_end[2];          /* of the pipe that once[i] writes */
	int first;                 /* which ended first; -1 */
};

/* Has a program closed what it writes to, and goes on? While we hold a write end, too, nobody can see; so we let go of
 * it for a moment. */
static void find_closed(struct pair *pair, int writer)
{
	struct pollfd pipe = {.fd = pair->read_end[!writer], .events = POLLIN};
	auto_free char *path = xasprintf("/proc/self/fd/%d", pipe.fd);

	if (pair->write_end[writer] < 0 || pipe.fd < 0 || poll(&pipe, 1, 0) != 0)
		return;
	fd_close(&pair->write_end[writer]);
	if (poll(&pipe, 1, 0) == 0)
		pair->write_end[writer] = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
}

/* Does its word count, whatever the submission did? */
static bool validator_decides(const struct grade_trial *trial, const struct pair *pair)
{
	enum grade_verdict word = grade_check_verdict(trial->validator, &pair->once[1]->result);

	return word == GRADE_JE || (pair->first == 1 && word != GRADE_AC);
}

static void pair_ends(struct grade_trial *trial, struct pair *pair)
{
	struct jail_once *submission = pair->once[0];

	for (int i = 0; i < 2; i++) {
		if (pair->first < 0 && pair->once[i]->done)
			pair->first = i;
		if (pair->once[i]->done || pair->once[i]->over)
			fd_close(&pair->write_end[i]);
	}
	if (pair->first == 1 && submission->jail && !submission->done && validator_decides(trial, pair))
		jail_cancel(submission->jail);
}

/* Waits for an event of the jailer, and reads what nobody reads any more. */
static int pair_step(struct grade_trial *trial, struct pair *pair, struct err *err)
{
	struct pollfd fds[3] = {
		{.fd = jail_client_fd(trial->client), .events = jail_client_poll_events(trial->client)}};
	char block[65536];

	for (int i = 0; i < 2; i++)
		fds[1 + i] = (struct pollfd){.fd = pair->once[i]->done ? pair->read_end[i] : -1, .events = POLLIN};
	int events = poll(fds, ARRAY_SIZE(fds), CLOSED_MS);
	if (events < 0 && errno != EINTR)
		return err_errno(err, "waiting for two programs");
	if (events == 0) {
		find_closed(pair, 0);
		find_closed(pair, 1);
	}
	for (int i = 0; i < 2; i++)
		if (fds[1 + i].revents && read(pair->read_end[i], block, sizeof(block)) == 0)
			fd_close(&pair->read_end[i]);
	int result = jail_client_dispatch(trial->client, err);
	pair_ends(trial, pair);
	return result;
}

/* Both programs are other users than we are: this lets them open /dev/stdin and /dev/stdout. */
static int pair_pipe(int ret[2], struct err *err)
{
	return pipe2(ret, O_CLOEXEC) || fchmod(ret[0], 0666) ? err_errno(err, "making pipes") : 0;
}

static int pair_run(struct grade_trial *trial, struct pair *pair, struct err *err)
{
	int pipes[2][2] = {{-1, -1}, {-1, -1}}, result = 0;

	if ((result = pair_pipe(pipes[0], err)) == 0)
		result = pair_pipe(pipes[1], err);
	for (int i = 0; i < 2 && result == 0; i++) {
		pair->once[i]->program.stdin_fd = pipes[i][0];
		pair->once[i]->program.stdout_fd = pipes[!i][1];
		result = jail_once_begin(trial->client, pair->once[i], err);
	}
	for (int i = 0; i < 2; i++) {
		pair->read_end[i] = pipes[i][0];
		pair->write_end[!i] = pipes[i][1];
	}
	while (result == 0 && !(pair->once[0]->over && pair->once[1]->over))
		result = pair_step(trial, pair, err);
	for (int i = 0; i < 2; i++) {
		close_pointer(&pair->read_end[i]);
		close_pointer(&pair->write_end[i]);
		if (result == 0)
			result = jail_once_end(trial->client, pair->once[i], err);
	}
	return result;
}

static void interactive_pass(struct grade_trial *trial)
{
	struct grade_load load = GRADE_LOAD_INIT;
	struct err err = ERR_INIT;

	for (int failures = 0; failures < GRADE_TRIES; failures++) {
		auto_once struct jail_once run = submission(trial, &load), check = {0};
		auto_free struct jail_file *files = NULL;
		auto_free const char **args = NULL;
		struct pair pair = {.once = {&run, &check}, .read_end = {-1, -1}, .write_end = {-1, -1}, .first = -1};

		check = grade_check_run(trial, -1, &files, &args);
		int64_t most_us = MAX(check.spec.limits.wall_us, GRADE_LOAD_WALL_US);
		check.spec.limits.wall_us = MIN(check.spec.limits.wall_us + run.spec.limits.wall_us, most_us);
		err = ERR_INIT;
		grade_load_begin(&load);
		int failed = pair_run(trial, &pair, &err);
		grade_load_end(&load);
		if (failed == 0 && run.result.verdict != JAIL_XX && check.result.verdict != JAIL_XX) {
			bool decides = validator_decides(trial, &pair);
			int64_t before_us = trial->outcome->cpu_us;

			trial->word = GRADE_LOAD_HOLDS;
			if (!(decides && grade_verdict_of(&check.result) != GRADE_TLE) &&
			    again(trial, &load, &run, &check)) {
				failures--;
				continue;
			}
			if (judge_end(trial, &run) == GRADE_AC || decides) {
				/* What a submission does when nobody talks to it any more says nothing of its speed. */
				if (decides)
					trial->outcome->cpu_us = before_us;
				grade_check_judge(trial, &check);
			}
			return;
		}
		if (!err.code)
			err_set(&err, ERR_SYSTEM, "%s",
				run.result.verdict == JAIL_XX ? run.result.message : check.result.message);
	}
	GRADE_SAY(trial->outcome, GRADE_JE, "the sandbox failed: %s", err.text);
}

/* -------- the case ------------------------------------------------------------------------------------ */

static void run_passes(struct grade_trial *trial)
{
	const struct grade_package *package = trial->bench->package;
	int64_t passes = package->multipass ? package->passes : 1;

	for (int64_t pass = 0; pass < passes; pass++) {
		trial->outcome->verdict = GRADE_AC;
		(package->interactive ? interactive_pass : batch_pass)(trial);
		if (trial->outcome->verdict != GRADE_AC || trial->feedback.next < 0)
			return;
		if (!package->multipass)
			return;
		close_pointer(&trial->input);
		trial->input = steal_fd(&trial->feedback.next);
	}
	GRADE_SAY(trial->outcome, GRADE_JE, "the validator gave no verdict within %lld passes",
			(long long)passes);
}

/* A validator of the package's own may need no answer, and packages then leave the file out. */
static int open_answer(struct grade_trial *trial, struct err *err)
{
	const struct grade_bench *bench = trial->bench;
	bool missing = access(trial->node->ans, F_OK) && errno == ENOENT;

	if (missing && bench->n_validators == 0)
		return err_set(err, ERR_NOT_FOUND, "data/%s.in has no answer: data/%s.ans is missing",
			       trial->node->name, trial->node->name);
	if (missing)
		return (trial->answer = memfd_with("answer", "", 0)) < 0 ? err_errno(err, "making an answer") : 0;
	return grade_package_file(bench->package, trial->node->ans, &trial->answer, err);
}

void grade_case_run(const struct grade_bench *bench, struct jail_client *client, const struct grade_program *program,
		    const struct grade_node *node, struct grade_ahead **ahead, struct grade_outcome *ret)
{
	struct grade_outcome outcome = {.score = NAN, .multiplier = NAN};
	struct grade_trial trial = {
		.bench = bench,
		.client = client,
		.program = program,
		.node = node,
		.validator = bench->validators,
		.outcome = &outcome,
		.ahead = ahead,
		.feedback = {.next = -1},
		.news = {.next = -1},
		.input = -1,
		.answer = -1,
		.files = xcalloc(program->count + 1, sizeof(*trial.files)),
		.n_files = program->count,
	};
	struct err err = ERR_INIT;

	memcpy(trial.files, program->files, program->count * sizeof(*trial.files));
	if (grade_package_file(bench->package, node->in, &trial.input, &err) < 0 || open_answer(&trial, &err) < 0 ||
	    (node->files && give_folder(&trial, node->files, "", 0, &err) < 0))
		GRADE_SAY(&outcome, GRADE_JE, "%s", err.text);
	else if (bench->package->interactive && bench->n_validators == 0)
		GRADE_SAY(&outcome, GRADE_JE, "an interactive problem needs a validator of its own");
	else
		run_passes(&trial);
	grade_feedback_clear(&trial.feedback);
	grade_feedback_clear(&trial.news);
	for (size_t i = trial.n_files - trial.n_own; i < trial.n_files; i++) {
		free(unconst(trial.files[i].name));
		close(trial.files[i].fd);
	}
	free(trial.files);
	close_pointer(&trial.input);
	close_pointer(&trial.answer);
	*ret = outcome;
}
