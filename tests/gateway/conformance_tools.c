/*
 * conformance_tools.c - the fixtures' tools; see conformance.h.
 *
 * They answer by themselves (struct tool, serve): the suite asks for results that no tool of ours gives, each of which
 * shows a part of the protocol - a kind of content, a message before the answer, a connection that ends too early, a
 * list that changed.
 */
#include <poll.h>

#include "cgi/http/hub.h"
#include "cgi/mcp/mcp_stream.h"
#include "conformance.h"
#include "lib/base/util.h"

#define PAUSE_MS 50 /* between two messages of a tool that sends some */

/* A RIFF header and no samples. */
static const char wav[] = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

static struct json_object *block(const char *type)
{
	struct json_object *object = json_object_new_object();

	json_add_string(object, "type", type);
	return object;
}

static struct json_object *text_block(const char *text)
{
	struct json_object *object = block("text");

	json_add_string(object, "text", text);
	return object;
}

static struct json_object *data_block(const char *type, const char *data, const char *media_type)
{
	struct json_object *object = block(type);

	json_add_string(object, "data", data);
	json_add_string(object, "mimeType", media_type);
	return object;
}

static struct json_object *resource_block(const char *uri, const char *media_type, const char *text)
{
	struct json_object *object = block("resource"), *resource = json_object_new_object();

	json_add_string(resource, "uri", uri);
	json_add_string(resource, "mimeType", media_type);
	json_add_string(resource, "text", text);
	json_add(object, "resource", resource);
	return object;
}

/* The result with these blocks, NULL for none. */
static int give(struct mcp_call *call, struct json_object *one, struct json_object *two, struct json_object *three)
{
	struct json_object *blocks[] = {one, two, three}, *content = json_object_new_array();

	for (size_t i = 0; i < ARRAY_SIZE(blocks); i++) {
		if (blocks[i])
			json_object_array_add(content, blocks[i]);
	}
	call->result = json_object_new_object();
	json_add(call->result, "content", content);
	return 0;
}

int conformance_text(struct mcp_call *call, const char *text)
{
	return give(call, text_block(text), NULL, NULL);
}

static int simple_text(struct mcp_call *call, struct json_object *arguments)
{
	(void)arguments;
	return conformance_text(call, "This is a simple text response for testing.");
}

static int image(struct mcp_call *call, struct json_object *arguments)
{
	(void)arguments;
	return give(call, data_block("image", conformance_png, "image/png"), NULL, NULL);
}

static int audio(struct mcp_call *call, struct json_object *arguments)
{
	(void)arguments;
	return give(call, data_block("audio", wav, "audio/wav"), NULL, NULL);
}

static int embedded(struct mcp_call *call, struct json_object *arguments)
{
	(void)arguments;
	return give(call,
		    resource_block("test://embedded-resource", "text/plain", "This is an embedded resource content."),
		    NULL, NULL);
}

static int mixed(struct mcp_call *call, struct json_object *arguments)
{
	(void)arguments;
	return give(call, text_block("Multiple content types test:"), data_block("image", conformance_png, "image/png"),
		    resource_block("test://mixed-content-resource", "application/json",
				   "{\"test\":\"data\",\"value\":123}"));
}

static int logging(struct mcp_call *call, struct json_object *arguments)
{
	static const char *const texts[] = {"Tool execution started", "Tool processing data",
					    "Tool execution completed"};

	(void)arguments;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (i)
			poll(NULL, 0, PAUSE_MS);
		mcp_log(call, "info", texts[i]);
	}
	return conformance_text(call, "Tool with logging executed successfully");
}

static int progress(struct mcp_call *call, struct json_object *arguments)
{
	(void)arguments;
	call->progress = -1;
	for (int i = 0; i <= 100; i += 50) {
		if (i)
			poll(NULL, 0, PAUSE_MS);
		mcp_progress(call, i, 100, i == 100 ? "Completed" : "Working");
	}
	return conformance_text(call, "Tool with progress executed successfully");
}

static int error(struct mcp_call *call, struct json_object *arguments)
{
	(void)arguments;
	give(call, text_block("This tool intentionally returns an error for testing"), NULL, NULL);
	json_add_bool(call->result, "isError", true);
	return 0;
}

/* Ends the connection before the answer; the client comes back for it with Last-Event-ID. */
static int reconnection(struct mcp_call *call, struct json_object *arguments)
{
	(void)arguments;
	if (call->inflight && call->stream) {
		mcp_log(call, "info", "The connection ends before the answer");
		stream_end(call->stream);
		poll(NULL, 0, PAUSE_MS);
	}
	return conformance_text(call, "Reconnection test completed successfully");
}

static int any_text(struct mcp_call *call, struct json_object *arguments)
{
	(void)arguments;
	return conformance_text(call, "OK");
}

static int missing_capability(struct mcp_call *call, struct json_object *arguments)
{
	(void)arguments;
	return call->revision->modern && mcp_require(call, "sampling") < 0 ? -1
								 : conformance_text(call, "The client can sample.");
}

static int log_once(struct mcp_call *call, struct json_object *arguments)
{
	(void)arguments;
	mcp_log(call, "info", "Logged because the request asked for it");
	return conformance_text(call, "OK");
}

static int change_tools(struct mcp_call *call, struct json_object *arguments)
{
	(void)arguments;
	hub_publish(call->exchange->server->hub, NULL, HUB_TOOLS_CHANGED, NULL);
	return conformance_text(call, "OK");
}

