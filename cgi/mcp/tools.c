/*
 * tools.c - finding, listing and calling tools; see tools.h.
 *
 * A tool is found by its name among those that the configuration has on. Its arguments are bound by its own table,
 * which is also the schema that clients see; `refine` adds what only the running server knows (languages, limits,
 * hosts).
 */
#include "tools.h"

#include "lib/base/log.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "lib/job/job.h"

static bool enabled(const struct tool *tool, const struct config *config)
{
	return !tool->enabled || tool->enabled(config);
}

const struct tool *tool_find(const struct server *server, const char *name)
{
	for (const struct server_tables *tables = &server->tables; tables; tables = tables->next) {
		for (const struct tool *const *tool = tables->tools; *tool; tool++) {
			if (enabled(*tool, server->config) && streq((*tool)->name, name))
				return *tool;
		}
	}
	return server->tables.provider ? server->tables.provider->find(server, name) : NULL;
}

/* A schema of ours, as text. The first test finds one that does not parse; the tool is then listed
 * without it. */
static void add_schema(struct json_object *object, const char *key, const char *text)
{
	struct json_object *schema = NULL;
	struct err err = ERR_INIT;

	if (text && json_parse(text, strlen(text), &schema, &err) < 0)
		log_event(LOG_ERROR, "schema of a tool", "member", key, "error", err.text, NULL);
	else if (text)
		json_add(object, key, schema);
}

struct json_object *tool_output_schema(const struct tool *tool)
{
	auto_json struct json_object *object = json_object_new_object();

	if (tool->output)
		return bind_schema_output(tool->output, JAIL_ANSWER);
	add_schema(object, "schema", tool->output_schema);
	return json_object_get(json_get(object, "schema", json_type_object));
}

unsigned tool_results(const struct store_token *token)
{
	const char *results = token ? token->results : "";

	return streq(results, "both")         ? TOOL_RESULTS_META | TOOL_RESULTS_STRUCTURED
	       : streq(results, "structured") ? TOOL_RESULTS_STRUCTURED
	       : streq(results, "content")    ? TOOL_RESULTS_META
					      : 0;
}

/* The tool's arguments with the bounds of this server; the caller's. */
static struct bind *arguments_of(const struct server *server, const struct tool *tool)
{
	size_t count = 0;

	while (tool->arguments && tool->arguments[count].name)
		count++;
	struct bind *table = xcalloc(count + 1, sizeof(*table));

	if (tool->arguments)
		memcpy(table, tool->arguments, count * sizeof(*table));
	for (struct bind *row = table; tool->bound && row->name; row++)
		tool->bound(server->config, row);
	return table;
}

void tool_note_ignored(const struct tool_call *call, struct buf *text)
{
	if (!*call->ignored.names)
		return;
	buf_printf(text, TOOL_MARK " ignored: %s", call->ignored.names);
	if (call->ignored.more > 0)
		buf_printf(text, " and %zu more", call->ignored.more);
	buf_putc(text, '\n');
}

static void append_ignored(const struct tool_call *call, struct tool_result *result)
{
	auto_buf struct buf text = {0};

	if (result->notes_ignored || !*call->ignored.names)
		return;
	buf_init(&text, 2 * BIND_IGNORED_MAX);
	tool_note_ignored(call, &text);
	tool_add_text(result->content, text.data, text.length);
}

#define CONVERSATION "conversationId"

/* The arguments with that conversation, where the tool has one; the caller's. */
static struct json_object *with_conversation(const struct config *config, const struct bind *table,
					     struct json_object *arguments)
{
	struct json_object *copy;

	while (table->name && !streq(table->name, CONVERSATION))
		table++;
	if (!config->workspace_folder.path || !table->name)
		return json_object_get(arguments);
	copy = json_object_new_object();
	json_object_object_foreach(arguments, name, value)
	{
		json_add(copy, name, json_object_get(value));
	}
	json_add_string(copy, CONVERSATION, config->workspace_folder.conversation);
	return copy;
}

/* Claude Code puts a longer answer into a file and shows its beginning, unless a tool says that it may be so long. */
static struct json_object *hints(const struct config *config, const struct tool *tool)
{
	struct json_object *meta = json_object_new_object();

	json_add_int(meta, "anthropic/maxResultSizeChars",
		     MAX(config->limits.answer_kb, (int64_t)STORE_ANSWER_MOST) * 1000);
	if (tool->app) {
		struct json_object *ui = json_object_new_object();

		json_add_string(ui, "resourceUri", tool->app);
		json_add(meta, "ui", ui);
	}
	return meta;
}

static struct json_object *describe(struct server *server, const struct tool *tool, unsigned results)
{
	struct json_object *object = json_object_new_object(), *annotations = json_object_new_object();
	auto_free struct bind *arguments = arguments_of(server, tool);
	struct bind *to = arguments;

	for (const struct bind *from = arguments; from->name; from++) {
		/* In a workspace there is one conversation, which clients need not name. */
		if (!server->config->workspace_folder.path || !streq(from->name, CONVERSATION))
			*to++ = *from;
	}
	*to = (struct bind){0};
	json_add_string(object, "name", tool->name);
	json_add_string(object, "title", tool->title);
	json_add_string(object, "description", tool->description);
	if (tool->input_schema)
		add_schema(object, "inputSchema", tool->input_schema);
	else
		json_add(object, "inputSchema", bind_schema(arguments));
	struct json_object *output = results & TOOL_RESULTS_STRUCTURED || tool->serve ? tool_output_schema(tool) : NULL;
	if (output)
		json_add(object, "outputSchema", output);
	json_add_string(annotations, "title", tool->title);
	json_add_bool(annotations, "readOnlyHint", tool->read_only);
	json_add_bool(annotations, "destructiveHint", tool->destructive);
	json_add_bool(annotations, "idempotentHint", tool->idempotent);
	json_add_bool(annotations, "openWorldHint", tool->open_world);
	json_add(object, "annotations", annotations);
	json_add(object, "_meta", hints(server->config, tool));
	if (tool->refine)
		tool->refine(server, object);
	for (const struct tool_header *header = tool->headers; header && header->name; header++)
		json_add_string(tool_property(object, header->argument), "x-mcp-header", header->name);
	return object;
}

