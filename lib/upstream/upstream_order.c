/*
 * upstream_order.c - requests of orders and their answers: pages of a list, calls, rounds of input_required, tasks.
 *
 * A call is sent once. It is sent again only where it surely was not handled (the session was gone, the server was
 * busy and said so, its headers were wrong) or where the operator named the tool idempotent; else an answer that was
 * lost is unknown_outcome. Lists and polls may always be asked again.
 */
#include "upstream_connection.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/base/util.h"
#include "upstream_list.h"
#include "upstream_message.h"
#include "upstream_policy.h"

#define SECOND       INT64_C(1000000)
#define PAGES_MAX    100
#define ROUNDS_MAX   4
#define ATTEMPTS_MAX 2
#define LIST_LEGACY  (300 * SECOND)
#define LIST_LEAST   (10 * SECOND)
#define POLL_LEAST   (SECOND / 20)
#define POLL_MOST    (30 * SECOND)
#define BUSY_MOST    (5 * SECOND) /* Retry-After that is worth waiting for */
#define HEADER_WRONG -32020
#define PARAMS_WRONG -32602
/* What servers say of a session that they do not know, with 400. */
#define SESSION_WRONG   -32000
#define SESSION_UNKNOWN -32001

void connection_order_free(struct upstream_order *order)
{
	free(order->method);
	free(order->tool);
	free(order->arguments);
	free(order->owner);
	free(order->run);
	free(order->task);
	free(order->responses);
	free(order->request_state);
	free(order->cursor);
	upstream_list_free(order->building);
	upstream_list_free(order->held);
	free(order);
}

/* The order is done: the list is the connection's, and one reference the caller's. */
static void hand_list(struct upstream_order *order)
{
	struct upstream_order **at = &order->connection->orders;

	while (*at != order)
		at = &(*at)->next;
	*at = order->next;
	order->listed(order->arg, upstream_list_keep(order->connection->list), NULL);
	connection_order_free(order);
}

static void send_page(struct upstream_order *order)
{
	struct upstream_exchange *exchange = connection_exchange(order->connection, EXCHANGE_LIST, order);

	order->attempts++;
	message_begin(exchange, "tools/list");
	if (order->cursor != NULL) {
		buf_puts(&exchange->body, "\"cursor\":");
		message_string(&exchange->body, order->cursor);
		buf_putc(&exchange->body, ',');
	}
	message_end(exchange, false);
	connection_send(exchange);
}

static void send_list(struct upstream_order *order)
{
	struct upstream_connection *connection = order->connection;

	if (connection->list != NULL && connection->loop->now_us < connection->list_until_us) {
		hand_list(order);
		return;
	}
	if (connection->list_not_before_us > connection->loop->now_us) {
		order->not_before_us = connection->list_not_before_us;
		return;
	}
	/* One order reads it for all; who comes meanwhile looks again. */
	for (const struct upstream_order *other = connection->orders; other != NULL; other = other->next)
		if (other != order && other->list && other->building != NULL) {
			connection_again(order, SECOND / 50);
			return;
		}
	upstream_list_free(order->building); /* of an attempt that broke off */
	order->building = upstream_list_new(connection->server);
	free(steal(&order->cursor));
	order->pages = 0;
	order->bytes = 0;
	send_page(order);
}

/* Where the server wants the long form of a call: revision 2025-11-25. */
static bool wants_task(const struct upstream_order *order)
{
	struct json_object *execution =
		order->definition != NULL ? json_get(order->definition->object, "execution", json_type_object) : NULL;
	const char *support = execution != NULL ? json_get_string(execution, "taskSupport") : NULL;

	return order->connection->era == ERA_LEGACY && support != NULL && streq(support, "required");
}

static void send_call(struct upstream_order *order)
{
	struct upstream_exchange *exchange = connection_exchange(order->connection, EXCHANGE_CALL, order);
	bool tool = order->method == NULL;
	struct json_object *schema =
		order->definition != NULL ? json_get(order->definition->object, "inputSchema", json_type_object) : NULL;

	order->attempts++;
	order->started_us = clock_now_us();
	order->deadline_us = order->connection->loop->now_us + order->timeout_us;
	message_begin(exchange, tool ? "tools/call" : order->method);
	message_header(&exchange->headers, "Mcp-Name", order->tool, strlen(order->tool));
	buf_printf(&exchange->body, "\"%s\":", tool ? "name" : "uri");
	message_string(&exchange->body, order->tool);
	buf_putc(&exchange->body, ',');
	if (tool) {
		buf_puts(&exchange->body, "\"arguments\":");
		buf_add(&exchange->body, order->arguments, order->length);
		buf_putc(&exchange->body, ',');
		message_parameter_headers(&exchange->headers, schema, raw_value(order->arguments, order->length));
	}
	if (wants_task(order))
		buf_printf(&exchange->body, "\"task\":{\"ttl\":%" PRId64 "},", 2 * order->timeout_us / 1000);
	if (order->responses != NULL)
		buf_printf(&exchange->body, "\"inputResponses\":%s,", order->responses);
	if (order->request_state != NULL)
		buf_printf(&exchange->body, "\"requestState\":%s,", order->request_state);
	message_end(exchange, order->progress != NULL);
	order->token = order->progress != NULL ? exchange->id : 0;
	order->dispatched = true;
	connection_send(exchange);
}

