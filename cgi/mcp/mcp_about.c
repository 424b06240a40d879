/* mcp_about.c - see mcp_about.h. */
#include "mcp_about.h"

#include "lib/base/util.h"
#include "lib/base/version.h"
#include "mcp_tasks.h"
#include "skills.h"

#define INSTRUCTIONS_MAX (16 * 1024)

void mcp_add_instructions(struct server *server, struct json_object *result)
{
	const struct config *config = server->config;
	auto_buf struct buf text = {0};

	buf_init(&text, INSTRUCTIONS_MAX);
	if (config->workspace_folder.path)
		buf_printf(&text,
			   "Sallyport runs code in an isolated sandbox, on the files of the user's folder %s. Programs "
			   "see that folder as /data; files that they make, change or remove there are made, changed "
			   "or removed in it, and addresses in results are paths there. restore_files takes a call "
			   "back. .git and what .sallyportignore names are left alone",
			   config->workspace_folder.path);
	else
		buf_printf(&text,
			   "Sallyport runs code in an isolated sandbox and keeps the files of a conversation between "
			   "calls. Choose one conversationId for a conversation and use it in every call. Provide "
			   "input with upload_file (or the files argument), run programs with run_code: they work in "
			   "/data, and what they write there stays for the next call%s",
			   *config->public_base_url ? " and can be downloaded from the URLs in the result" : "");
	buf_puts(&text, ". list_runners lists the languages and libraries that this server has.");
	json_add_string(result, "instructions", text.data);
}

struct json_object *mcp_server_info(void)
{
	struct json_object *info = json_object_new_object();

	json_add_string(info, "name", "sallyport");
	json_add_string(info, "title", "Sallyport code sandbox");
	json_add_string(info, "version", SALLYPORT_VERSION);
	return info;
}

/* listChanged and subscribe are promises of notifications, which need streams, and logging is one of messages: lists of
 * tools change where they are other servers', lists of prompts are only the fixtures' to change, and so are messages in
 * the modern era, where they are deprecated. */
struct json_object *mcp_capabilities(const struct http_exchange *exchange, const struct mcp_revision *revision)
{
	struct json_object *capabilities = json_object_new_object();
	struct json_object *tools = json_object_new_object(), *resources = json_object_new_object(),
			   *prompts = json_object_new_object();

	json_add(capabilities, "tools", tools);
	json_add(capabilities, "resources", resources);
	json_add(capabilities, "prompts", prompts);
	json_add(capabilities, "completions", json_object_new_object());
	mcp_task_capabilities(exchange->server, revision, capabilities);
	mcp_skill_capabilities(capabilities);
	if (stream_offered(exchange->request)) {
		json_add_bool(resources, "listChanged", true);
		json_add_bool(resources, "subscribe", true);
		if (revision->logging || exchange->server->fixtures)
			json_add(capabilities, "logging", json_object_new_object());
	}
	if (stream_offered(exchange->request) && exchange->server->tables.provider)
		json_add_bool(tools, "listChanged", true);
	if (!exchange->server->fixtures)
		return capabilities;
	json_add_bool(tools, "listChanged", true);
	json_add_bool(prompts, "listChanged", true);
	return capabilities;
}
