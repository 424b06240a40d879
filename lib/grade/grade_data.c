/*
 * grade_data.c - see grade_data.h.
 *
 * Settings are merged as documents (a group's own members over its parent's) and turned into a struct once a node; a
 * file that is not there is an empty document. Folders and files may be links; where they lead is looked at before they
 * are used, and again when a case is opened (grade_package_file).
 */
#include "grade_data.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "grade_yaml.h"
#include "lib/base/util.h"

struct reader {
	const struct grade_package *package;
	size_t cases;
};

#define BLANKS " \t\r\n" /* a text over several lines ends with one */

/* -------- lists of strings, ended by NULL; NULL is an empty list -------------------------------------- */

static void words_free(char **list)
{
	for (char **word = list; word && *word; word++)
		free(*word);
	free(list);
}

/* The list is moved. */
static char **words_add(char **list, const char *text, size_t length)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	list = xrealloc(list, n + 2, sizeof(*list));
	list[n] = xstrndup(text, length);
	list[n + 1] = NULL;
	return list;
}

/* Adds the words of a text as a shell splits them: a quoted part keeps its blanks and loses its quotes; a mark without
 * its partner is a character. */
static char **words_split(char **list, const char *text)
{
	while (*(text += strspn(text, BLANKS))) {
		auto_free char *word = xcalloc(1, strlen(text) + 1);
		size_t length = 0;
		char quote = '\0';

		for (; *text && (quote || !strchr(BLANKS, *text)); text++) {
			bool opens = !quote && strchr("'\"", *text) && strchr(text + 1, *text);

			if (opens || *text == quote)
				quote = opens ? *text : '\0';
			else
				word[length++] = *text;
		}
		list = words_add(list, word, length);
	}
	return list;
}

/* -------- the memory of a tree ------------------------------------------------------------------------ */

void grade_data_free(struct grade_node *node)
{
	if (!node)
		return;
	for (size_t i = 0; i < node->count; i++)
		grade_data_free(node->children[i]);
	words_free(node->settings.grader_flags);
	words_free(node->settings.require_pass);
	words_free(node->settings.validator_flags);
	words_free(node->settings.args);
	free(node->children);
	free(node->name);
	free(node->in);
	free(node->ans);
	free(node->files);
	free(node);
}

/* -------- settings ------------------------------------------------------------------------------------ */

/* A member's words: a string that is split at blanks, or a sequence. Never NULL. */
static char **member_words(char **list, struct json_object *settings, const char *key)
{
	struct json_object *sequence = settings ? json_get(settings, key, json_type_array) : NULL;
	struct json_object *map = settings ? json_get(settings, key, json_type_object) : NULL;
	const char *text = map ? grade_yaml_text(map, "flags") : grade_yaml_text(settings, key);

	for (size_t i = 0; sequence && i < json_object_array_length(sequence); i++) {
		const char *item = json_object_get_string(json_object_array_get_idx(sequence, i));

		list = words_add(list, item ? item : "", strlen(item ? item : ""));
	}
	if (text)
		list = words_split(list, text);
	return list ? list : xcalloc(1, sizeof(*list));
}

/* The one of two names of a member that is there; one format's flags are another's args. */
static const char *either(struct json_object *settings, const char *name, const char *other)
{
	return settings && !json_object_object_get_ex(settings, name, NULL) ? other : name;
}

static int read_range(const char *text, struct grade_settings *ret, struct err *err)
{
	char *end;

	ret->least = text ? strtod(text, &end) : -INFINITY;
	ret->most = text ? strtod(end, &end) : INFINITY;
	return text && (end == text || *end) ? err_member(err, "range", "must be two numbers, not \"%s\"", text) : 0;
}

static void grader_flag(struct grade_settings *settings, const char *flag, bool root)
{
	static const struct {
		const char *name;
		enum grade_aggregation aggregation;
	} modes[] = {{"sum", GRADE_SUM}, {"avg", GRADE_AVG}, {"min", GRADE_MIN}, {"max", GRADE_MAX_SCORE}};

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		if (streq(flag, modes[i].name))
			settings->aggregation = modes[i].aggregation;
	if (streq(flag, "worst_error"))
		settings->first_error = settings->always_accept = false;
	if (streq(flag, "first_error"))
		settings->first_error = true, settings->always_accept = false;
	if (streq(flag, "always_accept"))
		settings->always_accept = true;
	if (streq(flag, "accept_if_any_accepted"))
		settings->accept_if_any = true;
	if (streq(flag, "ignore_sample") && root)
		settings->ignore_sample = true;
}

