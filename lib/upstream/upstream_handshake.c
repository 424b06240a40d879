/*
 * upstream_handshake.c - which era a server speaks, and the begin of a session.
 *
 * The first request is server/discover of the modern era. Its refusal means legacy, then initialize follows on the same
 * connection; but a server that asks for authorization, is broken (5xx) or does not answer over HTTP has said nothing
 * about its era. What was found out is kept for a day. Facts: MCP 2026-07-28, basic/versioning; transports/stdio,
 * backward compatibility; basic/lifecycle of the legacy revisions.
 */
#include "upstream_connection.h"

#include <string.h>

#include "lib/base/util.h"
#include "lib/base/version.h"
#include "upstream_message.h"

#define SECOND         INT64_C(1000000)
#define ERA_KEPT       (24 * 3600 * SECOND)
#define SILENCE        (5 * SECOND) /* of a program, to a request that it does not know */
#define PROBES_MAX     2
#define VERSION_WRONG  -32022
#define HEADER_WRONG   -32020
#define FEATURE_WANTED -32021

static void probe(struct upstream_connection *connection)
{
	struct upstream_exchange *exchange = connection_exchange(connection, EXCHANGE_PROBE, NULL);

	connection->era = ERA_MODERN; /* how it is written */
	connection->probes++;
	exchange->deadline_us =
		connection->server->command != NULL ? connection->loop->now_us + SILENCE : connection->deadline_us;
	connection_enter(connection, CONNECTION_PROBING);
	message_begin(exchange, "server/discover");
	message_end(exchange, false);
	connection_send(exchange);
}

static void initialize(struct upstream_connection *connection)
{
	struct upstream_exchange *exchange;
	bool relay = connection->loop->ask != NULL && connection->server->elicitation == UPSTREAM_ELICITATION_RELAY;

	connection->era = ERA_LEGACY;
	connection->era_us = connection->loop->now_us;
	connection->protocol = "";
	connection->deadline_us = connection->loop->now_us + connection->server->start_seconds * SECOND;
	connection_enter(connection, CONNECTION_INITIALIZING);
	exchange = connection_exchange(connection, EXCHANGE_INITIALIZE, NULL);
	message_begin(exchange, "initialize");
	buf_printf(&exchange->body,
		   "\"protocolVersion\":\"" UPSTREAM_LEGACY "\",\"capabilities\":{%s%s%s},\"clientInfo\":{\"name\":"
		   "\"sallyport\",\"version\":\"" SALLYPORT_VERSION "\"},",
		   connection->server->roots.count > 0 ? "\"roots\":{}" : "",
		   relay && connection->server->roots.count > 0 ? "," : "", relay ? "\"elicitation\":{}" : "");
	message_end(exchange, false);
	connection_send(exchange);
}

void connection_shake(struct upstream_connection *connection)
{
	bool known = connection->era != ERA_UNKNOWN &&
		     (connection->era_us == 0 || connection->loop->now_us - connection->era_us < ERA_KEPT);

	connection->probes = 0;
	if (!known)
		probe(connection);
	else if (connection->era == ERA_LEGACY)
		initialize(connection);
	else if (connection->version != NULL)
		connection_enter(connection, CONNECTION_READY);
	else
		probe(connection);
	if (connection->state == CONNECTION_READY)
		connection_advance(connection);
}

static void keep_about(struct upstream_connection *connection, struct raw result)
{
	struct raw info = raw_member(result, "serverInfo");
	auto_free char *name = raw_string(raw_member(info, "name")), *version = raw_string(raw_member(info, "version"));

	free(connection->instructions);
	free(connection->version);
	connection->instructions = raw_string(raw_member(result, "instructions"));
	connection->version = xasprintf("%.100s %.60s", name != NULL ? name : "", version != NULL ? version : "");
}

static bool names_modern(struct raw versions)
{
	struct raw item;
	size_t at = 0;

	while (raw_item(versions, &at, &item))
		if (raw_is(item, "\"" UPSTREAM_MODERN "\""))
			return true;
	return false;
}

