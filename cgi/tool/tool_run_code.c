/*
 * tool_run_code.c - run_code: a program in, its output and files out.
 *
 * The argument table becomes a job request; the job engine checks it further (names, caps, language), queues, runs and
 * records. This thread only waits. In the modern era a client that leaves cancels its run.
 */
#include "lib/base/text.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "run_answer.h"
#include "run_result.h"
#include "tool_common.h"

struct run_file {
	const char *filename;
	struct bind_text content, content_base64;
};
struct run_arguments {
	const char *conversation, *language, *key;
	struct bind_text code, stdin_text;
	bool network, session;
	struct bind_map environment, secrets;
	struct bind_strings args;
	struct bind_objects files;
#define ASKED_LIMIT(argument, ...) int64_t argument;
#include "lib/base/limits.def"
};

static const struct bind file_table[] = {
	{.name = "filename",
	 .type = BIND_STRING,
	 .offset = offsetof(struct run_file, filename),
	 .flags = BIND_REQUIRED,
	 .min = 1,
	 .description = "Name in /data: one path segment, UTF-8, at most 255 bytes."},
	{.name = "content",
	 .type = BIND_TEXT,
	 .offset = offsetof(struct run_file, content),
	 .description = "The content as UTF-8 text."},
	{.name = "content_base64",
	 .type = BIND_TEXT,
	 .offset = offsetof(struct run_file, content_base64),
	 .description = "The content in base64 (instead of content)."},
	{0},
};
static const struct bind table[] = {
	{.name = "conversationId",
	 .type = BIND_STRING,
	 .offset = offsetof(struct run_arguments, conversation),
	 .flags = BIND_REQUIRED,
	 .min = 1,
	 .max = STORE_CONVERSATION_MAX,
	 .description = "Names the conversation whose files the program sees. Use the same value in every call of one "
			"conversation."},
	{.name = "language",
	 .type = BIND_STRING,
	 .offset = offsetof(struct run_arguments, language),
	 .flags = BIND_REQUIRED,
	 .min = 1,
	 .description = "Programming language; list_runners lists them."},
	{.name = "code",
	 .type = BIND_TEXT,
	 .offset = offsetof(struct run_arguments, code),
	 .flags = BIND_REQUIRED,
	 .min = 1,
	 .description = "The whole source text of the program. Print what you want to see."},
	{.name = "network",
	 .type = BIND_BOOL,
	 .offset = offsetof(struct run_arguments, network),
	 .description = "Ask for network access. Default: false. Connections to hosts that the server does not "
			"list are "
			 "refused and named in the answer."},
	{.name = "session",
	 .type = BIND_BOOL,
	 .offset = offsetof(struct run_arguments, session),
	 .description = "Keep the sandbox open for the next call with session true in this conversation and language: "
			 "processes and /tmp persist, and, for languages that support it, the interpreter with its "
			 "variables and imports. Default: false. reset_session ends it."},
	{.name = "environment",
	 .type = BIND_STRING_MAP,
	 .offset = offsetof(struct run_arguments, environment),
	 .max = RUN_VARIABLES_MAX,
	 .description =
		 "Environment variables for the program. They are recorded: put passwords and keys into secrets."},
	{.name = "secrets",
	 .type = BIND_STRING_MAP,
	 .offset = offsetof(struct run_arguments, secrets),
	 .max = RUN_VARIABLES_MAX,
	 .description = "Environment variables whose values are never recorded: in output and in text files that the "
			"program makes they are replaced by ***. At least 4 bytes each."},
	{.name = "stdin",
	 .type = BIND_TEXT,
	 .offset = offsetof(struct run_arguments, stdin_text),
	 .description = "Text for the program's standard input. Default: empty."},
	{.name = "args",
	 .type = BIND_STRINGS,
	 .offset = offsetof(struct run_arguments, args),
	 .max = RUN_ARGS_MAX,
	 .description = "Command line arguments for the program."},
	{.name = "files",
	 .type = BIND_OBJECTS,
	 .offset = offsetof(struct run_arguments, files),
	 .max = JOB_FILES_MAX,
	 .table = file_table,
	 .size = sizeof(struct run_file),
	 .description = "Files to put into /data before the run; they stay in the conversation."},
#define ASKED_LIMIT(argument, field, member, unit, most, sentence)                                                     \
	{.name = #argument,                                                                                            \
	 .type = BIND_INT,                                                                                             \
	 .offset = offsetof(struct run_arguments, argument),                                                           \
	 .min = 1,                                                                                                     \
	 .max = most, /* the server's own cap is lower: see refine */                                                  \
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

static int decode_file(const struct run_file *file, size_t index, struct buf *decoded, struct job_file *ret,
		       struct err *err)
{
	char member[ERR_MEMBER_SIZE];
	struct err own = ERR_INIT;

	*ret = (struct job_file){.name = file->filename};
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
	if (base64_decode(file->content_base64.data, file->content_base64.length, decoded, &own) < 0)
		return err_member(err, member, "%s", own.text);
	ret->data = decoded->data;
	ret->length = decoded->length;
	return 0;
}

static int decode_files(const struct bind_objects *objects, struct run_files *ret, struct err *err)
{
	const struct run_file *files = objects->items;

	ret->files = xcalloc(objects->count + 1, sizeof(*ret->files));
	ret->decoded = xcalloc(objects->count + 1, sizeof(*ret->decoded));
	for (size_t i = 0; i < objects->count; i++) {
		buf_init(&ret->decoded[i], files[i].content_base64.length);
		ret->count++;
		int result = decode_file(&files[i], i, &ret->decoded[i], &ret->files[i], err);

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
	int result = tool_network_check(call, arguments->network, err);

	if (result == 0)
		result = decode_files(&arguments->files, &files, err);

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
#define ASKED_LIMIT(argument, ...) .argument = arguments->argument,
#include "lib/base/limits.def"
		.network = arguments->network,
		.live = arguments->session,
		.key = arguments->key,
		.key_hash = hash,
	};
	return run_result_of(call, &request, run_result_make, ret, err);
}

static void set_int(struct json_object *tool, const char *property, const char *key, int64_t value)
{
	struct json_object *schema = tool_property(tool, property);

	if (schema)
		json_add_int(schema, key, value);
}

/* "- python (also py): Python 3.11.2; numpy 1.24.2, …" */
static void describe_runner(struct json_object *runner, struct json_object *names, struct buf *text)
{
	struct json_object *libraries = json_get(runner, "libraries", json_type_array);
	struct json_object *aliases = json_get(runner, "aliases", json_type_array);
	const char *version = json_get_string(runner, "version"), *name = json_get_string(runner, "name");

	if (!name || !json_object_get_boolean(json_get(runner, "available", json_type_boolean)))
		return;
	json_object_array_add(names, json_object_new_string(name));
	for (size_t i = 0; aliases && i < json_object_array_length(aliases); i++)
		json_object_array_add(names, json_object_get(json_object_array_get_idx(aliases, i)));
	buf_puts(text, "\n- ");
	tool_print_names(text, runner);
	if (version && *version)
		buf_printf(text, ": %s", version);
	for (size_t i = 0; libraries && i < json_object_array_length(libraries); i++) {
		struct json_object *library = json_object_array_get_idx(libraries, i);
		const char *library_name = json_get_string(library, "name"),
			   *library_version = json_get_string(library, "version");

		buf_printf(text, "%s%s%s%s", i ? ", " : "; libraries: ", library_name ? library_name : "?",
			   library_version ? " " : "", library_version ? library_version : "");
	}
}

#define DESCRIPTION_MAX (64 * 1024)

static void refine(struct server *server, struct json_object *tool)
{
	auto_json struct json_object *runners = tool_runners(server);
	const struct config_limits *limits = &server->config->limits;
	struct json_object *names = json_object_new_array(), *language = tool_property(tool, "language");
	auto_buf struct buf text = {0};

	auto_buf struct buf network = {0};

	buf_init(&network, DESCRIPTION_MAX);
	buf_puts(&network, "Ask for network access. Default false. ");
	tool_network_describe(server->config, &network);
	json_add_string(tool_property(tool, "network"), "description", network.data);
#define ASKED_LIMIT(argument, field, member, ...)                                                                      \
	set_int(tool, #argument, "default", limits->member);                                                           \
	set_int(tool, #argument, "maximum", limits->member##_max);
#include "lib/base/limits.def"
	buf_init(&text, DESCRIPTION_MAX);
	buf_puts(&text, json_get_string(tool, "description"));
	buf_puts(&text, "\nLanguages:");
	for (size_t i = 0; runners && i < json_object_array_length(runners); i++)
		describe_runner(json_object_array_get_idx(runners, i), names, &text);
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
		"Runs a program in an isolated sandbox. Returns its output, how it ended, and the files that it "
		"made or "
		"changed.\n"
		"- Every call starts a new process: variables and imports do not persist, unless session is true. "
		"Files "
		"persist: the working directory /data belongs to the conversation, and its files are there again "
		"in the "
		"next call with the same conversationId. Read files of upload_file by their name, for example "
		"open('data.csv').\n"
		"- Only printed output is returned: end with print(…) or the like. An expression alone shows nothing.\n"
		"- Save charts and results as files in /data, for example plt.savefig('chart.png'); there is no "
		"display. PNG, JPEG, GIF and WebP files are returned as images, and every file with a download URL.\n"
		"- To show a file to the user, use its URL from the result in a markdown link or image: "
		"[report.csv](URL), ![chart](URL). A program can make the same URLs itself: the environment variable "
		"FILE_BASE_URL holds the address of /data, so a file's URL is FILE_BASE_URL + '/' + its name. Never "
		"invent an address.\n"
		"- There is no network unless network is true and the server allows it. Nothing can be installed at "
		"run time: use the libraries listed below.\n"
		"- If a program fails, is too slow or uses too much memory, the result has isError and a verdict: read "
		"the message and stderr, repair the program, call again.",
	.arguments = table,
	.arguments_size = sizeof(struct run_arguments),
	.output = run_answer_table,
	.destructive = true, /* a program may overwrite and remove the conversation's files */
	.refine = refine,
	.call = run,
	.task = TOOL_TASK_OPTIONAL,
	.result = run_result_make,
};