static int legacy_settings(const struct grade_package *package, struct json_object *from, bool root,
			   struct grade_settings *ret, struct err *err)
{
	const char *reject = grade_yaml_text(from, "on_reject"), *grading = grade_yaml_text(from, "grading");
	/* "grade" and "worst_error": what problem.yaml called it once. */
	bool goes_on = reject && (streq(reject, "continue") || streq(reject, "grade") || streq(reject, "worst_error"));
	int result;

	ret->custom_grader = grading && streq(grading, "custom");
	ret->grader_flags = member_words(NULL, from, "grader_flags");
	for (char **flag = ret->grader_flags; *flag; flag++)
		grader_flag(ret, *flag, root);
	/* In pass-fail problems the first rejection decides, but for a group that may be accepted in spite of it. */
	ret->stop = !goes_on ||
		    (!package->scoring && !ret->custom_grader && !ret->accept_if_any && !ret->always_accept);
	if ((result = grade_yaml_number(from, "accept_score", 1, &ret->accept_score, err)) < 0 ||
	    (result = grade_yaml_number(from, "reject_score", 0, &ret->reject_score, err)) < 0 ||
	    (result = read_range(grade_yaml_text(from, "range"), ret, err)) < 0)
		return result;
	ret->max_score = INFINITY;
	ret->validator_flags = member_words(words_split(NULL, package->validator_flags), from,
				     either(from, "output_validator_flags", "output_validator_args"));
	return 0;
}

static int read_aggregation(const char *text, enum grade_aggregation *ret, struct err *err)
{
	*ret = streq(text, "sum") ? GRADE_SUM : streq(text, "min") ? GRADE_MIN : GRADE_PASS_FAIL;
	if (*ret == GRADE_PASS_FAIL && !streq(text, "pass-fail"))
		return err_member(err, "score_aggregation", "must be sum, min or pass-fail");
	return 0;
}

static int later_settings(const struct grade_package *package, struct json_object *from, const char *name,
			  struct grade_settings *ret, struct err *err)
{
	/* Drafts of 2023-07 have the same in a mapping of its own. */
	struct json_object *map = json_get(from, "scoring", json_type_object);
	const char *most_name = map ? "score" : "max_score", *how_name = map ? "aggregation" : "score_aggregation";
	struct json_object *scoring = map ? map : from;
	const char *most = grade_yaml_text(scoring, most_name), *how = grade_yaml_text(scoring, how_name);
	bool secret = streq(name, "secret");
	int result;

	ret->max_score = secret ? 100 : INFINITY;
	if (most && streq(most, "unbounded"))
		ret->max_score = INFINITY;
	else if ((result = grade_yaml_number(scoring, most_name, ret->max_score, &ret->max_score, err)) < 0)
		return result;
	if (!how)
		how = secret && package->scoring ? "sum" : "pass-fail";
	if ((result = read_aggregation(how, &ret->aggregation, err)) < 0)
		return result;
	ret->stop = ret->aggregation == GRADE_PASS_FAIL && (*name || !package->scoring);
	ret->accept_score = 1;
	ret->least = 0;
	ret->most = ret->max_score;
	ret->require_pass = member_words(NULL, scoring, "require_pass");
	ret->validator_flags =
		member_words(NULL, from, either(from, "output_validator_args", "output_validator_flags"));
	return 0;
}

static int make_settings(const struct grade_package *package, struct json_object *from, struct grade_node *node,
			 struct err *err)
{
	int result = package->format == GRADE_2025_09
			     ? later_settings(package, from, node->name, &node->settings, err)
			     : legacy_settings(package, from, !node->parent, &node->settings, err);

	if (result == 0 && package->format != GRADE_LEGACY &&
	    (json_object_object_get_ex(from, "static_validation_score", NULL) ||
	     json_object_object_get_ex(from, "static_validation", NULL)))
		result = err_set(err, ERR_UNAVAILABLE, "static validators are not supported");
	node->settings.args = member_words(NULL, from, "args");
	return result < 0 ? err_wrap(err, "data/%s", node->name) : 0;
}

/* Members of `own` over those of `above`; some are not inherited. */
static struct json_object *merge(struct json_object *above, struct json_object *own)
{
	static const char *const alone[] = {"max_score", "score_aggregation", "require_pass",
					    "scoring",	 "hint",	      "description"};
	struct json_object *merged = json_object_new_object();

	if (above) {
		json_object_object_foreach(above, name, value)
		{
			bool inherited = true;

			for (size_t i = 0; i < ARRAY_SIZE(alone); i++)
				inherited = inherited && !streq(name, alone[i]);
			if (inherited)
				json_add(merged, name, json_object_get(value));
		}
	}
	if (own) {
		json_object_object_foreach(own, name, value)
		{
			json_add(merged, name, json_object_get(value));
		}
	}
	return merged;
}

