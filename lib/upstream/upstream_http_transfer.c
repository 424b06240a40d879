/*
 * upstream_http_transfer.c - see upstream_http_transfer.h.
 *
 * A call must not be sent twice by accident. libcurl repeats a request whose kept connection turned out to be closed,
 * and asks a callback before each request that it sends: the second one is refused. Head and body go out in one write,
 * which a body from a callback would not; handles are used again. Redirects are not followed: they would carry
 * credentials elsewhere. Addresses that are not public need the entry's `private`. Facts: libcurl 7.88.
 */
#include "upstream_http_transfer.h"

#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "lib/base/util.h"

#define MILLISECOND     INT64_C(1000)
#define CONNECT_SECONDS 10
#define KEEP_SECONDS    30 /* a connection is not used again after so long without use */
#define GOODBYE_SECONDS 2
#define CHALLENGE_MAX   4096

/* --- what libcurl calls --- */

static bool keep_event(void *arg, const char *type, const char *text, size_t length)
{
	struct transfer *transfer = arg;
	struct message *message;

	if (!streq(type, "message") || length == 0)
		return true;
	message = xcalloc(1, sizeof(*message));
	message->text = xmemdup(text, length);
	message->length = length;
	*transfer->last = message;
	transfer->last = &message->next;
	return true;
}

static size_t take_body(char *data, size_t size, size_t count, void *arg)
{
	struct transfer *transfer = arg;
	size_t length = size * count;

	if (transfer->exchange == NULL)
		return transfer->connection == NULL ? length : 0;
	transfer->paused = transfer->reading != NULL ||
			   share_rests(&transfer->connection->share, transfer->connection->loop->now_us);
	if (transfer->paused)
		return CURL_WRITEFUNC_PAUSE;
	if (transfer->streams) {
		sse_reader_read(&transfer->sse, data, length, keep_event, transfer);
		transfer->large = transfer->sse.overflow;
	} else {
		buf_add(&transfer->body, data, length);
		transfer->large = transfer->body.overflow;
	}
	return transfer->large ? 0 : length;
}

static bool header_is(const char *line, size_t length, const char *name, const char **ret_value, size_t *ret_length)
{
	size_t n = strlen(name);

	if (length <= n || strncasecmp(line, name, n) != 0 || line[n] != ':')
		return false;
	for (n++; n < length && (line[n] == ' ' || line[n] == '\t'); n++)
		;
	while (length > n && strchr(" \t\r\n", line[length - 1]) != NULL)
		length--;
	*ret_value = line + n;
	*ret_length = length - n;
	return true;
}

static size_t take_header(char *data, size_t size, size_t count, void *arg)
{
	struct transfer *transfer = arg;
	struct upstream_connection *connection = transfer->connection;
	const char *value;
	size_t length, n = size * count;
	uint64_t seconds;

	if (transfer->exchange == NULL)
		return n;
	if (header_is(data, n, "content-type", &value, &length))
		transfer->streams = length >= strlen("text/event-stream") &&
				    !strncasecmp(value, "text/event-stream", strlen("text/event-stream"));
	if (header_is(data, n, "retry-after", &value, &length)) {
		auto_free char *text = xstrndup(value, length);

		if (parse_u64(text, 0, INT32_MAX, &seconds) == 0)
			transfer->retry_after_us = (int64_t)seconds * 1000 * MILLISECOND;
	}
	if (header_is(data, n, "www-authenticate", &value, &length) && transfer->challenge == NULL &&
	    length < CHALLENGE_MAX) {
		transfer->challenge = xstrndup(value, length);
		if (strcasestr(transfer->challenge, "bearer") == NULL)
			free(steal(&transfer->challenge));
	}
	if (transfer->exchange->kind == EXCHANGE_INITIALIZE && header_is(data, n, "mcp-session-id", &value, &length) &&
	    length < sizeof(connection->session)) {
		memcpy(connection->session, value, length);
		connection->session[length] = '\0';
	}
	return n;
}

static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct transfer *transfer = arg;

	(void)purpose;
	if (transfer->connection != NULL && !transfer->connection->server->is_private && !host_public(&address->addr)) {
		transfer->private_address = true;
		return CURL_SOCKET_BAD;
	}
	return socket(address->family, address->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address->protocol);
}

/* There is a connection, and what comes next is the request. */
static int before_request(void *arg, char *address, char *own, int port, int own_port)
{
	struct transfer *transfer = arg;
	struct sockaddr_storage socket_address;
	unsigned length;

	(void)own;
	(void)own_port;
	/* A kept connection may be one that another entry, with `private`, has made. */
	transfer->private_address = transfer->connection != NULL && !transfer->connection->server->is_private &&
				    (host_address(address, (uint16_t)port, &socket_address, &length) < 0 ||
				     !host_public((const struct sockaddr *)&socket_address));
	if (transfer->private_address)
		return CURL_PREREQFUNC_ABORT;
	if (!transfer->posts)
		return CURL_PREREQFUNC_OK;
	transfer->again = transfer->exchange == NULL || transfer->exchange->sent;
	if (transfer->again)
		return CURL_PREREQFUNC_ABORT;
	transfer->exchange->sent = true;
	return CURL_PREREQFUNC_OK;
}

/* --- a transfer --- */

