/*
 * upstream_life.c - a connection's life: its state, the orders that wait for it, deadlines. See
 * upstream_connection.h.
 *
 * connection_advance() is called whenever something may have become possible, and does what the state asks for: a
 * closed connection with orders is opened, a ready one sends as many orders as it has room for. Whatever goes wrong
 * with the connection itself ends in connection_broken(): it is closed, and each order learns what became of it. An
 * order that was not sent is refused at once, with the reason; the next one tries again, after the back-off where the
 * server is a program.
 */
#include "upstream_connection.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/base/util.h"
#include "upstream_list.h"
#include "upstream_login.h"
#include "upstream_message.h"

#define SECOND        INT64_C(1000000)
#define BODY_MAX      (4 << 20)
#define HEADERS_MAX   (64 << 10)
#define BACKOFF_MAX   60
#define LIVED_SECONDS 60 /* a program that lived so long starts without back-off */
#define STARTS_MAX    5  /* failures in a row after which it is left alone for BACKOFF_MAX */
#define STARTING_MAX  2  /* programs at once */

struct upstream_connection *connection_new(struct connection_loop *loop, const struct upstream_key *key, int instance,
					   const struct transport *transport)
{
	struct upstream_connection *connection = xcalloc(1, sizeof(*connection));

	connection->loop = loop;
	connection->server = key->server;
	connection->transport = transport;
	connection->owner = xstrdup(key->owner);
	connection->run = xstrdup(key->run);
	connection->instance = instance;
	connection->protocol = "";
	connection->used_us = loop->now_us;
	connection_new_mask(connection, &(struct bind_strings){0});
	share_init(&connection->share, CONNECTION_WORK_US);
	return connection;
}

struct upstream_exchange *connection_exchange(struct upstream_connection *connection, enum exchange_kind kind,
					      struct upstream_order *order)
{
	struct upstream_exchange *exchange = xcalloc(1, sizeof(*exchange));

	exchange->connection = connection;
	exchange->kind = kind;
	exchange->order = order;
	exchange->max = kind == EXCHANGE_LIST ? CONNECTION_LIST_MAX : connection->loop->result_max;
	if (kind < EXCHANGE_NOTICE)
		exchange->id = ++connection->loop->next_id;
	buf_init(&exchange->body, BODY_MAX);
	buf_init(&exchange->headers, HEADERS_MAX);
	exchange->next = connection->exchanges;
	connection->exchanges = exchange;
	if (order != NULL)
		order->exchange = exchange;
	return exchange;
}

void connection_send(struct upstream_exchange *exchange)
{
	exchange->connection->transport->send(exchange->connection, exchange);
}

void connection_drop(struct upstream_exchange *exchange)
{
	struct upstream_exchange **at = &exchange->connection->exchanges;

	while (*at != exchange)
		at = &(*at)->next;
	*at = exchange->next;
	if (exchange->order != NULL)
		exchange->order->exchange = NULL;
	exchange->connection->transport->forget(exchange->connection, exchange);
	buf_clear(&exchange->body);
	buf_clear(&exchange->headers);
	free(exchange);
}

struct upstream_exchange *connection_find(struct upstream_connection *connection, int64_t id)
{
	for (struct upstream_exchange *exchange = connection->exchanges; exchange != NULL; exchange = exchange->next)
		if (exchange->id == id && id != 0)
			return exchange;
	return NULL;
}

void connection_enter(struct upstream_connection *connection, enum connection_state state)
{
	connection->state = state;
	if (connection->starting && (state == CONNECTION_READY || state == CONNECTION_CLOSED)) {
		connection->starting = false;
		connection->loop->starting--;
	}
	if (state == CONNECTION_READY) {
		connection->problem[0] = '\0';
		connection->worked = true;
		if (connection->server->url != NULL)
			connection->failures = 0;
	}
}

void connection_forget_session(struct upstream_connection *connection)
{
	connection->session[0] = '\0';
	connection->worked = false;
}

