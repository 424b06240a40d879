/*
 * upstream_message.h - writes JSON-RPC requests to upstream servers, and the headers that the modern era repeats them
 * in.
 *
 * A request is written in one go: message_begin, then its params, each ended by a comma ("\"name\":\"x\","), then
 * message_end, which adds what every request of the modern era says of its sender.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/buf.h"
#include "lib/base/json.h"
#include "upstream_raw.h"

struct upstream_exchange;

void message_begin(struct upstream_exchange *exchange, const char *method);
void message_end(struct upstream_exchange *exchange, bool progress);
void message_string(struct buf *out, const char *text); /* with its quotes */

/* HTTP, modern: "Mcp-Method: tools/call\n"; the value is made fit for a header (SEP-2243: plain or =?base64?…?=). */
void message_header(struct buf *headers, const char *name, const char *value, size_t length);
/* Mcp-Param-*, of the arguments whose property in `schema` has an x-mcp-header. */
void message_parameter_headers(struct buf *headers, struct json_object *schema, struct raw arguments);
/* Is every x-mcp-header of the schema one that can be sent? */
int message_check_headers(struct json_object *schema, struct err *err);
