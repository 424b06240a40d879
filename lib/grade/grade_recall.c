/*
 * grade_recall.c - a judge's submissions and what an earlier run found (grade_memory.h): the recalling half of
 * grade_work.h.
 *
 * What the time limit comes from is recalled first, then the limit, and then the rest, whose keys have the limit in
 * them: where a corrected submission makes another limit, what was judged by the old one is judged again.
 *
 * The key of a package is over the names and contents of its files, submissions excepted, because theirs are keys of
 * their own: a corrected submission is judged again, and the others are not.
 */
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "grade_memory.h"
#include "grade_work.h"
#include "grade_yaml.h"
#include "jail/client/client_runners.h"
#include "lib/base/util.h"

#define LIMIT_NAME     "time limit"
#define MEMORY_VERSION "2"
#define DEPTH_MAX      32
#define BLOCK          16384

/* -------- keys ---------------------------------------------------------------------------------------- */

static void add_text(struct sha256 *digest, const char *text)
{
	sha256_add(digest, text, strlen(text) + 1);
}

static int add_folder(struct sha256 *digest, int folder, bool top, int depth, struct err *err);

static int add_entry(struct sha256 *digest, int folder, const char *name, int depth, struct err *err)
{
	char head[64], target[4096], block[BLOCK];
	struct stat st;
	ssize_t n = 0;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW))
		return err_errno(err, "%s", name);
	snprintf(head, sizeof(head), "%o %lld", (unsigned)st.st_mode, S_ISREG(st.st_mode) ? (long long)st.st_size : 0);
	add_text(digest, name);
	add_text(digest, head);
	if (S_ISREG(st.st_mode)) {
		auto_close int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

		while (fd >= 0 && (n = read(fd, block, BLOCK)) > 0)
			sha256_add(digest, block, (size_t)n);
		return fd < 0 || n < 0 ? err_errno(err, "%s", name) : 0;
	}
	if (S_ISLNK(st.st_mode)) {
		/* A link counts as its text: what it leads to is in the package, or is never read. */
		if ((n = readlinkat(folder, name, target, sizeof(target) - 1)) < 0)
			return err_errno(err, "%s", name);
		target[n] = '\0';
		add_text(digest, target);
		return 0;
	}
	if (!S_ISDIR(st.st_mode) || depth == DEPTH_MAX)
		return 0;
	auto_close int deeper = openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return deeper < 0 ? err_errno(err, "%s", name) : add_folder(digest, deeper, false, depth + 1, err);
}

static int add_folder(struct sha256 *digest, int folder, bool top, int depth, struct err *err)
{
	struct dirent **entries = NULL;
	int n = scandirat(folder, ".", &entries, NULL, alphasort), result = 0;

	if (n < 0)
		return err_errno(err, "reading a folder");
	for (int i = 0; i < n; i++) {
		const char *name = entries[i]->d_name;
		bool own = !streq(name, ".") && !streq(name, "..") && !streq(name, ".git") &&
			   !(top && streq(name, "submissions"));

		if (own && result == 0)
			result = add_entry(digest, folder, name, depth, err);
		free(entries[i]);
	}
	free(entries);
	add_text(digest, "/");
	return result;
}

/* The program that SOURCE is, in that package. */
static void program_key(const char package[SHA256_HEX_SIZE], const struct grade_source *source,
			char ret[SHA256_HEX_SIZE])
{
	struct sha256 *digest = sha256_new();

	add_text(digest, package);
	add_text(digest, source->runner ? source->runner : "");
	for (size_t i = 0; i < source->count; i++) {
		const struct grade_file *file = &source->files[i];
		char head[32];

		snprintf(head, sizeof(head), "%d %zu", i == source->entry, file->length);
		add_text(digest, file->name);
		add_text(digest, head);
		sha256_add(digest, file->data, file->length);
	}
	sha256_finish(digest, ret);
}

/* -------- what came of a submission ------------------------------------------------------------------- */

/* NAN and INFINITY, too: they say that there is no score, and no bound. */
static void add_number(struct json_object *object, const char *name, double value)
{
	char text[40];

	snprintf(text, sizeof(text), "%.17g", value);
	json_add_string(object, name, text);
}

