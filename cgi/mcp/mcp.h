/*
 * mcp.h - the Model Context Protocol: a call, its answer, and what all methods share.
 *
 * mcp_endpoint.c takes a request, mcp_request.c decides which era it belongs to: mcp_legacy.c (2024-11-05 to
 * 2025-11-25: initialize, sessions) or mcp_modern.c (2026-07-28: every request carries its version, no sessions). Each
 * has a table of methods, whose handlers get a struct mcp_call. Nothing is remembered about a connection.
 */
#pragma once

#include "cgi/http/http.h"
#include "cgi/http/stream.h"
#include "revision.h"
#include "rpc.h"

#define MCP_META_VERSION      "io.modelcontextprotocol/protocolVersion"
#define MCP_META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define MCP_META_CLIENT       "io.modelcontextprotocol/clientInfo"
#define MCP_META_LOG_LEVEL    "io.modelcontextprotocol/logLevel"
#define MCP_META_SERVER       "io.modelcontextprotocol/serverInfo"

/* One request being answered. A handler sets `result` and returns 0, or calls mcp_fail. */
struct mcp_call {
	struct http_exchange *exchange;
	const struct rpc_message *message;
	const struct tool *tool;       /* of tools/call; NULL: there is no such tool */
	const struct session *session; /* legacy; NULL: the request names none */
	const struct mcp_revision *revision; /* that is spoken; never NULL */
	int hangup_fd; /* >= 0: the client's leaving is a cancel (modern) */
	struct json_object *result;
	int code;   /* of the JSON-RPC error; 0: none */
	int status; /* HTTP status of an error where it is not 200; 0: 200 */
	char text[ERR_TEXT_SIZE];
	struct json_object *data;
	/* for what is sent before the answer (mcp_stream.h) */
	struct stream *stream;     /* NULL: only one answer can be sent */
	struct hub_inflight *inflight; /* legacy; NULL: cannot be cancelled */
	char stream_id[ID_SIZE];   /* legacy: the stream is resumable under this name; "": it is not */
	int64_t stream_number;     /* of the last event */
	int64_t progress;          /* the last one sent */
	/* tools/call may be answered with a task (mcp_tasks.h), or must be */
	struct {
		bool possible, asked;
		int64_t ttl_ms; /* 0: not said */
	} task;
	bool silent;               /* cancelled: no answer */
};
/* What a token needs for a method whose row cannot say it alone, besides the scopes of cgi/http/access.h. */
#define MCP_SCOPE_TOOL (1u << 30) /* the scope of the tool that is called */
#define MCP_SCOPE_REF  (1u << 29) /* completion: to complete parts of resources takes what reading them takes */
/* Only the protocol's cacheable methods say anything about it. */
enum mcp_cache { MCP_CACHE_UNSAID, MCP_CACHE_PRIVATE, MCP_CACHE_PUBLIC };
struct mcp_method {
	const char *name;
	int (*handle)(struct mcp_call *call);
	unsigned scope;       /* what a token must have; a row without one is refused to everybody */
	bool cancellable;     /* legacy: it takes long enough */
	bool session;         /* legacy: it changes the session, so there must be one */
	const char *header;   /* modern: the member of params that the header Mcp-Name repeats; NULL: none */
	enum mcp_cache cache; /* modern: what clients may do with the result … */
	int64_t ttl_ms;       /* … and for how long */
};
/* A row; the scope cannot be left out. Further members follow by name. */
#define MCP_METHOD(name_, handle_, scope_, ...) {.name = name_, .handle = handle_, .scope = scope_, ##__VA_ARGS__}
/* A client's message, its era, its method's row and the tool that it calls (mcp_request.h). */
struct mcp_request {
	struct rpc_message message;
	bool named;                      /* params._meta names a revision, as the modern era wants it */
	bool modern;                     /* the era that answers it */
	const struct mcp_method *method; /* a request's row; NULL: this era has no such method */
	const struct tool *tool;         /* what tools/call calls; NULL: no such tool */
};
/* What completion/complete asks for. */
#define COMPLETION_VALUES_MAX 100 /* the protocol's maximum in one answer */
struct mcp_completion {
	const char *argument, *value;
	struct json_object *context; /* the arguments known so far; NULL: none */
};
int mcp_fail(struct mcp_call *call, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The answer to `call` as a JSON-RPC object; takes result and data out of it. */
struct json_object *mcp_answer(struct mcp_call *call);
/* What is noted of every message that goes to a client, and of every notification and response that comes from one.
 * NULL in the programs that are installed; the tests link a gateway with a recorder (tests/exchanges). */
struct mcp_seen {
	struct json_object *message;
	const struct mcp_call
		*call; /* the request that it answers or belongs to; NULL: to none, or it was refused before */
	const char *protocol;        /* of a message without a call: the revision that is spoken; NULL: not known */
	bool received;
};
extern void (*mcp_observer)(const struct mcp_seen *seen);
void mcp_observe(const struct mcp_call *call, struct json_object *message);
/* A message of ours that belongs to no request, as JSON text; one of the client's. */
void mcp_observe_unasked(const char *protocol, const char *text);
void mcp_observe_received(const char *protocol, struct json_object *message);
/* Sends a JSON-RPC object, which is taken over. */
void mcp_reply(struct reply *reply, int status, struct json_object *answer);
void mcp_reply_error(struct reply *reply, int status, struct json_object *id, int code, const char *text);
/* 202 without a body. */
void mcp_accepted(struct reply *reply);
/* The reply to what may not be done; `id` NULL: not known. */
struct access_refusal;
void mcp_refuse(const struct http_exchange *exchange, struct json_object *id, const struct access_refusal *refusal);
const struct mcp_method *mcp_method_find(const struct mcp_method *table, const char *name);

/* mcp_fail with a name of the client's choice behind the text, cut to MCP_NAME_SHOWN bytes. */
#define MCP_NAME_SHOWN 100
int mcp_fail_name(struct mcp_call *call, int code, const char *text, const char *name);

/* Modern: fails with 400 -32021 unless the request declares the capability. */
int mcp_require(struct mcp_call *call, const char *capability);
/* Do a client's capabilities include questions to its user by a form? */
bool mcp_elicits(struct json_object *capabilities);
bool mcp_offers(const struct mcp_call *call, const char *capability);
/* Do a client's capabilities say that it shows pages of this type, which tools name (tools.h)? */
#define MCP_APPS_EXTENSION "io.modelcontextprotocol/ui"
#define MCP_APP_TYPE       "text/html;profile=mcp-app"
bool mcp_shows_apps(struct json_object *capabilities);
/* A JSON-RPC id as text, the caller's: how requests are distinguished within a session. */
char *mcp_id_text(struct json_object *id);

/* Which details the request asks for in its _meta, in place of the address and the token (tools.h). */
int mcp_results(struct mcp_call *call);
/* params.arguments, NULL where it is absent or null; what is no object fails, and of a text the error says how to send
 * it. */
int mcp_arguments(struct mcp_call *call, struct json_object **ret);
/* params.cursor of a list; NULL: absent, null or "", which is the first page. */
struct json_object *mcp_cursor(const struct mcp_call *call);
/* Methods of both eras, and subscriptions/listen of the modern one. */
int mcp_tools_list(struct mcp_call *call);
int mcp_tools_call(struct mcp_call *call);
int mcp_completion(struct mcp_call *call);
int mcp_listen(struct mcp_call *call);
