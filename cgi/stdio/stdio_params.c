/* stdio_params.c - see stdio_params.h. */
#include "stdio_params.h"

#include <stdlib.h>

#include "cgi/mcp/mcp.h"
#include "lib/base/text.h"
#include "lib/base/util.h"
#include "lib/store/db/crypto.h"

static void add(char *params[STDIO_PARAMS_MAX], const char *name, const char *value)
{
	size_t i = 0;

	while (params[i])
		i++;
	params[i] = xasprintf("%s=%s", name, value);
}

/* The member that Mcp-Name repeats, if the method has one. */
static const char *name_of(const char *method, struct json_object *params)
{
	if (str_starts(method, "tasks/"))
		return json_get_string(params, "taskId");
	return json_get_string(params, str_starts(method, "resources/") ? "uri" : "name");
}

void stdio_params_fill(char *ret[STDIO_PARAMS_MAX], struct json_object *document, const char *session)
{
	struct json_object *params = json_get(document, "params", json_type_object);
	const char *version = json_get_string(json_get(params, "_meta", json_type_object), MCP_META_VERSION);
	const char *method = json_get_string(document, "method"), *name = method ? name_of(method, params) : NULL;
	auto_buf struct buf encoded = {0};

	add(ret, "REQUEST_METHOD", "POST");
	add(ret, "CONTENT_TYPE", "application/json");
	if (*session)
		add(ret, "HTTP_MCP_SESSION_ID", session);
	if (!version || !method)
		return;
	add(ret, "HTTP_MCP_PROTOCOL_VERSION", version);
	add(ret, "HTTP_MCP_METHOD", method);
	if (!name)
		return;
	buf_init(&encoded, 2 * strlen(name) + 32);
	buf_puts(&encoded, "=?base64?");
	base64_encode(&encoded, name, strlen(name));
	buf_puts(&encoded, "?=");
	add(ret, "HTTP_MCP_NAME", encoded.data);
}

void stdio_params_clear(char *params[STDIO_PARAMS_MAX])
{
	for (size_t i = 0; params[i]; i++)
		free(params[i]);
}
