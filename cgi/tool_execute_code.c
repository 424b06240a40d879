/*
 * tool_execute_code.c - execute_code of the set "isolator": a program of one or several files, or a snippet of the server, in a sandbox
 * that begins empty.
 *
 * Names, arguments and the text block are those of the system that it replaces; the structured result is run_code's. Each call is a
 * conversation of its own, so what it makes can be downloaded and its record replayed like any other. Files beside the program
 * may have paths; then the program is run from its own place in /data, where relative imports find them.
 */
#include "../lib/codec.h"
#include "../lib/util.h"
#include "run_result.h"
#include "snippets.h"
#include "tools.h"

struct execute_file {
	const char *filename;
	struct bind_text content;
};
struct execute_arguments {
	const char *language, *entrypoint_filename, *snippet_name, *key;
	struct bind_text entrypoint_code;
	struct bind_objects additional_files;
};

#define TEXT(member_, type_, min_, max_, text_)                                                                                            \
	{                                                                                                                                  \
		.name = #member_, .type = type_, .offset = offsetof(struct execute_arguments, member_), .min = min_, .max = max_,          \
		.description = text_                                                                                                       \
	}

static const struct bind file_table[] = {
	{.name = "filename",
	 .type = BIND_STRING,
	 .offset = offsetof(struct execute_file, filename),
	 .flags = BIND_REQUIRED,
	 .min = 1,
	 .max = JAIL_NAME_MAX,
	 .description = "Path relative to the program, for example utils.py or lib/math.js."},
	{.name = "content",
	 .type = BIND_TEXT,
	 .offset = offsetof(struct execute_file, content),
	 .flags = BIND_REQUIRED,
	 .description = "The content as UTF-8 text."},
	{0},
};
static const struct bind table[] = {
	TEXT(language, BIND_STRING, 1, 0, "Programming language of entrypoint_code. A snippet's language comes from its extension."),
	TEXT(entrypoint_code, BIND_TEXT, 1, 0, "Source text of the program; either this and language, or snippet_name."),
	TEXT(entrypoint_filename, BIND_STRING, 1, JAIL_NAME_MAX,
	     "File name for the program, for example main.py. Default: by the language."),
	{.name = "additional_files",
	 .type = BIND_OBJECTS,
	 .offset = offsetof(struct execute_arguments, additional_files),
	 .max = JOB_FILES_MAX - 1,
	 .table = file_table,
	 .size = sizeof(struct execute_file),
	 .description = "Files that the program imports or reads."},
	TEXT(snippet_name, BIND_STRING, 1, SNIPPET_NAME_MAX, "Name of a program that is kept on the server, instead of entrypoint_code."),
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
	struct snippet snippet;
};

static void program_clear(struct program *program)
{
	free(program->files);
	snippet_clear(&program->snippet);
}

/* The runner that has this name, alias or extension. */
static struct json_object *runner_with(struct json_object *runners, const char *key, const char *wanted)
{
	for (size_t i = 0; runners && i < json_object_array_length(runners); i++) {
		struct json_object *runner = json_object_array_get_idx(runners, i), *list = json_get(runner, key, json_type_array);
		const char *name = json_get_string(runner, "name");

		if (name && streq(name, wanted))
			return runner;
		for (size_t k = 0; list && k < json_object_array_length(list); k++)
			if (streq(json_object_get_string(json_object_array_get_idx(list, k)), wanted))
				return runner;
	}
	return NULL;
}

static int take_snippet(const struct config *config, const struct execute_arguments *arguments, struct json_object *runners,
			struct program *ret, struct err *err)
{
	struct json_object *runner;
	int result;