static void probed(struct upstream_connection *connection, struct raw result, struct raw error)
{
	static const char refuses[] = "it speaks " UPSTREAM_MODERN " and refuses every request";
	int64_t code = 0;

	raw_int(raw_member(error, "code"), &code);
	if (error.text == NULL && names_modern(raw_member(result, "supportedVersions"))) {
		connection->era_us = connection->loop->now_us;
		connection->protocol = UPSTREAM_MODERN;
		keep_about(connection, result);
		connection_enter(connection, CONNECTION_READY);
	} else if (code == HEADER_WRONG || code == FEATURE_WANTED ||
		   (code == VERSION_WRONG && names_modern(raw_member(raw_member(error, "data"), "supported")))) {
		if (connection->probes < PROBES_MAX)
			probe(connection);
		else
			connection_broken(connection, refuses, refuses);
	} else {
		initialize(connection);
	}
}

static void initialized(struct upstream_connection *connection, struct raw result, struct raw error)
{
	auto_free char *message = raw_string(raw_member(error, "message"));
	auto_free char *version = raw_string(raw_member(result, "protocolVersion"));
	static const char *const revisions[] = {UPSTREAM_LEGACY_ALL};
	const char *revision = NULL;
	struct upstream_exchange *notice;

	for (size_t i = 0; version != NULL && i < ARRAY_SIZE(revisions); i++)
		if (streq(revisions[i], version))
			revision = revisions[i];
	if (revision == NULL) {
		const char *why = error.text != NULL
					  ? "it refused initialize"
					  : "it answered initialize with a protocol version that we do not speak";
		auto_free char *text = message != NULL ? xasprintf("%s: %.300s", why, message) : xstrdup(why);

		connection->era = ERA_UNKNOWN;
		connection_broken(connection, why, text);
		return;
	}
	connection->protocol = revision;
	keep_about(connection, result);
	notice = connection_exchange(connection, EXCHANGE_NOTICE, NULL);
	buf_puts(&notice->body, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
	connection_enter(connection, CONNECTION_READY);
	connection_send(notice);
	if (connection->server->url != NULL && connection->loop->ask != NULL &&
	    connection->server->elicitation == UPSTREAM_ELICITATION_RELAY)
		connection_send(connection_exchange(connection, EXCHANGE_STREAM, NULL));
}

void connection_shaken(struct upstream_exchange *exchange, struct raw result, struct raw error)
{
	struct upstream_connection *connection = exchange->connection;
	bool probing = exchange->kind == EXCHANGE_PROBE;

	connection_drop(exchange);
	if (probing)
		probed(connection, result, error);
	else
		initialized(connection, result, error);
	connection_advance(connection);
}

/* A status by which a server says that it does not know the request; not that it is broken, busy or closed to us. */
static bool says_unknown(const struct failure *failure)
{
	static const int others[] = {401, 403, 408, 429};

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (failure->status == others[i])
			return false;
	return failure->kind == FAILURE_STATUS && failure->status >= 400 && failure->status < 500;
}

void connection_shake_failed(struct upstream_connection *connection, enum exchange_kind kind,
			     const struct failure *failure)
{
	bool probing = kind == EXCHANGE_PROBE, program = connection->server->command != NULL;

	/* A program's silence, rubbish and any refusal of a request that is not known: legacy. */
	if (probing && (program || says_unknown(failure) || failure->kind == FAILURE_GARBLED)) {
		initialize(connection);
		return;
	}
	if (connection->era_us == 0 || probing)
		connection->era = ERA_UNKNOWN;
	if (failure->kind == FAILURE_STATUS && failure->status == 401 && connection_renews(connection)) {
		connection_enter(connection, CONNECTION_CLOSED); /* and opened again with the new token */
		connection->transport->close(connection);
		return;
	}
	if (failure->kind == FAILURE_STATUS && (failure->status == 401 || failure->status == 403)) {
		auto_free char *wanted = connection_wanted(connection, failure);

		connection_broken(connection, "it wants other credentials", wanted);
		return;
	}
	const char *ours = failure->kind == FAILURE_GARBLED ? "its answer is not MCP" : failure->text;
	auto_free char *why = failure->kind == FAILURE_STATUS
				      ? xasprintf("it answered with status %d", failure->status)
				      : xstrdup(ours);

	connection_broken(connection, why, failure->text);
}
