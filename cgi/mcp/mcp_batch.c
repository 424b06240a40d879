/*
 * mcp_batch.c - several messages in one POST, which one revision of the legacy era has.
 *
 * A batch is refused as a whole, before any of it runs, if the token lacks a scope that one of its members needs, or if
 * it may not send that many messages now (a batch of N counts as N). Otherwise the members are answered in order, in
 * one JSON array. Only one of them is under way at a time, so a batch takes one place among limits.in_flight.
 */
#include "mcp_batch.h"

#include "cgi/http/access.h"
#include "cgi/http/hub.h"
#include "lib/base/util.h"
#include "mcp_legacy.h"
#include "mcp_request.h"

/* One message. The call of a tool can be cancelled by another request, also while it waits for its turn. */
struct member {
	struct mcp_request request;
	struct json_object *refused; /* its answer, if it could not be taken */
	struct hub_inflight inflight;
	char *id; /* inflight.id; NULL: it is no such call */
};

struct batch {
	struct http_exchange *exchange;
	struct json_object *document;
	struct session session;
	struct member *members;
	size_t count;
	bool calls; /* a tool */
};

static void member_refuse(struct member *member, int code, const char *text)
{
	member->refused = rpc_error(member->request.message.id, code, text, NULL);
	mcp_observe(NULL, member->refused);
}

static void member_begin(struct member *member, struct hub *hub, const struct session *session)
{
	struct err err = ERR_INIT;

	if (member->refused || !*session->id || !mcp_request_calls(&member->request))
		return;
	member->id = mcp_id_text(member->request.message.id);
	member->inflight = (struct hub_inflight){.session = session->id, .id = member->id, .stream = "", .wake_fd = -1};
	if (hub_inflight_begin(hub, &member->inflight, &err) == 0)
		return;
	free(steal(&member->id));
	member_refuse(member, RPC_INTERNAL, err.text);
}

/* The answer to a request; NULL: it was cancelled. */
static struct json_object *member_answer(struct member *member, struct http_exchange *exchange,
					 const struct session *session)
{
	struct mcp_call call = {.exchange = exchange,
				.message = &member->request.message,
				.tool = member->request.tool,
				.session = *session->id ? session : NULL,
				.revision = mcp_revision_of(session->protocol),
				.inflight = member->id ? &member->inflight : NULL,
				.hangup_fd = -1};

	legacy_handle(&call, member->request.method);
	struct json_object *answer = mcp_answer(&call);

	if (!call.silent)
		return answer;
	json_object_put(answer);
	return NULL;
}

/* Reads the members and holds them against what the token may do; false: the reply says why not. */
static bool admit(struct batch *batch)
{
	struct http_exchange *exchange = batch->exchange;
	struct access_refusal refusal;
	struct json_object *id = NULL;
	bool admitted = access_rate_batch(exchange, batch->count, &refusal);

	for (size_t i = 0; admitted && i < batch->count; i++) {
		struct member *member = &batch->members[i];
		struct err err = ERR_INIT;

		if (mcp_request_read_legacy(exchange, json_object_array_get_idx(batch->document, i), &member->request,
					    &err) < 0) {
			member_refuse(member, RPC_INVALID_REQUEST, err.text);
			continue;
		}
		batch->calls |= mcp_request_calls(&member->request);
		id = member->request.message.id;
		admitted = mcp_request_allowed(exchange, &member->request, &refusal);
	}
	if (admitted && batch->calls) {
		id = NULL;
		admitted = access_enter(exchange, &refusal);
	}
	if (!admitted)
		mcp_refuse(exchange, id, &refusal);
	return admitted;
}

/* The members in their order. */
static void answer(struct batch *batch)
{
	struct json_object *answers = json_object_new_array();
	struct hub *hub = batch->exchange->server->hub;

	for (size_t i = 0; i < batch->count; i++)
		member_begin(&batch->members[i], hub, &batch->session);
	for (size_t i = 0; i < batch->count; i++) {
		struct member *member = &batch->members[i];
		struct json_object *answer = steal(&member->refused);

		if (!answer && member->request.message.kind == RPC_REQUEST)
			answer = member_answer(member, batch->exchange, &batch->session);
		else if (!answer)
			legacy_note(batch->exchange, &member->request.message, &batch->session,
				    json_object_array_get_idx(batch->document, i));
		if (answer)
			json_object_array_add(answers, answer);
	}
	for (size_t i = 0; i < batch->count; i++) {
		if (batch->members[i].id)
			hub_inflight_end(hub, &batch->members[i].inflight);
		free(batch->members[i].id);
	}
	if (batch->calls)
		access_leave(batch->exchange);
	if (json_object_array_length(answers) > 0) {
		mcp_reply(batch->exchange->reply, 200, answers);
	} else {
		json_object_put(answers);
		mcp_accepted(batch->exchange->reply);
	}
}

void mcp_batch(struct http_exchange *exchange, struct json_object *document, const char *version)
{
	size_t count = json_object_array_length(document);
	auto_free struct member *members = xcalloc(MIN(count, MCP_BATCH_MAX) + 1, sizeof(*members));
	struct batch batch = {.exchange = exchange, .document = document, .members = members, .count = count};
	struct json_object *ignored;
	const char *fault = NULL;
	bool modern = false; /* a member belongs to that era, which has no batches */

	snprintf(exchange->reply->method, sizeof(exchange->reply->method), "(batch)");
	for (size_t i = 0; i < count && !modern; i++) {
		struct json_object *member = json_object_array_get_idx(document, i);
		struct json_object *meta =
			json_get(json_get(member, "params", json_type_object), "_meta", json_type_object);

		modern = json_object_object_get_ex(meta, MCP_META_VERSION, &ignored);
	}
	if (modern)
		fault = "Invalid Request: a revision without sessions has no batches";
	else if (count == 0)
		fault = "Invalid Request: empty batch";
	else if (!legacy_session_or_none(exchange, NULL, version, &batch.session))
		return;
	else if (!mcp_revision_of(batch.session.protocol)->batches)
		fault = "Invalid Request: the revision of this session, or of MCP-Protocol-Version, has no batches";
	else if (count > MCP_BATCH_MAX)
		fault = "Invalid Request: more than 100 messages in a batch";
	if (fault)
		mcp_reply_error(exchange->reply, 400, NULL, RPC_INVALID_REQUEST, fault);
	else if (admit(&batch))
		answer(&batch);
	for (size_t i = 0; i < MIN(count, MCP_BATCH_MAX); i++)
		json_object_put(members[i].refused);
}
