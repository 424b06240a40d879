/*
 * tool_run_code.c - run_code: a program in, its output and files out.
 *
 * The argument table becomes a job request; the job engine checks it further (names, caps, language), queues, runs and
 * records. This thread only waits. In the modern era a client that leaves cancels its run.
 */
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "lib/job/job.h"
#include "resource_app.h"
#include "run_answer.h"
#include "run_result.h"
#include "tool_files.h"

struct run_file {
	const char *filename;
	struct bind_text content, content_base64;
};
struct run_arguments {
	const char *conversation, *language, *key;
	struct bind_text code, stdin_text;
	bool network, session, display;
	struct bind_map environment, secrets;
	struct bind_strings args, servers;
	struct bind_objects files;
#define ASKED_LIMIT(argument, ...) int64_t argument;
#include "lib/base/limits.def"
};

static const struct bind file_table[] = {
	BIND_MEMBER(struct run_file, filename, "filename", BIND_STRING, .flags = BIND_REQUIRED, .min = 1,
		    .description = "Path below /data."),
	BIND_MEMBER(struct run_file, content, "content", BIND_TEXT, .description = "Text."),
	BIND_MEMBER(struct run_file, content_base64, "content_base64", BIND_TEXT,
		    .description = "Bytes in base64, instead of content."),
	{0},
};
static const struct bind table[] = {
	BIND_MEMBER(struct run_arguments, conversation, "conversationId", BIND_STRING, .flags = BIND_REQUIRED,
		    .min = 1, .max = STORE_CONVERSATION_MAX,
		    .description = "Names the conversation, whose files the program sees. Use one value throughout."),
	BIND_MEMBER(struct run_arguments, language, "language", BIND_STRING, .flags = BIND_REQUIRED, .min = 1,
		    .description = "Programming language."),
	BIND_MEMBER(struct run_arguments, code, "code", BIND_TEXT, .flags = BIND_REQUIRED, .min = 1,
		    .description = "The whole program."),
	BIND_MEMBER(struct run_arguments, network, "network", BIND_BOOL,
		    .description = "Ask for network access. Default: false. "
				   "Connections to hosts that the server does not list "
				   "are refused and named in the answer."),
	BIND_MEMBER(struct run_arguments, servers, "servers", BIND_STRINGS, .max = RUN_SERVERS_MAX,
		    .description = "Servers whose tools the program may call: in Python tools.SERVER.TOOL(name=value), "
				   "in JavaScript and TypeScript await tools.SERVER.TOOL({name: value}), "
				   "elsewhere mcp call SERVER.TOOL name=value. /code/tools/index.txt lists them."),
	BIND_MEMBER(struct run_arguments, session, "session", BIND_BOOL,
		    .description = "Keep variables, imports, processes and /tmp for the next call with session true "
				   "in this conversation and language. Default: false. reset_session ends it."),
	BIND_MEMBER(struct run_arguments, display, "display", BIND_BOOL,
		    .description = "Show the last expression's value and open figures. Default: true."),
	BIND_MEMBER(struct run_arguments, environment, "environment", BIND_STRING_MAP, .max = RUN_VARIABLES_MAX,
		    .description = "Environment variables. They are recorded: passwords go into secrets."),
	BIND_MEMBER(struct run_arguments, secrets, "secrets", BIND_STRING_MAP, .max = RUN_VARIABLES_MAX,
		    .description = "Environment variables whose values are never recorded: "
				   "in output and in text files that the program makes they are replaced by ***. "
				   "At least 4 bytes each."),
	BIND_MEMBER(struct run_arguments, stdin_text, "stdin", BIND_TEXT,
		    .description = "Standard input. Default: empty."),
	BIND_MEMBER(struct run_arguments, args, "args", BIND_STRINGS, .max = RUN_ARGS_MAX,
		    .description = "Command line arguments."),
	BIND_MEMBER(struct run_arguments, files, "files", BIND_OBJECTS, .max = JOB_FILES_MAX, .table = file_table,
		    .size = sizeof(struct run_file), .description = "Files to put into /data first; they stay."),
#define ASKED_LIMIT(argument, field, member, unit, most, sentence)                                                     \
	{.name = #argument,                                                                                            \
	 .type = BIND_INT,                                                                                             \
	 .offset = offsetof(struct run_arguments, argument),                                                           \
	 .min = 1,                                                                                                     \
	 .max = most, /* the server's own cap is lower: see set_bound */                                               \
	 .description = sentence},
#include "lib/base/limits.def"
	TOOL_KEY_MEMBER(struct run_arguments, key),
	{0},
};

