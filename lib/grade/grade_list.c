/* grade_list.c - which submissions there are: the opening and closing half of grade_judge.h. */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "grade_work.h"
#include "grade_yaml.h"
#include "lib/base/util.h"

#define SUBMISSIONS_MAX 100000

bool grade_judge_bounds(const struct grade_package *package, const struct grade_submission *submission)
{
	return submission->expect.lower_bound &&
	       (package->format != GRADE_LEGACY || str_starts(submission->name, "accepted/"));
}

bool grade_judge_makes_limit(const struct grade_package *package, const struct grade_submission *submission)
{
	bool any = grade_judge_bounds(package, submission);

	for (size_t i = 0; i < submission->expect.n_parts && package->format != GRADE_LEGACY; i++)
		any = any || submission->expect.parts[i].lower_bound;
	return any;
}

/* One that is not reported is there for the time limit only. */
static int add(struct grade_judge *judge, const char *name, const char *path, bool reported, struct err *err)
{
	struct grade_submission added = {.name = xstrdup(name), .path = xstrdup(path), .reported = reported};
	bool listed = false;

	for (size_t i = 0; i < judge->count && !reported; i++)
		listed = listed || streq(judge->submissions[i].name, name);
	grade_expect_folder(judge->expectations, name, &added.expect);
	if (!reported && (listed || !grade_judge_makes_limit(judge->package, &added))) {
		free(added.name);
		free(added.path);
		return 0;
	}
	judge->submissions = xrealloc(judge->submissions, judge->count + 1, sizeof(*judge->submissions));
	judge->submissions[judge->count++] = added;
	if (judge->count > SUBMISSIONS_MAX)
		return err_set(err, ERR_LIMIT, "more than %d submissions", SUBMISSIONS_MAX);
	return 0;
}

/* Every program in the folder NAME below submissions/; without a name: in all folders there. */
static int add_folder(struct grade_judge *judge, const char *name, bool reported, struct err *err)
{
	auto_free char *path = xasprintf("%s/submissions%s%s", judge->package->path, name ? "/" : "", name ? name : "");
	struct dirent **entries = NULL;
	int n = scandir(path, &entries, NULL, alphasort), result = 0;

	if (n < 0 && name)
		return err_errno(err, "%s", path);
	for (int i = 0; i < n; i++) {
		const char *entry = entries[i]->d_name;
		auto_free char *place = xasprintf("%s/%s", path, entry);
		auto_free char *full = name ? xasprintf("%s/%s", name, entry) : NULL;
		bool counts = result == 0 && !grade_package_ignores(judge->package, entry);
		struct stat st;

		if (counts && full)
			result = add(judge, full, place, reported, err);
		else if (counts && stat(place, &st) == 0 && S_ISDIR(st.st_mode))
			result = add_folder(judge, entry, reported, err);
		free(entries[i]);
	}
	free(entries);
	return result;
}

static int add_named(struct grade_judge *judge, const char *name, struct err *err)
{
	auto_free char *below = xasprintf("%s/submissions/%s", judge->package->path, name);
	struct stat st;
	size_t length = strlen(name);

	if (stat(below, &st) == 0) {
		/* A folder right below submissions/ holds programs; deeper, a folder is one. */
		auto_free char *trimmed = xstrndup(name, length > 0 && name[length - 1] == '/' ? length - 1 : length);

		if (S_ISDIR(st.st_mode) && !strchr(trimmed, '/'))
			return add_folder(judge, trimmed, true, err);
		return add(judge, trimmed, below, true, err);
	}
	if (stat(name, &st))
		return err_set(err, ERR_NOT_FOUND, "%s is neither below submissions/ nor a file or folder", name);
	return add(judge, name, name, true, err);
}

static int by_name(const void *a, const void *b)
{
	const struct grade_submission *left = a, *right = b;

	return strcmp(left->name, right->name);
}

int grade_judge_open(struct grade_judge *judge, const char *const *names, size_t n_names, struct err *err)
{
	int result = grade_yaml_read(judge->package->dir, "submissions/submissions.yaml", &judge->expectations, err);

	if (result < 0 && result != -ERR_NOT_FOUND)
		return result;
	if ((result = grade_data_read(judge->package, &judge->root, err)) < 0)
		return result;
	judge->cases = grade_data_cases(judge->root, &judge->n_cases);
	result = n_names ? 0 : add_folder(judge, NULL, true, err);
	for (size_t i = 0; i < n_names && result == 0; i++)
		result = add_named(judge, names[i], err);
	if (result < 0)
		return result;
	if (judge->count == 0)
		return err_set(err, ERR_INVALID, "%s has no submissions, and none was named", judge->package->path);
	qsort(judge->submissions, judge->count, sizeof(*judge->submissions), by_name);
	if (!judge->time_limit)
		judge->time_limit = judge->package->time_limit;
	/* Without a limit those are needed that it comes from, reported or not. */
	return n_names && !judge->time_limit ? add_folder(judge, NULL, false, err) : 0;
}

int grade_judge_source(const struct grade_work *work, const struct grade_submission *submission,
		       struct grade_source *ret, struct err *err)
{
	const struct grade_package *package = work->judge->package;
	bool inside = str_starts(submission->path, package->path);

	return grade_source_read(inside ? package : NULL, work->runners, submission->path, &submission->expect.hint,
				 ret, err);
}

void grade_judge_clear(struct grade_judge *judge)
{
	for (size_t i = 0; i < judge->count; i++) {
		free(judge->submissions[i].name);
		free(judge->submissions[i].path);
		free(judge->submissions[i].total.groups);
	}
	free(judge->submissions);
	grade_data_free(judge->root);
	free(judge->cases);
	json_object_put(judge->expectations);
	judge->submissions = NULL;
	judge->count = 0;
	judge->root = NULL;
	judge->cases = NULL;
	judge->expectations = NULL;
}