struct json_object *tools_describe(struct server *server, unsigned scopes, unsigned results)
{
	struct json_object *list = json_object_new_array();

	for (const struct server_tables *tables = &server->tables; tables; tables = tables->next) {
		for (const struct tool *const *tool = tables->tools; *tool; tool++) {
			if (enabled(*tool, server->config) && access_allows(scopes, (*tool)->scope))
				json_object_array_add(list, describe(server, *tool, results));
		}
	}
	return list;
}

void tool_add_text(struct json_object *content, const char *data, size_t length)
{
	struct json_object *block = json_object_new_object();

	json_add_string(block, "type", "text");
	json_add_bytes(block, "text", data, length);
	json_object_array_add(content, block);
}

void tool_answer(struct tool_result *ret, const char *text, struct json_object *structured)
{
	*ret = (struct tool_result){.content = json_object_new_array(), .structured = structured};
	tool_add_text(ret->content, text, strlen(text));
}

/* A copy without nulls, which SDKs refuse in _meta, and without what the text has. */
static struct json_object *sparse(struct json_object *value)
{
	struct json_object *copy;

	if (json_object_is_type(value, json_type_array)) {
		copy = json_object_new_array();
		for (size_t i = 0; i < json_object_array_length(value); i++)
			json_object_array_add(copy, sparse(json_object_array_get_idx(value, i)));
		return copy;
	}
	if (!json_object_is_type(value, json_type_object))
		return json_object_get(value);
	copy = json_object_new_object();
	json_object_object_foreach(value, name, member)
	{
		if (member)
			json_add(copy, name, sparse(member));
	}
	return copy;
}

static struct json_object *details_of(struct json_object *structured)
{
	static const char *const shown[] = {"stdout", "stderr"};
	struct json_object *details = sparse(structured), *meta = json_object_new_object();

	for (size_t i = 0; i < ARRAY_SIZE(shown); i++)
		json_object_object_del(details, shown[i]);
	json_add(meta, TOOL_RESULTS_META_NAME, details);
	return meta;
}

struct json_object *tool_result_object(const struct tool_result *result, unsigned results)
{
	struct json_object *object = json_object_new_object();

	json_add(object, "content", result->content);
	if (result->form)
		results &= TOOL_RESULTS_META;
	if (result->structured && results & TOOL_RESULTS_META)
		json_add(object, "_meta", details_of(result->structured));
	if (result->structured && results & TOOL_RESULTS_STRUCTURED)
		json_add(object, "structuredContent", json_object_get(result->structured));
	else if (result->form)
		json_add(object, "structuredContent", result->form);
	json_object_put(result->structured);
	json_add_bool(object, "isError", result->is_error);
	return object;
}

/* Binds the arguments by the tool's table, and calls it. *ret_given holds the texts that the struct points to. */
static int bind_and_call(const struct tool *tool, struct tool_call *call, struct json_object **ret_given,
			 struct tool_result *ret, struct err *err)
{
	auto_free void *bound = xcalloc(1, MAX(tool->arguments_size, (size_t)1));
	auto_free struct bind *table = arguments_of(call->server, tool);
	struct json_object *meant = NULL, *given = with_conversation(call->server->config, table, *ret_given);
	int result = 0;

	json_object_put(*ret_given);
	*ret_given = given;
	if (tool->pass)
		return tool->pass(call, given, err);
	if (!call->server->config->tools.strict &&
	    (result = bind_as_meant(table, given, &meant, &call->ignored, err)) == 0) {
		json_object_put(given);
		*ret_given = meant;
	}
	if (tool->defaults)
		memcpy(bound, tool->defaults, tool->arguments_size);
	if (result == 0)
		result = bind_parse_asked(table, *ret_given, bound, err);
	if (result == 0)
		result = tool->call(call, bound, ret, err);
	bind_clear(table, bound);
	return result;
}

int tool_run(const struct tool *tool, struct tool_call *call, struct json_object *arguments, struct json_object **ret,
	     struct err *err)
{
	auto_json struct json_object *given = arguments ? json_object_get(arguments) : json_object_new_object();
	struct tool_result result = {0};
	struct err own = ERR_INIT;

	call->tool = tool;
	int code = bind_and_call(tool, call, &given, &result, &own);

	if (code < 0 && (own.code == ERR_CANCELLED || own.code == ERR_INTERNAL)) {
		if (err)
			*err = own;
		return code;
	}
	if (code < 0) {
		result = (struct tool_result){.content = json_object_new_array(), .is_error = true};
		if (tool->refused)
			tool->refused(call->server->config, arguments, &own, &result);
		else
			tool_add_text(result.content, own.text, strlen(own.text));
		snprintf(call->outcome, sizeof(call->outcome), "%s", err_info(own.code)->name);
	} else if (call->answered) {
		return 0;
	} else {
		if (!call->outcome[0])
			snprintf(call->outcome, sizeof(call->outcome), "OK");
		append_ignored(call, &result);
	}
	*ret = tool_result_object(&result, tool_results(call->token));
	return 0;
}

struct json_object *tool_property(struct json_object *tool, const char *name)
{
	struct json_object *schema = json_get(tool, "inputSchema", json_type_object);

	return json_get(json_get(schema, "properties", json_type_object), name, json_type_object);
}
