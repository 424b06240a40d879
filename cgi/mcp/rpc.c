/* rpc.c - see rpc.h. */
#include "rpc.h"

#include <math.h>

#include "lib/base/util.h"

#define RPC_ID_EXACT 9007199254740992.0 /* 2^53: doubles hold integers up to here */

/* json_object_object_get_ex distinguishes an absent member from a null one. */
static bool get(struct json_object *object, const char *key, struct json_object **ret)
{
	return json_object_object_get_ex(object, key, ret);
}

struct json_object *rpc_id(struct json_object *id)
{
	const double number = json_object_is_type(id, json_type_double) ? json_object_get_double(id) : 0.5;

	/* 1.0 is 1: some languages have no other numbers */
	if (number == floor(number) && fabs(number) <= RPC_ID_EXACT)
		return json_object_new_int64((int64_t)number);
	return json_object_get(id);
}

/* Is there an id? *ret: one that an id may be, or NULL. */
static bool take_id(struct json_object *message, struct json_object **ret)
{
	struct json_object *id = NULL;
	bool there = get(message, "id", &id);

	if (json_object_is_type(id, json_type_double)) {
		id = rpc_id(id);
		json_add(message, "id", id);
	}
	if (json_object_is_type(id, json_type_string) || json_object_is_type(id, json_type_int))
		*ret = id;
	return there;
}

int rpc_parse(struct json_object *value, struct rpc_message *ret, struct err *err)
{
	struct json_object *params = NULL, *method = NULL, *ignored;

	*ret = (struct rpc_message){0};
	if (!json_object_is_type(value, json_type_object))
		return err_set(err, ERR_INVALID, "Invalid Request: a message must be a JSON object");
	bool has_id = take_id(value, &ret->id), has_method = get(value, "method", &method);
	const char *version = json_get_string(value, "jsonrpc");

	if (!version || !streq(version, "2.0"))
		return err_set(err, ERR_INVALID, "Invalid Request: jsonrpc must be \"2.0\"");
	if (has_id && !ret->id)
		return err_set(err, ERR_INVALID, "Invalid Request: id must be a string or an integer");
	if (!has_method) {
		bool answered = get(value, "result", &ignored) != get(value, "error", &ignored);

		if (!answered || !ret->id)
			return err_set(err, ERR_INVALID, "Invalid Request: method is missing");
		ret->kind = RPC_RESPONSE;
		return 0;
	}
	ret->method = json_get_string(value, "method");
	if (!ret->method)
		return err_set(err, ERR_INVALID, "Invalid Request: method must be a string");
	if (get(value, "params", &params) && params && !json_object_is_type(params, json_type_object))
		return err_set(err, ERR_INVALID, "Invalid Request: params must be an object");
	ret->params = params;
	ret->kind = has_id ? RPC_REQUEST : RPC_NOTIFICATION;
	return 0;
}

static struct json_object *envelope(struct json_object *id)
{
	struct json_object *answer = json_object_new_object();

	json_add_string(answer, "jsonrpc", "2.0");
	json_add(answer, "id", json_object_get(id));
	return answer;
}

struct json_object *rpc_result(struct json_object *id, struct json_object *result)
{
	struct json_object *answer = envelope(id);

	json_add(answer, "result", result);
	return answer;
}

struct json_object *rpc_error(struct json_object *id, int code, const char *text, struct json_object *data)
{
	struct json_object *answer = envelope(id);
	struct json_object *error = json_object_new_object();

	json_add_int(error, "code", code);
	json_add_string(error, "message", text);
	if (data)
		json_add(error, "data", data);
	json_add(answer, "error", error);
	return answer;
}