void connection_end(struct upstream_order *order, struct upstream_answer *answer)
{
	struct upstream_connection *connection = order->connection;
	struct upstream_order **at = &connection->orders;
	auto_buf struct buf out;

	if (order->exchange != NULL)
		connection_drop(order->exchange);
	while (*at != order)
		at = &(*at)->next;
	*at = order->next;
	connection->used_us = connection->loop->now_us;
	connection_unask(connection->loop, order, NULL);
	answer->dispatched = order->dispatched;
	answer->protocol = connection->protocol;
	answer->attempts = order->attempts;
	answer->queued_us = order->queued_us;
	answer->started_us = order->started_us;
	answer->finished_us = clock_now_us();
	/* The texts that leave go through the mask; a result has. */
	buf_init(&out, SIZE_MAX);
	if (answer->kind != UPSTREAM_RESULT) {
		mask_bytes(connection->mask, answer->text, strlen(answer->text), &out);
		answer->text = out.data;
	}
	if (order->list) {
		struct err err = ERR_INIT;

		err_set(&err,
			answer->kind == UPSTREAM_LIMIT       ? ERR_LIMIT
			: answer->kind == UPSTREAM_PROTOCOL  ? ERR_CORRUPT
			: answer->kind == UPSTREAM_CANCELLED ? ERR_CANCELLED
							     : ERR_UNAVAILABLE,
			"%s", answer->text != NULL ? answer->text : "");
		order->listed(order->arg, NULL, &err);
	} else {
		order->done(order->arg, answer);
	}
	connection_order_free(order);
}

void connection_end_error(struct upstream_order *order, enum upstream_kind kind, const char *format, ...)
{
	char text[ERR_TEXT_SIZE];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	connection_end(order, &(struct upstream_answer){.kind = kind, .text = text});
}

void connection_again(struct upstream_order *order, int64_t after_us)
{
	order->not_before_us = order->connection->loop->now_us + after_us;
}

static void back_off(struct upstream_connection *connection)
{
	int64_t now = connection->loop->now_us;

	if (connection->server->url != NULL)
		return;
	if (connection->started_us != 0 && now - connection->started_us > LIVED_SECONDS * SECOND)
		connection->failures = 0;
	connection->failures++;
	int seconds = connection->failures >= STARTS_MAX ? BACKOFF_MAX : 1 << (connection->failures - 1);

	connection->not_before_us = now + MIN(seconds, BACKOFF_MAX) * SECOND;
}

void connection_broken(struct upstream_connection *connection, const char *why, const char *text)
{
	const char *name = connection->server->name;
	auto_free char *reason = xstrdup(text);
	struct upstream_order *order, *orders = connection->orders;
	struct upstream_order *last = NULL;

	log_event(LOG_WARN, "upstream server failed", "server", name, "why", why, NULL);
	snprintf(connection->problem, sizeof(connection->problem), "%s", reason);
	connection_enter(connection, CONNECTION_CLOSED);
	connection_forget_session(connection);
	back_off(connection);
	for (order = orders; order != NULL; order = order->next)
		last = order;
	/* A callback may submit the next order already: it is behind these. */
	for (order = orders; order != NULL; order = orders) {
		bool end = order == last;

		const bool sent = order->exchange != NULL && order->exchange->sent;

		orders = order->next;
		if (order->exchange != NULL)
			connection_drop(order->exchange);
		if (!sent || order->list)
			connection_end_error(order, UPSTREAM_UNAVAILABLE, "%s is not available: %s", name, reason);
		else
			connection_end_error(order, UPSTREAM_UNKNOWN_OUTCOME,
					     "%s went away before it answered, so it may have done what was asked: %s",
					     name, reason);
		if (end)
			break;
	}
	while (connection->exchanges != NULL)
		connection_drop(connection->exchanges);
	connection->transport->close(connection);
}

void connection_lost(struct upstream_connection *connection, const char *why, const char *text)
{
	/* Some servers end at any request before initialize: the next start says that first. */
	if (connection->state == CONNECTION_PROBING && connection->server->command != NULL) {
		while (connection->exchanges != NULL)
			connection_drop(connection->exchanges);
		connection->transport->close(connection);
		connection->era = ERA_LEGACY;
		connection_enter(connection, CONNECTION_CLOSED);
		connection_advance(connection);
		return;
	}
	connection_broken(connection, why, text);
}

void connection_started(struct upstream_connection *connection)
{
	connection->started_us = connection->loop->now_us;
	connection_shake(connection);
}

