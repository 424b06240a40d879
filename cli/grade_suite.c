/*
 * grade_suite.c - `sallyport grade` over a suite: each case's input once more, with the recorded code or a submission,
 * compared with what is expected.
 *
 * A suite is a bundle, and untrusted: it is checked, then imported into a database in a folder that goes away with this
 * process; from there on a case is a replay (replay.h). AC is an outcome that equals the recorded one, as far as the
 * case compares it; else the verdict is what the run's own end says, and WA where that is the same. Lines come in the
 * order of submissions, and of the cases' names.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "grade.h"
#include "lib/base/util.h"
#include "lib/grade/grade_pool.h"
#include "lib/store/transfer/store_backup.h"
#include "lib/store/transfer/store_bundle.h"
#include "replay.h"
#include "run.h"

#define CODE_MAX ((size_t)16 << 20)

struct suite_case {
	char id[ID_SIZE];
	char *name;
	struct replay_settings settings;
};
struct submission {
	const char *path; /* NULL: the recorded code */
	struct replay_instead instead;
	char *code;
};
struct slot {
	struct store_result result;
	int64_t wall_us;
	bool done;
};
struct suite {
	struct grading *grading;
	struct store *store;
	struct suite_case *cases;
	struct submission *submissions;
	size_t n_cases, n_submissions;
	struct err *err;             /* of a case that cannot be read */
	struct json_object *runners; /* for keys of results; else only where there are submissions */
	char hash[SHA256_HEX_SIZE];  /* of the suite's file, where results are kept */

	struct grade_pool pool; /* its lock is over the rest */
	struct slot *slots;     /* by submission, then case */
	size_t next, to_report, finished;
	bool stop;
	size_t passed, verdicts[GRADE_VERDICTS];
};

/* -------- what came of a case -------------------------------------------------------------------------- */

static enum grade_verdict verdict_of(const struct store_result *result)
{
	static const struct {
		const char *jail;
		enum grade_verdict verdict;
	} ends[] = {{"TO", GRADE_TLE}, {"ML", GRADE_MLE}, {"OL", GRADE_OLE},
		    {"RE", GRADE_RTE}, {"SG", GRADE_RTE}, {"CE", GRADE_CE}};
	enum replay_class class = replay_class_from(result->class);

	if (class <= REPLAY_EQUAL)
		return GRADE_AC;
	if (class == REPLAY_NOT_REPLAYABLE)
		return GRADE_SKIP;
	if (class > REPLAY_NOT_REPLAYABLE)
		return GRADE_JE;
	for (size_t i = 0; !streq(result->recorded, result->now) && i < ARRAY_SIZE(ends); i++)
		if (streq(result->now, ends[i].jail))
			return ends[i].verdict;
	return GRADE_WA;
}

/* One sentence; "" where there is nothing to say. The caller's. */
static char *message_of(struct json_object *report, struct json_object *differences)
{
	const char *reason = json_get_string(report, "reason");
	struct json_object *first = json_object_array_get_idx(differences, 0);
	struct json_object *line = json_get(first, "line", json_type_int);
	auto_free char *where = line ? xasprintf(", line %lld", (long long)json_object_get_int64(line)) : xstrdup("");

	if (reason || !first)
		return xstrdup(reason ? reason : "");
	return xasprintf("%s%s: expected %s, is %s", json_get_string(first, "what"), where,
			 json_get_string(first, "recorded"), json_get_string(first, "now"));
}