static void send_task(struct upstream_order *order, enum exchange_kind kind)
{
	struct upstream_exchange *exchange = connection_exchange(order->connection, kind, order);

	message_begin(exchange, kind == EXCHANGE_TASK ? "tasks/get" : "tasks/result");
	message_header(&exchange->headers, "Mcp-Name", order->task, strlen(order->task));
	buf_puts(&exchange->body, "\"taskId\":");
	message_string(&exchange->body, order->task);
	buf_putc(&exchange->body, ',');
	message_end(exchange, false);
	connection_send(exchange);
}

void connection_send_order(struct upstream_order *order)
{
	int in_flight = 0;

	if (order->list) {
		send_list(order);
		return;
	}
	for (const struct upstream_order *other = order->connection->orders; other != NULL; other = other->next)
		in_flight += other->exchange != NULL && !other->list;
	if (in_flight >= CONNECTION_IN_FLIGHT)
		return;
	if (order->task != NULL)
		send_task(order, EXCHANGE_TASK);
	else
		send_call(order);
}

/* --- answers --- */

static void end_list(struct upstream_order *order, struct raw result)
{
	struct upstream_connection *connection = order->connection;
	int64_t keep = LIST_LEGACY, ttl;

	if (connection->era == ERA_MODERN) {
		keep = raw_int(raw_member(result, "ttlMs"), &ttl) && ttl > 0 ? MIN(ttl, INT32_MAX) * 1000 : 0;
		keep = MAX(keep, LIST_LEAST);
	}
	upstream_list_seal(order->building, connection->instructions, connection->version, connection->protocol);
	for (size_t i = 0; i < order->building->left_out.count; i++)
		log_event(LOG_WARN, "upstream tool left out", "server", connection->server->name, "tool",
			  order->building->left_out.items[i], NULL);
	upstream_list_free(connection->list);
	connection->list = order->building;
	order->building = NULL;
	connection->list_until_us = connection->loop->now_us + keep;
	hand_list(order);
}

static void page_came(struct upstream_order *order, const struct incoming *incoming)
{
	const struct raw result = incoming->parts[PART_RESULT], tools = incoming->result[RESULT_TOOLS],
			 cursor = incoming->result[RESULT_CURSOR];
	struct raw item;
	auto_free char *next = raw_string(cursor);
	const char *name = order->connection->server->name;
	struct err err = ERR_INIT;
	size_t at = 0;

	if (tools.text == NULL || tools.text[0] != '[') {
		connection_end_error(order, UPSTREAM_PROTOCOL, "%s answered tools/list without a list", name);
		return;
	}
	order->bytes += result.length;
	if (order->bytes > CONNECTION_LIST_MAX || ++order->pages > PAGES_MAX) {
		connection_end_error(order, UPSTREAM_LIMIT, "%s's list of tools is longer than %d MiB or %d pages",
				     name, CONNECTION_LIST_MAX >> 20, PAGES_MAX);
		return;
	}
	while (raw_item(tools, &at, &item)) {
		int result_code = upstream_list_add(order->building, item, &err);

		if (result_code < 0) {
			connection_end_error(order, result_code == -ERR_LIMIT ? UPSTREAM_LIMIT : UPSTREAM_PROTOCOL,
					     "%s's list of tools: %s", name, err.text);
			return;
		}
	}
	/* The same cursor twice would never end. */
	if (next == NULL || (order->cursor != NULL && streq(next, order->cursor))) {
		end_list(order, result);
		return;
	}
	free(order->cursor);
	order->cursor = steal(&next);
	send_page(order);
}

static char *copy_raw(struct raw value)
{
	return value.text != NULL ? xstrndup(value.text, value.length) : NULL;
}

static void poll_later(struct upstream_order *order, struct raw task)
{
	bool modern = order->connection->era == ERA_MODERN;
	int64_t interval = 0;

	raw_int(raw_member(task, modern ? "pollIntervalMs" : "pollInterval"), &interval);
	interval = MIN(MAX(interval, 0), INT32_MAX) * 1000;
	connection_again(order, MIN(MAX(interval, POLL_LEAST), POLL_MOST));
}

