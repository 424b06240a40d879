/*
 * grade_warn.c - warnings, see grade_judge.h.
 *
 * Everything here was read once already, by those who judge with it: grade_data.c, grade_source.c, grade_expect.c. They
 * take what they know and pass over the rest, because packages of many tools and years have to be judged. This file
 * looks at the same things for what was passed over, and is the only one that says so; a verdict never depends on it.
 *
 * Four parts: names that the format wants to be ignored (only 2025-09 does), test data that are not there, groups that
 * nobody can pass, and submissions.yaml. Of that document every member is looked at, so that a word written wrong is
 * found, not only a wrong value. Patterns of a whole folder may match nothing: packages copy the format's list of them.
 *
 * The texts name the file, what is wrong and, where it is not plain, what to do. Their number is bounded; the last one
 * counts the rest.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "grade_judge.h"
#include "grade_yaml.h"
#include "lib/base/util.h"

#define DEPTH_MAX 16
#define RULES     "submissions/submissions.yaml"

struct warning {
	const struct grade_judge *judge;
	void (*say)(void *arg, const char *text);
	void *arg;
	size_t count;
};

/* Takes the text over. */
static void add_warning(struct warning *warning, char *text)
{
	if (++warning->count < GRADE_WARNINGS_MAX)
		warning->say(warning->arg, text);
	free(text);
}

/* All that is below a folder of the package and not hidden; not into what `check` warned of (true). */
static void walk(struct warning *warning, const char *below, int depth,
		 bool (*check)(struct warning *warning, const char *below, const char *name))
{
	auto_free char *path = xasprintf("%s/%s", warning->judge->package->path, below);
	struct dirent **entries = NULL;
	int n = scandir(path, &entries, NULL, alphasort);

	for (int i = 0; i < n; i++) {
		const char *name = entries[i]->d_name;
		auto_free char *inner = xasprintf("%s/%s", below, name);

		/* What a case gives to submissions may be called anything. */
		bool folder = entries[i]->d_type == DT_DIR && depth < DEPTH_MAX && !str_ends(name, ".files");

		if (*name != '.' && !check(warning, below, name) && folder)
			walk(warning, inner, depth + 1, check);
		free(entries[i]);
	}
	free(entries);
}

/* -------- names --------------------------------------------------------------------------------------- */

static bool check_name(struct warning *warning, const char *below, const char *name)
{
	if (!grade_package_ignores(warning->judge->package, name))
		return false;
	add_warning(warning, xasprintf("%s/%s is left out: a name in 2025-09 has letters, digits, \"_\", "
				       "\"-\" and \".\" only and begins with none of the last two; rename it",
				       below, name));
	return true;
}

/* -------- test data ----------------------------------------------------------------------------------- */

/* An answer without its input: nobody would miss the case. */
static bool check_answer(struct warning *warning, const char *below, const char *name)
{
	if (!str_ends(name, ".ans"))
		return false;
	auto_free char *input = xasprintf("%s/%s/%.*s.in", warning->judge->package->path, below,
					  (int)(strlen(name) - strlen(".ans")), name);

	if (access(input, F_OK) == 0)
		return false;
	add_warning(warning, xasprintf("%s/%s has no input: without its .in file it is no test case", below, name));
	return true;
}

/* What git has in the place of a large file that was not fetched. */
static bool is_pointer(const char *path)
{
	static const char first[] = "version https://git-lfs.github.com/spec/";
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	char head[sizeof(first) - 1];

	return fd >= 0 && read(fd, head, sizeof(head)) == sizeof(head) && memcmp(head, first, sizeof(head)) == 0;
}

/* -------- submissions.yaml ---------------------------------------------------------------------------- */

/* `words` is ended by NULL. */
static bool one_of(const char *word, const char *const *words)
{
	while (*words && !streq(word, *words))
		words++;
	return *words != NULL;
}

static const char *text_of(struct json_object *value)
{
	return value ? json_object_get_string(value) : "null";
}

static void check_verdicts(struct warning *warning, const char *rule, const char *member, struct json_object *value)
{
	static const char *const words[] = {"AC", "WA", "TLE", "RTE", NULL};
	bool list = json_object_is_type(value, json_type_array);
	size_t count = list ? json_object_array_length(value) : 1;

	for (size_t i = 0; i < count; i++) {
		const char *word = text_of(list ? json_object_array_get_idx(value, i) : value);

		if (!one_of(word, words))
			add_warning(warning,
				    xasprintf(RULES ": %s: %s has \"%.40s\", which is none of AC, WA, TLE and RTE",
						rule, member, word));
	}
}

static bool names_case(const struct grade_judge *judge, const char *pattern)
{
	for (size_t i = 0; i < judge->n_cases; i++)
		if (grade_expect_glob(pattern, judge->cases[i]->name))
			return true;
	return false;
}

