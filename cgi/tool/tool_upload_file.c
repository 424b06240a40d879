/* tool_upload_file.c - upload_file: puts one file into a conversation; argument names and answer are those of the
 * system that it replaces.
 */
#include "cgi/http/http.h"
#include "cgi/http/files.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "tool_files.h"

#define URL_MAX (16 * 1024)

struct upload_arguments {
	const char *conversation, *filename, *key;
	struct bind_text content;
};

static const struct bind table[] = {
	TOOL_CONVERSATION_MEMBER(struct upload_arguments, conversation),
	BIND_MEMBER(struct upload_arguments, filename, "filename", BIND_STRING, .flags = BIND_REQUIRED, .min = 1,
		    .description = "Path below /data."),
	BIND_MEMBER(struct upload_arguments, content, "content", BIND_TEXT, .flags = BIND_REQUIRED,
		    .description = "Bytes in base64."),
	TOOL_KEY_MEMBER(struct upload_arguments, key),
	{0},
};

static struct json_object *result_object(struct server *server, const char *conversation, const struct job_file *stored,
					 const char *hash)
{
	struct json_object *object = json_object_new_object(), *file = json_object_new_object();
	const struct store_file named = {.name = stored->name, .name_length = strlen(stored->name)};
	auto_buf struct buf url = {0};
	char message[JAIL_NAME_MAX + 64];

	buf_init(&url, URL_MAX);
	files_place_download(server, conversation, hash, &named, &url);
	snprintf(message, sizeof(message), "File '%s' uploaded successfully (%zu bytes)", stored->name, stored->length);
	json_add_bool(object, "success", true);
	json_add_string(object, "message", message);
	json_add_string(file, "name", stored->name);
	json_add_string(file, "url", url.data);
	json_add(object, "file", file);
	return object;
}

static int upload(struct tool_call *call, const void *bound, struct tool_result *ret, struct err *err)
{
	const struct upload_arguments *arguments = bound;
	char key_hash[SHA256_HEX_SIZE];
	const struct job_request who = {
		TOOL_CALLER(call),
		.conversation = arguments->conversation,
		.key = arguments->key,
		.key_hash = key_hash,
	};
	char hash[SHA256_HEX_SIZE];
	struct store_file stored;
	struct job_engine *engine;
	struct err own = ERR_INIT;
	auto_buf struct buf content = {0}, text = {0};

	tool_hash(call, bound, key_hash);
	buf_init(&content, arguments->content.length);
	buf_init(&text, HTTP_REPLY_MAX);
	if (tool_base64(call, &arguments->content, "content", &content, &own) < 0)
		return err_member(err, "content", "%s%s", err_reason(&own),
				  tool_find(call->server, "write_file") ? "; write_file takes plain text" : "");
	const struct job_file file = {
		.name = tool_files_path(arguments->filename), .data = content.data, .length = content.length};
	int result = server_engine(call->server, &engine, err);

	if (result == 0)
		result = job_upload(engine, &who, &file, &stored, hash, err);
	if (result < 0)
		return result;
	struct json_object *object = result_object(call->server, arguments->conversation, &file, hash);

	json_print(&text, object);
	tool_answer(ret, text.data, object);
	return 0;
}

const struct tool tool_upload_file = {
	.name = "upload_file",
	.title = "Upload a file",
	.scope = STORE_SCOPE_FILES,
	.description = "As write_file, with the content in base64.",
	.arguments = table,
	.arguments_size = sizeof(struct upload_arguments),
	.output_schema = "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"success\",\"message\","
			 "\"file\"],\"properties\":{"
			 "\"success\":{\"type\":\"boolean\"},\"message\":{\"type\":\"string\"},"
			 "\"file\":{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"name\",\"url\"],"
			 "\"properties\":{"
			 "\"name\":{\"type\":\"string\"},\"url\":{\"type\":\"string\"}}}}}",
	.destructive = true, /* replaces a file of that name */
	.idempotent = true,
	.call = upload,
};
