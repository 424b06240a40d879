/* client_runners.c - which of the runners that the jailer listed is meant: by name or alias, or by a file's extension;
 * and what results of theirs depend on. */
#include <fcntl.h>
#include <glob.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "client_runners.h"
#include "lib/base/util.h"

#define LIBRARIES_MAX (1 << 20) /* bytes of a file that says which there are */

static bool equal(const char *a, const char *b)
{
	return strcasecmp(a, b) == 0;
}

/* The first whose name or one of whose aliases is like this one. */
static struct json_object *find(struct json_object *runners, const char *name, bool (*like)(const char *, const char *))
{
	for (size_t i = 0; runners && i < json_object_array_length(runners); i++) {
		struct json_object *runner = json_object_array_get_idx(runners, i);
		struct json_object *aliases = json_get(runner, "aliases", json_type_array);
		const char *own = json_get_string(runner, "name");

		if (own && like(own, name))
			return runner;
		for (size_t n = 0; aliases && n < json_object_array_length(aliases); n++) {
			const char *alias = json_object_get_string(json_object_array_get_idx(aliases, n));

			if (alias && like(alias, name))
				return runner;
		}
	}
	return NULL;
}

struct json_object *jail_runner_named(struct json_object *runners, const char *name)
{
	return find(runners, name, equal);
}

const char *jail_runner_near(struct json_object *runners, const char *name)
{
	struct json_object *runner = find(runners, name, str_near);

	return runner ? json_get_string(runner, "name") : NULL;
}

struct json_object *jail_runner_for_file(struct json_object *runners, const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path, *dot = strrchr(base, '.');

	for (size_t i = 0; runners && dot && dot > base && i < json_object_array_length(runners); i++) {
		struct json_object *runner = json_object_array_get_idx(runners, i);
		struct json_object *list = json_get(runner, "extensions", json_type_array);

		/* Runner files may write the dot or not. */
		for (size_t k = 0; list && k < json_object_array_length(list); k++) {
			const char *item = json_object_get_string(json_object_array_get_idx(list, k));

			if (item && streq(item[0] == '.' ? item + 1 : item, dot + 1))
				return runner;
		}
	}
	return NULL;
}

struct json_object *jail_runners_offered(struct json_object *runners)
{
	for (size_t i = runners ? json_object_array_length(runners) : 0; i-- > 0;)
		if (json_get(json_object_array_get_idx(runners, i), "internal", json_type_boolean))
			json_object_array_del_idx(runners, i, 1);
	return runners;
}

/* A private jailer asked no runner for its version: what changes with the version is cheap to find. */
static void add_stand_in(struct json_object *runner, struct buf *ret)
{
	struct json_object *libraries = json_get(runner, "libraries_are", json_type_array);
	const char *version = json_get_string(runner, "version");
	const char *interpreter = json_get_string(runner, "interpreter");
	struct stat file;

	if (!version || *version || !interpreter || stat(interpreter, &file))
		return;
	buf_printf(ret, " %s %lld %lld.%09ld", json_get_string(runner, "name"), (long long)file.st_size,
		   (long long)file.st_mtim.tv_sec, file.st_mtim.tv_nsec);
	for (size_t k = 0; libraries && k < json_object_array_length(libraries); k++) {
		glob_t list;

		/* Names of folders have versions in them; files have them in their contents. */
		if (glob(json_object_get_string(json_object_array_get_idx(libraries, k)), 0, NULL, &list) == 0)
			for (size_t i = 0; i < list.gl_pathc; i++) {
				auto_free char *text = NULL;
				int found = read_file_at(AT_FDCWD, list.gl_pathv[i], LIBRARIES_MAX, &text, NULL, NULL);

				buf_printf(ret, " %s %s", list.gl_pathv[i], found < 0 ? "" : text);
			}
		globfree(&list);
	}
}

void jail_runner_version(struct json_object *runner, struct buf *ret)
{
	json_print(ret, runner);
	add_stand_in(runner, ret);
}

void jail_runners_versions(struct json_object *runners, struct buf *ret)
{
	json_print(ret, runners);
	for (size_t i = 0; i < json_object_array_length(runners); i++)
		add_stand_in(json_object_array_get_idx(runners, i), ret);
}
