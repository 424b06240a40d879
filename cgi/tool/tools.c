/*
 * tools.c - the table of tools, and what they share; see tools.h.
 *
 * A tool is found by its name among those that the configuration has on. Its arguments are bound by its own table,
 * which is also the schema that clients see; `refine` adds what only the running server knows (languages, limits,
 * hosts). What a token may do beyond calling a tool at all (access.c) is asked here, because it depends on the
 * arguments.
 */
#include "tools.h"

#include "lib/base/log.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "lib/job/job.h"

/* In the order in which clients see them. list_runners takes no argument and comes first: probes call the first tool
 * with {}. */
static const struct tool *const table[] = {
	&tool_list_runners,
	&tool_run_code,
	&tool_upload_file,
	&tool_reset_session,
	&tool_execute_code,
	&tool_execute_code_live,
	&tool_execute_code_both,
	&tool_initialize_sandbox,
	&tool_stop_sandbox,
};

static bool enabled(const struct tool *tool, const struct config *config)
{
	return !tool->enabled || tool->enabled(config);
}

/* The first of the fixtures, ended by {0}; NULL: there are none. */
static const struct tool *fixtures(const struct server *server)
{
	return server->fixtures ? server->fixtures->tools : NULL;
}

const struct tool *tool_find(const struct server *server, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (enabled(table[i], server->config) && streq(table[i]->name, name))
			return table[i];
	}
	for (const struct tool *tool = fixtures(server); tool && tool->name; tool++) {
		if (streq(tool->name, name))
			return tool;
	}
	return NULL;
}

