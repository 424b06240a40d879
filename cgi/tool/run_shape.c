/* run_shape.c - see run_shape.h. */
#include "run_shape.h"

#include <string.h>

#include "lib/base/json.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"

#define PARSED_MAX (256 * 1024) /* bytes of a result that is looked at */
#define LEVELS     4
#define KEYS       16
#define NAME_MAX_  40

static void add_shape(struct json_object *value, int level, struct buf *out)
{
	static const char *const names[] = {
		[json_type_null] = "None",  [json_type_boolean] = "bool", [json_type_double] = "float",
		[json_type_int] = "int",    [json_type_string] = "str",   [json_type_array] = "list",
		[json_type_object] = "dict"};
	const enum json_type type = json_object_get_type(value);
	int keys = 0;

	if (level == LEVELS || (type != json_type_array && type != json_type_object)) {
		buf_puts(out, names[type]);
		return;
	}
	if (type == json_type_array) {
		buf_putc(out, '[');
		if (json_object_array_length(value) > 0)
			add_shape(json_object_array_get_idx(value, 0), level + 1, out);
		buf_putc(out, ']');
		return;
	}
	buf_putc(out, '{');
	json_object_object_foreach(value, key, member)
	{
		buf_puts(out, keys ? ", " : "");
		if (++keys > KEYS) {
			buf_puts(out, "…");
			break;
		}
		utf8_printable(out, key, utf8_cut(key, strlen(key), NAME_MAX_));
		buf_puts(out, ": ");
		add_shape(member, level + 1, out);
	}
	buf_putc(out, '}');
}

/* The value that the program got, where it is an object or a list that was sent as text; the caller's. */
static struct json_object *value_of(const struct store_tool_call *call)
{
	auto_json struct json_object *result = NULL;
	struct json_object *value = NULL;

	if (call->is_read || call->is_error || !streq(call->state, "done") || call->result_length > PARSED_MAX ||
	    json_parse(call->result, call->result_length, &result, NULL) < 0)
		return NULL;
	struct json_object *blocks = json_get(result, "content", json_type_array);
	const char *text = blocks && json_object_array_length(blocks) == 1
				   ? json_get_string(json_object_array_get_idx(blocks, 0), "text")
				   : NULL;

	if (!text || json_object_object_get_ex(result, "structuredContent", NULL) ||
	    !strchr("{[", text[strspn(text, " \n\t\r")]))
		return NULL;
	return json_parse(text, strlen(text), &value, NULL) < 0 ? NULL : value;
}

/* Has the tool given a result before? A call that failed has shown nothing. */
static bool was_before(const struct store_tools *tools, size_t at)
{
	for (size_t i = 0; i < at; i++) {
		const struct store_tool_call *call = &tools->calls[i];

		if (streq(call->server, tools->calls[at].server) && streq(call->tool, tools->calls[at].tool) &&
		    streq(call->state, "done") && !call->is_error)
			return true;
	}
	return false;
}

void run_shape_add(const struct store_tools *tools, struct buf *text)
{
	int shown = 0;

	for (size_t i = 0; i < tools->n_calls && shown < RUN_SHAPE_TOOLS; i++) {
		const struct store_tool_call *call = &tools->calls[i];
		auto_json struct json_object *value = was_before(tools, i) ? NULL : value_of(call);
		auto_buf struct buf shape = {0};

		if (!value)
			continue;
		buf_init(&shape, PARSED_MAX);
		add_shape(value, 0, &shape);
		const size_t length = utf8_cut(shape.data, shape.length, RUN_SHAPE_MAX);

		utf8_printable(text, call->server, strnlen(call->server, NAME_MAX_));
		buf_putc(text, '.');
		utf8_printable(text, call->tool, strnlen(call->tool, NAME_MAX_));
		buf_printf(text, " returns %.*s%s\n", (int)length, shape.data, length < shape.length ? "…" : "");
		shown++;
	}
}
