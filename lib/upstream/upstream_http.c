/*
 * upstream_http.c - see upstream_http.h.
 *
 * One message is one transfer: a POST whose answer is JSON or an event stream. libcurl's callbacks only collect: what
 * came is handed over in http_turn, because its receiver may end transfers, which libcurl forbids inside of a callback.
 * A transfer outlives its exchange until the end of the turn (`dead`).
 *
 * Legacy streams that break off before the answer are taken up again by GET with the last event's id. Facts: MCP
 * transports (2025-11-25 resumability, 2026-07-28 headers).
 */
#include "upstream_http.h"

#include <pthread.h>
#include <string.h>

#include "lib/base/util.h"
#include "upstream_http_transfer.h"

#define MILLISECOND INT64_C(1000)
#define RESUMES_MAX 2
#define RETRY_MS    1000
#define EVENTS_US   2000 /* of the thread for the events of one transfer in one turn */
#define BRIEF       200 /* bytes of a page that is shown in an error */

static int http_transport_open(struct upstream_connection *connection, struct err *err)
{
	(void)err;
	connection_started(connection);
	return 0;
}

static void http_send(struct upstream_connection *connection, struct upstream_exchange *exchange)
{
	struct transfer *transfer = http_transfer_new(connection, exchange);

	exchange->transfer = transfer;
	http_transfer_begin(transfer, connection, exchange->kind == EXCHANGE_STREAM ? "GET" : "POST", NULL);
}

static void http_forget(struct upstream_connection *connection, struct upstream_exchange *exchange)
{
	struct transfer *transfer = exchange->transfer;
	struct http *http = connection->loop->multi;

	if (transfer == NULL)
		return;
	http_transfer_end(transfer, http);
	reader_free(steal(&transfer->reading));
	transfer->exchange = NULL;
	transfer->dead = true;
}

/* Says goodbye to a session. */
static void http_transport_close(struct upstream_connection *connection)
{
	struct transfer *transfer;

	if (connection->session[0] == '\0')
		return;
	transfer = http_transfer_new(connection, NULL);
	http_transfer_begin(transfer, connection, "DELETE", NULL);
	transfer->connection = NULL;
}

const struct transport http_transport = {
	.open = http_transport_open,
	.send = http_send,
	.forget = http_forget,
	.close = http_transport_close,
};

/* --- what came --- */

static void fail_transfer(struct transfer *transfer, enum failure_kind kind, const char *text)
{
	connection_failed(transfer->exchange, &(struct failure){.kind = kind, .text = text});
}

/* The reader has what comes first. */
static bool waits(const struct transfer *transfer)
{
	return transfer->reading != NULL && !reader_done(transfer->reading);
}

static bool rests(const struct transfer *transfer)
{
	return share_rests(&transfer->connection->share, transfer->connection->loop->now_us);
}

static void read_text(struct transfer *transfer, char *text, size_t length)
{
	struct upstream_connection *connection = transfer->connection;

	transfer->reading =
		reader_read(connection->loop->reader, text, length, length + HTTP_ENVELOPE, connection->mask);
}

/* What was read; false: the reader has it still. */
static bool deliver(struct transfer *transfer)
{
	if (transfer->reading == NULL || !reader_done(transfer->reading))
		return transfer->reading == NULL;
	auto_reading struct reading *reading = steal(&transfer->reading);

	share_charge_large(&transfer->connection->share, share_clock() - reading->took_us);
	if (reading->result < 0)
		fail_transfer(transfer, FAILURE_GARBLED, reading->err.text);
	for (size_t i = 0; transfer->exchange != NULL && i < reading->count; i++)
		connection_received(transfer->connection, transfer->exchange, &reading->messages[i]);
	return true;
}

/* A stream may have thousands: the rest of them is for the next turns. */
static void deliver_events(struct transfer *transfer)
{
	const int64_t began_us = share_clock();

	while (deliver(transfer) && transfer->exchange != NULL && transfer->first != NULL &&
	       share_clock() - began_us < EVENTS_US) {
		struct message *message = transfer->first;

		transfer->first = message->next;
		if (transfer->first == NULL)
			transfer->last = &transfer->first;
		read_text(transfer, message->text, message->length);
		free(message);
	}
}

