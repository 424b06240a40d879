/*
 * mcp_endpoint.c - the router of eras; see mcp_endpoint.h.
 *
 * The order of the checks is the protocol's: media type (415), size (413), JSON (400, -32700), batches, the JSON-RPC
 * envelope (400, -32600), then the era. A request is modern when its params._meta names a protocol version, or when it
 * has none but its header claims a modern one (then it is malformed; mcp_request.c).
 */
#include "mcp_endpoint.h"

#include <strings.h>

#include "cgi/http/access.h"
#include "cgi/http/body.h"
#include "cgi/http/files.h"
#include "lib/base/util.h"
#include "mcp_batch.h"
#include "mcp_legacy.h"
#include "mcp_legacy_get.h"
#include "mcp_modern.h"
#include "mcp_request.h"

#define VERSION_HEADER_MAX 64

static bool is_json(const char *content_type)
{
	static const char type[] = "application/json";

	return content_type && strncasecmp(content_type, type, sizeof(type) - 1) == 0 &&
	       strchr("; \t", content_type[sizeof(type) - 1]); /* the NUL counts: end of the value */
}

/* Clients must accept JSON and event streams; we refuse only those who say that they take neither. */
static bool accepts(const char *accept)
{
	static const char *const types[] = {"*/*", "application/json", "application/*", "text/event-stream", "text/*"};

	if (!accept || !*accept)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if (strcasestr(accept, types[i]))
			return true;
	}
	return false;
}

/* Reads the body within limits.body_mb; what is known to be too large is refused unread. */
static int read_body(struct http_exchange *exchange, struct buf *body)
{
	const char *length = request_param(exchange->request, "CONTENT_LENGTH");
	int64_t megabytes = exchange->server->config->limits.body_mb;
	struct err err = ERR_INIT;
	uint64_t bytes = 0;
	char text[128];

	if (length && *length && parse_u64(length, 0, INT64_MAX, &bytes) < 0) {
		mcp_reply_error(exchange->reply, 400, NULL, RPC_INVALID_REQUEST, "Invalid Request: bad Content-Length");
		return -ERR_INVALID;
	}
	if (bytes <= (uint64_t)megabytes << 20) {
		if (exchange->request->read_body(exchange->request->arg, body, &err) < 0) {
			mcp_reply_error(exchange->reply, 400, NULL, RPC_INVALID_REQUEST, err.text);
			return -ERR_INVALID;
		}
		if (!body->overflow)
			return 0;
	}
	access_refused(exchange, "body");
	snprintf(text, sizeof(text), "Request too large: at most %lld MiB", (long long)megabytes);
	mcp_reply_error(exchange->reply, 413, NULL, RPC_INVALID_REQUEST, text);
	return -ERR_LIMIT;
}

bool mcp_read_document(struct http_exchange *exchange, struct json_object **ret)
{
	struct reply *reply = exchange->reply;
	struct err err = ERR_INIT;
	auto_buf struct buf body = {0};
	struct access_refusal refusal;

	buf_init(&body, (size_t)exchange->server->config->limits.body_mb << 20);
	if (!is_json(request_param(exchange->request, "CONTENT_TYPE"))) {
		mcp_reply_error(reply, 415, NULL, RPC_INVALID_REQUEST,
				"Unsupported Media Type: Content-Type must be application/json");
		return false;
	}
	const char *encoding = request_param(exchange->request, "HTTP_CONTENT_ENCODING");

	if (encoding && *encoding && strcasecmp(encoding, "identity") != 0) {
		reply_header(reply, "Accept-Encoding", "identity");
		mcp_reply_error(reply, 415, NULL, RPC_INVALID_REQUEST,
				"Unsupported Media Type: the body must not be compressed (Content-Encoding)");
		return false;
	}
	if (!accepts(request_param(exchange->request, "HTTP_ACCEPT"))) {
		mcp_reply_error(reply, 406, NULL, RPC_INVALID_REQUEST,
				"Not Acceptable: Accept must list application/json and text/event-stream");
		return false;
	}
	if (!body_enter(exchange, &refusal)) {
		mcp_refuse(exchange, NULL, &refusal);
		return false;
	}
	if (read_body(exchange, &body) < 0)
		return false;
	if (json_parse_received(body.data, body.length, ret, &err) < 0) {
		err_wrap(&err, "Parse error");
		mcp_reply_error(reply, 400, NULL, RPC_PARSE_ERROR, err.text);
		return false;
	}
	return true;
}

static void post(struct http_exchange *exchange, const char *version)
{
	auto_json struct json_object *document = NULL;
	struct mcp_request request;
	struct err err = ERR_INIT;

	if (!mcp_read_document(exchange, &document))
		return;
	if (json_object_is_type(document, json_type_array)) {
		mcp_batch(exchange, document, version);
		return;
	}
	if (mcp_request_read(exchange, document, version, &request, &err) < 0) {
		mcp_reply_error(exchange->reply, 400, request.message.id, RPC_INVALID_REQUEST, err.text);
		return;
	}
	mcp_request_note(exchange, &request);
	if (!mcp_request_begin(exchange, &request))
		return;
	const struct rpc_message *message = &request.message;

	/* A revision that we do not know may have one, and is negotiated. */
	if (message->kind == RPC_REQUEST && streq(message->method, "initialize") && !request.modern && !request.named &&
	    mcp_revision_claims_modern(version) && mcp_revision_find(version)) {
		mcp_reply_error(exchange->reply, 400, message->id, RPC_HEADER_MISMATCH,
				"Header mismatch: the revision in MCP-Protocol-Version has no initialize");
	} else if (!request.modern) {
		legacy_message(exchange, &request, document, version);
	} else if (message->kind == RPC_REQUEST) {
		modern_message(exchange, &request, version);
	} else {
		/* The modern era defines no notification from a client over HTTP: it is taken and dropped. */
		mcp_observe_received(mcp_revision_newest(true)->name, document);
		mcp_accepted(exchange->reply);
	}
	mcp_request_end(exchange, &request);
}

void mcp_handle(struct http_exchange *exchange, const char *method, const char *rest)
{
	char buffer[VERSION_HEADER_MAX];
	const char *raw = request_param(exchange->request, "HTTP_MCP_PROTOCOL_VERSION");
	const char *version = request_header(exchange->request, "HTTP_MCP_PROTOCOL_VERSION", buffer, sizeof(buffer));
	/* /mcp?results=WORD: some clients hand _meta on to the model, and an address is what every client lets its user
	 * set. */
	auto_free char *results = request_query(exchange->request, "results");
	const bool results_valid = !results || config_results_valid(results);

	(void)rest;
	if (results && results_valid)
		snprintf(exchange->token.results, sizeof(exchange->token.results), "%s", results);
	if (raw && !version)
		version = raw; /* too long to be one of ours: it is compared and refused below */
	if (version && !*version)
		version = NULL;
	if (!results_valid) {
		reply_refuse(exchange->reply, 400, "results in the address must be content, structured, both or none");
	} else if (streq(method, "POST")) {
		post(exchange, version);
	} else if (mcp_revision_claims_modern(version)) {
		reply_header(exchange->reply, "Allow", "POST");
		reply_refuse(exchange->reply, 405, "the revision in MCP-Protocol-Version uses POST only");
	} else if (streq(method, "GET")) {
		legacy_get(exchange, version);
	} else {
		legacy_delete(exchange);
	}
}
