/* resource_capabilities.c - see resource_capabilities.h. */
#include "resource_capabilities.h"

#include <string.h>

#include "lib/base/util.h"

#define MEDIA_TYPE "text/markdown"

static const char text[] =
	"# Code execution: capabilities\n"
	"\n"
	"`run_python(code, servers, timeout)` runs one Python program in an isolated sandbox without network.\n"
	"\n"
	"- `servers=[\"name\"]` loads MCP servers; each is `mcp_<alias>`, and `mcp_servers[\"name\"]`. Call "
	"`await mcp_<alias>.<tool>(name=value)`: keyword arguments only. `await` may stand at the top of the program.\n"
	"- A call returns a dict: `content`, `structuredContent` where the tool has it, `isError`. A call that cannot "
	"be "
	"made raises `MCPError`.\n"
	"- `import mcp.runtime as runtime` lists and finds: `discovered_servers(detailed=False)`, "
	"`list_servers_sync()`, "
	"`list_tools_sync(server)`, `query_tool_docs_sync(server, tool=None, detail=\"summary\")`, "
	"`search_tool_docs_sync(query, limit=5, detail=\"summary\")`, `describe_server(name)`, "
	"`list_loaded_server_metadata()`; without `_sync`, `await` them. `detail=\"full\"` adds the input schema.\n"
	"- `from mcp.servers.<alias> import *` gives a server's tools as functions.\n"
	"- `save_tool(function)` keeps a function for every later program; other files in `/data` persist, too. "
	"Variables do not.\n"
	"- Calls in `asyncio.gather` run at once.\n"
	"- Only what is printed comes back: filter and count in the program, print the answer.\n";

static int list(struct mcp_call *call, const char *position, struct json_object *resources, struct buf *next,
		struct err *err)
{
	(void)position;
	(void)next;
	(void)err;
	if (!config_has_set(call->exchange->server->config, "bridge"))
		return 0;
	struct json_object *resource = json_object_new_object();

	json_add_string(resource, "uri", RESOURCE_CAPABILITIES_URI);
	json_add_string(resource, "name", "code-execution-capabilities");
	json_add_string(resource, "title", "Code execution: capabilities");
	json_add_string(resource, "description", "What programs of run_python can do: servers, helpers, files");
	json_add_string(resource, "mimeType", MEDIA_TYPE);
	json_add_int(resource, "size", (int64_t)strlen(text));
	json_object_array_add(resources, resource);
	return 0;
}

static int read_text(struct mcp_call *call, const char *uri, struct json_object *contents, struct err *err)
{
	if (!config_has_set(call->exchange->server->config, "bridge") || !streq(uri, RESOURCE_CAPABILITIES_URI))
		return err_set(err, ERR_NOT_FOUND, "Resource not found");
	struct json_object *content = json_object_new_object();

	json_add_string(content, "uri", uri);
	json_add_string(content, "mimeType", MEDIA_TYPE);
	json_add_string(content, "text", text);
	json_object_array_add(contents, content);
	return 0;
}

const struct resource_provider resource_capabilities = {
	.scheme = "resource://mcp-server-code-execution-mode/", .list = list, .read = read_text};
