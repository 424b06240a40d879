/*
 * tool_execute_code.c - execute_code, which two of the systems that Sallyport replaces have under this name.
 *
 * Of the set "isolator": a program of one or several files, or a snippet (snippets.h), in a sandbox that begins empty.
 * Its text block is that system's; the structured result is run_code's. Each call is a conversation of its own, so what
 * it makes can be downloaded and its record replayed like any other. Files next to the program may have paths; then the
 * program is run from its own place in /data, where relative imports find them.
 *
 * Of the set "interpreter": code in the sandbox that initialize_sandbox began (tool_interpreter.c).
 *
 * Where both sets are on the tool takes the arguments of both; which of them are there says what is meant.
 */
#include "jail/client/client_runners.h"
#include "lib/base/util.h"
#include "lib/store/db/crypto.h"
#include "run_answer.h"
#include "run_result.h"
#include "snippets.h"
#include "tool_common.h"
#include "tool_interpreter.h"

#define NAMES_SHOWN 20 /* of snippets, in an error */

struct execute_file {
	const char *filename;
	struct bind_text content;
};
struct execute_arguments {
	const char *language, *entrypoint_filename, *snippet_name, *key;
	struct bind_text entrypoint_code, code;
	struct bind_objects additional_files;
};

#define TEXT(member_, type_, min_, max_, text_)                                                                        \
	BIND_MEMBER(struct execute_arguments, member_, #member_, type_, .min = min_, .max = max_, .description = text_)

static const struct bind file_table[] = {
	BIND_MEMBER(struct execute_file, filename, "filename", BIND_STRING, .flags = BIND_REQUIRED, .min = 1,
		    .max = JAIL_NAME_MAX,
		    .description = "Path relative to the program, for example utils.py or lib/math.js."),
	BIND_MEMBER(struct execute_file, content, "content", BIND_TEXT, .flags = BIND_REQUIRED,
		    .description = "The content as UTF-8 text."),
	{0},
};
#define ISOLATOR_MEMBERS                                                                                               \
	TEXT(entrypoint_code, BIND_TEXT, 1, 0, "Source text of a whole program, with language."),                      \
	TEXT(entrypoint_filename, BIND_STRING, 1, JAIL_NAME_MAX,                                                       \
	     "File name for the program. Default: main and the extension."),                                           \
	BIND_MEMBER(struct execute_arguments, additional_files, "additional_files", BIND_OBJECTS,                      \
		    .max = JOB_FILES_MAX - 1, .table = file_table, .size = sizeof(struct execute_file),                \
		    .description = "Files that the program imports or reads."),                                        \
	TEXT(snippet_name, BIND_STRING, 1, STORE_SNIPPET_NAME_MAX,                                                     \
	     "A program that is stored on the server, instead of entrypoint_code.")

static const struct bind isolator_table[] = {
	TEXT(language, BIND_STRING, 1, 0,
	     "Programming language of entrypoint_code. A snippet has its own."),
	ISOLATOR_MEMBERS,
	TOOL_KEY_MEMBER(struct execute_arguments, key),
	{0},
};
static const struct bind live_table[] = {
	BIND_MEMBER(struct execute_arguments, code, "code", BIND_TEXT, .flags = BIND_REQUIRED, .min = 1,
		    .description = "Code to execute in the sandbox. Print what you want to see."),
	TEXT(language, BIND_STRING, 1, 0, "Programming language. Default: the sandbox's."),
	TOOL_KEY_MEMBER(struct execute_arguments, key),
	{0},
};
static const struct bind both_table[] = {
	TEXT(code, BIND_TEXT, 1, 0,
	     "Code to execute in the sandbox of initialize_sandbox; excludes the members below but language."),
	TEXT(language, BIND_STRING, 1, 0, "Programming language. Default: the sandbox's, or the snippet's."),
	ISOLATOR_MEMBERS,
	TOOL_KEY_MEMBER(struct execute_arguments, key),
	{0},
};

/* The program, wherever it comes from. */
struct program {
	const char *language, *filename; /* NULL filename: none was asked for */
	struct bind_text code;
	struct job_file *files;
	size_t n_files;
	char default_name[64];
	struct store_snippet snippet;
	struct job_tools *tools;
};

static void program_clear(struct program *program)
{
	free(program->files);
	store_snippet_clear(&program->snippet);
	job_tools_release(&program->tools);
}

/* By its name, with or without an extension. */
static int take_snippet(struct tool_call *call, const struct execute_arguments *arguments, struct json_object *runners,
			struct program *ret, struct err *err)
{
	struct store *store = call->server->store;
	const char *owner = call->token->owner;
	auto_json struct json_object *names = json_object_new_array();
	auto_free char *name = xstrndup(arguments->snippet_name, strcspn(arguments->snippet_name, "."));

	if (arguments->entrypoint_code.data)
		return err_member(err, "snippet_name", "and entrypoint_code exclude each other");
	int result = store_snippet_find(store, owner, name, 0, &ret->snippet, err);

	if (result == -ERR_NOT_FOUND && (result = snippet_names(store, owner, "", names, err)) == 0) {
		auto_buf struct buf known = {0};

		buf_init(&known, ERR_TEXT_SIZE);
		for (size_t i = 0; i < MIN(json_object_array_length(names), (size_t)NAMES_SHOWN); i++)
			buf_printf(&known, "%s%s", i ? ", " : "",
				   json_object_get_string(json_object_array_get_idx(names, i)));
		return err_set(err, ERR_NOT_FOUND, "snippet_name: unknown snippet; the server has: %s%s",
			       known.length ? known.data : "none",
			       json_object_array_length(names) > NAMES_SHOWN ? " and more" : "");
	}
	if (result < 0)
		return result;
	ret->code = (struct bind_text){ret->snippet.code, strlen(ret->snippet.code)};
	ret->filename = arguments->entrypoint_filename;
	ret->language = arguments->language ? arguments->language : snippet_language(&ret->snippet, runners);
	return snippet_tools(call, &ret->snippet, ret->language, &ret->tools, err);
}

static int take_code(const struct execute_arguments *arguments, struct program *ret, struct err *err)
{
	if (!arguments->entrypoint_code.data && !arguments->language)
		return err_member(err, "snippet_name",
				  "is missing: give snippet_name, or language and entrypoint_code");
	if (!arguments->entrypoint_code.data)
		return err_member(err, "entrypoint_code", "is missing");
	if (!arguments->language)
		return err_member(err, "language", "is missing");
	ret->language = arguments->language;
	ret->code = arguments->entrypoint_code;
	ret->filename = arguments->entrypoint_filename;
	return 0;
}

/* The program itself needs no file of its own unless it has a name or others next to it. */
static int take_files(const struct execute_arguments *arguments, struct json_object *runners, struct program *ret,
		      struct err *err)
{
	const struct execute_file *given = arguments->additional_files.items;
	struct json_object *runner = jail_runner_named(runners, ret->language);
	struct json_object *extensions = json_get(runner, "extensions", json_type_array);

	if (!ret->filename && arguments->additional_files.count == 0)
		return 0;
	if (!ret->filename) {
		snprintf(ret->default_name, sizeof(ret->default_name), "main%s",
			 extensions && json_object_array_length(extensions)
				 ? json_object_get_string(json_object_array_get_idx(extensions, 0))
				 : "");
		ret->filename = ret->default_name;
	}
	ret->files = xcalloc(arguments->additional_files.count + 1, sizeof(*ret->files));
	for (size_t i = 0; i < arguments->additional_files.count; i++) {
		if (streq(given[i].filename, ret->filename))
			return err_member(err, "additional_files", "%s is the program's own name", ret->filename);
		ret->files[ret->n_files++] =
			(struct job_file){given[i].filename, given[i].content.data, given[i].content.length};
	}
	ret->files[ret->n_files++] = (struct job_file){ret->filename, ret->code.data, ret->code.length};
	return 0;
}

/* A sandbox of its own. */
static int run_alone(struct tool_call *call, const struct execute_arguments *arguments, const char *hash,
		     struct tool_result *ret, struct err *err)
{
	__attribute__((cleanup(program_clear))) struct program program = {0};
	auto_json struct json_object *runners = tool_runners(call->server);
	char id[ID_SIZE];
	int result;

	if (arguments->snippet_name)
		result = take_snippet(call, arguments, runners, &program, err);
	else
		result = take_code(arguments, &program, err);
	if (result < 0 || (result = take_files(arguments, runners, &program, err)) < 0)
		return result;
	id_new(id);
	auto_free char *conversation = xasprintf("execute_code-%s", id);
	const struct job_request request = {
		TOOL_CALLER(call),
		.conversation = conversation,
		.language = program.language,
		.code = program.code,
		.entry = program.n_files > 0 ? program.filename : NULL,
		.files = program.files,
		.n_files = program.n_files,
		.paths = true,
		.tools = program.tools,
		.key = arguments->key,
		.key_hash = hash,
	};
	return run_result_of(call, &request, run_result_make_isolator, ret, err);
}

static int run(struct tool_call *call, const void *bound, struct tool_result *ret, struct err *err)
{
	const struct execute_arguments *arguments = bound;
	char hash[SHA256_HEX_SIZE];

	tool_hash(call, bound, hash);
	const struct interpreter_call what = {
		.code = arguments->code, .language = arguments->language, .key = arguments->key, .key_hash = hash};

	return arguments->code.data ? interpreter_execute(call, &what, ret, err)
				    : run_alone(call, arguments, hash, ret, err);
}

static int run_both(struct tool_call *call, const void *bound, struct tool_result *ret, struct err *err)
{
	const struct execute_arguments *arguments = bound;

	if (arguments->code.data && (arguments->entrypoint_code.data || arguments->snippet_name ||
				     arguments->entrypoint_filename || arguments->additional_files.count > 0))
		return err_member(err, "code",
				  "runs in the sandbox of initialize_sandbox and excludes entrypoint_code, "
				  "entrypoint_filename, additional_files and "
				  "snippet_name");
	if (!arguments->code.data && !arguments->entrypoint_code.data && !arguments->snippet_name)
		return err_member(err, "code",
				  "is missing: give code, or language and entrypoint_code, or snippet_name");
	return run(call, bound, ret, err);
}

static bool only_isolator(const struct config *config)
{
	return config_has_set(config, "isolator") && !config_has_set(config, "interpreter");
}

static bool only_interpreter(const struct config *config)
{
	return config_has_set(config, "interpreter") && !config_has_set(config, "isolator");
}

static bool both(const struct config *config)
{
	return config_has_set(config, "isolator") && config_has_set(config, "interpreter");
}

#define ALONE                                                                                                          \
	"language and entrypoint_code, with additional_files that it imports or reads, or snippet_name for a program " \
	"stored on the server. It runs in an isolated, empty sandbox, and nothing persists for the next call; files " \
	"in its working directory are returned with download URLs. "
#define LIVE                                                                                                           \
	"code: it runs in the sandbox that initialize_sandbox started, where files, processes and (in Python and " \
	"JavaScript) variables of earlier calls persist. "
#define ALWAYS "Only printed output is returned. There is no network."

/* For a task's run, which may be of either kind. */
static void make_result(const struct tool_call *call, const struct job_result *finished, struct tool_result *ret)
{
	if (*finished->sandbox_id)
		run_result_make_interpreter(call, finished, ret);
	else
		run_result_make_isolator(call, finished, ret);
}

#define EXECUTE_CODE(symbol_, enabled_, table_, call_, description_)                                                   \
	const struct tool symbol_ = {                                                                                  \
		.name = "execute_code",                                                                                \
		.title = "Execute code",                                                                               \
		.enabled = enabled_,                                                                                   \
		.scope = STORE_SCOPE_RUN,                                                                              \
		.description = description_,                                                                           \
		.arguments = table_,                                                                                   \
		.arguments_size = sizeof(struct execute_arguments),                                                    \
		.output = run_answer_table,                                                                            \
		.destructive = true,                                                                                   \
		.call = call_,                                                                                         \
		.task = TOOL_TASK_OPTIONAL,                                                                            \
		.result = make_result,                                                                                 \
	}

EXECUTE_CODE(tool_execute_code, only_isolator, isolator_table, run, "Executes a program. Give " ALONE ALWAYS);
EXECUTE_CODE(tool_execute_code_live, only_interpreter, live_table, run, "Executes code. Give " LIVE ALWAYS);
EXECUTE_CODE(tool_execute_code_both, both, both_table, run_both,
	     "Executes code. Give either " LIVE "Or give " ALONE ALWAYS);