static double number(struct json_object *object, const char *name)
{
	const char *text = json_get_string(object, name);

	return text ? strtod(text, NULL) : NAN;
}

static int64_t integer(struct json_object *object, const char *name)
{
	return json_object_get_int64(json_get(object, name, json_type_int));
}

/* A group, or a case, of the test data; NULL: nothing is called so. */
static const struct grade_node *node_named(const struct grade_judge *judge, struct json_object *object,
					   const char *member)
{
	const char *name = json_get_string(object, member);

	return name ? grade_data_find(judge->root, name) : NULL;
}

static void copy_text(struct json_object *object, const char *name, char *ret, size_t size)
{
	const char *text = json_get_string(object, name);

	snprintf(ret, size, "%s", text ? text : "");
}

static bool flag(struct json_object *object, const char *name)
{
	return json_object_get_boolean(json_get(object, name, json_type_boolean));
}

/* False: the result is not readable. */
static bool parse_result(const struct grade_judge *judge, struct json_object *result,
			 struct grade_submission *submission)
{
	struct json_object *groups = json_get(result, "groups", json_type_array);
	size_t count = groups ? json_object_array_length(groups) : 0;
	const char *verdict = json_get_string(result, "verdict");
	struct grade_total total = {
		.score = number(result, "score"),
		.full = number(result, "full"),
		.first = node_named(judge, result, "case"),
		.cases_run = (size_t)integer(result, "cases_run"),
		.cpu_us = integer(result, "cpu"),
		.wall_us = integer(result, "wall"),
		.memory_bytes = integer(result, "memory"),
		.groups = xcalloc(count + 1, sizeof(*total.groups)),
		.n_groups = count,
	};
	bool readable = verdict && grade_verdict_parse(verdict, &total.verdict) == 0;

	for (size_t i = 0; i < count && readable; i++) {
		struct json_object *group = json_object_array_get_idx(groups, i);
		struct grade_group_result *one = &total.groups[i];

		verdict = json_get_string(group, "verdict");
		one->group = node_named(judge, group, "name");
		one->score = number(group, "score");
		readable = one->group && verdict && grade_verdict_parse(verdict, &one->verdict) == 0;
	}
	if (!readable) {
		free(total.groups);
		return false;
	}
	copy_text(result, "message", total.message, sizeof(total.message));
	copy_text(result, "language", submission->language, sizeof(submission->language));
	copy_text(result, "unmet", submission->unmet, sizeof(submission->unmet));
	submission->expect.by_case = flag(result, "by_case");
	submission->compiled = flag(result, "compiled");
	submission->from_cache = flag(result, "from_cache");
	submission->total = total;
	return true;
}

/* -------- recalling and keeping ----------------------------------------------------------------------- */

static void recall(struct grade_work *work, struct grade_entry *entry)
{
	const struct grade_judge *judge = work->judge;
	struct grade_submission *submission = entry->submission;
	auto_source struct grade_source source = {0};
	auto_json struct json_object *result = NULL;

	if (*entry->key && judge->memory->recall(judge->memory->arg, submission->name, entry->key, &result) &&
	    grade_judge_source(work, submission, &source, NULL) == 0 &&
	    parse_result(judge, result, submission)) {
		grade_expect_comment(&source, &submission->expect);
		entry->stage = STAGE_DONE;
	}
}

/* What the limit does not come from, or in part only, depends on it. */
void grade_recall_rest(struct grade_work *work)
{
	const struct grade_judge *judge = work->judge;

	for (size_t i = 0; judge->memory && i < judge->count; i++) {
		struct grade_entry *entry = &work->entries[i];
		auto_free char *both = xasprintf("%s %.17g", entry->key, judge->time_limit);

		if (!*entry->key || grade_judge_bounds(judge->package, entry->submission))
			continue;
		sha256_hex(both, strlen(both), entry->key);
		if (entry->stage == STAGE_WAITING)
			recall(work, entry);
	}
}

