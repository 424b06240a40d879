/*
 * bridge_stub.c - tools as lines and files for models: see bridge_stub.h for the rules, bridge_type.c for the types.
 *
 * A tool's name, description and schema come from a server that nobody checked. They end up in what a model reads and
 * in files that an interpreter parses, so every text goes through bridge_stub_text, every name through the alias rule
 * or as a quoted literal, and everything has a size.
 */
#include "bridge_stub.h"

#include <stdio.h>
#include <string.h>

#include "bridge_type.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"

#define FILE_MAX (4 << 20) /* text of one server */

/* -------- text of strangers --------------------------------------------------------------------------- */

/* Is the character zero-width, bidirectional, or a tag, which a person does not see and a model reads? */
static bool is_hidden(const char *at, size_t length)
{
	static const unsigned char lead[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
	uint32_t point = (unsigned char)at[0] & lead[length];
	static const uint32_t ranges[][2] = {{0x7F, 0x9F},       {0xAD, 0xAD},     {0x200B, 0x200F}, {0x2028, 0x202E},
					     {0x2060, 0x206F},   {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0xFE00, 0xFE0F},
					     {0xE0000, 0xE0FFF}, {0x180E, 0x180E}};

	for (size_t i = 1; i < length; i++)
		point = point << 6 | ((unsigned char)at[i] & 0x3F);
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		if (point >= ranges[i][0] && point <= ranges[i][1])
			return true;
	return false;
}

void bridge_stub_text(struct buf *out, const char *text, size_t max)
{
	const size_t begin = out->length;
	bool blank = false;

	for (size_t length; *text && (length = utf8_length(text, strlen(text))) > 0; text += length) {
		bool is_blank = length == 1 && (unsigned char)*text <= ' ';

		if (out->length - begin + length + 4 > max) {
			buf_puts(out, "…");
			return;
		}
		if (is_blank || is_hidden(text, length)) {
			blank = blank || is_blank;
			continue;
		}
		if (blank && out->length > begin)
			buf_putc(out, ' ');
		blank = false;
		buf_add(out, text, length);
		/* The end of a comment or docstring is not theirs to write. */
		if ((text[0] == '*' && text[1] == '/') || (text[0] == '"' && text[1] == '"'))
			buf_putc(out, ' ');
	}
}

/* -------- one line ------------------------------------------------------------------------------------ */

/* Required ones first, each group in the order of the schema. */
static void print_parameters(struct buf *out, struct bridge_types *types, bool required_ones, bool *first)
{
	auto_json struct json_object *properties = NULL, *required = NULL;
	char alias[UPSTREAM_ALIAS_SIZE];

	bridge_schema_members(types, types->root, &properties, &required);
	json_object_object_foreach(properties, name, schema)
	{
		if (bridge_schema_required(required, name) != required_ones)
			continue;
		upstream_name_alias(name, alias);
		bool plain = streq(alias, name);

		buf_puts(out, *first ? "" : types->language == BRIDGE_PYTHON ? ", " : "; ");
		if (types->language == BRIDGE_PYTHON)
			buf_puts(out, alias);
		else
			buf_printf(out, "%s%s%s", plain ? "" : "\"", name, plain ? "" : "\"");
		buf_puts(out, types->language == BRIDGE_TYPESCRIPT && !required_ones ? "?: " : ": ");
		bridge_type(out, types, schema, alias);
		if (types->language == BRIDGE_PYTHON && !required_ones) {
			struct json_object *value = NULL;

			buf_puts(out, " = ");
			json_object_object_get_ex(schema, "default", &value);
			if (json_object_is_type(value, json_type_int))
				json_print(out, value);
			else if (json_object_is_type(value, json_type_boolean))
				buf_puts(out, json_object_get_boolean(value) ? "True" : "False");
			else
				buf_puts(out, "...");
		}
		*first = false;
	}
}

static void print_head(struct buf *out, struct bridge_types *types, const struct upstream_tool *tool, const char *alias)
{
	struct json_object *output = json_get(tool->object, "outputSchema", json_type_object);
	struct json_object *result = output;
	bool first = true;

	types->root = json_get(tool->object, "inputSchema", json_type_object);
	buf_printf(out, "%s%s", alias, types->language == BRIDGE_PYTHON ? "(*, " : "(args: { ");
	size_t empty = out->length;
	print_parameters(out, types, true, &first);
	print_parameters(out, types, false, &first);
	if (out->length == empty) { /* none */
		out->length -= types->language == BRIDGE_PYTHON ? 3 : 8;
		buf_puts(out, types->language == BRIDGE_PYTHON ? ")" : "args?: {})");
	} else {
		buf_puts(out, types->language == BRIDGE_PYTHON ? ")" : " })");
	}
	buf_puts(out, types->language == BRIDGE_PYTHON ? " -> " : ": Promise<");
	if (output && json_object_get_boolean(json_get(output, "x-fastmcp-wrap-result", json_type_boolean)))
		json_object_object_get_ex(json_get(output, "properties", json_type_object), "result", &result);
	types->root = output;
	if (output)
		bridge_type(out, types, result, "Result");
	else
		buf_puts(out, types->language == BRIDGE_PYTHON ? "Any" : "unknown");
	buf_puts(out, types->language == BRIDGE_PYTHON ? "" : ">");
}

void bridge_stub_line(struct buf *out, const struct upstream_tool *tool, enum bridge_language language)
{
	static const enum bridge_inner attempts[] = {BRIDGE_INNER_INLINE, BRIDGE_INNER_NAMED, BRIDGE_INNER_KEYS};
	char alias[UPSTREAM_ALIAS_SIZE];

	upstream_name_alias(tool->name, alias);
	for (size_t i = 0; i < ARRAY_SIZE(attempts); i++) {
		struct bridge_types types = {.language = language, .inner = attempts[i], .prefix = alias};
		auto_buf struct buf head = {0};

		buf_init(&head, 256 << 10);
		bridge_types_begin(&types, NULL);
		print_head(&head, &types, tool, alias);
		if (types.definitions.length > 0) {
			buf_puts(&head, "\n");
			buf_add(&head, types.definitions.data, types.definitions.length - 1);
		}
		bridge_types_clear(&types);
		bool last = i + 1 == ARRAY_SIZE(attempts);
		if (!last && (head.overflow || head.length > BRIDGE_SIGNATURE_MAX))
			continue;
		if (head.overflow || head.length > 4 * BRIDGE_SIGNATURE_MAX)
			buf_printf(out, "%s%s", alias,
				   language == BRIDGE_PYTHON ? "(**arguments) -> Any"
							     : "(args: Record<string, unknown>): Promise<unknown>");
		else
			buf_add(out, head.data, head.length);
		return;
	}
}

char *bridge_stub_signature(const struct upstream_tool *tool)
{
	auto_buf struct buf line = {0};

	buf_init(&line, FILE_MAX);
	bridge_stub_line(&line, tool, BRIDGE_PYTHON);
	buf_putc(&line, '\0');
	return xstrdup(line.data);
}

bool bridge_stub_clashes(const struct upstream_list *list, size_t tool)
{
	char own[UPSTREAM_ALIAS_SIZE], other[UPSTREAM_ALIAS_SIZE];

	upstream_name_alias(list->tools[tool].name, own);
	for (size_t i = 0; i < list->count; i++) {
		upstream_name_alias(list->tools[i].name, other);
		if (i != tool && streq(own, other))
			return true;
	}
	return false;
}

/* -------- a file -------------------------------------------------------------------------------------- */

void bridge_stub_documented(struct buf *out, const struct upstream_tool *tool, const char *margin)
{
	auto_json struct json_object *properties = NULL, *required = NULL;
	struct bridge_types types = {.root = json_get(tool->object, "inputSchema", json_type_object)};
	const char *description = json_get_string(tool->object, "description");

	bridge_schema_members(&types, types.root, &properties, &required);
	buf_puts(out, margin);
	bridge_stub_text(out, description ? description : "", BRIDGE_DESCRIPTION_MAX);
	buf_puts(out, "\n");
	json_object_object_foreach(properties, name, schema)
	{
		const char *text = json_get_string(schema, "description");

		if (!text)
			continue;
		buf_puts(out, margin);
		bridge_stub_text(out, name, 64);
		buf_puts(out, ": ");
		bridge_stub_text(out, text, 400);
		buf_puts(out, "\n");
	}
}

static void print_tool(struct buf *out, const struct upstream_list *list, size_t at, const char *decision,
		       enum bridge_language language)
{
	const struct upstream_tool *tool = &list->tools[at];
	char alias[UPSTREAM_ALIAS_SIZE];
	struct bridge_types types = {.language = language,
				     .inner = language == BRIDGE_PYTHON ? BRIDGE_INNER_FILE : BRIDGE_INNER_INLINE,
				     .prefix = alias};
	auto_buf struct buf head = {0};

	upstream_name_alias(tool->name, alias);
	if (bridge_stub_clashes(list, at)) {
		buf_puts(out, language == BRIDGE_PYTHON ? "# " : "// ");
		bridge_stub_text(out, tool->name, 128);
		buf_puts(out, ": another tool has this name, too: call it by tools.call(server, tool, arguments)\n\n");
		return;
	}
	buf_init(&head, FILE_MAX);
	bridge_types_begin(&types, NULL);
	print_head(&head, &types, tool, alias);
	buf_add(out, types.definitions.data, types.definitions.length);
	bridge_types_clear(&types);
	if (language == BRIDGE_PYTHON) {
		buf_puts(out, "def ");
		buf_add(out, head.data, head.length);
		buf_printf(out, ":%s%s%s\n    \"\"\"\n", decision ? "  # [" : "", decision ? decision : "",
			   decision ? "]" : "");
		bridge_stub_documented(out, tool, "    ");
		buf_puts(out, "    \"\"\"\n\n");
		return;
	}
	buf_puts(out, "/**\n");
	bridge_stub_documented(out, tool, " * ");
	buf_puts(out, " */\nexport function ");
	buf_add(out, head.data, head.length);
	buf_printf(out, ";%s%s%s\n\n", decision ? " // [" : "", decision ? decision : "", decision ? "]" : "");
}

void bridge_stub_file(struct buf *out, const struct upstream_list *list, const char *const *decisions,
		      enum bridge_language language)
{
	if (language == BRIDGE_PYTHON)
		buf_puts(out, "from typing import Any, Literal, NotRequired, TypedDict\n\n");
	for (size_t i = 0; i < list->count; i++)
		print_tool(out, list, i, decisions && !streq(decisions[i], "allow") ? decisions[i] : NULL, language);
}