/* A stream that ended without its answer. */
static void stream_ended(struct transfer *transfer, const char *why)
{
	struct upstream_connection *connection = transfer->connection;
	int64_t wait = transfer->sse.retry_ms >= 0 ? transfer->sse.retry_ms : RETRY_MS;
	bool standing = transfer->exchange->kind == EXCHANGE_STREAM;

	if (connection->era != ERA_LEGACY || (!standing && transfer->sse.id[0] == '\0') ||
	    transfer->resumes >= RESUMES_MAX) {
		fail_transfer(transfer, FAILURE_LOST, why);
		return;
	}
	for (int i = 0; i < transfer->resumes; i++)
		wait += wait / 2;
	transfer->resumes += !standing;
	transfer->resume_us = clock_monotonic_us() + wait * MILLISECOND;
	http_transfer_end(transfer, connection->loop->multi);
	transfer->done = false;
	buf_reset(&transfer->sse.line);
	buf_reset(&transfer->sse.data);
}

/* With this status a JSON-RPC error is the request's answer, not a page about the connection. */
static bool speaks_mcp(int status, bool session)
{
	return status >= 400 && status < 500 && status != 401 && status != 403 && status != 429 &&
	       !(status == 404 && session);
}

static void status_came(struct transfer *transfer, int status)
{
	auto_free char *text = NULL;
	auto_buf struct buf page;
	bool session = transfer->connection->session[0] != '\0';
	auto_reading struct reading *reading = steal(&transfer->reading);
	struct raw error = reading->count > 0 ? reading->messages[0].parts[PART_ERROR] : (struct raw){0};

	buf_init(&page, BRIEF);
	if (raw_is_object(error) && speaks_mcp(status, session)) {
		transfer->exchange->status = status;
		connection_received(transfer->connection, transfer->exchange, &reading->messages[0]);
		if (transfer->exchange == NULL)
			return;
	}
	auto_free char *message = raw_is_object(error) ? raw_string(raw_member(error, "message")) : NULL;

	if (message != NULL)
		buf_puts(&page, message);
	text = xasprintf("it answered with status %d%s%s%s", status, page.length > 0 ? ": " : "", page.data,
			 status >= 300 && status < 400 ? " (redirects are not followed)" : "");
	connection_failed(transfer->exchange, &(struct failure){.kind = FAILURE_STATUS,
								.status = status,
								.retry_after_us = transfer->retry_after_us,
								.challenge = transfer->challenge,
								.text = text});
}

static void transfer_failed(struct transfer *transfer)
{
	const char *why = transfer->again ? "the connection broke off" : curl_easy_strerror(transfer->code);

	if (transfer->large)
		fail_transfer(transfer, FAILURE_LARGE, "the server sends more");
	else if (transfer->private_address)
		fail_transfer(transfer, FAILURE_REFUSED,
			      "its address is not a public one: its entry must say \"private\": true");
	else if (!transfer->exchange->sent && transfer->exchange->kind != EXCHANGE_STREAM)
		fail_transfer(transfer, FAILURE_REFUSED, why);
	else if (transfer->streams)
		stream_ended(transfer, why);
	else
		fail_transfer(transfer, FAILURE_LOST, why);
}

/* It is whole, or the reader has it. */
static void body_came(struct transfer *transfer, int status)
{
	if (!transfer->handed) {
		const size_t length = transfer->body.length;

		transfer->handed = true;
		read_text(transfer, buf_steal(&transfer->body, NULL), length);
	}
	if (waits(transfer))
		return;
	if (status != 200) {
		status_came(transfer, status);
		return;
	}
	deliver(transfer);
	if (transfer->exchange != NULL)
		fail_transfer(transfer, FAILURE_GARBLED, "it holds no answer to the request");
}