/* *ret NULL: there is no such file. */
static int read_yaml(const struct grade_package *package, const char *path, struct json_object **ret, struct err *err)
{
	struct json_object *yaml = NULL;
	int result = grade_package_yaml(package, path, &yaml, err);

	if (result < 0 && result != -ERR_NOT_FOUND)
		return result;
	if (yaml && !json_object_is_type(yaml, json_type_object)) {
		json_object_put(yaml);
		return err_set(err, ERR_INVALID, "%s must be a mapping", path);
	}
	*ret = yaml;
	return 0;
}

/* -------- the tree ------------------------------------------------------------------------------------ */

static size_t stem(const char *name)
{
	return strlen(name) - (str_ends(name, ".in") ? strlen(".in") : 0);
}

/* As cases and groups are called, without ".in": "1" comes before "1-a". */
static int by_name(const void *a, const void *b)
{
	const char *one = *(char *const *)a, *other = *(char *const *)b;
	size_t length = stem(one), other_length = stem(other);
	int order = memcmp(one, other, MIN(length, other_length));

	if (!order && length != other_length)
		return length < other_length ? -1 : 1;
	return order ? order : strcmp(one, other);
}

/* Names in a folder of the package, sorted. */
static int list_folder(const struct grade_package *package, const char *path, char ***ret, struct err *err)
{
	DIR *dir = opendir(path);
	char **names = NULL;
	size_t count = 0;

	if (!dir)
		return err_errno(err, "%s", path);
	for (struct dirent *entry; (entry = readdir(dir));) {
		if (grade_package_ignores(package, entry->d_name))
			continue;
		names = xrealloc(names, count + 2, sizeof(*names));
		names[count++] = xstrdup(entry->d_name);
		names[count] = NULL;
		if (count > 4 * GRADE_CASES_MAX)
			break;
	}
	closedir(dir);
	if (names)
		qsort(names, count, sizeof(*names), by_name);
	*ret = names ? names : xcalloc(1, sizeof(*names));
	return 0;
}

static struct grade_node *add_node(struct grade_node *parent, const char *name)
{
	struct grade_node *node = xcalloc(1, sizeof(*node));

	node->parent = parent;
	node->name = parent && *parent->name ? xasprintf("%s/%s", parent->name, name) : xstrdup(name);
	if (parent) {
		parent->children = xrealloc(parent->children, parent->count + 1, sizeof(*parent->children));
		parent->children[parent->count++] = node;
	}
	return node;
}

static int read_case(struct reader *reader, struct grade_node *parent, struct json_object *settings, const char *file,
		     struct err *err)
{
	auto_free char *name = xstrndup(file, strlen(file) - strlen(".in"));
	auto_json struct json_object *own = NULL, *merged = NULL;
	struct grade_node *node = add_node(parent, name);
	const char *path = reader->package->path;
	struct stat st;
	int result;

	if (reader->cases >= GRADE_CASES_MAX)
		return err_set(err, ERR_LIMIT, "the package has more than %d test cases", GRADE_CASES_MAX);
	node->is_case = true;
	node->index = reader->cases++;
	node->in = xasprintf("%s/data/%s.in", path, node->name);
	node->ans = xasprintf("%s/data/%s.ans", path, node->name);
	if (reader->package->format != GRADE_LEGACY) {
		auto_free char *yaml = xasprintf("data/%s.yaml", node->name),
			       *files = xasprintf("%s/data/%s.files", path, node->name);

		if ((result = read_yaml(reader->package, yaml, &own, err)) < 0)
			return result;
		if (stat(files, &st) == 0 && S_ISDIR(st.st_mode))
			node->files = steal(&files);
	}
	merged = merge(settings, own);
	return make_settings(reader->package, merged, node, err);
}

static const char *const settings_files[] = {"testdata.yaml", "test_group.yaml"};

/* 2025-09: folders in a group below secret/, or in sample/, are no groups; their cases are the group's. */
static bool is_plain_folder(const struct reader *reader, const struct grade_node *group, const char *path)
{
	bool groupless = str_starts(group->name, "secret/") || streq(group->name, "sample");

	for (size_t i = 0; groupless && i < ARRAY_SIZE(settings_files); i++) {
		auto_free char *settings = xasprintf("%s/%s", path, settings_files[i]);

		groupless = access(settings, F_OK) != 0; /* of an earlier draft, which has groups in groups */
	}
	return groupless && reader->package->format == GRADE_2025_09;
}

static int read_group(struct reader *reader, struct grade_node *node, struct json_object *above, int depth,
		      struct err *err);
