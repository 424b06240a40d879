/*
 * mcp_stream.h - what is sent before the answer: notifications, questions to the client, signs of life.
 *
 * A call is answered with one JSON object unless something is sent before it, or it takes so long that a keep-alive is
 * due: then the reply becomes an event stream. In the legacy era every event is stored before it is sent
 * (store_event.h), so that a client that lost the connection can ask for what it missed; the handler goes on without
 * it. In the modern era a client that leaves has cancelled.
 */
#pragma once

#include "cgi/http/hub.h"
#include "mcp.h"

#define MCP_EVENT_ID_MAX       64
#define MCP_EVENTS_MAX         2000  /* notifications kept of one resumable stream; more are dropped */
#define MCP_ASK_SECONDS        60    /* for a client's answer to a question of ours */

extern const char *const mcp_log_levels[]; /* from debug to emergency, ended by NULL */
int mcp_log_level(const char *name);       /* its index; -1: no such level */
/* The notification to a client about a topic. */
const char *mcp_topic_method(enum hub_topic topic);
/* `params` is taken over. Harmless where nothing can be sent. */
void mcp_notify(struct mcp_call *call, const char *method, struct json_object *params);
/* The request's progressToken; NULL: none. */
struct json_object *mcp_progress_token(const struct mcp_call *call);
/* Did the request come with a progressToken, on a reply that can be a stream? */
bool mcp_wants_progress(const struct mcp_call *call);
/* `total` < 0: unknown; `text` NULL: none. Dropped unless progress is greater than before. */
void mcp_progress(struct mcp_call *call, int64_t progress, int64_t total, const char *text);
/* notifications/message, where the client asked for this level: by logging/setLevel; the fixtures log everything until
 * then, and to those of the modern era that ask for it in the request. Harmless where nothing can be sent. */
void mcp_log(struct mcp_call *call, const char *level, const char *text);
void mcp_keep_alive(struct mcp_call *call);
/* Why no question can be put to the user of this request's client, as in "this client …"; NULL: one can. */
const char *mcp_cannot_elicit(const struct mcp_call *call);
/* A request to the client of a legacy session that is under way: begin, poll until *ret, the response's `result` (the
 * caller's), is not NULL or it fails, end. One at a time in a call. ERR_UNAVAILABLE: the client cannot be asked, or
 * refused; ERR_CANCELLED: the call was cancelled, or the server stops. */
struct mcp_question {
	const char *method;
	char id[24], quoted[28];
};
int mcp_question_begin(struct mcp_call *call, const char *method, struct json_object *params, struct mcp_question *ret,
		       struct err *err);
int mcp_question_poll(struct mcp_call *call, const struct mcp_question *question, int timeout_ms,
		      struct json_object **ret, struct err *err);
/* `withdraw`: there was no answer, and none is wanted any more. */
void mcp_question_end(struct mcp_call *call, const struct mcp_question *question, bool withdraw);
/* A request to the client of a legacy session; *ret is its result, the caller's. ERR_UNAVAILABLE: it cannot be asked;
 * ERR_CANCELLED. */
int mcp_ask(struct mcp_call *call, const char *method, struct json_object *params, struct json_object **ret,
	    struct err *err);
/* The answer, as stream or as JSON object with this status. */
void mcp_finish(struct mcp_call *call, int status);
/* "STREAM_NUMBER" in both directions; false: not one of ours. */
void mcp_event_id(const char *stream, int64_t number, char ret[MCP_EVENT_ID_MAX]);
bool mcp_event_id_parse(const char *text, char ret_stream[ID_SIZE], int64_t *ret_number);