/* A schema of ours that stands as text. One that does not parse is found by the first test; the tool is then listed
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

static struct json_object *annotations(const struct tool *tool)
{
	struct json_object *object = json_object_new_object();

	json_add_string(object, "title", tool->title);
	json_add_bool(object, "readOnlyHint", tool->read_only);
	json_add_bool(object, "destructiveHint", tool->destructive);
	json_add_bool(object, "idempotentHint", tool->idempotent);
	json_add_bool(object, "openWorldHint", tool->open_world);
	return object;
}

static struct json_object *describe(struct server *server, const struct tool *tool)
{
	struct json_object *object = json_object_new_object();

	json_add_string(object, "name", tool->name);
	json_add_string(object, "title", tool->title);
	json_add_string(object, "description", tool->description);
	if (tool->input_schema)
		add_schema(object, "inputSchema", tool->input_schema);
	else
		json_add(object, "inputSchema", bind_schema(tool->arguments));
	struct json_object *output = tool_output_schema(tool);
	if (output)
		json_add(object, "outputSchema", output);
	json_add(object, "annotations", annotations(tool));
	if (tool->refine)
		tool->refine(server, object);
	for (const struct tool_header *header = tool->headers; header && header->name; header++)
		json_add_string(tool_property(object, header->argument), "x-mcp-header", header->name);
	return object;
}

struct json_object *tools_describe(struct server *server, unsigned scopes)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (enabled(table[i], server->config) && access_allows(scopes, table[i]->scope))
			json_object_array_add(list, describe(server, table[i]));
	for (const struct tool *tool = fixtures(server); tool && tool->name; tool++)
		json_object_array_add(list, describe(server, tool));
	return list;
}

void tool_add_text(struct json_object *content, const char *data, size_t length)
{
	struct json_object *block = json_object_new_object();

	json_add_string(block, "type", "text");
	json_add_bytes(block, "text", data, length);
	json_object_array_add(content, block);
}

static void refuse(const struct err *err, struct tool_call *call, struct tool_result *ret)
{
	*ret = (struct tool_result){.content = json_object_new_array(), .is_error = true};
	tool_add_text(ret->content, err->text, strlen(err->text));
	snprintf(call->outcome, sizeof(call->outcome), "%s", err_info(err->code)->name);
}

struct json_object *tool_result_object(const struct tool_result *result)
{
	struct json_object *object = json_object_new_object();

	json_add(object, "content", result->content);
	if (result->structured)
		json_add(object, "structuredContent", result->structured);
	json_add_bool(object, "isError", result->is_error);
	return object;
}

int tool_run(const struct tool *tool, struct tool_call *call, struct json_object *arguments, struct json_object **ret,
	     struct err *err)
{
	auto_free void *bound = xcalloc(1, MAX(tool->arguments_size, (size_t)1));
	auto_json struct json_object *empty = arguments ? NULL : json_object_new_object();
	struct tool_result result = {0};
	struct err own = ERR_INIT;

	call->tool = tool;
	int code = bind_parse(tool->arguments, arguments ? arguments : empty, bound, &own);

	if (code == 0)
		code = tool->call(call, bound, &result, &own);
	bind_clear(tool->arguments, bound);
	if (code < 0 && (own.code == ERR_CANCELLED || own.code == ERR_INTERNAL)) {
		if (err)
			*err = own;
		return code;
	}
	if (code < 0)
		refuse(&own, call, &result);
	else if (call->answered)
		return 0;
	*ret = tool_result_object(&result);
	return 0;
}

struct json_object *tool_runners(struct server *server)
{
	struct job_engine *engine;

	return server_engine(server, &engine, NULL) < 0 ? NULL : job_engine_runners(engine);
}

struct json_object *tool_property(struct json_object *tool, const char *name)
{
	struct json_object *schema = json_get(tool, "inputSchema", json_type_object);

	return json_get(json_get(schema, "properties", json_type_object), name, json_type_object);
}

void tool_print_names(struct buf *out, struct json_object *runner)
{
	struct json_object *aliases = json_get(runner, "aliases", json_type_array);
	const char *name = json_get_string(runner, "name");

	buf_puts(out, name ? name : "");
	for (size_t i = 0; aliases && i < json_object_array_length(aliases); i++)
		buf_printf(out, "%s%s", i ? ", " : " (also ",
			   json_object_get_string(json_object_array_get_idx(aliases, i)));
	if (aliases && json_object_array_length(aliases))
		buf_putc(out, ')');
}

int tool_network_check(const struct tool_call *call, bool asked, struct err *err)
{
	const struct store_token *token = call->token;

	/* Without an id: standard input, where the caller is the operator. */
	if (!asked || !token->id[0] || (token->scopes & (STORE_SCOPE_NETWORK | STORE_SCOPE_ADMIN)))
		return 0;
	return err_set(
		err, ERR_DENIED,
		"network: this token lacks the scope \"network\" (sallyport token add --scope run,files,network)");
}

void tool_network_describe(const struct config *config, struct buf *out)
{
	const struct bind_strings *allow = &config->network.allow;

	if (!allow->count)
		buf_puts(out, "There is no network on this server.");
	for (size_t i = 0; i < allow->count; i++)
		buf_printf(out, "%s%.*s", i ? ", " : "With network a program reaches ",
			   (int)strcspn(allow->items[i], " "), allow->items[i]);
	if (allow->count)
		buf_puts(out, " and nothing else.");
}

void tool_hash(const struct tool_call *call, const void *bound, char ret[SHA256_HEX_SIZE])
{
	auto_json struct json_object *arguments = bind_print(call->tool->arguments, bound),
				     *names = json_object_new_array();
	struct json_object *secrets = json_get(arguments, "secrets", json_type_object);
	auto_buf struct buf text = {0};

	if (secrets) {
		json_object_object_foreach(secrets, name, value) {
			(void)value;
			json_object_array_add(names, json_object_new_string(name));
		}
		json_add(arguments, "secrets", steal(&names));
	}
	buf_init(&text, SIZE_MAX);
	buf_printf(&text, "%s\n", call->tool->name);
	json_print(&text, arguments);
	sha256_hex(text.data, text.length, ret);
}