	if (arguments->entrypoint_code.data)
		return err_member(err, "snippet_name", "and entrypoint_code exclude each other");
	if ((result = snippet_read(config, arguments->snippet_name, &ret->snippet, err)) < 0)
		return result;
	ret->code = (struct bind_text){ret->snippet.text, ret->snippet.length};
	ret->filename = arguments->entrypoint_filename ? arguments->entrypoint_filename : ret->snippet.file;
	ret->language = arguments->language;
	if (ret->language)
		return 0;
	if (!runners)
		return err_set(err, ERR_UNAVAILABLE, "the jailer does not answer, so nothing can run; the operator's log says why");
	runner = runner_with(runners, "extensions", ret->snippet.extension);
	if (!runner)
		return err_member(err, "snippet_name", "no language has the extension %s of %s: name the language", ret->snippet.extension,
				  ret->snippet.file);
	ret->language = json_get_string(runner, "name");
	return 0;
}

static int take_code(const struct execute_arguments *arguments, struct program *ret, struct err *err)
{
	if (!arguments->entrypoint_code.data && !arguments->language)
		return err_member(err, "snippet_name", "is missing, or language and entrypoint_code: one of the two says what to run");
	if (!arguments->entrypoint_code.data)
		return err_member(err, "entrypoint_code", "is missing");
	if (!arguments->language)
		return err_member(err, "language", "is missing");
	ret->language = arguments->language;
	ret->code = arguments->entrypoint_code;
	ret->filename = arguments->entrypoint_filename;
	return 0;
}

/* The program itself needs no file of its own unless it has a name or others beside it. */
static int take_files(const struct execute_arguments *arguments, struct json_object *runners, struct program *ret, struct err *err)
{
	const struct execute_file *given = arguments->additional_files.items;
	struct json_object *runner = runner_with(runners, "aliases", ret->language);
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
		ret->files[ret->n_files++] = (struct job_file){given[i].filename, given[i].content.data, given[i].content.length};
	}
	ret->files[ret->n_files++] = (struct job_file){ret->filename, ret->code.data, ret->code.length};
	return 0;
}

static int run(struct tool_call *call, const void *bound, struct tool_result *ret, struct err *err)
{
	const struct execute_arguments *arguments = bound;
	__attribute__((cleanup(program_clear))) struct program program = {0};
	auto_json struct json_object *runners = tool_runners(call->server);
	char hash[SHA256_HEX_SIZE], id[ID_SIZE];
	int result;

	tool_hash(&tool_execute_code, bound, hash);
	if (arguments->snippet_name)
		result = take_snippet(call->server->config, arguments, runners, &program, err);
	else
		result = take_code(arguments, &program, err);
	if (result < 0 || (result = take_files(arguments, runners, &program, err)) < 0)
		return result;
	id_new(id);
	auto_free char *conversation = xasprintf("execute_code-%s", id);
	const struct job_request request = {
		.owner = call->token->owner,
		.token_id = call->token->id,
		.session_id = call->session_id,
		.conversation = conversation,
		.language = program.language,
		.code = program.code,
		.entry = program.n_files > 0 ? program.filename : NULL,
		.files = program.files,
		.n_files = program.n_files,
		.paths = true,
		.key = arguments->key,
		.key_hash = hash,
	};
	return run_result_of(call, &request, run_result_make_isolator, ret, err);
}

const struct tool tool_execute_code = {
	.name = "execute_code",
	.title = "Execute code",
	.set = "isolator",
	.scope = STORE_SCOPE_RUN,
	.description = "Executes a program in an isolated sandbox that begins empty, and returns its standard output and standard error. "
		       "Give either "
		       "language and entrypoint_code, with additional_files that it imports or reads, or snippet_name for a program that "
		       "is kept on "
		       "the server. Only what is printed is seen. There is no network, and nothing stays for the next call; files that the "
		       "program "
		       "leaves in its working directory come back with download URLs.",
	.arguments = table,
	.arguments_size = sizeof(struct execute_arguments),
	.output_schema = RUN_RESULT_SCHEMA,
	.call = run,
	.task = TOOL_TASK_OPTIONAL,
	.result = run_result_make_isolator,
};