static void transfer_done(struct transfer *transfer)
{
	long status = 0;

	curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
	if (!transfer->handed || status == 200)
		deliver_events(transfer);
	if (transfer->exchange == NULL || transfer->first != NULL || waits(transfer))
		return;
	if (transfer->code != CURLE_OK) {
		transfer_failed(transfer);
		return;
	}
	if (transfer->exchange->kind == EXCHANGE_NOTICE) {
		connection_failed(transfer->exchange, &(struct failure){.kind = FAILURE_LOST, .text = ""});
		return;
	}
	if (status != 200 && transfer->resumes > 0) {
		fail_transfer(transfer, FAILURE_LOST, "its stream broke off and could not be taken up again");
		return;
	}
	if (status == 200 && transfer->streams) {
		stream_ended(transfer, "the stream ended before the answer");
		return;
	}
	body_came(transfer, (int)status);
}

/* To be handed out, or to be read on. */
static bool has_something(const struct transfer *transfer)
{
	return !waits(transfer) &&
	       (transfer->done || transfer->first != NULL || transfer->reading != NULL || transfer->paused);
}

/* What came is handed out. What came of a connection that rests waits, and no more of it is read (take_body). */
static void turn_transfer(struct transfer *transfer)
{
	struct upstream_connection *connection = transfer->connection;

	if (has_something(transfer)) {
		const int64_t began_us = share_clock();

		if (transfer->done) {
			transfer_done(transfer);
		} else if (transfer->first != NULL || transfer->reading != NULL) {
			deliver_events(transfer);
		} else {
			transfer->paused = false;
			curl_easy_pause(transfer->easy, CURLPAUSE_CONT);
		}
		share_charge_large(&connection->share, began_us);
	}
	if (!transfer->dead && transfer->easy == NULL && transfer->resume_us <= connection->loop->now_us)
		http_transfer_begin(transfer, connection, "GET",
				    transfer->sse.id[0] != '\0' ? transfer->sse.id : NULL);
}

void http_turn(struct connection_loop *loop)
{
	struct http *http = loop->multi;
	struct CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(http->multi, &left)) != NULL) {
		struct transfer *transfer;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)(void *)&transfer);
		transfer->code = message->data.result;
		transfer->done = true;
	}
	/* Transfers that begin meanwhile are put in front: they have nothing yet. */
	for (struct transfer *transfer = http->transfers; transfer != NULL; transfer = transfer->next) {
		if (transfer->connection == NULL && transfer->done)
			transfer->dead = true;
		if (!transfer->dead && transfer->connection != NULL && !rests(transfer))
			turn_transfer(transfer);
	}
	http_transfer_reap(http);
}

int64_t http_wake(const struct connection_loop *loop)
{
	const struct http *http = loop->multi;
	int64_t wake = INT64_MAX;

	for (const struct transfer *transfer = http->transfers; transfer != NULL; transfer = transfer->next) {
		if (transfer->easy == NULL)
			wake = MIN(wake, transfer->dead ? 0 : transfer->resume_us);
		else if (transfer->connection != NULL && has_something(transfer))
			wake = MIN(wake, transfer->connection->share.rests_until_us);
	}
	return wake;
}

bool http_leaving(const struct connection_loop *loop)
{
	return ((const struct http *)loop->multi)->transfers != NULL;
}

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void init_curl(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

int http_open(struct connection_loop *loop, struct err *err)
{
	struct http *http = xcalloc(1, sizeof(*http));

	pthread_once(&curl_once, init_curl);
	http->multi = curl_multi_init();
	if (http->multi == NULL) {
		free(http);
		return err_set(err, ERR_SYSTEM, "libcurl: cannot begin");
	}
	loop->multi = http;
	return 0;
}

void http_close(struct connection_loop *loop)
{
	struct http *http = loop->multi;

	for (struct transfer *transfer = http->transfers; transfer != NULL; transfer = transfer->next)
		transfer->dead = true;
	http_transfer_reap(http);
	while (http->n_spare > 0)
		curl_easy_cleanup(http->spare[--http->n_spare]);
	curl_multi_cleanup(http->multi);
	free(http);
	loop->multi = NULL;
}