static int change_prompts(struct mcp_call *call, struct json_object *arguments)
{
	(void)arguments;
	hub_publish(call->exchange->server->hub, NULL, HUB_PROMPTS_CHANGED, NULL);
	return conformance_text(call, "OK");
}

#define ANY "{\"type\":\"object\"}"
#define DIALECT                                                                                                        \
	"{\"$schema\":\"https://json-schema.org/draft/2020-12/"                                                        \
	"schema\",\"type\":\"object\",\"$defs\":{\"address\":{\"$anchor\":"                                            \
	"\"addressDef\",\"type\":\"object\",\"properties\":{\"street\":{\"type\":\"string\"},\"city\":{\"type\":"      \
	"\"string\"}}}},"                                                                                              \
	"\"properties\":{\"name\":{\"type\":\"string\"},\"address\":{\"$ref\":\"#/$defs/"                              \
	"address\"},\"contactMethod\":{\"type\":"                                                                      \
	"\"string\",\"enum\":[\"phone\",\"email\"]},\"phone\":{\"type\":\"string\"},\"email\":{\"type\":\"string\"}}," \
	"\"allOf\":["                                                                                                  \
	"{\"anyOf\":[{\"required\":[\"phone\"]},{\"required\":[\"email\"]}]}],\"if\":{\"properties\":{"                \
	"\"contactMethod\":{\"const\":"                                                                                \
	"\"phone\"}},\"required\":[\"contactMethod\"]},\"then\":{\"required\":[\"phone\"]},\"else\":{\"required\":["   \
	"\"email\"]},"                                                                                                 \
	"\"additionalProperties\":false}"

static const struct tool_header region[] = {{"Region", "region"}, {0}};

#define FIXTURE(name_, description_, serve_, ...)                                                                      \
	&(const struct tool)                                                                                           \
	{                                                                                                              \
		.name = name_, .title = name_, .description = "Conformance fixture: " description_,                    \
		.input_schema = ANY, .scope = ACCESS_FREE, .serve = serve_, ##__VA_ARGS__                              \
	}
#define TASK(name_, description_, task_, serve_) FIXTURE(name_, description_, serve_, .task = task_)

const struct tool *const conformance_tools[] = {
	FIXTURE("test_simple_text", "a text", simple_text),
	FIXTURE("test_image_content", "an image", image),
	FIXTURE("test_audio_content", "a sound", audio),
	FIXTURE("test_embedded_resource", "a resource", embedded),
	FIXTURE("test_multiple_content_types", "text, image and resource", mixed),
	FIXTURE("test_tool_with_logging", "three log messages", logging),
	FIXTURE("test_tool_with_progress", "three progress messages", progress),
	FIXTURE("test_error_handling", "an error", error),
	FIXTURE("test_sampling", "asks the client's model", conformance_sampling),
	FIXTURE("test_elicitation", "asks the user", conformance_elicitation),
	FIXTURE("test_elicitation_sep1034_defaults", "asks the user, with defaults", conformance_defaults),
	FIXTURE("test_elicitation_sep1330_enums", "asks the user to choose", conformance_enums),
	FIXTURE("test_reconnection", "ends the connection before the answer", reconnection),
	&(const struct tool){
		.name = "json_schema_2020_12_tool",
		.title = "json_schema_2020_12_tool",
		.description = "Conformance fixture: a schema with everything",
		.scope = ACCESS_FREE,
		.input_schema = DIALECT,
		.serve = any_text,
	},
	&(const struct tool){
		.name = "test_x_mcp_header",
		.title = "test_x_mcp_header",
		.description = "Conformance fixture: an argument that a header repeats",
		.scope = ACCESS_FREE,
		.input_schema = "{\"type\":\"object\",\"properties\":{\"region\":{\"type\":\"string\"}}}",
		.headers = region,
		.serve = any_text,
	},
	FIXTURE("test_missing_capability", "needs a client that samples", missing_capability),
	FIXTURE("test_streaming_elicitation", "asks nothing", any_text),
	FIXTURE("test_logging_tool", "a log message where it is asked for", log_once),
	FIXTURE("test_trigger_tool_change", "says that the tools changed", change_tools),
	FIXTURE("test_trigger_prompt_change", "says that the prompts changed", change_prompts),
	FIXTURE("test_input_required_result_elicitation", "asks back", conformance_input),
	FIXTURE("test_input_required_result_sampling", "asks back", conformance_input),
	FIXTURE("test_input_required_result_list_roots", "asks back", conformance_input),
	FIXTURE("test_input_required_result_request_state", "asks back", conformance_input),
	FIXTURE("test_input_required_result_multiple_inputs", "asks back", conformance_input),
	FIXTURE("test_input_required_result_multi_round", "asks back twice", conformance_input),
	FIXTURE("test_input_required_result_tampered_state", "asks back", conformance_input),
	FIXTURE("test_input_required_result_capabilities", "asks back for what the client can do", conformance_input),
	FIXTURE("greet", "a text that is there at once", conformance_greet),
	TASK("slow_compute", "takes its time", TOOL_TASK_OPTIONAL, conformance_compute),
	TASK("failing_job", "a task whose result is an error", TOOL_TASK_REQUIRED, conformance_failing),
	TASK("protocol_error_job", "a task that fails", TOOL_TASK_REQUIRED, conformance_protocol_error),
	TASK("confirm_delete", "a task that asks the user", TOOL_TASK_REQUIRED, conformance_confirm),
	TASK("multi_input", "a task that asks two things at once", TOOL_TASK_REQUIRED, conformance_multi_input),
	TASK("test_tool_with_task", "asks back, then goes on as a task", TOOL_TASK_REQUIRED, conformance_input_task),
	NULL,
};
