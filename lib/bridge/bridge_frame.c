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
	int64_t id, limit, call;
	const char *op, *server, *tool, *query, *uri, *detail;
	struct json_object *arguments, *timeout;
};
#define TEXT(key, longest)                                                                                             \
	{                                                                                                              \
		.name = #key, .type = BIND_STRING, .offset = offsetof(struct members, key), .max = longest             \
	}
static const struct bind table[] = {
	{.name = "id",
	 .type = BIND_INT,
	 .offset = offsetof(struct members, id),
	 .flags = BIND_REQUIRED,
	 .max = INT64_MAX},
	{.name = "op",
	 .type = BIND_STRING,
	 .offset = offsetof(struct members, op),
	 .flags = BIND_REQUIRED,
	 .choices = ops},
	TEXT(server, BRIDGE_NAME_MAX),
	TEXT(tool, BRIDGE_NAME_MAX),
	TEXT(query, BRIDGE_NAME_MAX),
	TEXT(uri, BRIDGE_URI_MAX),
	{.name = "detail", .type = BIND_STRING, .offset = offsetof(struct members, detail), .choices = details},
	{.name = "limit", .type = BIND_INT, .offset = offsetof(struct members, limit), .min = 1, .max = 50},
	{.name = "call", .type = BIND_INT, .offset = offsetof(struct members, call), .max = INT64_MAX},
	{.name = "arguments", .type = BIND_ANY, .offset = offsetof(struct members, arguments)},
	{.name = "timeout", .type = BIND_ANY, .offset = offsetof(struct members, timeout)},
	{0},
};

/* -------- from the program ---------------------------------------------------------------------------- */

/* What each request must have. */
static int check(const struct members *members, enum bridge_op op, struct err *err)
{
	static const struct {
		bool server, tool, query, uri;
	} needs[] = {
		[BRIDGE_CALL] = {.server = true, .tool = true},
		[BRIDGE_SEARCH] = {.query = true},
		[BRIDGE_DESCRIBE] = {.server = true},
		[BRIDGE_READ] = {.server = true, .uri = true},
		[BRIDGE_CANCEL] = {0},
	};

	if (needs[op].server && !members->server)
		return err_member(err, "server", "is missing");
	if (needs[op].tool && !members->tool)
		return err_member(err, "tool", "is missing");
	if (needs[op].query && !members->query)
		return err_member(err, "query", "is missing");
	if (needs[op].uri && !members->uri)
		return err_member(err, "uri", "is missing");
	if (members->arguments && !json_object_is_type(members->arguments, json_type_object))
		return err_member(err, "arguments", "must be an object");
	return 0;
}

static int take_timeout(struct json_object *given, double *ret, struct err *err)
{
	*ret = 0;
	if (!given)
		return 0;
	if (!json_object_is_type(given, json_type_int) && !json_object_is_type(given, json_type_double))
		return err_member(err, "timeout", "must be a number of seconds");
	*ret = json_object_get_double(given);
	return isfinite(*ret) && *ret > 0 ? 0 : err_member(err, "timeout", "must be more than 0");
}

int bridge_frame_parse(const char *bytes, size_t length, struct bridge_frame *ret, struct err *err)
{
	struct members members = {0};
	struct bridge_frame frame = {.id = -1};
	struct json_object *id;
	int result = json_parse(bytes, length, &frame.object, err);

	ret->id = -1;
	if (result < 0)
		return result;
	id = json_get(frame.object, "id", json_type_int);
	if (id && json_object_get_int64(id) >= 0)
		ret->id = json_object_get_int64(id);
	result = json_object_is_type(frame.object, json_type_object)
			 ? bind_parse(table, frame.object, &members, err)
			 : err_set(err, ERR_INVALID, "a frame must be an object");
	for (int op = 0; result == 0 && ops[op]; op++)
		if (streq(ops[op], members.op))
			frame.op = (enum bridge_op)op;
	if (result == 0)
		result = check(&members, frame.op, err);
	if (result == 0)
		result = take_timeout(members.timeout, &frame.timeout, err);
	if (result < 0) {
		json_put_pointer(&frame.object);
		return result;
	}
	frame.id = members.id;
	frame.server = members.server;
	frame.tool = members.tool;
	frame.query = members.query;
	frame.uri = members.uri;
	frame.detail = members.detail;
	frame.limit = members.limit;
	frame.call = members.call;
	frame.values = members.arguments;
	if (members.arguments) {
		const struct raw arguments = raw_member((struct raw){bytes, length}, "arguments");

		frame.arguments = arguments.text;
		frame.length = arguments.length;
	}
	*ret = frame;
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
