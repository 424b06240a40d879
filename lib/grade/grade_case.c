/*
 * grade_case.c - see grade_case.h.
 *
 * Order of blame: a validator that crashed or exited with another status than it may is the judge's error; then, where
 * both programs run at the same time, a validator that rejected before the submission ended; then the submission's own
 * end (time, memory, output, exit status); then the validator's word. In an interactive run we hold both ends of both
 * pipes too: a write end until we know that its owner has ended, so that the other one does not end of the end of its
 * input before (which of the two was first decides), and the read ends, to read on in the place of one that has ended:
 * nobody dies of SIGPIPE but a submission that has been rejected, which would go on for as long as it may.
 *
 * The limit is CPU time, and the wall clock is there for programs that wait. Where other work has the processors, a
 * program that computes can run out of wall clock too: then it has used a part of it, and the case runs again. So does
 * every case that ran out of it on a host with more than BUSY_LOAD; one that sleeps runs out of it each time.
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

#define STARVED_SHARE 20  /* a program at work had at least such a part of its wall clock … */
#define BUSY_LOAD     2.0 /* … where not more than so many wait for each processor */

#define FOLDERS_MAX   8   /* below each other, of a case's own files */

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

static struct jail_once submission(const struct grade_trial *trial)
{
	const struct grade_bench *bench = trial->bench;
	int64_t limit_us = (int64_t)(bench->time_limit * MAX(bench->patience, 1) * 1e6);
	const struct jail_limits limits = {
		.wall_us = 2 * limit_us + 1000000,
		.cpu_us = limit_us,
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
	if (verdict != GRADE_JE && (double)cpu_us > trial->bench->time_limit * 1e6) {
		outcome->late = verdict != GRADE_TLE;
		verdict = GRADE_TLE;
	}
	if (verdict == GRADE_TLE)
		GRADE_SAY(outcome, verdict, "more than %g s", trial->bench->time_limit);
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

/* Was it the wall clock that ended a program which was at work? `other`: what ran at its side, or NULL. */
static bool starved(const struct grade_trial *trial, const struct jail_once *once, const struct jail_once *other)
{
	const struct jail_usage *run = &once->result.run;
	int64_t own_us = run->cpu_user_us + run->cpu_system_us, cpu_us = own_us;
	double load;

	if (other)
		cpu_us += other->result.run.cpu_user_us + other->result.run.cpu_system_us;
	if (grade_verdict_of(&once->result) != GRADE_TLE || (double)own_us >= trial->bench->time_limit * 1e6)
		return false;
	/* On a busy host a program may get next to nothing of the processors. */
	return cpu_us > run->wall_us / STARVED_SHARE ||
	       (getloadavg(&load, 1) == 1 && load > BUSY_LOAD * (double)sysconf(_SC_NPROCESSORS_ONLN));
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
static int run_submission(const struct grade_trial *trial, struct grade_ahead **ret)
{
	struct err err = ERR_INIT;

	for (int try = 0; try < GRADE_TRIES; try++) {
		struct jail_once wanted = submission(trial);
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

	for (int try = 0; try < GRADE_TRIES && (try == 0 || starved(trial, &own->once, NULL)); try++)
		if (run_submission(trial, &own))
			return;
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

/* Does its word count, whatever the submission did? */
static bool validator_decides(const struct grade_trial *trial, const struct pair *pair)
{
	enum grade_verdict word = grade_check_verdict(trial->validator, &pair->once[1]->result);

	return word == GRADE_JE || (pair->first == 1 && word != GRADE_AC);
}

/* Waits for an event of the jailer, and reads what nobody reads any more, but of a submission that is rejected already:
 * that one ends of it. */
static int pair_step(struct grade_trial *trial, struct pair *pair, struct err *err)
{
	struct pollfd fds[3] = {
		{.fd = jail_client_fd(trial->client), .events = jail_client_poll_events(trial->client)}};
	char block[65536];

	for (int i = 0; i < 2; i++)
		fds[1 + i] = (struct pollfd){.fd = pair->once[i]->done ? pair->read_end[i] : -1, .events = POLLIN};
	if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
		return err_errno(err, "waiting for two programs");
	for (int i = 0; i < 2; i++)
		if (fds[1 + i].revents && read(pair->read_end[i], block, sizeof(block)) == 0)
			fd_close(&pair->read_end[i]);
	int result = jail_client_dispatch(trial->client, err);
	for (int i = 0; i < 2; i++) {
		if (pair->first < 0 && pair->once[i]->done)
			pair->first = i;
		if (pair->once[i]->done || pair->once[i]->over)
			fd_close(&pair->write_end[i]);
	}
	if (pair->first == 1 && validator_decides(trial, pair))
		fd_close(&pair->read_end[1]);
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
	int64_t limit_us = (int64_t)(trial->bench->time_limit * 1e6);
	struct err err = ERR_INIT;

	for (int try = 0; try < GRADE_TRIES; try++) {
		auto_once struct jail_once run = submission(trial), check = {0};
		auto_free struct jail_file *files = NULL;
		auto_free const char **args = NULL;
		struct pair pair = {.once = {&run, &check}, .read_end = {-1, -1}, .write_end = {-1, -1}, .first = -1};

		check = grade_check_run(trial, -1, &files, &args);
		check.spec.limits.wall_us += run.spec.limits.wall_us;
		err = ERR_INIT;
		if (pair_run(trial, &pair, &err) == 0 && run.result.verdict != JAIL_XX &&
		    check.result.verdict != JAIL_XX) {
			bool decides = validator_decides(trial, &pair);

			if (try < GRADE_TRIES - 1 && !(decides && grade_verdict_of(&check.result) != GRADE_TLE) &&
			    starved(trial, &run, &check))
				continue;
			if (judge_end(trial, &run) == GRADE_AC || decides) {
				/* What a submission does when nobody talks to it any more says nothing of its speed. */
				if (decides)
					trial->outcome->cpu_us = MIN(trial->outcome->cpu_us, limit_us);
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