/* The request's files, decoded. */
struct run_files {
	struct job_file *files;
	struct buf *decoded; /* `count` buffers; those of text stay empty */
	size_t count;
};

static void run_files_clear(struct run_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		buf_clear(&files->decoded[i]);
	free(files->decoded);
	free(files->files);
}

static int decode_file(const struct tool_call *call, const struct run_file *file, size_t index, struct buf *decoded,
		       struct job_file *ret, struct err *err)
{
	char member[ERR_MEMBER_SIZE];

	*ret = (struct job_file){.name = tool_files_path(file->filename)};
	if (!file->content.data == !file->content_base64.data) {
		snprintf(member, sizeof(member), "files[%zu]", index);
		return err_member(err, member, "must have exactly one of content and content_base64");
	}
	if (file->content.data) {
		ret->data = file->content.data;
		ret->length = file->content.length;
		return 0;
	}
	snprintf(member, sizeof(member), "files[%zu].content_base64", index);
	if (tool_base64(call, &file->content_base64, member, decoded, err) < 0)
		return -ERR_INVALID;
	ret->data = decoded->data;
	ret->length = decoded->length;
	return 0;
}

static int decode_files(const struct tool_call *call, const struct bind_objects *objects, struct run_files *ret,
			struct err *err)
{
	const struct run_file *files = objects->items;

	ret->files = xcalloc(objects->count + 1, sizeof(*ret->files));
	ret->decoded = xcalloc(objects->count + 1, sizeof(*ret->decoded));
	for (size_t i = 0; i < objects->count; i++) {
		buf_init(&ret->decoded[i], files[i].content_base64.length);
		ret->count++;
		int result = decode_file(call, &files[i], i, &ret->decoded[i], &ret->files[i], err);

		if (result < 0)
			return result;
	}
	return 0;
}

static int run(struct tool_call *call, const void *bound, struct tool_result *ret, struct err *err)
{
	const struct run_arguments *arguments = bound;
	__attribute__((cleanup(run_files_clear))) struct run_files files = {0};
	char hash[SHA256_HEX_SIZE];

	tool_hash(call, bound, hash);
	auto_job_tools struct job_tools *tools = NULL;
	int result = run_result_again(call, hash, run_result_make, ret, err);

	if (result != 0)
		return MIN(result, 0);
	result = tool_network_check(call, arguments->network, err);
	if (result == 0)
		result = decode_files(call, &arguments->files, &files, err);
	if (result == 0)
		result = tool_servers(call, &arguments->servers, arguments->language, arguments->network, &tools, err);
	if (result < 0)
		return result;
	const struct job_request request = {
		TOOL_CALLER(call),
		.conversation = arguments->conversation,
		.language = arguments->language,
		.code = arguments->code,
		.stdin_text = arguments->stdin_text,
		.args = arguments->args,
		.environment = arguments->environment,
		.secrets = arguments->secrets,
		.files = files.files,
		.n_files = files.count,
		.paths = true,
#define ASKED_LIMIT(argument, ...) .argument = arguments->argument,
#include "lib/base/limits.def"
		.network = arguments->network,
		.live = arguments->session,
		.display = arguments->display,
		.tools = tools,
		.key = arguments->key,
		.key_hash = hash,
	};
	return run_result_of(call, &request, run_result_make, ret, err);
}

