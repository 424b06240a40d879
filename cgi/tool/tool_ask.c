/* tool_ask.c - see tool_ask.h. */
#include "tool_ask.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/utf8.h"
#include "lib/base/util.h"

#define MEMBERS_SHOWN 50 /* of the arguments */
#define VALUE_SHOWN   60 /* bytes of a long value, at least, and of a long name */

/* Clients may fill in defaults by themselves, so the default is a no. */
static const char schema[] =
	"{\"type\":\"object\",\"required\":[\"decision\"],\"properties\":{\"decision\":{\"type\":\"string\","
	"\"title\":\"Allow this call?\",\"description\":\"once: this call. run: all calls of this tool until the "
	"program ends, whatever their arguments. no: the call fails.\","
	"\"enum\":[\"once\",\"run\",\"no\"],\"default\":\"no\"}}}";

static void print_cut(struct buf *text, const char *shown, size_t most)
{
	const size_t length = strlen(shown), cut = utf8_cut(shown, length, most);

	utf8_printable(text, shown, cut);
	if (cut < length)
		buf_printf(text, "… (%zu bytes more)", length - cut);
}

/* All names, each with the beginning of its value: the order of the members hides none. */
static void print_arguments(struct buf *text, const char *arguments)
{
	auto_json struct json_object *object = NULL;
	const size_t length = strlen(arguments);
	int left = MEMBERS_SHOWN;

	if (length <= TOOL_ASK_SHOWN || json_parse(arguments, length, &object, NULL) < 0 ||
	    !json_object_is_type(object, json_type_object) || json_object_object_length(object) == 0) {
		print_cut(text, arguments, TOOL_ASK_SHOWN);
		return;
	}
	const size_t room = MAX(TOOL_ASK_SHOWN / (size_t)json_object_object_length(object), VALUE_SHOWN);

	buf_putc(text, '{');
	json_object_object_foreach(object, name, value)
	{
		auto_buf struct buf printed = {0};

		if (left-- == 0) {
			buf_printf(text, ", … (%d members more: too many to be looked at)",
				   json_object_object_length(object) - MEMBERS_SHOWN);
			break;
		}
		buf_init(&printed, 2 * length + VALUE_SHOWN);
		json_print(&printed, value);
		buf_putc(&printed, '\0');
		buf_puts(text, left + 1 == MEMBERS_SHOWN ? "\"" : ", \"");
		print_cut(text, name, VALUE_SHOWN);
		buf_puts(text, "\": ");
		print_cut(text, printed.data, room);
	}
	buf_putc(text, '}');
}

struct json_object *tool_ask_params(const char *who, const struct bridge_question *question)
{
	struct json_object *params = json_object_new_object(), *form = NULL;
	auto_buf struct buf text = {0};

	buf_init(&text, 32 * TOOL_ASK_SHOWN);
	buf_printf(&text, "%s wants to call ", who);
	utf8_printable(&text, question->server, strlen(question->server));
	buf_putc(&text, '.');
	utf8_printable(&text, question->tool, strlen(question->tool));
	buf_puts(&text, " with ");
	print_arguments(&text, question->arguments);
	json_parse(schema, sizeof(schema) - 1, &form, NULL);
	json_add_bytes(params, "message", text.data, text.length);
	json_add(params, "requestedSchema", form);
	return params;
}

enum bridge_verdict tool_ask_verdict(struct json_object *result)
{
	const char *action = json_get_string(result, "action");
	const char *decision = json_get_string(json_get(result, "content", json_type_object), "decision");

	if (!action || !decision || !streq(action, "accept"))
		return BRIDGE_NO;
	return streq(decision, "once") ? BRIDGE_ONCE : streq(decision, "run") ? BRIDGE_RUN : BRIDGE_NO;
}

void tool_ask_key(int64_t number, char ret[TOOL_ASK_KEY_SIZE])
{
	snprintf(ret, TOOL_ASK_KEY_SIZE, "call-%lld", (long long)number);
}

struct json_object *tool_ask_requests(const char *who, const struct bridge_question *questions, size_t count)
{
	struct json_object *requests = json_object_new_object();
	char key[TOOL_ASK_KEY_SIZE];

	for (size_t i = 0; i < count; i++) {
		struct json_object *request = json_object_new_object();

		tool_ask_key(questions[i].number, key);
		json_add_string(request, "method", "elicitation/create");
		json_add(request, "params", tool_ask_params(who, &questions[i]));
		json_add(requests, key, request);
	}
	return requests;
}

struct json_object *tool_ask_result(const char *who, const struct bridge_question *questions, size_t count,
				    const char *state)
{
	struct json_object *result = json_object_new_object();

	json_add_string(result, "resultType", "input_required");
	json_add(result, "inputRequests", tool_ask_requests(who, questions, count));
	json_add_string(result, "requestState", state);
	return result;
}
