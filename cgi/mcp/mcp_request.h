/*
 * mcp_request.h - a client's message, its era, its method's row and the tool that it calls.
 *
 * They are looked up once, before anything else reads the message. This is also where a token's scopes are compared
 * with the scope that the row names.
 */
#pragma once

#include "mcp.h"

/* ERR_INVALID as rpc_parse: ret->message.id is then the id, where it could be read. */
int mcp_request_read(const struct http_exchange *exchange, struct json_object *document, const char *version,
		     struct mcp_request *ret, struct err *err);
/* The same where only the legacy era is spoken: batches, the older transport (sse.h). */
int mcp_request_read_legacy(const struct http_exchange *exchange, struct json_object *document, struct mcp_request *ret,
			    struct err *err);
/* Its name for the log: the method's, if we have it; what a client makes up is in no log. */
void mcp_request_note(const struct http_exchange *exchange, const struct mcp_request *request);
/* Methods and tools have figures of their own from now on. */
void mcp_declare(const struct server_tables *tables);
/* What a token needs for it, for access_scope. */
unsigned mcp_request_scope(const struct mcp_request *request);
/* Does it call a tool? Such requests take a place among limits.in_flight and can be cancelled. */
bool mcp_request_calls(const struct mcp_request *request);
/* Has the token the scope, and may it start here? A tool that only reads is served while the host is drained. */
struct access_refusal;
bool mcp_request_allowed(const struct http_exchange *exchange, const struct mcp_request *request,
			 struct access_refusal *ret);
/* May the token do this now? False: the reply says why not. Every true is followed by one mcp_request_end. */
bool mcp_request_begin(struct http_exchange *exchange, const struct mcp_request *request);
void mcp_request_end(struct http_exchange *exchange, const struct mcp_request *request);