static void print_case(const struct suite *suite, size_t index, enum grade_verdict verdict)
{
	const struct submission *submission = &suite->submissions[index / suite->n_cases];
	const struct suite_case *one = &suite->cases[index % suite->n_cases];
	const struct slot *slot = &suite->slots[index];
	auto_json struct json_object *report = NULL, *line = json_object_new_object(), *none = json_object_new_array();
	auto_buf struct buf details = {0};

	json_parse(slot->result.report, strlen(slot->result.report), &report, NULL);
	struct json_object *differences = json_get(report, "differences", json_type_array);
	differences = differences ? differences : none;
	auto_free char *message = message_of(report, differences);
	auto_free char *name = submission->path ? xasprintf("%s  %s", submission->path, one->name) : xstrdup(one->name);

	buf_init(&details, SIZE_MAX / 2);
	replay_details(differences, &details);
	struct report_case found = {
		.group = json_get_string(report, "language"),
		.name = name,
		.label = grade_verdict_text(verdict),
		.expected = grade_verdict_text(GRADE_AC),
		.now = grade_verdict_text(verdict),
		.state = verdict == GRADE_AC     ? REPORT_PASS
			 : verdict == GRADE_JE   ? REPORT_ERROR
			 : verdict == GRADE_SKIP ? REPORT_SKIP
						 : REPORT_FAIL,
		.message = message,
		.details = *details.data ? details.data : NULL,
		.wall_us = slot->wall_us,
	};

	json_add_string(line, "case", one->id);
	json_add_string(line, "name", one->name);
	if (submission->path)
		json_add_bytes(line, "submission", submission->path, strlen(submission->path));
	json_add_string(line, "language", found.group);
	json_add_string(line, "verdict", found.label);
	json_add_string(line, "class", slot->result.class);
	json_add_bytes(line, "message", message, strlen(message));
	json_add_int(line, "wall_us", slot->wall_us);
	if (grade_put_line(suite->grading, line, &found)) {
		enum cli_colour colour = found.state == REPORT_PASS   ? CLI_GREEN
					 : found.state == REPORT_SKIP ? CLI_DIM
								      : CLI_RED;
		const char *diff = found.details ? strstr(found.details, "\n@@") : NULL;

		printf("%s%-4s%s ", cli_colour_on(stdout, colour), found.label, cli_colour_off(stdout));
		cli_print_safe(stdout, found.name, strlen(found.name));
		fputs(*found.message ? "  " : "", stdout);
		cli_print_safe(stdout, found.message, strlen(found.message));
		putchar('\n');
		if (diff)
			cli_print_diff(stdout, diff + 1, "    ");
	}
}

/* With the lock: everything whose turn it is. */
static void report_ready(struct suite *suite)
{
	size_t count = suite->n_cases * suite->n_submissions;

	for (; suite->to_report < count && suite->slots[suite->to_report].done; suite->to_report++) {
		struct slot *slot = &suite->slots[suite->to_report];
		enum grade_verdict verdict = verdict_of(&slot->result);

		if (suite->stop)
			continue;
		suite->verdicts[verdict]++;
		suite->passed += verdict == GRADE_AC;
		cli_progress_hide(&suite->grading->progress);
		print_case(suite, suite->to_report, verdict);
		fflush(stdout);
		free(steal(&slot->result.report));
		suite->stop = suite->grading->options->fail_fast && verdict != GRADE_AC && verdict != GRADE_SKIP;
	}
}

/* -------- the threads --------------------------------------------------------------------------------- */

/* A replay opens a connection by itself, and another one when it failed. */
static int connect_later(void *arg, struct jail_client **ret, size_t count, struct err *err)
{
	(void)arg;
	(void)err;
	memset(ret, 0, count * sizeof(*ret));
	return 0;
}

static enum grade_choice choose(void *arg, void *ret_step)
{
	struct suite *suite = arg;

	if (suite->stop || suite->next == suite->n_cases * suite->n_submissions)
		return GRADE_FINISHED;
	*(size_t *)ret_step = suite->next++;
	return GRADE_STEP;
}

static void leave(void *own)
{
	struct replay_runner *runner = own;

	jail_client_free(runner->client);
	free(runner);
}

/* Run, or taken from an earlier run: the key is of all that a result depends on. */
static void run_case(const struct suite *suite, struct replay_runner *runner, const struct suite_case *one,
		     struct store_result *ret)
{
	struct store_results *results = suite->grading->results;
	char settings[SHA256_HEX_SIZE], key[SHA256_HEX_SIZE];

	if (results) {
		struct sha256 *digest = sha256_new();

		replay_settings_key(&one->settings, suite->runners, settings);
		sha256_add(digest, settings, sizeof(settings));
		sha256_add(digest, suite->hash, sizeof(suite->hash));
		if (runner->instead) {
			sha256_add(digest, runner->instead->language, strlen(runner->instead->language) + 1);
			sha256_add(digest, runner->instead->code, runner->instead->length);
		}
		sha256_finish(digest, key);
		if (suite->grading->options->resume && store_results_get(results, one->id, key, ret, NULL) == 1)
			return;
	}
	replay_one(runner, one->id, ret);
	if (results && verdict_of(ret) != GRADE_JE)
		store_results_put(results, one->id, key, ret, NULL);
}

