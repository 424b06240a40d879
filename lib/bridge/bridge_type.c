/*
 * bridge_type.c - the rules of bridge_stub.h, schema by schema.
 *
 * A schema is a stranger's: it may be recursive in any way, deep, and larger than all memory once its references are
 * followed. So the schemas that are being printed are known (one that meets itself becomes a name), depth and number of
 * schemas that are looked at are bounded, and beyond a bound a type is Any.
 */
#include "bridge_type.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/util.h"
#include "lib/upstream/upstream_name.h"

#define TYPE_MAX (64 * 1024) /* text of one type; what is longer is Any */

static const char *word(const struct bridge_types *types, const char *python, const char *typescript)
{
	return types->language == BRIDGE_PYTHON ? python : typescript;
}

static const char *anything(const struct bridge_types *types)
{
	return word(types, "Any", "unknown");
}

/* -------- schemas before they are types: $ref within the schema, and allOf ----------------------------- */

static struct json_object *find_anchor(struct json_object *at, const char *anchor, int depth)
{
	const char *own = json_get_string(at, "$anchor");

	if (own && streq(own, anchor))
		return at;
	if (depth == 0 || !at)
		return NULL;
	if (json_object_is_type(at, json_type_array)) {
		for (size_t i = 0; i < json_object_array_length(at); i++) {
			struct json_object *found = find_anchor(json_object_array_get_idx(at, i), anchor, depth - 1);

			if (found)
				return found;
		}
	} else if (json_object_is_type(at, json_type_object)) {
		json_object_object_foreach(at, name, value)
		{
			(void)name;
			struct json_object *found = find_anchor(value, anchor, depth - 1);

			if (found)
				return found;
		}
	}
	return NULL;
}

/* One part of a pointer, its ~0 and ~1 put back. */
static struct json_object *step_into(struct json_object *at, const char *part, size_t length)
{
	auto_free char *name = xmalloc(length + 1);
	struct json_object *found = NULL;
	size_t n = 0;
	uint64_t index;

	for (size_t i = 0; i < length; i++) {
		bool escaped = part[i] == '~' && i + 1 < length;

		name[n++] = escaped ? (part[++i] == '1' ? '/' : '~') : part[i];
	}
	name[n] = '\0';
	if (json_object_is_type(at, json_type_object))
		json_object_object_get_ex(at, name, &found);
	else if (json_object_is_type(at, json_type_array) && parse_u64(name, 0, SIZE_MAX, &index) == 0)
		found = json_object_array_get_idx(at, index);
	return found;
}

/* The schema that it refers to, if it does; NULL: nothing that is there. */
static struct json_object *follow(const struct bridge_types *types, struct json_object *schema)
{
	for (int i = 0; i < BRIDGE_SCHEMA_DEPTH; i++) {
		const char *reference = json_get_string(schema, "$ref");

		if (!reference)
			return schema;
		if (reference[0] != '#')
			return NULL;
		schema = types->root;
		if (reference[1] != '\0' && reference[1] != '/') {
			schema = find_anchor(schema, reference + 1, BRIDGE_SCHEMA_DEPTH);
			continue;
		}
		for (const char *part = reference + 1; schema && *part == '/';) {
			size_t length = strcspn(part + 1, "/");

			schema = step_into(schema, part + 1, length);
			part += 1 + length;
		}
	}
	return NULL;
}

/* -------- properties ---------------------------------------------------------------------------------- */

bool bridge_schema_required(struct json_object *required, const char *name)
{
	for (size_t i = 0; required && i < json_object_array_length(required); i++) {
		const char *one = json_object_get_string(json_object_array_get_idx(required, i));

		if (one && streq(one, name))
			return true;
	}
	return false;
}

static void merge(const struct bridge_types *types, struct json_object *schema, struct json_object *properties,
		  struct json_object *required, int depth)
{
	schema = follow(types, schema);
	if (!schema || depth == 0)
		return;
	struct json_object *own = json_get(schema, "properties", json_type_object);
	struct json_object *needed = json_get(schema, "required", json_type_array);
	struct json_object *all = json_get(schema, "allOf", json_type_array);

