/* client_runners.c - which of the runners that the jailer listed is meant: by name or alias, or by a file's extension.
 */
#include <string.h>
#include <strings.h>

#include "client_runners.h"
#include "lib/base/util.h"

static bool is_named(struct json_object *runner, const char *name)
{
	struct json_object *aliases = json_get(runner, "aliases", json_type_array);
	const char *own = json_get_string(runner, "name");

	if (own && strcasecmp(own, name) == 0)
		return true;
	for (size_t i = 0; aliases && i < json_object_array_length(aliases); i++) {
		const char *alias = json_object_get_string(json_object_array_get_idx(aliases, i));

		if (alias && strcasecmp(alias, name) == 0)
			return true;
	}
	return false;
}

struct json_object *jail_runner_named(struct json_object *runners, const char *name)
{
	for (size_t i = 0; runners && i < json_object_array_length(runners); i++) {
		struct json_object *runner = json_object_array_get_idx(runners, i);

		if (is_named(runner, name))
			return runner;
	}
	return NULL;
}

const char *jail_runner_near(struct json_object *runners, const char *name)
{
	for (size_t i = 0; runners && i < json_object_array_length(runners); i++) {
		struct json_object *runner = json_object_array_get_idx(runners, i);
		struct json_object *aliases = json_get(runner, "aliases", json_type_array);
		const char *own = json_get_string(runner, "name");

		if (own && str_near(own, name))
			return own;
		for (size_t n = 0; aliases && n < json_object_array_length(aliases); n++) {
			const char *alias = json_object_get_string(json_object_array_get_idx(aliases, n));

			if (own && alias && str_near(alias, name))
				return own;
		}
	}
	return NULL;
}

/* `wanted` is without its dot; runner files may write it or not. */
static bool has_extension(struct json_object *runner, const char *wanted)
{
	struct json_object *list = json_get(runner, "extensions", json_type_array);

	for (size_t i = 0; list && i < json_object_array_length(list); i++) {
		const char *item = json_object_get_string(json_object_array_get_idx(list, i));

		if (item && streq(item[0] == '.' ? item + 1 : item, wanted))
			return true;
	}
	return false;
}

struct json_object *jail_runner_for_file(struct json_object *runners, const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path, *dot = strrchr(base, '.');

	for (size_t i = 0; runners && dot && dot > base && i < json_object_array_length(runners); i++) {
		struct json_object *runner = json_object_array_get_idx(runners, i);

		if (has_extension(runner, dot + 1))
			return runner;
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
