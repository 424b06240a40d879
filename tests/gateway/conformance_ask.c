/* conformance_ask.c - fixtures that ask the client of a legacy session something; see conformance.h. */
#include "cgi/mcp/mcp_stream.h"
#include "conformance.h"
#include "lib/base/util.h"
#include "lib/store/record/store_session.h"

/* {"type":"object","properties":…,"required":[…]}, as text. */
#define FORM(properties, required) "{\"type\":\"object\",\"properties\":{" properties "},\"required\":[" required "]}"
#define TITLED(prefix)                                                                                                 \
	"{\"const\":\"" prefix "1\",\"title\":\"First\"},{\"const\":\"" prefix                                         \
	"2\",\"title\":\"Second\"},{\"const\":\"" prefix "3\",\"title\":\"Third\"}"

static struct json_object *parse(const char *text)
{
	struct json_object *value = NULL;

	json_parse(text, strlen(text), &value, NULL);
	return value;
}

/* Asks, and answers with `prefix` and what came back. */
static int ask(struct mcp_call *call, unsigned offer, const char *method, struct json_object *params,
	       const char *prefix)
{
	auto_json struct json_object *answer = NULL;
	auto_buf struct buf text = {0};
	struct err err = ERR_INIT;
	int result;

	if (!call->session || !(call->session->offers & offer)) {
		json_object_put(params);
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: the client does not offer %s", method);
	}
	result = mcp_ask(call, method, params, &answer, &err);
	if (result < 0 && err.code == ERR_CANCELLED)
		call->silent = true;
	if (result < 0)
		return mcp_fail(call, RPC_INTERNAL, "Internal error: %s", err.text);
	buf_init(&text, HTTP_REPLY_MAX);
	buf_puts(&text, prefix);
	json_print(&text, answer);
	return conformance_text(call, text.data);
}

int conformance_sampling(struct mcp_call *call, struct json_object *arguments)
{
	struct json_object *params =
		parse("{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\"}}],\"maxTokens\":100}");
	struct json_object *message = json_object_array_get_idx(json_get(params, "messages", json_type_array), 0);
	const char *prompt = json_get_string(arguments, "prompt");

	json_add_string(json_get(message, "content", json_type_object), "text", prompt ? prompt : "");
	return ask(call, STORE_SAMPLING, "sampling/createMessage", params, "LLM response: ");
}

static int elicit(struct mcp_call *call, const char *message, const char *schema)
{
	struct json_object *params = json_object_new_object();

	json_add_string(params, "message", message);
	json_add(params, "requestedSchema", parse(schema));
	return ask(call, STORE_ELICITATION, "elicitation/create", params, "User response: ");
}

int conformance_elicitation(struct mcp_call *call, struct json_object *arguments)
{
	const char *message = json_get_string(arguments, "message");

	return elicit(call, message ? message : "Who are you?",
		      FORM("\"username\":{\"type\":\"string\",\"description\":\"User's response\"},"
			   "\"email\":{\"type\":\"string\",\"description\":\"User's email address\"}",
			   "\"username\",\"email\""));
}

int conformance_defaults(struct mcp_call *call, struct json_object *arguments)
{
	(void)arguments;
	return elicit(call, "Please review the defaults",
		      FORM("\"name\":{\"type\":\"string\",\"default\":\"John "
			   "Doe\"},\"age\":{\"type\":\"integer\",\"default\":30},"
			   "\"score\":{\"type\":\"number\",\"default\":95.5},\"status\":{\"type\":\"string\","
			   "\"enum\":[\"active\",\"inactive\",\"pending\"],\"default\":\"active\"},"
			   "\"verified\":{\"type\":\"boolean\",\"default\":true}",
			   ""));
}

int conformance_enums(struct mcp_call *call, struct json_object *arguments)
{
	(void)arguments;
	return elicit(call, "Please choose",
		      FORM("\"untitledSingle\":{\"type\":\"string\",\"enum\":[\"option1\",\"option2\",\"option3\"]},"
			   "\"titledSingle\":{\"type\":\"string\",\"oneOf\":[" TITLED("value") "]},"
			   "\"legacyEnum\":{\"type\":\"string\",\"enum\":[\"opt1\",\"opt2\",\"opt3\"],"
			   "\"enumNames\":[\"First\",\"Second\",\"Third\"]},"
			   "\"untitledMulti\":{\"type\":\"array\",\"items\":{\"type\":\"string\","
			   "\"enum\":[\"option1\",\"option2\",\"option3\"]}},"
			   "\"titledMulti\":{\"type\":\"array\",\"items\":{\"anyOf\":[" TITLED("value") "]}}",
			   ""));
}