	if (own) {
		json_object_object_foreach(own, name, value)
			json_object_object_add(properties, name, json_object_get(value));
	}
	for (size_t i = 0; needed && i < json_object_array_length(needed); i++)
		json_object_array_add(required, json_object_get(json_object_array_get_idx(needed, i)));
	for (size_t i = 0; all && i < json_object_array_length(all); i++)
		merge(types, json_object_array_get_idx(all, i), properties, required, depth - 1);
}

void bridge_schema_members(const struct bridge_types *types, struct json_object *schema,
			   struct json_object **ret_properties, struct json_object **ret_required)
{
	*ret_properties = json_object_new_object();
	*ret_required = json_object_new_array();
	merge(types, schema, *ret_properties, *ret_required, BRIDGE_SCHEMA_DEPTH);
}

static bool typed(struct json_object *schema)
{
	static const char *const keywords[] = {"type",  "properties", "enum",  "const", "$ref",
					       "items", "anyOf",      "oneOf", "allOf", "prefixItems"};

	for (size_t i = 0; i < ARRAY_SIZE(keywords); i++)
		if (json_object_object_get_ex(schema, keywords[i], NULL))
			return true;
	return false;
}

/* -------- literals ------------------------------------------------------------------------------------ */

static void print_text(struct buf *out, const struct bridge_types *types, const char *text)
{
	const char quote = types->language == BRIDGE_PYTHON ? '\'' : '"';

	buf_putc(out, quote);
	for (; *text; text++) {
		if (*text == quote || *text == '\\')
			buf_putc(out, '\\');
		if ((unsigned char)*text < ' ')
			buf_printf(out, "\\x%02x", (unsigned char)*text);
		else
			buf_putc(out, *text);
	}
	buf_putc(out, quote);
}

static void print_literal(struct buf *out, const struct bridge_types *types, struct json_object *value)
{
	switch (json_object_get_type(value)) {
	case json_type_string:
		print_text(out, types, json_object_get_string(value));
		break;
	case json_type_boolean:
		buf_puts(out,
			 json_object_get_boolean(value) ? word(types, "True", "true") : word(types, "False", "false"));
		break;
	case json_type_null:
		buf_puts(out, word(types, "None", "null"));
		break;
	case json_type_int:
		json_print(out, value);
		break;
	case json_type_double:
		buf_puts(out, word(types, "float", "number"));
		break;
	default:
		buf_puts(out, anything(types));
	}
}

static void print_enum(struct buf *out, const struct bridge_types *types, struct json_object *values)
{
	bool plain = json_object_array_length(values) > 0;

	for (size_t i = 0; i < json_object_array_length(values); i++) {
		const enum json_type type = json_object_get_type(json_object_array_get_idx(values, i));

		plain = plain && type != json_type_array && type != json_type_object && type != json_type_double;
	}
	if (!plain) {
		buf_puts(out, anything(types));
		return;
	}
	buf_puts(out, word(types, "Literal[", ""));
	for (size_t i = 0; i < json_object_array_length(values); i++) {
		buf_puts(out, i == 0 ? "" : word(types, ", ", " | "));
		print_literal(out, types, json_object_array_get_idx(values, i));
	}
	buf_puts(out, word(types, "]", ""));
}

/* -------- unions -------------------------------------------------------------------------------------- */

struct parts {
	char *texts[64];
	size_t count;
};

static void parts_add(struct parts *parts, struct buf *text)
{
	buf_putc(text, '\0');
	for (size_t i = 0; i < parts->count; i++)
		if (streq(parts->texts[i], text->data)) {
			buf_clear(text);
			return;
		}
	if (parts->count == ARRAY_SIZE(parts->texts)) {
		buf_clear(text);
		return;
	}
	parts->texts[parts->count++] = xstrdup(text->data);
	buf_clear(text);
}

static void parts_print(struct buf *out, struct bridge_types *types, struct parts *parts)
{
	if (parts->count == 0)
		buf_puts(out, anything(types));
	for (size_t i = 0; i < parts->count; i++) {
		buf_printf(out, "%s%s", i ? " | " : "", parts->texts[i]);
		free(parts->texts[i]);
	}
}