static void act(void *arg, struct jail_client *client, void **own, const void *step)
{
	struct suite *suite = arg;
	size_t index = *(const size_t *)step;
	const struct suite_case *one = &suite->cases[index % suite->n_cases];
	const struct submission *submission = &suite->submissions[index / suite->n_cases];
	struct replay_settings settings = one->settings;
	struct replay_runner *runner = *own ? *own : xcalloc(1, sizeof(*runner));
	int64_t began = clock_monotonic_us();
	struct slot slot = {.done = true};

	(void)client;
	settings.repeat = submission->path ? 1 : 0; /* that a submission is flaky helps nobody */
	*runner = (struct replay_runner){.config = suite->grading->config,
					 .store = suite->store,
					 .settings = &settings,
					 .client = runner->client,
					 .instead = submission->path ? &submission->instead : NULL};
	*own = runner;
	run_case(suite, runner, one, &slot.result);
	slot.wall_us = clock_monotonic_us() - began;
	pthread_mutex_lock(&suite->pool.lock);
	suite->slots[index] = slot;
	report_ready(suite);
	grade_progress(suite->grading, ++suite->finished, suite->n_cases * suite->n_submissions);
	pthread_mutex_unlock(&suite->pool.lock);
}

/* -------- reading ------------------------------------------------------------------------------------- */

static bool has_tag(const char *tags, const struct bind_strings *wanted)
{
	auto_json struct json_object *array = NULL;

	if (wanted->count == 0)
		return true;
	if (json_parse(tags, strlen(tags), &array, NULL) < 0)
		return false;
	for (size_t i = 0; i < json_object_array_length(array); i++)
		for (size_t k = 0; k < wanted->count; k++)
			if (streq(json_object_get_string(json_object_array_get_idx(array, i)), wanted->items[k]))
				return true;
	return false;
}

static int add_case(void *arg, const struct store_bundle_case *found)
{
	struct suite *suite = arg;
	struct suite_case one = {0};
	int result;

	if (!has_tag(found->tags, &suite->grading->options->tags))
		return 0;
	result = replay_settings_by(found->compare, &one.settings.by, suite->err);
	if (result == 0)
		result = normalise_parse(found->normalise, &one.settings.normalisers, suite->err);
	if (result < 0)
		return err_wrap(suite->err, "the case %s", found->id);
	snprintf(one.id, sizeof(one.id), "%s", found->id);
	one.name = xstrdup(found->name);
	suite->cases = xrealloc(suite->cases, suite->n_cases + 1, sizeof(*suite->cases));
	suite->cases[suite->n_cases++] = one;
	return 0;
}

/* Into a database of its own. */
static int open_suite(struct suite *suite, const char *path, struct err *err)
{
	struct store_bundle *bundle = NULL;
	struct store_carried carried = {0};
	auto_free char *folder = NULL;
	int result = store_bundle_open(path, &bundle, err);

	suite->err = err;
	if (result == 0)
		result = store_bundle_cases(bundle, add_case, suite, err);
	if (result == 0 && suite->n_cases == 0)
		result = err_set(err, ERR_INVALID, "%s: no case has such a tag, or there are none", path);
	if (result == 0)
		result = cli_scratch(&folder, err);
	if (result == 0)
		result = store_open(folder, STORE_SERVE, &suite->store, err);
	if (result == 0)
		result = store_bundle_import(bundle, suite->store, &carried, err);
	if (result == 0 && suite->grading->results) {
		auto_free char *file = realpath(path, NULL);

		result = store_backup_sum(AT_FDCWD, file ? file : path, suite->hash, err);
	}
	store_bundle_close(bundle);
	return result;
}