static void set_bound(const struct config *config, struct bind *row)
{
	const struct config_limits *limits = &config->limits;

#define ASKED_LIMIT(argument, field, member, ...)                                                                      \
	if (streq(row->name, #argument))                                                                               \
		row->max = limits->member##_max;
#include "lib/base/limits.def"
}

/* What models import, most used first; of those that a language has, the description names as many as fit. Everything
 * else that is installed is in list_runners. */
static const char *const well_known[] = {
	"numpy",       "pandas",      "matplotlib",     "scipy",    "scikit-learn", "requests",  "openpyxl", "pillow",
	"seaborn",     "sympy",       "beautifulsoup4", "lxml",     "statsmodels",  "networkx",  "plotly",   "pypdf",
	"python-docx", "python-pptx", "reportlab",      "psycopg2", "csv-parser",   "papaparse", "pg",       "postgres",
};

static bool has_library(struct json_object *runner, const char *name)
{
	struct json_object *libraries = json_get(runner, "libraries", json_type_array);

	for (size_t i = 0; libraries && i < json_object_array_length(libraries); i++) {
		const char *one = json_get_string(json_object_array_get_idx(libraries, i), "name");

		if (one && streq(one, name))
			return true;
	}
	return false;
}

static bool has_libraries(struct json_object *runner)
{
	struct json_object *libraries = json_get(runner, "libraries", json_type_array);

	return libraries && json_object_array_length(libraries) > 0;
}

static bool available(struct json_object *runner)
{
	return json_get_string(runner, "name") &&
	       json_object_get_boolean(json_get(runner, "available", json_type_boolean));
}

static bool described(struct json_object *runner)
{
	return available(runner) && !json_get(runner, "unlisted", json_type_boolean);
}

static void name_runner(struct json_object *runner, bool with_version, struct buf *text)
{
	const char *version = with_version ? json_get_string(runner, "version") : NULL;

	buf_puts(text, json_get_string(runner, "name"));
	version += version ? strcspn(version, "0123456789") : 0;
	if (version && *version)
		buf_printf(text, " %.*s", (int)strspn(version, "0123456789."), version);
}

/* The line that languages without libraries share: "bash 5.2.15, c 12.2.0". "" where there are none. */
static void describe_others(struct json_object *runners, bool with_versions, struct buf *line)
{
	const size_t count = runners ? json_object_array_length(runners) : 0;

	buf_init(line, SIZE_MAX);
	for (size_t i = 0; i < count; i++) {
		struct json_object *runner = json_object_array_get_idx(runners, i);

		if (!described(runner) || has_libraries(runner))
			continue;
		buf_puts(line, line->length ? ", " : "\n- ");
		name_runner(runner, with_versions, line);
	}
}

/* The languages that have libraries, a line each: "python 3.11.2; numpy, pandas, …", with libraries in at most `spare`
 * bytes. */
static void describe_with_libraries(struct json_object *runners, size_t spare, struct buf *text)
{
	const size_t count = runners ? json_object_array_length(runners) : 0;

	for (size_t i = 0; i < count; i++) {
		struct json_object *runner = json_object_array_get_idx(runners, i);

		if (!available(runner) || !has_libraries(runner))
			continue;
		buf_puts(text, "\n- ");
		name_runner(runner, true, text);
		for (size_t k = 0, taken = 0; k < ARRAY_SIZE(well_known); k++) {
			const size_t length = strlen(well_known[k]) + 2;

			if (length > spare || !has_library(runner, well_known[k]))
				continue;
			buf_printf(text, "%s%s", taken ? ", " : "; ", well_known[k]);
			taken += length;
			spare -= length;
		}
	}
}

/* Which languages there are, and with which libraries. Names of languages come before libraries, these before versions
 * of languages that have none. Where not even the names fit, the schema has them. */
static void describe_languages(struct json_object *runners, struct buf *text)
{
	static const char head[] = "\nLanguages:";
	auto_buf struct buf bare = {0}, names = {0}, versions = {0};

	buf_init(&bare, SIZE_MAX);
	buf_puts(&bare, head);
	describe_with_libraries(runners, 0, &bare);
	describe_others(runners, false, &names);
	describe_others(runners, true, &versions);
	const size_t least = text->length + bare.length + names.length;

	if (least > TOOL_DESCRIPTION_MAX)
		return;
	buf_puts(text, head);
	describe_with_libraries(runners, TOOL_DESCRIPTION_MAX - least, text);
	const struct buf *others = text->length + versions.length <= TOOL_DESCRIPTION_MAX ? &versions : &names;

	buf_add(text, others->data, others->length);
}

#define NETWORK_SHOWN 512 /* characters of the list of hosts */

static void remove_property(struct json_object *tool, const char *name)
{
	struct json_object *schema = json_get(tool, "inputSchema", json_type_object);

	json_object_object_del(json_get(schema, "properties", json_type_object), name);
}

#define INSTALL                                                                                                        \
	" Packages that are missing: in bash with network, pip install NAME or npm install NAME keeps them for the "   \
	"conversation, if network names their index."
#define NO_INSTALL " No network; nothing can be installed."

/* What cannot be had here is not offered; asked for, it is refused with a sentence. */
static void refine_offers(const struct config *config, struct json_object *tool)
{
	auto_buf struct buf network = {0};

	buf_init(&network, NETWORK_SHOWN);
	tool_network_describe(config, &network);
	auto_free char *text = xasprintf("%s%s", json_get_string(tool, "description"),
					 config->network.allow.count > 0 ? INSTALL : NO_INSTALL);
	json_add_string(tool, "description", text);
	if (config->network.allow.count > 0)
		json_add_string(tool_property(tool, "network"), "description", network.data);
	else
		remove_property(tool, "network");
	if (config->limits.sandboxes == 0)
		remove_property(tool, "session");
}

static void describe_default(struct json_object *tool, const char *argument, int64_t value)
{
	struct json_object *property = tool_property(tool, argument);
	auto_free char *text =
		xasprintf("%s Default: %lld.", json_get_string(property, "description"), (long long)value);

	json_add_string(property, "description", text);
}

/* Where files are, and what their addresses are good for. */
static const char *files_of(const struct config *config)
{
	if (config->workspace_folder.path)
		return "\n- /data, where it starts, is the user's folder: what a program changes there is changed in "
		       "it, at the addresses in the answer.";
	if (!*config->public_base_url)
		return "\n- Files persist: /data, where it starts, belongs to the conversationId. Addresses of files "
		       "are for resources/read.";
	return "\n- Files persist: /data, where it starts, belongs to the conversationId.\n- To show a file to the "
	       "user, link its address: ![chart](ADDRESS). A program finds the address of /data in FILE_BASE_URL. "
	       "Never invent one.";
}

static void refine(struct server *server, struct json_object *tool)
{
	auto_json struct json_object *runners = tool_runners(server);
	const size_t count = runners ? json_object_array_length(runners) : 0;
	struct json_object *names = json_object_new_array(), *language = tool_property(tool, "language");
	struct json_object *servers = tool_servers_names(server);
	struct json_object *items = json_get(tool_property(tool, "servers"), "items", json_type_object);
	auto_buf struct buf text = {0};

	if (servers && items)
		json_add(items, "enum", servers);
	else
		remove_property(tool, "servers"); /* without servers there is no such argument */
	refine_offers(server->config, tool);
#define ASKED_LIMIT(argument, field, member, ...) describe_default(tool, #argument, server->config->limits.member);
#include "lib/base/limits.def"
	buf_init(&text, TOOL_DESCRIPTION_MAX);
	buf_puts(&text, json_get_string(tool, "description"));
	buf_puts(&text, files_of(server->config));
	json_add_string(tool, "description", text.data);
	describe_languages(runners, &text);
	for (size_t i = 0; i < count; i++) {
		struct json_object *runner = json_object_array_get_idx(runners, i);

		if (available(runner))
			json_object_array_add(names, json_object_new_string(json_get_string(runner, "name")));
	}
	if (language && json_object_array_length(names) > 0) {
		json_add_string(tool, "description", text.data);
		json_add(language, "enum", names);
	} else {
		json_object_put(names);
	}
}

const struct tool tool_run_code = {
	.name = "run_code",
	.title = "Run a program",
	.scope = STORE_SCOPE_RUN,
	.description =
		"Runs a program in an isolated sandbox. Returns what it printed, images it made, and the address "
		"of every file that is new or changed.\n"
		"- Each call is a new process.\n"
		"- Print what you want to see. Python, JavaScript and TypeScript also show the value of a last "
		"expression, Python its open figures as images.\n"
		"- Text from a leading [sallyport] to [stdout] or [stderr] is the server's; all else was printed.\n"
		"- If it fails: read why, repair it, call again.",
	.arguments = table,
	.arguments_size = sizeof(struct run_arguments),
	.defaults = &(const struct run_arguments){.display = true},
	.output = run_answer_table,
	.destructive = true, /* a program may overwrite and remove the conversation's files */
	.bound = set_bound,
	.refine = refine,
	.call = run,
	.app = RESOURCE_APP_RUN,
	.task = TOOL_TASK_OPTIONAL,
	.result = run_result_make,
};