static bool any_typed(struct json_object *members)
{
	for (size_t i = 0; i < json_object_array_length(members); i++)
		if (typed(json_object_array_get_idx(members, i)))
			return true;
	return false;
}

static void print_members(struct buf *out, struct bridge_types *types, struct json_object *members, const char *hint)
{
	struct parts parts = {.count = 0};

	for (size_t i = 0; i < json_object_array_length(members); i++) {
		struct json_object *one = json_object_array_get_idx(members, i);
		struct buf text;

		if (json_object_is_type(one, json_type_object) && !typed(one) &&
		    json_object_object_length(one) > 0)
			continue;
		buf_init(&text, TYPE_MAX);
		bridge_type(&text, types, one, hint);
		parts_add(&parts, &text);
	}
	parts_print(out, types, &parts);
}

/* -------- objects ------------------------------------------------------------------------------------- */

static bool is_identifier(const char *name)
{
	char alias[UPSTREAM_ALIAS_SIZE];

	upstream_name_alias(name, alias);
	return streq(alias, name);
}

static void print_object_inline(struct buf *out, struct bridge_types *types, struct json_object *properties,
				struct json_object *required, const char *hint)
{
	bool first = true;

	buf_puts(out, word(types, "{", "{ "));
	json_object_object_foreach(properties, name, value)
	{
		auto_free char *inner = xasprintf("%s_%s", hint, name);

		buf_puts(out, first ? "" : word(types, ", ", "; "));
		if (types->language == BRIDGE_TYPESCRIPT && is_identifier(name))
			buf_puts(out, name);
		else
			print_text(out, types, name);
		buf_puts(out, bridge_schema_required(required, name) ? ": " : "?: ");
		bridge_type(out, types, value, inner);
		first = false;
	}
	buf_puts(out, word(types, "}", " }"));
}

static void print_object_class(struct buf *out, struct bridge_types *types, const char *name,
			       struct json_object *properties, struct json_object *required)
{
	bool plain = true;

	json_object_object_foreach(properties, key, unused)
	{
		(void)unused;
		plain = plain && is_identifier(key) && strncmp(key, "__", 2) != 0;
	}
	if (plain)
		buf_printf(out, "class %s(TypedDict):\n", name);
	else
		buf_printf(out, "%s = TypedDict('%s', {\n", name, name);
	if (plain && json_object_object_length(properties) == 0)
		buf_puts(out, "    pass\n");
	json_object_object_foreach(properties, member, value)
	{
		auto_free char *hint = xasprintf("%s_%s", name, member);
		bool optional = !bridge_schema_required(required, member);

		buf_puts(out, "    ");
		if (plain)
			buf_puts(out, member);
		else
			print_text(out, types, member);
		buf_puts(out, optional ? ": NotRequired[" : ": ");
		bridge_type(out, types, value, hint);
		buf_puts(out, optional ? "]" : "");
		buf_puts(out, plain ? "\n" : ",\n");
	}
	buf_puts(out, plain ? "" : "})\n");
}

/* The name of a type of this schema, new or known; NULL: there are too many. */
static const char *name_of(struct bridge_types *types, struct json_object *schema, const char *hint, bool *ret_new)
{
	char alias[UPSTREAM_ALIAS_SIZE];

	*ret_new = false;
	for (size_t i = 0; i < types->count; i++)
		if (types->named[i] == schema)
			return types->names[i];
	if (types->count == BRIDGE_TYPES_MAX)
		return NULL;
	auto_free char *whole = xasprintf("%s_%s", types->prefix, hint);
	upstream_name_alias(whole, alias);
	alias[100] = '\0';
	alias[0] = (char)toupper((unsigned char)alias[0]);
	char *name = xstrdup(alias);
	for (size_t i = 0, again = 2; i < types->count; i++)
		if (streq(types->names[i], name)) {
			free(name);
			name = xasprintf("%s_%zu", alias, again++);
			i = (size_t)-1;
		}
	types->names[types->count] = name;
	types->named[types->count] = schema;
	types->count++;
	*ret_new = true;
	return name;
}

static void define(struct bridge_types *types, const char *name, struct json_object *properties,
		   struct json_object *required)
{
	auto_buf struct buf text = {0};

