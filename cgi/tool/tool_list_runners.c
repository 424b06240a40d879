/*
 * tool_list_runners.c - list_runners: which languages, versions and libraries there are, and the limits of a run.
 *
 * What the jailer says of its runners goes out member by member by tables, so that nothing of it reaches a client that
 * the output schema does not promise. The text is for models: what they can choose comes first, one line a language
 * with its libraries; what is not installed is one line of names, because the operator alone can change it, and how is
 * told where one language is asked for.
 */
#include "jail/client/client_runners.h"
#include "lib/base/util.h"
#include "run_text.h"

#define TEXT_MAX (256 * 1024)

struct list_arguments {
	const char *language;
};
static const struct bind table[] = {
	BIND_MEMBER(struct list_arguments, language, "language", BIND_STRING, .min = 1,
		    .description = "Only this one. Default: all."),
	{0},
};

struct library {
	const char *name, *version;
};
struct language {
	const char *language, *version, *install;
	struct json_object *aliases, *extensions, *libraries;
	bool available, compiled, live;
};
struct listing {
	struct json_object *languages;
	struct config_limits limits;
};
#define ROW(struct_, field, kind)  .name = #field, .type = kind, .offset = offsetof(struct struct_, field)
#define JSON(struct_, field, kind) ROW(struct_, field, kind), .flags = BIND_JSON
static const struct bind library_table[] = {
	{ROW(library, name, BIND_STRING)},
	{ROW(library, version, BIND_STRING), .sparse = BIND_VIEWS},
	{0},
};
static const struct bind language_table[] = {
	{ROW(language, language, BIND_STRING)},
	{JSON(language, aliases, BIND_STRINGS)},
	{JSON(language, extensions, BIND_STRINGS)},
	{ROW(language, available, BIND_BOOL)},
	{ROW(language, live, BIND_BOOL), .description = "A session keeps its variables"},
	{ROW(language, compiled, BIND_BOOL)},
	{ROW(language, version, BIND_STRING), .sparse = BIND_VIEWS},
	{ROW(language, install, BIND_STRING), .sparse = BIND_VIEWS},
	{JSON(language, libraries, BIND_OBJECTS), .table = library_table},
	{0},
};
#define NUMBER(name_, member)                                                                                          \
	{                                                                                                              \
		.name = name_, .type = BIND_INT, .offset = offsetof(struct config_limits, member),                     \
		.sparse = BIND_VIEWS                                                                                   \
	}
static const struct bind limits_table[] = {
#define ASKED_LIMIT(argument, field, member, ...)                                                                      \
	NUMBER(#argument "_default", member), NUMBER(#argument "_max", member##_max),
#define SHOWN_LIMIT(name, member) NUMBER(#name, member),
#include "lib/base/limits.def"
	{0},
};
static const struct bind output_table[] = {
	{JSON(listing, languages, BIND_OBJECTS), .table = language_table},
	{ROW(listing, limits, BIND_OBJECT), .table = limits_table},
	{0},
};

static bool flag(struct json_object *runner, const char *name)
{
	return json_object_get_boolean(json_get(runner, name, json_type_boolean));
}

/* Only what the output schema promises, whatever else the jailer sends. */
static struct json_object *describe(struct json_object *runner)
{
	auto_json struct json_object *libraries = json_object_new_array();
	struct json_object *known = json_get(runner, "libraries", json_type_array);

	for (size_t i = 0; known && i < json_object_array_length(known); i++) {
		struct json_object *one = json_object_array_get_idx(known, i);
		const char *name = json_get_string(one, "name");
		const struct library library = {name ? name : "", json_get_string(one, "version")};

		json_object_array_add(libraries, bind_print(library_table, &library));
	}
	const struct language language = {
		.language = json_get_string(runner, "name"),
		.aliases = json_get(runner, "aliases", json_type_array),
		.extensions = json_get(runner, "extensions", json_type_array),
		.available = flag(runner, "available"),
		.compiled = flag(runner, "compiled"),
		.live = flag(runner, "live"),
		.version = json_get_string(runner, "version"),
		.install = flag(runner, "available") ? NULL : json_get_string(runner, "install"),
		.libraries = libraries,
	};

	return bind_print(language_table, &language);
}

static void print_runner(struct buf *text, struct json_object *runner, bool only)
{
	struct json_object *libraries = json_get(runner, "libraries", json_type_array);
	const char *version = json_get_string(runner, "version"), *install = json_get_string(runner, "install");

	if (!only && !flag(runner, "available"))
		return;

	buf_puts(text, "- ");
	tool_print_names(text, runner);
	if (!flag(runner, "available"))
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
	const struct list_arguments *arguments = bound;
	struct job_engine *engine;
	auto_buf struct buf text = {0};
	int result = server_engine(call->server, &engine, err);

	buf_init(&text, TEXT_MAX);
	if (result < 0)
		return result;
	job_engine_learn(engine);
	runners = job_engine_runners(engine);
	if (!runners)
		return err_set(err, ERR_UNAVAILABLE, "the sandbox service is unavailable: try again in a few seconds");
	struct json_object *only = arguments->language ? jail_runner_named(runners, arguments->language) : NULL;

	if (arguments->language && !only)
		return err_member(err, "language", "is unknown: leave it out to list all");
	auto_json struct json_object *languages = json_object_new_array();
	for (size_t i = 0; i < json_object_array_length(runners); i++) {
		struct json_object *runner = json_object_array_get_idx(runners, i);

		if (only && runner != only)
			continue;
		json_object_array_add(languages, describe(runner));
		print_runner(&text, runner, only != NULL);
	}
	/* One line, where a model does not take them for what it may choose from. */
	for (size_t i = 0, n = 0; !only && i < json_object_array_length(runners); i++) {
		struct json_object *runner = json_object_array_get_idx(runners, i);

		if (!flag(runner, "available"))
			buf_printf(&text, "%s%s", n++ ? ", " : "Not installed, the operator can do that: ",
				   json_get_string(runner, "name"));
	}
	run_text_end_line(&text);
	buf_printf(&text,
		   "Limits of a run: %lld s (at most %lld), %lld MiB memory (at most %lld), %lld MiB of files, %lld "
		   "processes.\n",
		   (long long)limits->wall_seconds, (long long)limits->wall_seconds_max, (long long)limits->memory_mb,
		   (long long)limits->memory_mb_max, (long long)limits->data_mb, (long long)limits->pids);
	const struct listing listing = {languages, *limits};
	tool_answer(ret, text.data, bind_print(output_table, &listing));
	return 0;
}

const struct tool tool_list_runners = {
	.name = "list_runners",
	.title = "List languages",
	.scope = ACCESS_FREE,
	.description = "Lists the languages of run_code with all installed libraries, and the limits of a run.",
	.arguments = table,
	.arguments_size = sizeof(struct list_arguments),
	.output = output_table,
	.read_only = true,
	.idempotent = true,
	.call = list,
};