static int read_names(struct reader *reader, struct grade_node *node, struct json_object *settings, const char *below,
		      int depth, struct err *err);

/* One name of a group's folder: a case, a group below it, or nothing of ours, wherever that leads. */
static int read_entry(struct reader *reader, struct grade_node *node, struct json_object *settings, const char *name,
		      int depth, struct err *err)
{
	auto_free char *path =
		xasprintf("%s/data/%s%s%s", reader->package->path, node->name, *node->name ? "/" : "", name);
	auto_free char *real = realpath(path, NULL);
	bool input = str_ends(name, ".in");
	struct stat st;

	if (!real || stat(real, &st))
		return input ? err_errno(err, "%s", path) : 0;
	if (!input && !S_ISDIR(st.st_mode))
		return 0;
	if (!grade_package_holds(reader->package, real))
		return err_set(err, ERR_DENIED, "%s leads out of the package", path);
	if (S_ISREG(st.st_mode))
		return read_case(reader, node, settings, name, err);
	if (!S_ISDIR(st.st_mode) || str_ends(name, ".files"))
		return 0;
	if (is_plain_folder(reader, node, real))
		return read_names(reader, node, settings, name, depth + 1, err);
	return read_group(reader, add_node(node, name), settings, depth + 1, err);
}

/* Everything in the group's folder, or in `below`, a folder of it. */
static int read_names(struct reader *reader, struct grade_node *node, struct json_object *settings, const char *below,
		      int depth, struct err *err)
{
	auto_free char *folder = xasprintf("%s/data/%s/%s", reader->package->path, node->name, below);
	char **names = NULL;
	int result = depth > GRADE_DATA_DEPTH
			     ? err_set(err, ERR_LIMIT, "data/%s: more than %d groups below each other", node->name,
				       GRADE_DATA_DEPTH)
			     : list_folder(reader->package, folder, &names, err);

	for (char **name = names; result == 0 && *name; name++) {
		auto_free char *whole = xasprintf("%s%s%s", below, *below ? "/" : "", *name);

		if (*node->name || streq(whole, "sample") || streq(whole, "secret"))
			result = read_entry(reader, node, settings, whole, depth, err);
	}
	words_free(names);
	return result;
}

static int read_group(struct reader *reader, struct grade_node *node, struct json_object *above, int depth,
		      struct err *err)
{
	const struct grade_package *package = reader->package;
	auto_json struct json_object *own = NULL, *settings = NULL;
	int result;

	/* The format's own name first; packages were moved between formats by half, too. */
	for (size_t i = 0; i < ARRAY_SIZE(settings_files) && !own; i++) {
		bool second = (i == 0) == (package->format == GRADE_2025_09);
		auto_free char *yaml =
			xasprintf("data/%s%s%s", node->name, *node->name ? "/" : "", settings_files[second]);

		if ((result = read_yaml(package, yaml, &own, err)) < 0)
			return result;
	}
	settings = merge(above, own);
	result = make_settings(package, settings, node, err);
	return result < 0 ? result : read_names(reader, node, settings, "", depth, err);
}

int grade_data_read(const struct grade_package *package, struct grade_node **ret_root, struct err *err)
{
	struct reader reader = {.package = package};

	if (faccessat(package->dir, "data", F_OK, 0))
		return err_set(err, ERR_INVALID, "%s has no folder data/, where test cases are", package->path);
	struct grade_node *root = add_node(NULL, "");
	int result = read_group(&reader, root, package->grading, 0, err);
	if (result == 0 && reader.cases == 0)
		result = err_set(err, ERR_INVALID, "%s has no test cases below data/", package->path);
	if (result < 0)
		grade_data_free(root);
	else
		*ret_root = root;
	return result;
}

/* Counts the cases below a node, and puts them into `cases`, which may be NULL. */
static size_t collect(struct grade_node *node, struct grade_node **cases)
{
	size_t n = node->is_case;

	if (cases && node->is_case)
		cases[node->index] = node;
	for (size_t i = 0; i < node->count; i++)
		n += collect(node->children[i], cases);
	return n;
}

struct grade_node **grade_data_cases(struct grade_node *root, size_t *ret_count)
{
	*ret_count = collect(root, NULL);
	struct grade_node **cases = xcalloc(*ret_count, sizeof(*cases));

	collect(root, cases);
	return cases;
}

struct grade_node *grade_data_find(struct grade_node *root, const char *name)
{
	struct grade_node *found = streq(root->name, name) ? root : NULL;

	for (size_t i = 0; i < root->count && !found; i++)
		found = grade_data_find(root->children[i], name);
	return found;
}