static void add_header(struct transfer *transfer, const char *name, const char *value)
{
	/* libcurl sends an empty header only where its name ends with a semicolon. */
	auto_free char *line = value[0] != '\0' ? xasprintf("%s: %s", name, value) : xasprintf("%s;", name);

	transfer->headers = curl_slist_append(transfer->headers, line);
}

static void set_headers(struct transfer *transfer, const struct upstream_connection *connection, bool get,
			const char *last_id)
{
	const struct upstream_server *server = connection->server;
	const struct upstream_exchange *exchange = transfer->exchange;

	for (size_t i = 0; i < server->headers.count; i++)
		add_header(transfer, server->headers.keys[i], server->headers.values[i]);
	if (connection->bearer != NULL) {
		auto_free char *bearer = xasprintf("Bearer %s", connection->bearer);

		add_header(transfer, "Authorization", bearer);
		explicit_bzero(bearer, strlen(bearer));
	}
	add_header(transfer, "Accept", get ? "text/event-stream" : "application/json, text/event-stream");
	transfer->headers = curl_slist_append(transfer->headers, "Expect:");
	if (!get)
		add_header(transfer, "Content-Type", "application/json");
	if (connection->session[0] != '\0')
		add_header(transfer, "Mcp-Session-Id", connection->session);
	if (connection->era == ERA_LEGACY && connection->protocol[0] != '\0')
		add_header(transfer, "MCP-Protocol-Version", connection->protocol);
	if (last_id != NULL)
		add_header(transfer, "Last-Event-ID", last_id);
	if (exchange == NULL || connection->era == ERA_LEGACY)
		return;
	for (const char *line = exchange->headers.data; *line != '\0'; line += strcspn(line, "\n") + 1) {
		auto_free char *name = xstrndup(line, strcspn(line, "\n"));
		char *colon = strchr(name, ':');

		if (colon == NULL)
			continue;
		*colon = '\0';
		add_header(transfer, name, colon + strlen(": "));
	}
}

/* What is the same for all requests is set once; http_transfer_begin sets everything else, each time. Connections and
 * names are the multi handle's. */
static CURL *new_handle(void)
{
	CURL *easy = curl_easy_init();

	if (easy == NULL)
		abort();
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_PROXY, "");
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
	curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, (long)KEEP_SECONDS);
	curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, before_request);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
	return easy;
}

void http_transfer_end(struct transfer *transfer, struct http *http)
{
	if (transfer->easy != NULL) {
		curl_multi_remove_handle(http->multi, transfer->easy);
		if (http->n_spare < HTTP_SPARE && !transfer->paused) /* one that was paused is not used again */
			http->spare[http->n_spare++] = transfer->easy;
		else
			curl_easy_cleanup(transfer->easy);
	}
	curl_slist_free_all(transfer->headers);
	transfer->easy = NULL;
	transfer->headers = NULL;
}

/* `method`: POST, GET, DELETE. */
void http_transfer_begin(struct transfer *transfer, struct upstream_connection *connection, const char *method,
			 const char *last_id)
{
	struct http *http = connection->loop->multi;
	bool get = streq(method, "GET"), post = streq(method, "POST");
	CURL *easy;

	http_transfer_end(transfer, http);
	easy = transfer->easy = http->n_spare > 0 ? http->spare[--http->n_spare] : new_handle();
	transfer->posts = post;
	transfer->handed = transfer->done = transfer->streams = transfer->large = transfer->paused = false;
	transfer->retry_after_us = -1;
	free(steal(&transfer->challenge));
	buf_reset(&transfer->body);
	set_headers(transfer, connection, get, last_id);
	curl_easy_setopt(easy, CURLOPT_URL, connection->server->url);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->headers);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, transfer);
	curl_easy_setopt(easy, CURLOPT_PREREQDATA, transfer);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
	curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, get || post ? NULL : method);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT, get || post ? 0L : (long)GOODBYE_SECONDS);
	if (post) {
		curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)transfer->exchange->body.length);
		curl_easy_setopt(easy, CURLOPT_POSTFIELDS, transfer->exchange->body.data);
	} else {
		curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
	}
	curl_multi_add_handle(http->multi, easy);
}

struct transfer *http_transfer_new(struct upstream_connection *connection, struct upstream_exchange *exchange)
{
	struct http *http = connection->loop->multi;
	struct transfer *transfer = xcalloc(1, sizeof(*transfer));

	transfer->connection = connection;
	transfer->exchange = exchange;
	transfer->last = &transfer->first;
	buf_init(&transfer->body, exchange != NULL ? exchange->max + HTTP_ENVELOPE : HTTP_ENVELOPE);
	sse_reader_init(&transfer->sse, exchange != NULL ? exchange->max + HTTP_ENVELOPE : HTTP_ENVELOPE);
	transfer->next = http->transfers;
	http->transfers = transfer;
	return transfer;
}

void http_transfer_reap(struct http *http)
{
	for (struct transfer **at = &http->transfers; *at != NULL;) {
		struct transfer *transfer = *at;

		if (!transfer->dead) {
			at = &transfer->next;
			continue;
		}
		*at = transfer->next;
		http_transfer_end(transfer, http);
		for (struct message *message; (message = transfer->first) != NULL;) {
			transfer->first = message->next;
			free(message->text);
			free(message);
		}
		free(transfer->challenge);
		buf_clear(&transfer->body);
		sse_reader_clear(&transfer->sse);
		free(transfer);
	}
}
