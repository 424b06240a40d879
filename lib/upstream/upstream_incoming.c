/*
 * upstream_incoming.c - messages from upstream servers: answers find their exchange, notifications their order, and
 * what a server asks of us is answered.
 *
 * ping is answered. roots/list is, where the entry names roots. elicitation/create goes to the user where the entry
 * says relay and somebody can be asked, else it is cancelled. Everything else does not exist here, sampling least of
 * all: our client's model is not an upstream server's to use.
 */
#include "upstream_connection.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/base/util.h"
#include "upstream_message.h"

#define CHANGED_WAIT  INT64_C(200000) /* servers say it several times in a row */
#define QUESTIONS_MAX 64
#define ANSWER_MAX    (1 << 20)
#define CANCEL        "{\"action\":\"cancel\"}"

/* Something that a server asked and a person is to answer. */
struct question {
	struct question *next;
	uint64_t id;
	struct upstream_connection *connection;
	struct upstream_order *order; /* of a round of input_required; NULL: a request of the legacy era */
	char *key;           /* of inputRequests, or the request's id; JSON */
	char *reply;         /* NULL: not answered yet */
};

static void free_question(struct question *question)
{
	free(question->key);
	free(question->reply);
	free(question);
}

void connection_unask(struct connection_loop *loop, const struct upstream_order *order,
		      const struct upstream_connection *connection)
{
	for (struct question **at = &loop->questions; *at != NULL;) {
		struct question *question = *at;

		if (question->order != order || (order == NULL && question->connection != connection)) {
			at = &question->next;
			continue;
		}
		*at = question->next;
		free_question(question);
	}
}

static void send_answer(struct upstream_connection *connection, struct raw id, const char *member, const char *value)
{
	struct upstream_exchange *exchange = connection_exchange(connection, EXCHANGE_NOTICE, NULL);

	buf_printf(&exchange->body, "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"%s\":%s}", (int)id.length, id.text, member,
		   value);
	connection_send(exchange);
}

/* What is answered without asking anybody, the caller's; NULL: a person is to be asked. `*ret_known`: is it answered at
 * all? */
static char *answer_at_once(const struct upstream_connection *connection, const char *method, bool *ret_known)
{
	const struct connection_loop *loop = connection->loop;
	const struct upstream_server *server = connection->server;
	int waiting = 0;

	*ret_known = true;
	if (streq(method, "ping"))
		return xstrdup("{}");
	if (streq(method, "roots/list") && server->roots.count > 0) {
		auto_buf struct buf out;

		buf_init(&out, ANSWER_MAX);
		buf_puts(&out, "{\"roots\":[");
		for (size_t i = 0; i < server->roots.count; i++) {
			buf_puts(&out, i > 0 ? ",{\"uri\":" : "{\"uri\":");
			message_string(&out, server->roots.items[i]);
			buf_putc(&out, '}');
		}
		buf_puts(&out, "]}");
		return buf_steal(&out, NULL);
	}
	*ret_known = streq(method, "elicitation/create");
	for (const struct question *question = loop->questions; question != NULL; question = question->next)
		waiting++;
	if (*ret_known && loop->ask != NULL && server->elicitation == UPSTREAM_ELICITATION_RELAY &&
	    waiting < QUESTIONS_MAX)
		return NULL;
	return xstrdup(CANCEL);
}

static struct question *new_question(struct upstream_connection *connection, struct upstream_order *order,
				     struct raw key)
{
	struct question *question = xcalloc(1, sizeof(*question));
	struct connection_loop *loop = connection->loop;

	question->id = ++loop->next_question;
	question->connection = connection;
	question->order = order;
	question->key = xstrndup(key.text, key.length);
	question->next = loop->questions;
	loop->questions = question;
	return question;
}

static void pose(const struct question *question, const char *method, struct raw parameters)
{
	const struct upstream_connection *connection = question->connection;

	const struct upstream_asked asked = {
		.question = question->id,
		.server = connection->server,
		.owner = connection->owner,
		.method = method,
		.parameters = parameters.text != NULL ? parameters.text : "{}",
		.length = parameters.text != NULL ? parameters.length : strlen("{}"),
	};

	connection->loop->ask(connection->loop->ask_arg, &asked);
}

static void requested(struct upstream_connection *connection, const char *method, struct raw id, struct raw parameters)
{
	bool known;
	auto_free char *answer = answer_at_once(connection, method, &known);

	log_event(LOG_DEBUG, "upstream server asks", "server", connection->server->name, "method",
		  known ? method : "(unknown)", NULL);
	if (!known)
		send_answer(connection, id, "error",
			    "{\"code\":-32601,\"message\":\"Method not found: Sallyport does not offer it\"}");
	else if (answer != NULL)
		send_answer(connection, id, "result", answer);
	else
		pose(new_question(connection, NULL, id), method, parameters);
}

