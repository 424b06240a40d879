/*
 * grade_own.c - output validators and graders, see grade_program.h.
 *
 * The format says that each file or folder of output_validators/ is a program, and packages also put the parts of one
 * program there side by side. So an entry counts as a program where a runner has its language, no other source names
 * it, and, in a language that is compiled, there is a main in it. Where that leaves one, or none, everything in the
 * folder is one program.
 */
#include <string.h>
#include <sys/stat.h>

#include "grade_data.h"
#include "grade_program.h"
#include "jail/client/client_runners.h"
#include "lib/base/util.h"

struct entries {
	char *names[GRADE_VALIDATORS_MAX]; /* of programs: a file, or a folder without its slash */
	size_t count;
};

/* Is the file this entry, or in that folder? */
static bool belongs(const struct grade_file *file, const char *entry)
{
	size_t length = strlen(entry);

	return strncmp(file->name, entry, length) == 0 && (file->name[length] == '\0' || file->name[length] == '/');
}

static bool has_main(const struct grade_source *whole, const char *entry, struct json_object *runners)
{
	for (size_t i = 0; i < whole->count; i++) {
		struct json_object *runner = jail_runner_for_file(runners, whole->files[i].name);
		struct json_object *compiled = json_get(runner, "compiled", json_type_boolean);

		if (belongs(&whole->files[i], entry) && runner &&
		    (!compiled || !json_object_get_boolean(compiled) || grade_file_contains(&whole->files[i], "main")))
			return true;
	}
	return false;
}

static int find_entries(const struct grade_source *whole, struct json_object *runners, struct entries *ret,
			struct err *err)
{
	for (size_t i = 0; i < whole->count && !whole->script; i++) {
		auto_free char *entry = xstrndup(whole->files[i].name, strcspn(whole->files[i].name, "/"));
		auto_free char *build = xasprintf("%s/build", entry), *run = xasprintf("%s/run", entry);
		auto_free char *quoted = xasprintf("\"%s", entry);
		bool scripted = grade_source_file(whole, build) || grade_source_file(whole, run), other = false;

		for (size_t k = 0; k < ret->count; k++)
			other = other || belongs(&whole->files[i], ret->names[k]);
		/* Does another source name it, as programs name their parts? */
		for (size_t k = 0; k < whole->count && !other; k++)
			other = !belongs(&whole->files[k], entry) && (grade_file_names(&whole->files[k], entry) ||
								      grade_file_contains(&whole->files[k], quoted));
		if (other || !(scripted || has_main(whole, entry, runners)))
			continue;
		if (ret->count == GRADE_VALIDATORS_MAX)
			return err_set(err, ERR_LIMIT, "more than %d output validators", GRADE_VALIDATORS_MAX);
		ret->names[ret->count++] = steal(&entry);
	}
	return 0;
}

/* -------- making them --------------------------------------------------------------------------------- */

static int make(const struct grade_maker *maker, const struct grade_source *source, const char *what,
		struct grade_program *ret, struct err *err)
{
	grade_program_make(maker, source, ret);
	return ret->verdict == GRADE_AC ? 0
					: err_set(err, ERR_INVALID, "the %s cannot be used: %s", what, ret->message);
}

/* All of a folder as one program; where its files lie in one folder of it, that one. */
static int make_whole(const struct grade_maker *maker, const char *path, const struct grade_source *whole,
		      const char *what, struct grade_program *ret, struct err *err)
{
	auto_source struct grade_source source = {0};
	auto_free char *deeper = NULL;
	bool below = true;

	for (size_t i = 0; i < whole->count; i++)
		below = below && strchr(whole->files[i].name, '/') != NULL;
	if (!below)
		return make(maker, whole, what, ret, err);
	deeper = xasprintf("%s/%.*s", path, (int)strcspn(whole->files[0].name, "/"), whole->files[0].name);
	int result = grade_source_read(maker->package, maker->runners, deeper, NULL, &source, err);

	return result < 0 ? result : make(maker, &source, what, ret, err);
}

