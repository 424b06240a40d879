/*
 * rpc.h - the JSON-RPC 2.0 envelope: telling requests, notifications and responses apart, and making answers.
 *
 * MCP is stricter than JSON-RPC: an id is a string or an integer (also written 1.0) and never null, params is an object
 * (null: there are none).
 */
#pragma once

#include "lib/base/json.h"

enum rpc_code {
	RPC_PARSE_ERROR = -32700,
	RPC_INVALID_REQUEST = -32600,
	RPC_METHOD_NOT_FOUND = -32601,
	RPC_INVALID_PARAMS = -32602,
	RPC_INTERNAL = -32603,
	RPC_SESSION_NOT_FOUND = -32001, /* habit of the SDKs, legacy era only */
	RPC_RESOURCE_NOT_FOUND = -32002, /* legacy era only: the modern one says -32602 */
	RPC_HEADER_MISMATCH = -32020,   /* modern era: see reference of revision 2026-07-28 */
	RPC_MISSING_CAPABILITY = -32021,
	RPC_UNSUPPORTED_VERSION = -32022,
};

enum rpc_kind { RPC_REQUEST, RPC_NOTIFICATION, RPC_RESPONSE };

/* Everything is borrowed from the parsed document. */
struct rpc_message {
	enum rpc_kind kind;
	struct json_object *id;     /* requests and responses */
	const char *method;         /* requests and notifications */
	struct json_object *params; /* NULL: absent */
};

/* The id as it is compared and answered: 1.0 is 1. The caller's. */
struct json_object *rpc_id(struct json_object *id);
/* An id 1.0 becomes 1 in `value` itself. ERR_INVALID says what is wrong with it; ret->id is then set if an id could be
 * read, else NULL. */
int rpc_parse(struct json_object *value, struct rpc_message *ret, struct err *err);

/* Answers; `result` and `data` are taken over, `id` is borrowed (NULL: null). The answer is the caller's. */
struct json_object *rpc_result(struct json_object *id, struct json_object *result);
struct json_object *rpc_error(struct json_object *id, int code, const char *text, struct json_object *data);
