/*
 * grade_package.c - see grade_package.h.
 *
 * One table has the limits of problem.yaml in all formats: name, default, unit. The time limit has four sources, the
 * first that is there counts: limits.time_limit (2023-07 on), .timelimit, timelimit of domjudge-problem.ini, and else
 * none, which leaves it to the accepted submissions.
 */
#include "grade_package.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "grade_yaml.h"
#include "lib/base/util.h"

#define SMALL_FILE_MAX (64 * 1024)
#define MIB            (1 << 20)

/* "type" and "validation" are strings with blanks, sequences of strings, or mappings of words to true. */
static bool says(struct json_object *object, const char *key, const char *word)
{
	struct json_object *list = json_get(object, key, json_type_array);
	struct json_object *set = json_get(json_get(object, key, json_type_object), word, json_type_boolean);
	const char *text = grade_yaml_text(object, key);
	size_t length = strlen(word);

	if (set)
		return json_object_get_boolean(set);
	for (size_t i = 0; list && i < json_object_array_length(list); i++) {
		struct json_object *item = json_object_array_get_idx(list, i);

		if (item && streq(json_object_get_string(item), word))
			return true;
	}
	for (const char *at = text; at && (at = strstr(at, word)); at += length)
		if ((at == text || strchr(" ,", at[-1])) && strchr(" ,", at[length]))
			return true;
	return false;
}

static int format_of(struct json_object *yaml, enum grade_format *ret, struct err *err)
{
	const char *version = grade_yaml_text(yaml, "problem_format_version");

	if (!version || str_starts(version, "legacy"))
		*ret = GRADE_LEGACY;
	else if (str_starts(version, "2023-07"))
		*ret = GRADE_2023_07;
	else if (str_starts(version, "2025-09") || streq(version, "draft"))
		*ret = GRADE_2025_09;
	else
		return err_member(err, "problem_format_version",
				  "\"%s\" is not known: legacy, legacy-icpc, 2023-07 or 2025-09", version);
	return 0;
}

static int read_limits(struct json_object *yaml, struct grade_package *package, struct err *err)
{
	struct json_object *limits = json_get(yaml, "limits", json_type_object);
	struct json_object *multipliers = json_get(limits, "time_multipliers", json_type_object);
	bool legacy = package->format == GRADE_LEGACY;
	const struct {
		const char *name;
		double fallback, most;
		int64_t unit;
		int64_t *ret;
	} table[] = {
		{"memory", 2048, 1 << 20, MIB, &package->memory_bytes},
		{"output", 8, 1 << 20, MIB, &package->output_bytes},
		{"compilation_time", 60, 3600, 1000000, &package->compile_us},
		{"compilation_memory", 2048, 1 << 20, MIB, &package->compile_bytes},
		{"validation_time", 60, 3600, 1000000, &package->validation_us},
		{"validation_memory", 2048, 1 << 20, MIB, &package->validation_bytes},
		{"validation_output", 8, 1 << 20, MIB, &package->validation_output_bytes},
		{"validation_passes", 2, 1000, 1, &package->passes},
	};
	double number;
	int result;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		if ((result = grade_yaml_number(limits, table[i].name, table[i].fallback, &number, err)) < 0)
			return result;
		if (!(number > 0 && number <= table[i].most))
			return err_member(err, table[i].name, "must be above 0 and at most %.0f", table[i].most);
		*table[i].ret = (int64_t)(number * (double)table[i].unit);
	}
	result = legacy ? grade_yaml_number(limits, "time_multiplier", 5, &package->time_multiplier, err)
			: grade_yaml_number(multipliers, "ac_to_time_limit", 2, &package->time_multiplier, err);
	if (result < 0 ||
	    (result = grade_yaml_number(multipliers, "time_limit_to_tle", legacy ? 1 : 1.5, &package->too_slow, err)) <
		    0 ||
	    (result = grade_yaml_number(limits, "time_resolution", 1, &package->time_resolution, err)) < 0)
		return result;
	if (package->time_multiplier < 1 || package->too_slow < 1 || package->time_resolution <= 0)
		return err_member(err, "limits", "a time multiplier is at least 1, time_resolution is above 0");
	return grade_yaml_number(limits, "time_limit", 0, &package->time_limit, err);
}

/* Editors of other systems begin a file with a mark of its order of bytes. */
static char *past_mark(char *text)
{
	return str_starts(text, "\xef\xbb\xbf") ? text + 3 : text;
}

static int seconds(const char *text, const char *file, double *ret, struct err *err)
{
	char *end;
	double number = strtod(text, &end);
	char after = end[strspn(end, " \t\r\n'\"s")]; /* a comment may be there */

	if (end == text || (after && !strchr(";#", after)) || !(number > 0))
		return err_set(err, ERR_INVALID, "%s: \"%.*s\" is not a time limit in seconds", file,
			       (int)strcspn(text, "\r\n"), text);
	*ret = number;
	return 0;
}