/* One of several. */
static int make_entry(const struct grade_maker *maker, const char *path, const struct entries *entries,
		      const char *name, struct grade_program *ret, struct err *err)
{
	auto_free char *place = xasprintf("%s/%s", path, name), *what = xasprintf("output validator %s", name);
	auto_source struct grade_source source = {0};
	struct json_object *runner = jail_runner_for_file(maker->runners, name);
	const struct grade_hint hint = {runner ? json_get_string(runner, "name") : NULL, name};
	struct stat st;
	bool folder = stat(place, &st) == 0 && S_ISDIR(st.st_mode);
	int result = grade_source_read(maker->package, maker->runners, folder ? place : path, folder ? NULL : &hint,
				       &source, err);
	size_t count = 0;

	if (result < 0)
		return result;
	/* What belongs to the other programs goes. */
	for (size_t i = 0; i < source.count; i++) {
		bool other = false;

		for (size_t k = 0; k < entries->count && !folder; k++)
			other = other ||
				(!streq(entries->names[k], name) && belongs(&source.files[i], entries->names[k]));
		if (other) {
			free(source.files[i].name);
			free(source.files[i].data);
			continue;
		}
		if (i == source.entry)
			source.entry = count;
		source.files[count++] = source.files[i];
	}
	source.count = count;
	return make(maker, &source, what, ret, err);
}

/* 1: there is such a folder with files in it; else 0. */
static int read_folder(const struct grade_maker *maker, const char *name, char **ret_path, struct grade_source *ret)
{
	auto_free char *path = xasprintf("%s/%s", maker->package->path, name);
	struct stat st;

	if (stat(path, &st) || !S_ISDIR(st.st_mode) ||
	    grade_source_read(maker->package, maker->runners, path, NULL, ret, NULL) < 0)
		return 0;
	*ret_path = steal(&path);
	return 1;
}

static int make_validators(const struct grade_maker *maker, struct grade_own *ret, struct err *err)
{
	auto_source struct grade_source whole = {0};
	auto_free char *path = NULL;
	struct entries entries = {0};
	int result = 0;

	if (read_folder(maker, "output_validator", &path, &whole)) {
		ret->n_validators = 1;
		return make_whole(maker, path, &whole, "output validator", &ret->validators[0], err);
	}
	if (!read_folder(maker, "output_validators", &path, &whole))
		return 0;
	result = find_entries(&whole, maker->runners, &entries, err);
	if (result == 0 && entries.count <= 1) {
		ret->n_validators = 1;
		result = make_whole(maker, path, &whole, "output validator", &ret->validators[0], err);
	}
	for (size_t i = 0; result == 0 && entries.count > 1 && i < entries.count; i++)
		result =
			make_entry(maker, path, &entries, entries.names[i], &ret->validators[ret->n_validators++], err);
	for (size_t i = 0; i < entries.count; i++)
		free(entries.names[i]);
	return result;
}

/* Does a group leave it to graders/? Packages have such folders of no use, too. */
static bool wants_grader(const struct grade_node *node)
{
	bool wanted = !node->is_case && node->settings.custom_grader;

	for (size_t i = 0; i < node->count && !wanted; i++)
		wanted = wants_grader(node->children[i]);
	return wanted;
}

int grade_own_make(const struct grade_maker *maker, const struct grade_node *root, struct grade_own *ret,
		   struct err *err)
{
	auto_source struct grade_source whole = {0};
	auto_free char *path = NULL;
	const struct grade_package *package = maker->package;
	int result = package->custom_validator ? make_validators(maker, ret, err) : 0;

	/* Later formats have the default validator where there is no other. */
	if (result == 0 && package->custom_validator && package->format == GRADE_LEGACY && ret->n_validators == 0)
		return err_set(err, ERR_INVALID,
			       "problem.yaml says that validation is custom, but output_validators/ has no program");

	if (result == 0 && package->interactive && ret->n_validators > 1)
		return err_set(err, ERR_INVALID, "an interactive problem has one output validator, this one has %zu",
			       ret->n_validators);
	if (result < 0 || !wants_grader(root) || !read_folder(maker, "graders", &path, &whole))
		return result;
	ret->has_grader = true;
	return make_whole(maker, path, &whole, "grader", &ret->grader, err);
}

void grade_own_clear(struct grade_own *own)
{
	for (size_t i = 0; i < own->n_validators; i++)
		grade_program_clear(&own->validators[i]);
	grade_program_clear(&own->grader);
	*own = (struct grade_own){0};
}
