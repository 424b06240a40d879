/*
 * tool_run_python.c - run_python, as mcp-server-code-execution-mode has it: the set "bridge".
 *
 * A Python program that finds the tools of the servers that it names as mcp_SERVER.TOOL, and mcp.runtime. It runs as
 * run_code's do; what it leaves in /data, save_tool's file too, is the owner's conversation
 * BRIDGE_PYTHON_CONVERSATION. The answer has that system's members and texts (run_python_answer.h).
 */
#include <string.h>

#include "lib/base/util.h"
#include "lib/bridge/bridge_tools.h"
#include "lib/job/job.h"
#include "lib/upstream/upstream.h"
#include "run_python_answer.h"
#include "run_result.h"

#define TIMEOUT_DEFAULT 30
#define TIMEOUT_MAX     120 /* that system's own; the configuration's cap may be lower */

struct run_python_arguments {
	struct bind_text code;
	struct bind_strings servers;
	int64_t timeout;
	const char *key;
};
static const struct bind table[] = {
	BIND_MEMBER(struct run_python_arguments, code, "code", BIND_TEXT, .flags = BIND_REQUIRED, .min = 1,
		    .description = "Python code to execute. Tools of MCP servers: "
				   "result = await mcp_SERVER.TOOL(name=value); print(result)."),
	BIND_MEMBER(struct run_python_arguments, servers, "servers", BIND_STRINGS, .max = RUN_SERVERS_MAX,
		    .description = "MCP servers whose tools the code calls."),
	BIND_MEMBER(struct run_python_arguments, timeout, "timeout", BIND_INT, .min = 1, .max = TIMEOUT_MAX,
		    .description = "Execution timeout in seconds. Default: 30."),
	TOOL_KEY_MEMBER(struct run_python_arguments, key),
	{0},
};

static bool enabled(const struct config *config)
{
	return config_has_set(config, "bridge");
}

static void set_bound(const struct config *config, struct bind *row)
{
	if (streq(row->name, "timeout"))
		row->max = MIN(row->max, config->limits.wall_seconds_max);
}

/* That system's sentence, and the nearest name behind it. */
static int check_servers(const struct tool_call *call, const struct bind_strings *servers, struct err *err)
{
	const struct upstream_server *found;
	struct upstream *upstream = NULL;
	struct err own = ERR_INIT;
	int result = servers->count > 0 ? tool_upstream(call->server, &upstream, err) : 0;

	for (size_t i = 0; i < servers->count && result == 0; i++) {
		const char *name = servers->items[i];
		int there = upstream ? upstream_find(upstream, name, &found, &own) : -ERR_NOT_FOUND;

		if (there == -ERR_NOT_FOUND) {
			const char *nearest = upstream ? strstr(own.text, ", did you mean") : NULL;

			result = err_set(err, ERR_NOT_FOUND, "Unknown MCP server: %.64s%s", name,
					 nearest ? nearest : "");
		}
	}
	return result;
}

static int run(struct tool_call *call, const void *bound, struct tool_result *ret, struct err *err)
{
	const struct run_python_arguments *arguments = bound;
	auto_job_tools struct job_tools *tools = NULL;
	char hash[SHA256_HEX_SIZE];
	int result;

	tool_hash(call, bound, hash);
	if ((result = run_result_again(call, hash, run_result_make_bridge, ret, err)) != 0)
		return MIN(result, 0);
	if (strspn(arguments->code.data, " \t\r\n\v\f") == arguments->code.length)
		return err_member(err, "code", "is blank");
	if ((result = check_servers(call, &arguments->servers, err)) < 0 ||
	    (result = tool_servers_python(call, &arguments->servers, &tools, err)) < 0)
		return result;
	const struct job_request request = {
		TOOL_CALLER(call),
		.conversation = BRIDGE_PYTHON_CONVERSATION,
		.language = "python",
		.code = arguments->code,
		.timeout_seconds = arguments->timeout,
		.tools = tools,
		.key = arguments->key,
		.key_hash = hash,
	};
	return run_result_of(call, &request, run_result_make_bridge, ret, err);
}

static void refine(struct server *server, struct json_object *tool)
{
	struct json_object *names = tool_servers_names(server), *servers = tool_property(tool, "servers");
	struct json_object *items = json_get(servers, "items", json_type_object);

	if (names && items && json_object_array_length(names) > 0)
		json_add(items, "enum", names);
	else
		json_object_put(names);
}

const struct tool tool_run_python = {
	.name = "run_python",
	.title = "Run Python",
	.enabled = enabled,
	.scope = STORE_SCOPE_RUN,
	.description =
		"Executes Python code in an isolated sandbox. To call tools of MCP servers, name the servers and write "
		"result = await mcp_SERVER.TOOL(name=value); print(result). A result is a dict with content, "
		"structuredContent and isError.\n"
		"- mcp.runtime finds tools: discovered_servers(), search_tool_docs(words), query_tool_docs(server).\n"
		"- save_tool(function) keeps a function for later calls; files in /data persist, variables do not.\n"
		"- Only what is printed is returned. There is no network.",
	.arguments = table,
	.arguments_size = sizeof(struct run_python_arguments),
	.defaults = &(const struct run_python_arguments){.timeout = TIMEOUT_DEFAULT},
	.destructive = true,
	.bound = set_bound,
	.refine = refine,
	.call = run,
	.refused = run_python_refused,
	.task = TOOL_TASK_OPTIONAL,
	.result = run_result_make_bridge,
};