static int other_time_limit(struct grade_package *package, struct err *err)
{
	auto_free char *plain = NULL, *ini = NULL;

	if (package->time_limit > 0)
		return 0;
	if (read_file_at(package->dir, ".timelimit", SMALL_FILE_MAX, &plain, NULL, NULL) == 0)
		return seconds(past_mark(plain), ".timelimit", &package->time_limit, err);
	if (read_file_at(package->dir, GRADE_DOMJUDGE_INI, SMALL_FILE_MAX, &ini, NULL, NULL) < 0)
		return 0;
	for (char *save = NULL, *line = strtok_r(past_mark(ini), "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		line += strspn(line, " \t");
		char *value = str_starts(line, "timelimit") ? strchr(line, '=') : NULL; /* timelimit = '2.5' */
		if (value)
			return seconds(value + 1 + strspn(value + 1, " \t'\""), GRADE_DOMJUDGE_INI,
				       &package->time_limit, err);
	}
	return 0;
}

/* What kind of problem it is. */
static int read_kind(struct json_object *yaml, struct grade_package *package, struct err *err)
{
	struct json_object *grading = json_get(yaml, "grading", json_type_object);
	struct json_object *list = json_get(yaml, "validator_flags", json_type_array);
	const char *objective = grade_yaml_text(grading, "objective");
	const char *flags = grade_yaml_text(yaml, "validator_flags");
	bool legacy = package->format == GRADE_LEGACY;
	struct buf text;

	if (says(yaml, "type", "submit-answer"))
		return err_set(err, ERR_UNAVAILABLE, "problem.yaml: problems of type submit-answer are not supported");
	package->scoring = says(yaml, "type", "scoring");
	package->interactive = says(yaml, "type", "interactive") || says(yaml, "validation", "interactive");
	package->multipass = says(yaml, "type", "multi-pass") || says(yaml, "validation", "multi-pass") ||
			     says(yaml, "validation", "multipass");
	package->custom_validator = says(yaml, "validation", "custom") ||
				    (!legacy && !says(yaml, "validation", "default"));
	package->custom_score = legacy ? says(yaml, "validation", "score") : package->scoring;
	package->minimize = objective && streq(objective, "min");
	package->writing = legacy || json_object_get_boolean(json_get(yaml, "allow_file_writing", json_type_boolean));
	package->grading = json_object_get(grading);
	package->constants = json_object_get(json_get(yaml, "constants", json_type_object));
	buf_init(&text, SMALL_FILE_MAX);
	buf_puts(&text, flags ? flags : "");
	for (size_t i = 0; list && i < json_object_array_length(list); i++)
		buf_printf(&text, " %s", json_object_get_string(json_object_array_get_idx(list, i)));
	package->validator_flags = buf_steal(&text, NULL);
	return 0;
}

/* The later drafts of 2023-07 score as 2025-09 does, the earlier ones as legacy: by the file that groups are set by, or
 * by its member `scoring`. */
static bool scores_as_later(const struct grade_package *package)
{
	static const char *const patterns[] = {"data/test_group.yaml",	     "data/secret/test_group.yaml",
					       "data/secret/*/test_group.yaml", "data/testdata.yaml",
					       "data/secret/testdata.yaml",	     "data/secret/*/testdata.yaml"};
	bool found = false;

	for (size_t i = 0; i < ARRAY_SIZE(patterns) && package->scoring && !found; i++) {
		auto_free char *pattern = xasprintf("%s/%s", package->path, patterns[i]);
		glob_t list;

		if (glob(pattern, 0, NULL, &list) == 0)
			for (size_t k = 0; k < list.gl_pathc && !found; k++) {
				auto_json struct json_object *yaml = NULL;

				/* What cannot be read is refused when the data are. */
				found = str_ends(pattern, "test_group.yaml") ||
					(grade_package_yaml(package, list.gl_pathv[k], &yaml, NULL) == 0 &&
					 json_object_is_type(yaml, json_type_object) &&
					 json_object_object_get_ex(yaml, "scoring", NULL));
			}
		globfree(&list);
	}
	return found;
}

static int read_settings(struct grade_package *package, struct err *err)
{
	auto_json struct json_object *yaml = NULL;
	int result = grade_yaml_read(package->dir, "problem.yaml", &yaml, err);

	/* DOMjudge's packages need not have it. */
	if (result == -ERR_NOT_FOUND && faccessat(package->dir, GRADE_DOMJUDGE_INI, F_OK, 0) == 0)
		result = 0;
	if (result < 0)
		return result == -ERR_NOT_FOUND
			       ? err_set(err, ERR_INVALID, "%s is not a problem package: it has no problem.yaml",
					 package->path)
			       : result;
	if (yaml && !json_object_is_type(yaml, json_type_object))
		return err_set(err, ERR_INVALID, "problem.yaml must be a mapping");
	if ((result = format_of(yaml, &package->format, err)) < 0 || (result = read_limits(yaml, package, err)) < 0)
		return err_wrap(err, "problem.yaml");
	if ((result = read_kind(yaml, package, err)) < 0)
		return result;
	package->plain_names = package->format == GRADE_2025_09;
	if (package->format == GRADE_2023_07 && scores_as_later(package))
		package->format = GRADE_2025_09;
	if ((result = other_time_limit(package, err)) < 0)
		return result;
	if (package->time_limit < 0 || package->time_limit > GRADE_TIME_LIMIT_MAX)
		return err_set(err, ERR_LIMIT, "the time limit must be at most %.0f s", GRADE_TIME_LIMIT_MAX);
	return 0;
}

int grade_package_open(const char *path, struct grade_package *ret, struct err *err)
{
	auto_package struct grade_package package = GRADE_PACKAGE_INIT;
	int result;

	package.path = realpath(path, NULL);
	if (!package.path)
		return err_errno(err, "%s", path);
	package.dir = open(package.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (package.dir < 0)
		return err_errno(err, "%s", path);
	const char *slash = strrchr(package.path, '/');
	package.name = xstrdup(slash ? slash + 1 : package.path);
	if ((result = read_settings(&package, err)) < 0)
		return result;
	*ret = package;
	package = GRADE_PACKAGE_INIT;
	return 0;
}

void grade_package_clear(struct grade_package *package)
{
	free(package->path);
	free(package->name);
	free(package->validator_flags);
	close_pointer(&package->dir);
	json_object_put(package->constants);
	json_object_put(package->grading);
	*package = GRADE_PACKAGE_INIT;
}

bool grade_package_holds(const struct grade_package *package, const char *path)
{
	size_t length = strlen(package->path);

	return strncmp(path, package->path, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

bool grade_package_ignores(const struct grade_package *package, const char *name)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";

	const char *after = name + strspn(name, plain);
	/* The format has ".c++" in its list of files' endings. */
	bool allowed = *name != '-' && (!*after || (streq(after, "++") && str_ends(name, ".c++")));

	return *name == '.' || (package->plain_names && !allowed);
}

int grade_package_file(const struct grade_package *package, const char *path, int *ret_fd, struct err *err)
{
	auto_free char *real = realpath(path, NULL);

	if (!real)
		return err_errno(err, "%s", path);
	if (!grade_package_holds(package, real))
		return err_set(err, ERR_DENIED, "%s leads out of the package", path);
	int fd = open(real, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return err_errno(err, "%s", path);
	*ret_fd = fd;
	return 0;
}

/* A constant is a value, or a mapping: its member `value` is {{NAME}}, the others are {{NAME.MEMBER}}. */
static const char *constant(const struct grade_package *package, const char *name)
{
	auto_free char *first = xstrndup(name, strcspn(name, "."));
	struct json_object *members = json_get(package->constants, first, json_type_object);
	const char *dot = strchr(name, '.');

	return members ? grade_yaml_text(members, dot ? dot + 1 : "value") : grade_yaml_text(package->constants, name);
}

char *grade_package_constants(const struct grade_package *package, const char *text, size_t length, size_t *ret_length)
{
	auto_buf struct buf out = {0};
	bool changed = false;

	if (!package->constants || !memmem(text, length, "{{", 2))
		return NULL;
	buf_init(&out, 2 * length + SMALL_FILE_MAX);
	for (size_t i = 0; i < length;) {
		const char *end = i + 4 < length && text[i] == '{' && text[i + 1] == '{'
					  ? memmem(text + i, length - i, "}}", 2)
					  : NULL;
		auto_free char *name = end ? xstrndup(text + i + 2, (size_t)(end - text) - i - 2) : NULL;
		const char *value = name ? constant(package, name) : NULL;

		if (value) {
			buf_puts(&out, value);
			i = (size_t)(end - text) + 2;
			changed = true;
		} else {
			buf_putc(&out, text[i++]);
		}
	}
	return changed && !out.overflow ? buf_steal(&out, ret_length) : NULL;
}

int grade_package_yaml(const struct grade_package *package, const char *path, struct json_object **ret,
		       struct err *err)
{
	auto_free char *text = NULL, *replaced = NULL;
	size_t length;

	if (!package->constants)
		return grade_yaml_read(package->dir, path, ret, err);
	int result = read_file_at(package->dir, path, GRADE_YAML_MAX, &text, &length, err);
	if (result < 0)
		return errno == ENOENT ? err_set(err, ERR_NOT_FOUND, "%s is missing", path) : result;
	replaced = grade_package_constants(package, text, length, &length);
	result = grade_yaml_parse(replaced ? replaced : text, length, ret, err);
	return result < 0 ? err_wrap(err, "%s", path) : 0;
}
