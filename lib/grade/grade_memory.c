/*
 * grade_memory.c - see grade_memory.h.
 *
 * The key of a package is over the names and contents of its files, submissions excepted, because theirs are keys of
 * their own: a corrected submission is judged again, and the others are not.
 */
#include "grade_memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jail/client/client_runners.h"
#include "lib/base/util.h"

#define MEMORY_VERSION "2"
#define DEPTH_MAX      32
#define BLOCK          65536

/* -------- keys ---------------------------------------------------------------------------------------- */

static void add_text(struct sha256 *digest, const char *text)
{
	sha256_add(digest, text, strlen(text) + 1);
}

static int add_file(struct sha256 *digest, int folder, const char *name, struct err *err)
{
	auto_close int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	auto_free char *block = xmalloc(BLOCK);
	ssize_t n = 0;

	while (fd >= 0 && (n = read(fd, block, BLOCK)) > 0)
		sha256_add(digest, block, (size_t)n);
	return fd < 0 || n < 0 ? err_errno(err, "%s", name) : 0;
}

/* Links are what they say: what they lead to is in the package, or is never read. */
static int add_link(struct sha256 *digest, int folder, const char *name, struct err *err)
{
	char target[4096];
	ssize_t n = readlinkat(folder, name, target, sizeof(target) - 1);

	if (n < 0)
		return err_errno(err, "%s", name);
	target[n] = '\0';
	add_text(digest, target);
	return 0;
}

static int add_folder(struct sha256 *digest, int folder, bool top, int depth, struct err *err);

static int add_entry(struct sha256 *digest, int folder, const char *name, int depth, struct err *err)
{
	char head[64];
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW))
		return err_errno(err, "%s", name);
	snprintf(head, sizeof(head), "%o %lld", (unsigned)st.st_mode, S_ISREG(st.st_mode) ? (long long)st.st_size : 0);
	add_text(digest, name);
	add_text(digest, head);
	if (S_ISREG(st.st_mode))
		return add_file(digest, folder, name, err);
	if (S_ISLNK(st.st_mode))
		return add_link(digest, folder, name, err);
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

static void add_json(struct sha256 *digest, struct json_object *object)
{
	auto_buf struct buf text = {0};

	buf_init(&text, SIZE_MAX / 2);
	if (object)
		json_print(&text, object);
	sha256_add(digest, text.data ? text.data : "", text.length);
	add_text(digest, "");
}

static void add_runners(struct sha256 *digest, struct json_object *runners)
{
	auto_buf struct buf text = {0};

	buf_init(&text, SIZE_MAX / 2);
	jail_runners_versions(runners, &text);
	add_text(digest, text.data);
}

int grade_memory_package(const struct grade_judge *judge, struct json_object *runners, char ret[SHA256_HEX_SIZE],
			 struct err *err)
{
	struct sha256 *digest = sha256_new();
	char limit[32];

	snprintf(limit, sizeof(limit), "%.17g", judge->time_limit);
	add_text(digest, MEMORY_VERSION);
	add_text(digest, limit);
	add_runners(digest, runners);
	add_json(digest, judge->expectations);
	int result = add_folder(digest, judge->package->dir, true, 0, err);
	sha256_finish(digest, result < 0 ? NULL : ret);
	return result;
}

void grade_memory_program(const char package[SHA256_HEX_SIZE], const struct grade_source *source,
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
	struct json_object *value = json_get(object, name, json_type_int);

	return value ? json_object_get_int64(value) : 0;
}

struct json_object *grade_memory_print(const struct grade_submission *submission)
{
	const struct grade_total *total = &submission->total;
	struct json_object *object = json_object_new_object(), *groups = json_object_new_array();

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
	return object;
}

/* A group, or a case, of the test data; NULL: nothing is called so. */
static const struct grade_node *node_named(const struct grade_judge *judge, struct json_object *object,
					   const char *member)
{
	const char *name = json_get_string(object, member);

	return name ? grade_data_find(judge->root, name) : NULL;
}

static bool parse_groups(const struct grade_judge *judge, struct json_object *groups, struct grade_total *total)
{
	size_t count = groups ? json_object_array_length(groups) : 0;

	total->groups = xcalloc(count + 1, sizeof(*total->groups));
	for (size_t i = 0; i < count; i++) {
		struct json_object *group = json_object_array_get_idx(groups, i);
		struct grade_group_result *result = &total->groups[total->n_groups++];
		const char *verdict = json_get_string(group, "verdict");

		result->group = node_named(judge, group, "name");
		result->score = number(group, "score");
		if (!result->group || !verdict || grade_verdict_parse(verdict, &result->verdict))
			return false;
	}
	return true;
}

static void copy_text(struct json_object *object, const char *name, char *ret, size_t size)
{
	const char *text = json_get_string(object, name);

	snprintf(ret, size, "%s", text ? text : "");
}

static bool flag(struct json_object *object, const char *name)
{
	struct json_object *value = json_get(object, name, json_type_boolean);

	return value && json_object_get_boolean(value);
}

bool grade_memory_parse(const struct grade_judge *judge, struct json_object *result,
			struct grade_submission *submission)
{
	const char *verdict = json_get_string(result, "verdict");
	struct grade_total total = {
		.score = number(result, "score"),
		.full = number(result, "full"),
		.first = node_named(judge, result, "case"),
		.cases_run = (size_t)integer(result, "cases_run"),
		.cpu_us = integer(result, "cpu"),
		.wall_us = integer(result, "wall"),
		.memory_bytes = integer(result, "memory"),
	};

	if (!verdict || grade_verdict_parse(verdict, &total.verdict) ||
	    !parse_groups(judge, json_get(result, "groups", json_type_array), &total)) {
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
