/*
 * upstream_message.c - see upstream_message.h.
 *
 * Facts: MCP 2026-07-28, basic (request metadata), transports (standard and custom headers, their encoding); of the
 * legacy era a request has no metadata but a progress token.
 */
#include "upstream_message.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "lib/base/text.h"
#include "lib/base/util.h"
#include "lib/base/version.h"
#include "upstream_connection.h"

#define HEADERS_MAX 64 /* of one tool */
#define META        "io.modelcontextprotocol/"

void message_string(struct buf *out, const char *text)
{
	auto_json struct json_object *string = json_object_new_string(text);

	json_print(out, string);
}

void message_begin(struct upstream_exchange *exchange, const char *method)
{
	struct buf *out = &exchange->body;

	buf_puts(out, "{\"jsonrpc\":\"2.0\",");
	if (exchange->id != 0)
		buf_printf(out, "\"id\":%" PRId64 ",", exchange->id);
	buf_puts(out, "\"method\":");
	message_string(out, method);
	buf_puts(out, ",\"params\":{");
	if (exchange->connection->era != ERA_LEGACY) {
		message_header(&exchange->headers, "MCP-Protocol-Version", UPSTREAM_MODERN, strlen(UPSTREAM_MODERN));
		message_header(&exchange->headers, "Mcp-Method", method, strlen(method));
	}
}

void message_end(struct upstream_exchange *exchange, bool progress)
{
	const struct upstream_connection *connection = exchange->connection;
	struct buf *out = &exchange->body;
	bool relay = connection->loop->ask != NULL && connection->server->elicitation == UPSTREAM_ELICITATION_RELAY;

	if (connection->era != ERA_LEGACY) {
		buf_puts(out, "\"_meta\":{\"" META "protocolVersion\":\"" UPSTREAM_MODERN "\",\"" META
			      "clientCapabilities\":{");
		if (relay)
			buf_puts(out, "\"elicitation\":{\"form\":{}},");
		buf_puts(out, "\"extensions\":{\"" META "tasks\":{}}},\"" META
			      "clientInfo\":{\"name\":\"sallyport\",\"version\":\"" SALLYPORT_VERSION "\"}");
		if (progress)
			buf_printf(out, ",\"progressToken\":%" PRId64, exchange->id);
		buf_puts(out, "},");
	} else if (progress) {
		buf_printf(out, "\"_meta\":{\"progressToken\":%" PRId64 "},", exchange->id);
	}
	if (out->length > 0 && out->data[out->length - 1] == ',')
		out->data[--out->length] = '\0';
	buf_puts(out, "}}");
}

/* Bytes that a header's value may have as they are. */
static bool is_plain(const char *value, size_t length)
{
	static const char begin[] = "=?base64?";

	for (size_t i = 0; i < length; i++)
		if ((unsigned char)value[i] < ' ' || (unsigned char)value[i] > '~')
			return false;
	if (length > 0 && (value[0] == ' ' || value[length - 1] == ' '))
		return false;
	return length < strlen(begin) + 2 || memcmp(value, begin, strlen(begin)) != 0 || value[length - 1] != '=' ||
	       value[length - 2] != '?';
}

void message_header(struct buf *headers, const char *name, const char *value, size_t length)
{
	buf_printf(headers, "%s: ", name);
	if (is_plain(value, length)) {
		buf_add(headers, value, length);
	} else {
		buf_puts(headers, "=?base64?");
		base64_encode(headers, value, length);
		buf_puts(headers, "?=");
	}
	buf_putc(headers, '\n');
}

/* The header of one property, if its argument is there. */
static void add_parameter(struct buf *headers, const char *name, struct raw value)
{
	auto_free char *header = xasprintf("Mcp-Param-%s", name), *text = raw_string(value);
	double number;

	if (text != NULL)
		message_header(headers, header, text, strlen(text));
	else if (raw_is(value, "true") || raw_is(value, "false"))
		message_header(headers, header, value.text, value.length);
	else if (raw_number(value, &number) && memchr(value.text, '.', value.length) == NULL &&
		 memchr(value.text, 'e', value.length) == NULL && memchr(value.text, 'E', value.length) == NULL)
		message_header(headers, header, value.text, value.length);
}

void message_parameter_headers(struct buf *headers, struct json_object *schema, struct raw arguments)
{
	struct json_object *properties = json_get(schema, "properties", json_type_object);

	if (properties == NULL)
		return;
	json_object_object_foreach(properties, key, property)
	{
		struct raw value = raw_member(arguments, key);
		const char *name = json_get_string(property, "x-mcp-header");

		if (!json_object_is_type(property, json_type_object) || value.text == NULL)
			continue;
		if (name != NULL)
			add_parameter(headers, name, value);
		message_parameter_headers(headers, property, value);
	}
}

struct header_check {
	const char *names[HEADERS_MAX];
	size_t count;
	struct err *err;
};

static int check_header(struct header_check *check, struct json_object *schema, struct json_object *value, bool reached)
{
	const char *name = json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
	const char *type = json_get_string(schema, "type");

	if (!reached)
		return err_set(check->err, ERR_INVALID, "x-mcp-header \"%.64s\" belongs to no property of its own",
			       name);
	if (name[0] == '\0' || strlen(name) != (size_t)json_object_get_string_len(value))
		return err_set(check->err, ERR_INVALID, "x-mcp-header must be the name of a header");
	for (const char *c = name; *c != '\0'; c++)
		if (!isalnum((unsigned char)*c) && strchr("!#$%&'*+-.^_`|~", *c) == NULL)
			return err_set(check->err, ERR_INVALID, "x-mcp-header \"%.64s\" is not the name of a header",
				       name);
	if (type == NULL || (!streq(type, "string") && !streq(type, "integer") && !streq(type, "boolean")))
		return err_set(check->err, ERR_INVALID,
			       "x-mcp-header \"%.64s\" belongs to no string, integer or boolean", name);
	for (size_t i = 0; i < check->count; i++)
		if (!strcasecmp(check->names[i], name))
			return err_set(check->err, ERR_INVALID, "x-mcp-header \"%.64s\" occurs twice", name);
	if (check->count == HEADERS_MAX)
		return err_set(check->err, ERR_LIMIT, "more than %d x-mcp-header", HEADERS_MAX);
	check->names[check->count++] = name;
	return 0;
}

static int walk_headers(struct header_check *check, struct json_object *value, bool root, bool reached)
{
	static const char *const data[] = {"default", "const", "enum", "examples", NULL};
	int result = 0;

	if (json_object_is_type(value, json_type_array))
		for (size_t i = 0; result == 0 && i < json_object_array_length(value); i++)
			result = walk_headers(check, json_object_array_get_idx(value, i), false, false);
	if (!json_object_is_type(value, json_type_object))
		return result;
	json_object_object_foreach(value, key, member)
	{
		const char *const *skipped = data;

		while (*skipped != NULL && !streq(*skipped, key))
			skipped++;
		if (result < 0 || *skipped != NULL)
			continue;
		if (streq(key, "x-mcp-header")) {
			result = check_header(check, value, member, reached && !root);
		} else if (streq(key, "properties") && json_object_is_type(member, json_type_object)) {
			json_object_object_foreach(member, name, property)
			{
				(void)name;
				if (result == 0)
					result = walk_headers(check, property, false, reached);
			}
		} else {
			result = walk_headers(check, member, false, false);
		}
	}
	return result;
}

int message_check_headers(struct json_object *schema, struct err *err)
{
	struct header_check check = {.err = err};

	return walk_headers(&check, schema, true, true);
}