	buf_init(&text, TYPE_MAX);
	if (types->inner == BRIDGE_INNER_FILE) {
		print_object_class(&text, types, name, properties, required);
	} else {
		buf_printf(&text, "%s%s = ", word(types, "", "type "), name);
		print_object_inline(&text, types, properties, required, name);
		buf_puts(&text, word(types, "\n", ";\n"));
	}
	buf_add(&types->definitions, text.data, text.length);
}

static void print_object(struct buf *out, struct bridge_types *types, struct json_object *schema, const char *hint)
{
	auto_json struct json_object *properties = NULL, *required = NULL;
	struct json_object *more = NULL;
	bool is_new;

	bridge_schema_members(types, schema, &properties, &required);
	if (json_object_object_length(properties) == 0) {
		json_object_object_get_ex(schema, "additionalProperties", &more);
		buf_puts(out, word(types, "dict[str, ", "Record<string, "));
		if (json_object_is_type(more, json_type_object))
			bridge_type(out, types, more, hint);
		else
			buf_puts(out, anything(types));
		buf_puts(out, word(types, "]", ">"));
		return;
	}
	bool top = types->depth == 1;
	if (types->inner == BRIDGE_INNER_INLINE || (top && types->inner != BRIDGE_INNER_FILE)) {
		print_object_inline(out, types, properties, required, hint);
		return;
	}
	if (types->inner == BRIDGE_INNER_KEYS) {
		const char *before = "{";

		json_object_object_foreach(properties, key, value)
		{
			(void)value;
			buf_printf(out, "%s%.64s", before, key);
			before = ", ";
		}
		buf_puts(out, ", …}");
		return;
	}
	const char *name = name_of(types, schema, hint, &is_new);
	buf_puts(out, name ? name : word(types, "dict[str, Any]", "Record<string, unknown>"));
	if (name && is_new)
		define(types, name, properties, required);
}

/* -------- a schema ------------------------------------------------------------------------------------ */

static void print_array(struct buf *out, struct bridge_types *types, struct json_object *schema, const char *hint)
{
	struct json_object *items = NULL, *first = json_get(schema, "prefixItems", json_type_array);

	if (first) {
		buf_puts(out, word(types, "tuple[", "["));
		for (size_t i = 0; i < json_object_array_length(first); i++) {
			buf_puts(out, i ? ", " : "");
			bridge_type(out, types, json_object_array_get_idx(first, i), hint);
		}
		buf_puts(out, "]");
		return;
	}
	json_object_object_get_ex(schema, "items", &items);
	if (types->language == BRIDGE_PYTHON) {
		buf_puts(out, "list[");
		bridge_type(out, types, items, hint);
		buf_puts(out, "]");
		return;
	}
	auto_buf struct buf one = {0};
	buf_init(&one, TYPE_MAX);
	bridge_type(&one, types, items, hint);
	buf_putc(&one, '\0');
	bool whole = !strstr(one.data, " | ") || one.data[0] == '{';
	buf_printf(out, "%s%s%s[]", whole ? "" : "(", one.data, whole ? "" : ")");
}

static void print_named(struct buf *out, struct bridge_types *types, struct json_object *schema, const char *type,
			const char *hint)
{
	static const struct {
		const char *type, *python, *typescript;
	} words[] = {{"string", "str", "string"},
		     {"integer", "int", "number"},
		     {"number", "float", "number"},
		     {"boolean", "bool", "boolean"},
		     {"null", "None", "null"}};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (streq(words[i].type, type)) {
			buf_puts(out, word(types, words[i].python, words[i].typescript));
			return;
		}
	if (streq(type, "array"))
		print_array(out, types, schema, hint);
	else if (streq(type, "object"))
		print_object(out, types, schema, hint);
	else
		buf_puts(out, anything(types));
}

static void print_types(struct buf *out, struct bridge_types *types, struct json_object *schema,
			struct json_object *names, const char *hint)
{
	struct parts parts = {.count = 0};

	for (size_t i = 0; i < json_object_array_length(names); i++) {
		const char *name = json_object_get_string(json_object_array_get_idx(names, i));
		struct buf text;

		buf_init(&text, TYPE_MAX);
		print_named(&text, types, schema, name ? name : "", hint);
		parts_add(&parts, &text);
	}
	parts_print(out, types, &parts);
}