/* All questions of the round are answered: the next one begins. */
static void finish_round(struct upstream_order *order)
{
	auto_buf struct buf out = {0};

	if (order->asked > 0)
		return;
	buf_init(&out, ANSWER_MAX);
	buf_putc(&out, '{');
	for (const struct question *question = order->connection->loop->questions; question != NULL;
	     question = question->next)
		if (question->order == order)
			buf_printf(&out, "%s%s:%s", out.length > 1 ? "," : "", question->key, question->reply);
	buf_putc(&out, '}');
	connection_unask(order->connection->loop, order, NULL);
	connection_next_round(order, buf_steal(&out, NULL));
}

void connection_question(struct upstream_order *order, struct raw requests)
{
	struct raw key, request;
	size_t at = 0;

	if (!raw_is_object(requests)) {
		connection_next_round(order, NULL);
		return;
	}
	for (int asked = 0; asked < QUESTIONS_MAX && raw_next(requests, &at, &key, &request); asked++) {
		auto_free char *method = raw_string(raw_member(request, "method"));
		bool known;
		char *answer = answer_at_once(order->connection, method != NULL ? method : "", &known);
		struct question *question = new_question(order->connection, order, key);

		question->reply = answer;
		if (answer == NULL) {
			order->asked++;
			pose(question, method, raw_member(request, "params"));
		}
	}
	finish_round(order);
}

void connection_replied(struct connection_loop *loop, uint64_t id, const char *result)
{
	struct question **at = &loop->questions, *question;
	const char *reply = result[0] != '\0' ? result : CANCEL;

	while (*at != NULL && (*at)->id != id)
		at = &(*at)->next;
	question = *at;
	if (question == NULL || question->reply != NULL)
		return;
	if (question->order != NULL) {
		question->reply = xstrdup(reply);
		question->order->asked--;
		finish_round(question->order);
		return;
	}
	*at = question->next;
	send_answer(question->connection, (struct raw){question->key, strlen(question->key)}, "result", reply);
	free_question(question);
}

static void progressed(struct upstream_connection *connection, struct raw parameters)
{
	const struct upstream_order *order = connection->orders;
	double progress = -1, total = -1;
	int64_t token;

	if (!raw_int(raw_member(parameters, "progressToken"), &token) || token <= 0)
		return;
	while (order != NULL && order->token != token)
		order = order->next;
	if (order == NULL)
		return;
	raw_number(raw_member(parameters, "progress"), &progress);
	raw_number(raw_member(parameters, "total"), &total);
	auto_free char *text = raw_string(raw_member(parameters, "message"));
	auto_buf struct buf masked;

	buf_init(&masked, ANSWER_MAX);
	mask_bytes(connection->mask, text != NULL ? text : "", text != NULL ? strlen(text) : 0, &masked);
	order->progress(order->arg, progress, total, masked.data);
}

static void answered(struct upstream_connection *connection, struct upstream_exchange *via,
		     const struct incoming *incoming)
{
	struct raw result = incoming->parts[PART_RESULT], error = incoming->parts[PART_ERROR],
		   id = incoming->parts[PART_ID];
	struct upstream_exchange *exchange = NULL;
	int64_t number;

	if (raw_int(id, &number))
		exchange = connection_find(connection, number);
	else if (via != NULL && error.text != NULL && (id.text == NULL || raw_is(id, "null")))
		exchange = via; /* an error that came before the server read our id */
	if (exchange == NULL || (via != NULL && exchange != via) || (result.text == NULL && error.text == NULL))
		return; /* answered twice, or after its end, or not asked at all */
	if (exchange->kind == EXCHANGE_PROBE || exchange->kind == EXCHANGE_INITIALIZE)
		connection_shaken(exchange, result, error);
	else if (exchange->kind == EXCHANGE_NOTICE)
		connection_drop(exchange);
	else
		connection_answered(exchange, incoming);
}

void connection_received(struct upstream_connection *connection, struct upstream_exchange *via,
			 const struct incoming *incoming)
{
	const struct raw *parts = incoming->parts;
	auto_free char *method = raw_string(parts[PART_METHOD]);

	if (method == NULL) {
		answered(connection, via, incoming);
	} else if (parts[PART_ID].text != NULL) {
		if (connection->state == CONNECTION_READY)
			requested(connection, method, parts[PART_ID], parts[PART_PARAMETERS]);
	} else if (streq(method, "notifications/progress")) {
		progressed(connection, parts[PART_PARAMETERS]);
	} else if (streq(method, "notifications/tools/list_changed")) {
		connection->list_until_us = 0;
		connection->list_not_before_us = connection->loop->now_us + CHANGED_WAIT;
		if (connection->loop->changed)
			connection->loop->changed(connection->loop->changed_arg);
	} else {
		log_event(LOG_DEBUG, "upstream notification", "server", connection->server->name, NULL);
	}
}