static void open_connection(struct upstream_connection *connection)
{
	struct connection_loop *loop = connection->loop;
	bool program = connection->server->command != NULL;
	struct err err = ERR_INIT;

	if (connection->not_before_us > loop->now_us || (program && loop->starting >= STARTING_MAX))
		return;
	connection->starting = program;
	loop->starting += program;
	connection_enter(connection, CONNECTION_STARTING);
	connection->deadline_us = loop->now_us + connection->server->start_seconds * SECOND;
	if (connection->transport->open(connection, &err) < 0)
		connection_broken(connection, err.text, err.text);
}

static void refuse_waiting(struct upstream_connection *connection, const char *problem)
{
	struct upstream_order *next;

	for (struct upstream_order *order = connection->orders; order != NULL; order = next) {
		next = order->next;
		if (order->exchange == NULL && order->asked == 0)
			connection_end_error(order, UPSTREAM_UNAVAILABLE, "%s is not available: %s",
					     connection->server->name, problem);
	}
}

void connection_advance(struct upstream_connection *connection)
{
	struct upstream_order *next;
	const char *problem = NULL;

	if (connection->orders == NULL)
		return;
	if (!connection_may_send(connection, &problem)) {
		if (problem != NULL)
			refuse_waiting(connection, problem);
		return;
	}
	if (connection->state == CONNECTION_CLOSED)
		open_connection(connection);
	for (struct upstream_order *order = connection->orders; order != NULL && connection->state == CONNECTION_READY;
	     order = next) {
		next = order->next;
		if (order->exchange == NULL && order->asked == 0 && order->not_before_us <= connection->loop->now_us)
			connection_send_order(order);
	}
}

void connection_submit(struct upstream_connection *connection, struct upstream_order *order)
{
	struct upstream_order **at = &connection->orders;
	int64_t start = connection->server->start_seconds * SECOND;

	while (*at != NULL)
		at = &(*at)->next;
	*at = order;
	order->connection = connection;
	connection->used_us = connection->loop->now_us;
	if (order->deadline_us == 0)
		order->deadline_us = connection->loop->now_us + start + order->timeout_us;
	if (connection->failures >= STARTS_MAX && connection->not_before_us > connection->loop->now_us)
		connection_end_error(order, UPSTREAM_UNAVAILABLE, "%s is not available, it failed %d times: %s",
				     connection->server->name, connection->failures, connection->problem);
	else
		connection_advance(connection);
}

/* Tells the server that nobody waits any more. In the modern era over HTTP the end of the transfer does. */
static void tell_cancelled(struct upstream_order *order)
{
	struct upstream_connection *connection = order->connection;
	struct upstream_exchange *sent = order->exchange, *notice;

	if (connection->state != CONNECTION_READY || (sent == NULL && order->task == NULL))
		return;
	if (order->task != NULL && order->task[0] != '\0') {
		/* Its answer says nothing that anybody waits for. */
		notice = connection_exchange(connection, EXCHANGE_NOTICE, NULL);
		notice->id = ++connection->loop->next_id;
		message_begin(notice, "tasks/cancel");
		message_header(&notice->headers, "Mcp-Name", order->task, strlen(order->task));
		buf_puts(&notice->body, "\"taskId\":");
		message_string(&notice->body, order->task);
		buf_putc(&notice->body, ',');
		message_end(notice, false);
	} else if (sent != NULL && sent->sent &&
		   (connection->era == ERA_LEGACY || connection->server->command != NULL)) {
		notice = connection_exchange(connection, EXCHANGE_NOTICE, NULL);
		buf_printf(
			&notice->body,
			"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":%" PRId64
			",\"reason\":\"the caller does not wait any more\"}}",
			sent->id);
	} else {
		return;
	}
	connection_send(notice);
}

void connection_cancel(struct upstream_order *order)
{
	tell_cancelled(order);
	connection_end_error(order, UPSTREAM_CANCELLED, "cancelled");
}

static void order_late(struct upstream_order *order)
{
	const char *name = order->connection->server->name, *problem = order->connection->problem;

	tell_cancelled(order);
	if (order->dispatched || order->list)
		connection_end_error(order, order->list ? UPSTREAM_UNAVAILABLE : UPSTREAM_TIMEOUT,
				     "%s did not answer within %" PRId64 " s", name, order->timeout_us / SECOND);
	else
		connection_end_error(order, UPSTREAM_UNAVAILABLE, "%s did not get ready in time%s%s", name,
				     problem[0] != '\0' ? ": " : "", problem);
}

