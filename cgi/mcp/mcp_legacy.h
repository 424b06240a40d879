/*
 * mcp_legacy.h - the legacy era: revisions with sessions.
 */
#pragma once

#include "mcp.h"

extern const struct mcp_method legacy_methods[]; /* ended by {0} */
/* `version` is the MCP-Protocol-Version header, trimmed, or NULL. */
void legacy_message(struct http_exchange *exchange, const struct mcp_request *request, struct json_object *document,
		    const char *version);
/* Answers one request of a session; `stream` NULL: with one JSON object. */
void legacy_request(struct http_exchange *exchange, const struct mcp_request *request, const struct session *session,
		    struct stream *stream);
/* A notification or a response; one that nobody waits for changes nothing. */
void legacy_note(struct http_exchange *exchange, const struct rpc_message *message, const struct session *session,
		 struct json_object *document);
void legacy_delete(struct http_exchange *exchange);
/* Has the method's row answer a call of the legacy era; initialize is none of these. */
void legacy_handle(struct mcp_call *call, const struct mcp_method *method);
/* Finds the session that the request names; false: the reply says why not. */
bool legacy_session(struct http_exchange *exchange, struct json_object *id, const char *version, struct session *ret);
/* The same for a request that need not name one. Without it ret->id is "", and ret->protocol the revision that
 * `version` names, or the one that clients without that header are assumed to speak. */
bool legacy_session_or_none(struct http_exchange *exchange, struct json_object *id, const char *version,
			    struct session *ret);