static void task_began(struct upstream_order *order, struct raw task)
{
	order->task = raw_string(raw_member(task, "taskId"));
	if (order->task == NULL) {
		connection_end_error(order, UPSTREAM_PROTOCOL, "%s began a task without an id",
				     order->connection->server->name);
		return;
	}
	poll_later(order, task);
}

/* `masked` NULL, or without data: it is masked here. */
static void end_result(struct upstream_order *order, struct raw result, struct raw is_error, const struct buf *masked)
{
	size_t max = (size_t)order->connection->loop->config->upstream.result_kb << 10;
	auto_buf struct buf out = {0};

	if (result.length > max) {
		connection_end_error(order, UPSTREAM_LIMIT, "%s's result has %zu bytes, at most %zu are taken",
				     order->connection->server->name, result.length, max);
		return;
	}
	if (masked == NULL || masked->data == NULL) {
		buf_init(&out, SIZE_MAX);
		mask_bytes(order->connection->mask, result.text, result.length, &out);
		masked = &out;
	}
	connection_end(order, &(struct upstream_answer){.kind = UPSTREAM_RESULT,
							.is_error = raw_is(is_error, "true"),
							.result = masked->data,
							.length = masked->length});
}

/* The server asks something before it answers. Nobody is asked where it may not: it gets that answer. */
static void input_required(struct upstream_order *order, const struct raw result[RESULT_PARTS])
{
	if (++order->rounds > ROUNDS_MAX) {
		connection_end_error(order, UPSTREAM_PROTOCOL, "%s asked for input more than %d times",
				     order->connection->server->name, ROUNDS_MAX);
		return;
	}
	free(order->request_state);
	order->request_state = copy_raw(result[RESULT_STATE]);
	connection_question(order, result[RESULT_REQUESTS]);
}

void connection_next_round(struct upstream_order *order, char *responses)
{
	free(order->responses);
	order->responses = responses;
	send_call(order);
}

static void call_answered(struct upstream_order *order, const struct incoming *incoming)
{
	const struct raw result = incoming->parts[PART_RESULT], *members = incoming->result;

	if (!raw_is_object(result))
		connection_end_error(order, UPSTREAM_PROTOCOL, "%s did not answer with a result",
				     order->connection->server->name);
	else if (raw_is(members[RESULT_TYPE], "\"input_required\""))
		input_required(order, members);
	else if (raw_is(members[RESULT_TYPE], "\"task\""))
		task_began(order, result);
	else if (wants_task(order) && raw_is_object(members[RESULT_TASK]))
		task_began(order, members[RESULT_TASK]);
	else
		end_result(order, result, members[RESULT_IS_ERROR], &incoming->masked);
}

static void task_answered(struct upstream_order *order, const struct incoming *incoming)
{
	const struct raw task = incoming->parts[PART_RESULT], status = incoming->result[RESULT_STATUS],
			 result = incoming->result[RESULT_NESTED];
	auto_free char *message = raw_string(raw_member(task, "statusMessage"));
	const char *name = order->connection->server->name;
	bool modern = order->connection->era == ERA_MODERN;

	if (raw_is(status, "\"working\"") || raw_is(status, "\"input_required\""))
		poll_later(order, task);
	else if (raw_is(status, "\"cancelled\""))
		connection_end_error(order, UPSTREAM_UNKNOWN_OUTCOME, "%s cancelled the task", name);
	else if (!modern)
		send_task(order, EXCHANGE_RESULT);
	else if (raw_is(status, "\"completed\"") && raw_is_object(result))
		end_result(order, result, raw_member(result, "isError"), NULL);
	else
		connection_end_error(order, UPSTREAM_PROTOCOL, "%s's task failed: %.300s", name,
				     message != NULL ? message : "it does not say why");
}

/* True: the order waits for a new session. */
static bool renew_session(struct upstream_order *order, int status, int64_t code)
{
	struct upstream_connection *connection = order->connection;

	/* The session is gone: a request in it was never handled. */
	bool gone = connection->session[0] != '\0' && connection->worked &&
		    (status == 404 || (status == 400 && (code == SESSION_WRONG || code == SESSION_UNKNOWN)));

	if (!gone || order->reconnects++ > 0)
		return false;
	connection_forget_session(connection);
	if (connection->state == CONNECTION_READY)
		connection_shake(connection);
	return true;
}