static void check_handshake(struct upstream_connection *connection)
{
	struct upstream_exchange *exchange = connection->exchanges, *next;
	int64_t now = connection->loop->now_us;

	for (; exchange != NULL; exchange = next) {
		next = exchange->next;
		if (exchange->kind == EXCHANGE_PROBE && exchange->deadline_us <= now) {
			connection_failed(exchange, &(struct failure){.kind = FAILURE_LOST, .text = "silence"});
			return;
		}
	}
	if (connection->state != CONNECTION_CLOSED && connection->state != CONNECTION_READY &&
	    connection->deadline_us <= now) {
		const char *why = connection->state == CONNECTION_STARTING ? "it did not start in time"
									   : "it did not answer in time";

		connection_broken(connection, why, why);
	}
}

void connection_turn(struct upstream_connection *connection)
{
	int64_t now = connection->loop->now_us;
	struct upstream_order *next;

	check_handshake(connection);
	for (struct upstream_order *order = connection->orders; order != NULL; order = next) {
		next = order->next;
		if (order->deadline_us <= now)
			order_late(order);
	}
	if (connection->transport->turn != NULL)
		connection->transport->turn(connection);
	if (connection->state == CONNECTION_READY && connection->orders == NULL &&
	    now - connection->used_us >= connection->server->idle_seconds * SECOND)
		connection_close(connection);
	connection_advance(connection);
}

int64_t connection_wake(const struct upstream_connection *connection)
{
	int64_t wake = INT64_MAX, now = connection->loop->now_us;

	for (const struct upstream_order *order = connection->orders; order != NULL; order = order->next) {
		wake = MIN(wake, order->deadline_us);
		if (order->exchange == NULL && order->not_before_us > now)
			wake = MIN(wake, order->not_before_us);
	}
	if (connection->state == CONNECTION_CLOSED && connection->orders != NULL)
		wake = MIN(wake, MAX(connection->not_before_us, now + SECOND / 20));
	for (const struct upstream_exchange *exchange = connection->exchanges; exchange != NULL;
	     exchange = exchange->next)
		if (exchange->kind == EXCHANGE_PROBE)
			wake = MIN(wake, exchange->deadline_us);
	if (connection->state != CONNECTION_CLOSED && connection->state != CONNECTION_READY)
		wake = MIN(wake, connection->deadline_us);
	if (connection->state == CONNECTION_READY && connection->orders == NULL)
		wake = MIN(wake, connection->used_us + connection->server->idle_seconds * SECOND);
	if (connection->transport->wake != NULL)
		wake = MIN(wake, connection->transport->wake(connection));
	return wake;
}

void connection_close(struct upstream_connection *connection)
{
	connection_unask(connection->loop, NULL, connection);
	connection->transport->close(connection);
	while (connection->exchanges != NULL)
		connection_drop(connection->exchanges);
	connection_enter(connection, CONNECTION_CLOSED);
	connection_forget_session(connection);
}

void connection_free(struct upstream_connection *connection)
{
	while (connection->orders != NULL)
		connection_end_error(connection->orders, UPSTREAM_CANCELLED,
				     "the client of upstream servers is stopping");
	connection_close(connection);
	upstream_list_free(connection->list);
	mask_free(connection->mask);
	upstream_login_set(&connection->bearer, NULL);
	free(connection->owner);
	free(connection->run);
	free(connection->instructions);
	free(connection->version);
	free(connection);
}

/* What a failed exchange means is for whose it is. */
void connection_failed(struct upstream_exchange *exchange, const struct failure *failure)
{
	struct upstream_connection *connection = exchange->connection;
	struct upstream_order *order = exchange->order;
	enum exchange_kind kind = exchange->kind;

	connection_drop(exchange);
	if (order != NULL)
		connection_order_failed(order, kind, failure);
	else if (kind == EXCHANGE_PROBE || kind == EXCHANGE_INITIALIZE)
		connection_shake_failed(connection, kind, failure);
	connection_advance(connection);
}
