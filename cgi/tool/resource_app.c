/* resource_app.c - see resource_app.h. */
#include "resource_app.h"

#include "lib/base/embed.h"
#include "lib/base/util.h"

EMBED(app_run, "cgi/tool/app/run.html");

/* Found by the tools that name it, so that clients which render no apps do not see it. */
static int list(struct mcp_call *call, const char *position, struct json_object *resources, struct buf *next,
		struct err *err)
{
	(void)call;
	(void)position;
	(void)resources;
	(void)next;
	(void)err;
	return 0;
}

static int read_page(struct mcp_call *call, const char *uri, struct json_object *contents, struct err *err)
{
	(void)call;
	if (!streq(uri, RESOURCE_APP_RUN))
		return err_set(err, ERR_NOT_FOUND, "no such resource");
	struct json_object *content = json_object_new_object(), *meta = json_object_new_object(),
			   *ui = json_object_new_object();

	json_add(ui, "csp", json_object_new_object()); /* nothing is loaded from anywhere */
	json_add_bool(ui, "prefersBorder", true);
	json_add(meta, "ui", ui);
	json_add_string(content, "uri", uri);
	json_add_string(content, "mimeType", MCP_APP_TYPE);
	json_add(content, "text", json_object_new_string(app_run));
	json_add(content, "_meta", meta);
	json_object_array_add(contents, content);
	return 0;
}

const struct resource_provider resource_app = {.scheme = "ui://sallyport/", .list = list, .read = read_page};