static int read_submissions(struct suite *suite, struct err *err)
{
	const struct cli_common *common = &suite->grading->options->common;
	auto_jailer struct jail_client *client = NULL;
	int result = 0;

	suite->n_submissions = MAX(common->n_args - 1, (size_t)1);
	suite->submissions = xcalloc(suite->n_submissions, sizeof(*suite->submissions));
	if (common->n_args == 1 && !suite->grading->results)
		return 0;
	result = cli_open_jailer(suite->grading->config, &client, 1, err);
	if (result == 0)
		result = jail_client_runners(client, &suite->runners, err);
	for (size_t i = 0; result == 0 && i + 1 < common->n_args; i++) {
		struct submission *one = &suite->submissions[i];
		struct json_object *runner = NULL;

		one->path = common->args[i + 1];
		auto_close int fd = open(one->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

		if (fd < 0 && errno == ENOENT)
			return err_set(err, ERR_NOT_FOUND, "%s: %s", one->path, strerror(errno));
		if (fd < 0)
			return err_errno(err, "%s", one->path);
		result = run_runner_choose(suite->runners, suite->grading->options->language, one->path, fd, &runner,
					   err);
		if (result == 0)
			result = read_fd(fd, CODE_MAX, &one->code, &one->instead.length, err);
		if (result < 0)
			return err_wrap(err, "%s", one->path);
		one->instead.language = json_get_string(runner, "name");
		one->instead.code = one->code;
	}
	return result;
}

/* -------- all of it ----------------------------------------------------------------------------------- */

static int run_suite(struct suite *suite, struct err *err)
{
	static const struct grade_dial dial = {connect_later, NULL};
	struct grading *grading = suite->grading;
	size_t count = suite->n_cases * suite->n_submissions;
	int64_t began = clock_monotonic_us();
	int result = cli_catch_interrupts(GRADE_INTERRUPTED, err);

	suite->slots = xcalloc(count, sizeof(*suite->slots));
	suite->pool = (struct grade_pool){.dial = &dial,
					  .jobs = grade_jobs(grading->options),
					  .choose = choose,
					  .act = act,
					  .leave = leave,
					  .arg = suite,
					  .lock = PTHREAD_MUTEX_INITIALIZER,
					  .changed = PTHREAD_COND_INITIALIZER};
	cli_progress_start(&grading->progress, "cases", (int64_t)count);
	if (result == 0)
		result = grade_pool_run(&suite->pool, err);
	cli_progress_hide(&grading->progress);
	if (result < 0) {
		cli_complain(err);
		return CLI_JUDGE_ERROR;
	}
	double seconds = (double)(clock_monotonic_us() - began) / 1e6;
	auto_json struct json_object *line = json_object_new_object();
	struct json_object *object = json_object_new_object(), *verdicts = json_object_new_object();
	const char *path = suite->grading->options->common.args[0];
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	json_add_bytes(object, "suite", name, strlen(name));
	json_add_int(object, "cases", (int64_t)suite->n_cases);
	json_add_int(object, "submissions", (int64_t)suite->grading->options->common.n_args - 1);
	json_add_int(object, "passed", (int64_t)suite->passed);
	json_add_int(object, "judge_errors", (int64_t)suite->verdicts[GRADE_JE]);
	for (int i = 0; i < GRADE_VERDICTS; i++)
		if (suite->verdicts[i])
			json_add_int(verdicts, grade_verdict_text((enum grade_verdict)i), (int64_t)suite->verdicts[i]);
	json_add(object, "verdicts", verdicts);
	json_add_rounded(object, "seconds", seconds, 2);
	json_add(line, "summary", object);
	grade_put_summary(suite->grading, line, seconds);
	if (!suite->grading->options->common.json)
		printf("%zu of %zu cases passed; %.1f s\n", suite->passed, suite->n_cases * suite->n_submissions,
		       seconds);
	if (suite->verdicts[GRADE_JE])
		return CLI_JUDGE_ERROR;
	return suite->passed + suite->verdicts[GRADE_SKIP] < count ? CLI_DIFFERENT : CLI_OK;
}

int grade_suite_run(struct grading *grading, struct err *err)
{
	struct suite suite = {.grading = grading};
	int result = replay_normalisers_load(&grading->options->normalisers, err);

	if (result == 0)
		result = open_suite(&suite, grading->options->common.args[0], err);
	if (result == 0)
		result = read_submissions(&suite, err);
	if (result < 0) {
		result = grade_refuse(err);
	} else {
		result = run_suite(&suite, err);
	}
	store_close(suite.store);
	normalise_file_forget();
	for (size_t i = 0; suite.slots && i < suite.n_cases * suite.n_submissions; i++)
		free(suite.slots[i].result.report);
	for (size_t i = 0; i < suite.n_cases; i++)
		free(suite.cases[i].name);
	for (size_t i = 0; i < suite.n_submissions; i++)
		free(suite.submissions[i].code);
	free(suite.slots);
	free(suite.cases);
	free(suite.submissions);
	json_object_put(suite.runners);
	return result;
}