/* The limit that an earlier run took from the same submissions. */
static void recall_limit(struct grade_work *work)
{
	struct grade_judge *judge = work->judge;
	struct sha256 *digest = sha256_new();
	auto_json struct json_object *found = NULL;
	double limit;

	for (size_t i = 0; i < judge->count; i++)
		if (grade_judge_makes_limit(judge->package, &judge->submissions[i]))
			sha256_add(digest, work->entries[i].key, SHA256_HEX_SIZE);
	sha256_finish(digest, work->limit_key);
	if (!judge->memory->recall(judge->memory->arg, LIMIT_NAME, work->limit_key, &found) ||
	    grade_yaml_number(found, "seconds", 0, &limit, NULL) < 0 || !(limit > 0))
		return;
	judge->time_limit = limit;
	judge->derived = true;
}

int grade_recall_all(struct grade_work *work, struct err *err)
{
	struct grade_judge *judge = work->judge;
	auto_buf struct buf text = {0};

	if (!judge->memory)
		return 0;
	/* What all results depend on: the package's files besides submissions, runners, and a limit that was given. */
	struct sha256 *digest = sha256_new();
	buf_init(&text, SIZE_MAX / 2);
	buf_printf(&text, "%s%c%.17g%c", MEMORY_VERSION, '\0', judge->time_limit, '\0');
	jail_runners_versions(work->runners, &text);
	buf_putc(&text, '\0');
	if (judge->expectations)
		json_print(&text, judge->expectations);
	buf_putc(&text, '\0');
	sha256_add(digest, text.data, text.length);
	int result = add_folder(digest, judge->package->dir, true, 0, err);
	sha256_finish(digest, result < 0 ? NULL : work->key);
	if (result < 0)
		return result;
	for (size_t i = 0; i < judge->count; i++) {
		struct grade_entry *entry = &work->entries[i];
		auto_source struct grade_source source = {0};

		/* A submission that cannot be read is not judged, and needs no key. */
		if (grade_judge_source(work, entry->submission, &source, NULL) == 0)
			program_key(work->key, &source, entry->key);
		if (grade_judge_bounds(judge->package, entry->submission))
			recall(work, entry);
	}
	if (!judge->time_limit)
		recall_limit(work);
	if (judge->time_limit)
		grade_recall_rest(work);
	return 0;
}

void grade_recall_keep_limit(const struct grade_work *work)
{
	const struct grade_memory *memory = work->judge->memory;
	auto_json struct json_object *limit = json_object_new_object();
	char text[40];

	if (!memory)
		return;
	snprintf(text, sizeof(text), "%.17g", work->judge->time_limit);
	json_add_string(limit, "seconds", text);
	memory->keep(memory->arg, LIMIT_NAME, work->limit_key, limit);
}

void grade_recall_keep(const struct grade_work *work, const struct grade_entry *entry)
{
	const struct grade_memory *memory = work->judge->memory;
	const struct grade_submission *submission = entry->submission;
	const struct grade_total *total = &submission->total;

	if (!memory || !*entry->key || total->verdict == GRADE_JE)
		return;
	auto_json struct json_object *object = json_object_new_object();
	struct json_object *groups = json_object_new_array();
	json_add_string(object, "verdict", grade_verdict_text(total->verdict));
	add_number(object, "score", total->score);
	add_number(object, "full", total->full);
	json_add_string(object, "case", total->first ? total->first->name : NULL);
	json_add_string(object, "message", total->message);
	json_add_int(object, "cases_run", (int64_t)total->cases_run);
	json_add_int(object, "cpu", total->cpu_us);
	json_add_int(object, "wall", total->wall_us);
	json_add_int(object, "memory", total->memory_bytes);
	for (size_t i = 0; i < total->n_groups; i++) {
		struct json_object *group = json_object_new_object();

		json_add_string(group, "name", total->groups[i].group->name);
		json_add_string(group, "verdict", grade_verdict_text(total->groups[i].verdict));
		add_number(group, "score", total->groups[i].score);
		json_object_array_add(groups, group);
	}
	json_add(object, "groups", groups);
	json_add_string(object, "language", submission->language);
	json_add_bool(object, "compiled", submission->compiled);
	json_add_bool(object, "from_cache", submission->from_cache);
	json_add_string(object, "unmet", submission->unmet);
	json_add_bool(object, "by_case", submission->expect.by_case);
	memory->keep(memory->arg, submission->name, entry->key, object);
}
