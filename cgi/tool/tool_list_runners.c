/* tool_list_runners.c - list_runners: which languages, versions and libraries there are, and the limits of a run. */
#include "lib/base/util.h"
#include "tool_common.h"

#define TEXT_MAX (256 * 1024)

static const struct bind table[] = {{0}};

static void copy_strings(struct json_object *to, const char *key, struct json_object *from)
{
	struct json_object *list = json_object_new_array(), *source = json_get(from, key, json_type_array);

	for (size_t i = 0; source && i < json_object_array_length(source); i++)
		json_object_array_add(
			list, json_object_new_string(json_object_get_string(json_object_array_get_idx(source, i))));
	json_add(to, key, list);
}

/* Only what the output schema promises, whatever else the jailer tells. */
static struct json_object *describe(struct json_object *runner)
{
	struct json_object *object = json_object_new_object(), *libraries = json_object_new_array();
	struct json_object *known = json_get(runner, "libraries", json_type_array);
	bool available = json_object_get_boolean(json_get(runner, "available", json_type_boolean));
	const char *version = json_get_string(runner, "version"), *install = json_get_string(runner, "install");

	json_add_string(object, "language", json_get_string(runner, "name"));
	copy_strings(object, "aliases", runner);
	copy_strings(object, "extensions", runner);
	json_add_bool(object, "available", available);
	json_add_bool(object, "compiled", json_object_get_boolean(json_get(runner, "compiled", json_type_boolean)));
	json_add_bool(object, "live", json_object_get_boolean(json_get(runner, "live", json_type_boolean)));
	if (version && *version)
		json_add_string(object, "version", version);
	if (!available && install && *install)
		json_add_string(object, "install", install);
	for (size_t i = 0; known && i < json_object_array_length(known); i++) {
		struct json_object *library = json_object_array_get_idx(known, i), *copy = json_object_new_object();
		const char *name = json_get_string(library, "name"),
			   *library_version = json_get_string(library, "version");

		json_add_string(copy, "name", name ? name : "");
		if (library_version)
			json_add_string(copy, "version", library_version);
		json_object_array_add(libraries, copy);
	}
	json_add(object, "libraries", libraries);
	return object;
}

static struct json_object *describe_limits(const struct config_limits *limits)
{
	struct json_object *object = json_object_new_object();

	json_add_int(object, "timeout_seconds_default", limits->wall_seconds);
	json_add_int(object, "timeout_seconds_max", limits->wall_seconds_max);
	json_add_int(object, "memory_mb_default", limits->memory_mb);
	json_add_int(object, "memory_mb_max", limits->memory_mb_max);
	json_add_int(object, "processes", limits->pids);
	json_add_int(object, "data_mb", limits->data_mb);
	json_add_int(object, "output_mb", limits->output_mb);
	return object;
}

static void print_runner(struct buf *text, struct json_object *runner)
{
	struct json_object *libraries = json_get(runner, "libraries", json_type_array);
	const char *version = json_get_string(runner, "version"), *install = json_get_string(runner, "install");

	buf_puts(text, "- ");
	tool_print_names(text, runner);
	if (!json_object_get_boolean(json_get(runner, "available", json_type_boolean)))
		buf_printf(text, ": not available (the operator can install it: %s)",
			   install && *install ? install : "see the operator guide");
	else if (version && *version)
		buf_printf(text, ": %s", version);
	for (size_t i = 0; libraries && i < json_object_array_length(libraries); i++) {
		struct json_object *library = json_object_array_get_idx(libraries, i);
		const char *name = json_get_string(library, "name"),
			   *library_version = json_get_string(library, "version");

		buf_printf(text, "%s%s %s", i ? ", " : "; libraries: ", name ? name : "",
			   library_version ? library_version : "");
	}
	buf_putc(text, '\n');
}

static int list(struct tool_call *call, const void *bound, struct tool_result *ret, struct err *err)
{
	auto_json struct json_object *runners = NULL;
	const struct config_limits *limits = &call->server->config->limits;
	struct json_object *languages;
	struct job_engine *engine;
	auto_buf struct buf text = {0};
	int result = server_engine(call->server, &engine, err);

	(void)bound;
	buf_init(&text, TEXT_MAX);
	if (result < 0)
		return result;
	runners = job_engine_runners(engine);
	if (!runners)
		return err_set(err, ERR_UNAVAILABLE,
			       "the sandbox service is away at the moment: try again in a few seconds");
	languages = json_object_new_array();
	for (size_t i = 0; i < json_object_array_length(runners); i++) {
		struct json_object *runner = json_object_array_get_idx(runners, i);

		json_object_array_add(languages, describe(runner));
		print_runner(&text, runner);
	}
	buf_printf(&text,
		   "Limits of a run: %lld s (at most %lld), %lld MiB memory (at most %lld), %lld MiB of files, %lld "
		   "processes.\n",
		   (long long)limits->wall_seconds, (long long)limits->wall_seconds_max, (long long)limits->memory_mb,
		   (long long)limits->memory_mb_max, (long long)limits->data_mb, (long long)limits->pids);
	*ret = (struct tool_result){.content = json_object_new_array(), .structured = json_object_new_object()};
	json_add(ret->structured, "languages", languages);
	json_add(ret->structured, "limits", describe_limits(limits));
	tool_add_text(ret->content, text.data, text.length);
	snprintf(call->outcome, sizeof(call->outcome), "OK");
	return 0;
}

#define STRINGS "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"
#define INTEGER "{\"type\":\"integer\"}"

const struct tool tool_list_runners = {
	.name = "list_runners",
	.title = "List languages",
	.scope = ACCESS_FREE,
	.description = "Lists the programming languages that run_code takes, with their versions, aliases and "
		       "installed libraries, and the "
		       "limits of a run.",
	.arguments = table,
	.output_schema =
		"{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"languages\",\"limits\"],"
		"\"properties\":{"
		"\"languages\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"additionalProperties\":false,"
		"\"required\":[\"language\",\"aliases\",\"extensions\",\"available\",\"compiled\",\"live\","
		"\"libraries\"],\"properties\":{"
		"\"language\":{\"type\":\"string\"},\"aliases\":" STRINGS ",\"extensions\":" STRINGS
		",\"available\":{\"type\":\"boolean\"},"
		"\"live\":{\"type\":\"boolean\",\"description\":\"A session keeps its variables\"},"
		"\"compiled\":{\"type\":\"boolean\"},\"version\":{\"type\":\"string\"},\"install\":{\"type\":"
		"\"string\"},"
		"\"libraries\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"additionalProperties\":false,"
		"\"required\":[\"name\"],"
		"\"properties\":{\"name\":{\"type\":\"string\"},\"version\":{\"type\":\"string\"}}}}}}},"
		"\"limits\":{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
		"\"timeout_seconds_default\":" INTEGER ",\"timeout_seconds_max\":" INTEGER
		",\"memory_mb_default\":" INTEGER ","
		"\"memory_mb_max\":" INTEGER ",\"processes\":" INTEGER ",\"data_mb\":" INTEGER ",\"output_mb\":" INTEGER
		"}}}}",
	.read_only = true,
	.idempotent = true,
	.call = list,
};