/* allOf without properties: the first that says what it is. */
static void print_all(struct buf *out, struct bridge_types *types, struct json_object *schema, struct json_object *all,
		      const char *hint)
{
	auto_json struct json_object *properties = NULL, *required = NULL;

	bridge_schema_members(types, schema, &properties, &required);
	if (json_object_object_length(properties) > 0) {
		print_object(out, types, schema, hint);
		return;
	}
	for (size_t i = 0; i < json_object_array_length(all); i++)
		if (typed(json_object_array_get_idx(all, i))) {
			bridge_type(out, types, json_object_array_get_idx(all, i), hint);
			return;
		}
	buf_puts(out, anything(types));
}

static void print_plain(struct buf *out, struct bridge_types *types, struct json_object *schema, const char *hint)
{
	struct json_object *value = NULL, *list;
	const char *type = json_get_string(schema, "type");
	const char *unions[] = {"anyOf", "oneOf"};

	if ((list = json_get(schema, "enum", json_type_array))) {
		print_enum(out, types, list);
		return;
	}
	if (json_object_object_get_ex(schema, "const", &value)) {
		auto_json struct json_object *one = json_object_new_array();

		json_object_array_add(one, json_object_get(value));
		print_enum(out, types, one);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(unions); i++)
		if ((list = json_get(schema, unions[i], json_type_array)) && any_typed(list) &&
		    !json_get(schema, "properties", json_type_object)) {
			print_members(out, types, list, hint);
			return;
		}
	if ((list = json_get(schema, "allOf", json_type_array)) && any_typed(list))
		print_all(out, types, schema, list, hint);
	else if (json_get(schema, "properties", json_type_object))
		print_named(out, types, schema, "object", hint);
	else if ((list = json_get(schema, "type", json_type_array)))
		print_types(out, types, schema, list, hint);
	else if (type)
		print_named(out, types, schema, type, hint);
	else if (json_object_object_get_ex(schema, "items", NULL) ||
		 json_object_object_get_ex(schema, "prefixItems", NULL))
		print_named(out, types, schema, "array", hint);
	else
		buf_puts(out, anything(types));
}

/* A schema within itself: by name. */
static bool print_recursive(struct buf *out, struct bridge_types *types, struct json_object *schema, const char *hint)
{
	bool is_new;

	for (size_t i = 0; i < types->depth; i++)
		if (types->open[i] == schema) {
			const char *name = name_of(types, schema, hint, &is_new);

			buf_puts(out, name ? name : anything(types));
			if (name && is_new) {
				auto_json struct json_object *properties = NULL, *required = NULL;

				bridge_schema_members(types, schema, &properties, &required);
				define(types, name, properties, required);
			}
			return true;
		}
	return false;
}

void bridge_type(struct buf *out, struct bridge_types *types, struct json_object *schema, const char *hint)
{
	const char *reference = json_get_string(schema, "$ref");
	const char *last = reference ? strrchr(reference, '/') : NULL;

	schema = follow(types, schema);
	if (last && last[1])
		hint = last + 1;
	if (!schema || !json_object_is_type(schema, json_type_object) || types->depth == BRIDGE_SCHEMA_DEPTH ||
	    types->definitions.overflow || ++types->visits > BRIDGE_VISITS_MAX) {
		buf_puts(out, anything(types));
		return;
	}
	if (print_recursive(out, types, schema, hint))
		return;
	types->open[types->depth++] = schema;
	print_plain(out, types, schema, hint);
	types->depth--;
	if (json_object_get_boolean(json_get(schema, "nullable", json_type_boolean)))
		buf_printf(out, " | %s", word(types, "None", "null"));
}

void bridge_types_begin(struct bridge_types *types, struct json_object *root)
{
	types->root = root;
	buf_init(&types->definitions, TYPE_MAX);
}

void bridge_types_clear(struct bridge_types *types)
{
	for (size_t i = 0; i < types->count; i++)
		free(types->names[i]);
	buf_clear(&types->definitions);
	types->count = 0;
}