/* A JSON-RPC error in place of a result. */
static void refused(struct upstream_order *order, enum exchange_kind kind, int status, struct raw error)
{
	auto_free char *message = raw_string(raw_member(error, "message"));
	struct upstream_connection *connection = order->connection;
	const char *name = connection->server->name, *text = message != NULL ? message : "";
	int64_t code = 0;

	raw_int(raw_member(error, "code"), &code);
	if (renew_session(order, status, code))
		return;
	if (kind == EXCHANGE_LIST)
		connection_end_error(order, UPSTREAM_PROTOCOL, "%s refused tools/list: %.300s", name, text);
	else if (code == HEADER_WRONG && order->attempts < ATTEMPTS_MAX)
		connection_again(order, 0);
	else if (code == PARAMS_WRONG) {
		connection->list_until_us = 0; /* the tool may be gone */
		connection_end_error(order, UPSTREAM_INVALID, "%s refused the call: %.300s", name, text);
	} else {
		connection_end_error(order, UPSTREAM_PROTOCOL, "%s refused the call (%" PRId64 "): %.300s", name, code,
				     text);
	}
}

void connection_answered(struct upstream_exchange *exchange, const struct incoming *incoming)
{
	struct upstream_connection *connection = exchange->connection;
	struct upstream_order *order = exchange->order;
	enum exchange_kind kind = exchange->kind;
	const struct raw error = incoming->parts[PART_ERROR];
	int status = exchange->status;

	connection_drop(exchange);
	if (order == NULL)
		return;
	if (error.text != NULL)
		refused(order, kind, status, error);
	else if (kind == EXCHANGE_LIST)
		page_came(order, incoming);
	else if (kind == EXCHANGE_CALL)
		call_answered(order, incoming);
	else if (kind == EXCHANGE_TASK)
		task_answered(order, incoming);
	else
		end_result(order, incoming->parts[PART_RESULT], incoming->result[RESULT_IS_ERROR], &incoming->masked);
	connection_advance(connection);
}

/* --- failures --- */

static void failed_by_status(struct upstream_order *order, enum exchange_kind kind, const struct failure *failure)
{
	const char *name = order->connection->server->name;
	bool busy = failure->status == 429 || failure->status == 503;

	if (busy && failure->retry_after_us >= 0 && failure->retry_after_us <= BUSY_MOST &&
	    order->attempts < ATTEMPTS_MAX)
		connection_again(order, failure->retry_after_us);
	else if (failure->status == 401 || failure->status == 403) {
		auto_free char *wanted = connection_wanted(order->connection, failure);

		connection_end_error(order, UPSTREAM_UNAVAILABLE, "%s is not available: %s: %s", name, wanted,
				     failure->text);
	} else if ((failure->status == 502 || failure->status == 504) && kind == EXCHANGE_CALL)
		connection_end_error(order, UPSTREAM_UNKNOWN_OUTCOME, "%s: %s, so it may have done what was asked",
				     name, failure->text);
	else if (busy)
		connection_end_error(order, UPSTREAM_UNAVAILABLE, "%s is busy: %s", name, failure->text);
	else
		connection_end_error(order, kind == EXCHANGE_LIST ? UPSTREAM_UNAVAILABLE : UPSTREAM_PROTOCOL, "%s: %s",
				     name, failure->text);
}

/* What was refused for its token was not handled: true, it is sent again with another one. */
static bool waits_for_token(struct upstream_order *order, const struct failure *failure)
{
	if (failure->kind != FAILURE_STATUS || failure->status != 401 || order->renewed ||
	    !connection_renews(order->connection))
		return false;
	order->renewed = true;
	connection_again(order, 0);
	return true;
}

void connection_order_failed(struct upstream_order *order, enum exchange_kind kind, const struct failure *failure)
{
	const char *name = order->connection->server->name;
	bool gateway = failure->kind == FAILURE_STATUS && (failure->status == 502 || failure->status == 504);

	if (failure->kind == FAILURE_STATUS && renew_session(order, failure->status, 0))
		return;
	if (waits_for_token(order, failure))
		return;
	bool repeatable =
		kind != EXCHANGE_CALL || upstream_policy_any(&order->connection->server->idempotent, order->tool);

	if ((failure->kind == FAILURE_LOST || gateway) && repeatable && order->attempts < ATTEMPTS_MAX) {
		connection_again(order, 0);
		return;
	}
	switch (failure->kind) {
	case FAILURE_REFUSED:
		connection_end_error(order, UPSTREAM_UNAVAILABLE, "%s is not available: %s", name, failure->text);
		break;
	case FAILURE_LOST:
		connection_end_error(order, kind == EXCHANGE_LIST ? UPSTREAM_UNAVAILABLE : UPSTREAM_UNKNOWN_OUTCOME,
				     "%s did not answer to the end, so it may have done what was asked: %s", name,
				     failure->text);
		break;
	case FAILURE_STATUS:
		failed_by_status(order, kind, failure);
		break;
	case FAILURE_LARGE:
		connection_end_error(order, UPSTREAM_LIMIT, "%s's answer is larger than what is taken: %s", name,
				     failure->text);
		break;
	case FAILURE_GARBLED:
		connection_end_error(order, UPSTREAM_PROTOCOL, "%s's answer is not MCP: %s", name, failure->text);
	}
}
