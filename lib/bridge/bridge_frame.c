/* bridge_frame.c - see bridge_frame.h. */
#include "bridge_frame.h"

#include <math.h>
#include <string.h>

#include "lib/base/bind.h"
#include "lib/base/util.h"
#include "lib/upstream/upstream_raw.h"

static const char *const ops[] = {"call", "search", "describe", "servers", "read", "cancel", NULL};
static const char *const details[] = {"names", "summary", "full", NULL};

struct members {
	struct bridge_frame frame;
	struct json_object *timeout;
};
#define AT(member) offsetof(struct members, member)
static const struct bind table[] = {
	{.name = "id", .type = BIND_INT, .offset = AT(frame.id), .flags = BIND_REQUIRED, .max = INT64_MAX},
	{.name = "op", .type = BIND_CHOICE, .offset = AT(frame.op), .flags = BIND_REQUIRED, .choices = ops},
	{.name = "server", .type = BIND_STRING, .offset = AT(frame.server), .max = BRIDGE_NAME_MAX},
	{.name = "tool", .type = BIND_STRING, .offset = AT(frame.tool), .max = BRIDGE_NAME_MAX},
	{.name = "query", .type = BIND_STRING, .offset = AT(frame.query), .max = BRIDGE_NAME_MAX},
	{.name = "uri", .type = BIND_STRING, .offset = AT(frame.uri), .max = BRIDGE_URI_MAX},
	{.name = "detail", .type = BIND_STRING, .offset = AT(frame.detail), .choices = details},
	{.name = "limit", .type = BIND_INT, .offset = AT(frame.limit), .min = 1, .max = 50},
	{.name = "call", .type = BIND_INT, .offset = AT(frame.call), .max = INT64_MAX},
	{.name = "arguments", .type = BIND_ANY, .offset = AT(frame.values)},
	{.name = "timeout", .type = BIND_ANY, .offset = AT(timeout)},
	{0},
};

/* -------- from the program ---------------------------------------------------------------------------- */

/* What each request must have. */
static int check(const struct members *members, struct err *err)
{
	const struct bridge_frame *frame = &members->frame;
	const struct {
		const char *name, *given;
		unsigned ops; /* that need it */
	} needed[] = {
		{"server", frame->server, 1u << BRIDGE_CALL | 1u << BRIDGE_DESCRIBE | 1u << BRIDGE_READ},
		{"tool", frame->tool, 1u << BRIDGE_CALL},
		{"query", frame->query, 1u << BRIDGE_SEARCH},
		{"uri", frame->uri, 1u << BRIDGE_READ},
	};

	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		if (!needed[i].given && (needed[i].ops & 1u << frame->op))
			return err_member(err, needed[i].name, "is missing");
	if (frame->values && !json_object_is_type(frame->values, json_type_object))
		return err_member(err, "arguments", "must be an object");
	if (members->timeout && !json_object_is_type(members->timeout, json_type_int) &&
	    !json_object_is_type(members->timeout, json_type_double))
		return err_member(err, "timeout", "must be a number of seconds");
	if (members->timeout && !(isfinite(frame->timeout) && frame->timeout > 0))
		return err_member(err, "timeout", "must be more than 0");
	return 0;
}

int bridge_frame_parse(const char *bytes, size_t length, struct bridge_frame *ret, struct err *err)
{
	struct members members = {.frame = {.id = -1}};
	auto_json struct json_object *object = NULL;
	int result = json_parse(bytes, length, &object, err);

	ret->id = -1;
	if (result < 0)
		return result;
	struct json_object *id = json_get(object, "id", json_type_int);
	if (id && json_object_get_int64(id) >= 0)
		ret->id = json_object_get_int64(id);
	result = json_object_is_type(object, json_type_object)
			 ? bind_parse(table, object, &members, err)
			 : err_set(err, ERR_INVALID, "a frame must be an object");
	members.frame.timeout = json_object_get_double(members.timeout);
	if (result == 0)
		result = check(&members, err);
	if (result < 0)
		return result;
	if (members.frame.values) {
		const struct raw arguments = raw_member((struct raw){bytes, length}, "arguments");

		members.frame.arguments = arguments.text;
		members.frame.length = arguments.length;
	}
	members.frame.object = steal(&object);
	*ret = members.frame;
	return 0;
}

void bridge_frame_clear(struct bridge_frame *frame)
{
	json_put_pointer(&frame->object);
}

/* -------- to the program ------------------------------------------------------------------------------ */

void bridge_frame_begin(struct buf *out)
{
	buf_add(out, "\0\0\0\0", BRIDGE_HEAD);
}

void bridge_frame_end(struct buf *out)
{
	size_t length = out->length - BRIDGE_HEAD;

	for (int i = 0; i < BRIDGE_HEAD; i++)
		out->data[i] = (char)(length >> (8 * (BRIDGE_HEAD - 1 - i)) & 0xFF);
}

uint32_t bridge_frame_length(const unsigned char head[BRIDGE_HEAD])
{
	return (uint32_t)head[0] << 24 | (uint32_t)head[1] << 16 | (uint32_t)head[2] << 8 | head[3];
}

void bridge_frame_failure(struct buf *out, int64_t id, const struct bridge_failure *failure)
{
	auto_json struct json_object *answer = json_object_new_object();
	struct json_object *error = json_object_new_object();

	if (id >= 0) {
		json_add_int(answer, "id", id);
		json_add_bool(answer, "ok", false);
	}
	json_add_string(error, "kind", failure->kind);
	if (failure->server)
		json_add_string(error, "server", failure->server);
	if (failure->tool)
		json_add_string(error, "tool", failure->tool);
	json_add(error, "text", json_new_safe(failure->text, strlen(failure->text)));
	if (failure->signature)
		json_add_string(error, "signature", failure->signature);
	if (failure->result)
		json_add(error, "result", json_new_printed(failure->result, failure->length));
	json_add(answer, "error", error);
	bridge_frame_begin(out);
	json_print(out, answer);
	bridge_frame_end(out);
}

void bridge_frame_result(struct buf *out, int64_t id, bool wrap, const char *result, size_t length)
{
	bridge_frame_begin(out);
	buf_printf(out, "{\"id\":%lld,\"ok\":true,\"wrap\":%s,\"result\":", (long long)id, wrap ? "true" : "false");
	buf_add(out, result, length);
	buf_putc(out, '}');
	bridge_frame_end(out);
}