static void check_rule(struct warning *warning, const char *rule, struct json_object *members, bool part);

static void check_member(struct warning *warning, const char *rule, const char *member, struct json_object *value,
			 bool part)
{
	static const char *const uses[] = {"true", "false", "lower", "upper", NULL};
	static const char *const others[] = {"score", "message", NULL};
	static const char *const whole[] = {"entrypoint", "authors", "model_solution", NULL};

	if (streq(member, "permitted") || streq(member, "required")) {
		check_verdicts(warning, rule, member, value);
	} else if (streq(member, "use_for_time_limit")) {
		if (!one_of(text_of(value), uses))
			add_warning(warning, xasprintf(RULES ": %s: use_for_time_limit is true, false, lower or upper, "
							     "not \"%.40s\"",
						       rule, text_of(value)));
	} else if (!part && grade_expect_names_part(member)) {
		auto_free char *inner = xasprintf("%s: %s", rule, member);

		if (!names_case(warning->judge, member))
			add_warning(warning, xasprintf(RULES ": %s matches no test case", inner));
		check_rule(warning, inner, value, true);
	} else if (!part && streq(member, "language")) {
		if (!grade_source_is_language(text_of(value)))
			add_warning(warning, xasprintf(RULES ": %s: language is a code (python3, cpp), not \"%.40s\"",
						       rule, text_of(value)));
	} else if (!one_of(member, others) && (part || !one_of(member, whole))) {
		add_warning(warning, xasprintf(RULES ": %s: \"%.60s\" is not known and says nothing", rule, member));
	}
}

static void check_rule(struct warning *warning, const char *rule, struct json_object *members, bool part)
{
	if (!members)
		return;
	if (!json_object_is_type(members, json_type_object))
		return add_warning(warning, xasprintf(RULES ": %s must be a mapping; it says nothing", rule));
	json_object_object_foreach(members, member, value)
	{
		check_member(warning, rule, member, value, part);
	}
}

static void check_groups(struct warning *warning, struct grade_node *node)
{
	for (char **name = node->is_case ? NULL : node->settings.require_pass; name && *name; name++)
		if (!grade_data_find(warning->judge->root, *name))
			add_warning(warning, xasprintf("data/%s: require_pass names %s, which is not a group, "
						       "so no submission has points in this one",
						       node->name, *name));
	for (size_t i = 0; i < node->count; i++)
		check_groups(warning, node->children[i]);
}

static void check_secret(struct warning *warning)
{
	for (size_t i = 0; i < warning->judge->n_cases; i++)
		if (!str_starts(warning->judge->cases[i]->name, "sample"))
			return;
	add_warning(warning, xstrdup("data/secret has no test cases: verdicts are those of the samples alone, and "
				     "points are missing"));
}

void grade_warn(const struct grade_judge *judge, bool all, void (*say)(void *arg, const char *text), void *arg)
{
	static const char *const folders[] = {"data",		  "submissions",       "include",
					      "output_validator", "output_validators", "graders"};
	static const char unfetched[] = "is a pointer of Git LFS, not the test case: git lfs pull fetches it";
	struct warning warning = {.judge = judge, .say = say, .arg = arg};

	for (size_t i = 0; i < ARRAY_SIZE(folders) && judge->package->plain_names; i++)
		walk(&warning, folders[i], 0, check_name);
	walk(&warning, "data/sample", 0, check_answer);
	walk(&warning, "data/secret", 0, check_answer);
	for (size_t i = 0; i < judge->n_cases; i++) {
		const struct grade_node *node = judge->cases[i];

		if (is_pointer(node->in) || is_pointer(node->ans))
			add_warning(&warning, xasprintf("data/%s %s", node->name, unfetched));
	}
	check_secret(&warning);
	check_groups(&warning, judge->root);
	if (judge->expectations && json_object_is_type(judge->expectations, json_type_object)) {
		json_object_object_foreach(judge->expectations, pattern, members)
		{
			size_t i = 0;

			while (i < judge->count && !grade_expect_glob(pattern, judge->submissions[i].name))
				i++;
			if (all && i == judge->count && strchr(pattern, '/'))
				add_warning(&warning, xasprintf(RULES ": %s matches no submission", pattern));
			check_rule(&warning, pattern, members, false);
		}
	} else if (judge->expectations) {
		add_warning(&warning, xstrdup(RULES " must be a mapping; it says nothing"));
	}
	if (warning.count >= GRADE_WARNINGS_MAX) {
		auto_free char *more = xasprintf("%zu more warnings", warning.count - GRADE_WARNINGS_MAX + 1);

		say(arg, more);
	}
}
