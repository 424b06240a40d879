/*
 * upstream_pipe.c - see upstream_pipe.h.
 *
 * One JSON-RPC message a line, in both directions. What a program writes that is not JSON is passed over: many print a
 * banner. Where such a line begins as an answer does, the request of its id fails; so does the request whose id is at
 * the begin or end of a line that is too long. The program's end is the end of its standard output.
 *
 * A connection that closes lets its program go: standard input is closed, which is how a server is asked to end; two
 * seconds later it is asked by SIGTERM, two more and it is killed. Facts: MCP transports, stdio.
 */
#include "upstream_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/mask.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "upstream_cause.h"

#define SECOND     INT64_C(1000000)
#define ENVELOPE   (64 << 10)
#define READ_SIZE  (64 << 10)
#define LAST_READS  16 /* of READ_SIZE, when a program has ended */
#define ERRORS_MAX (64 << 10)
#define LOGGED     1000 /* bytes of standard error in the log */
#define ID_REACH   512 /* bytes at both ends of a line in which its id is looked for */
#define PATIENCE   (2 * SECOND)
#define LAST_WAIT  (SECOND / 50)
#define OUTGOING   (64 << 20)

struct pipes {
	struct pipe_wire *wires;
	const struct launcher *bare, *jailed;
};

static int pipe_open(struct upstream_connection *connection, struct err *err)
{
	struct pipes *pipes = connection->loop->pipes;
	const struct launcher *launcher = connection->server->jail ? pipes->jailed : pipes->bare;
	int pairs[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}}, result = 0;
	struct pipe_wire *wire;

	for (int i = 0; result == 0 && i < 3; i++) { /* the program's end first; ours does not block */
		int ends[2];

		if (pipe2(ends, O_CLOEXEC) < 0) {
			result = err_errno(err, "making a pipe");
			break;
		}
		pairs[i][0] = ends[i == 0 ? 0 : 1];
		pairs[i][1] = ends[i == 0 ? 1 : 0];
		fcntl(pairs[i][1], F_SETFL, O_NONBLOCK);
	}
	wire = xcalloc(1, sizeof(*wire));
	wire->connection = connection;
	wire->loop = connection->loop;
	wire->launcher = launcher;
	wire->in = pairs[0][1];
	wire->out = pairs[1][1];
	wire->error = pairs[2][1];
	wire->errors = xmalloc(ERRORS_MAX);
	buf_init(&wire->outgoing, OUTGOING);
	buf_init(&wire->ahead, READ_SIZE);
	buf_init(&wire->line, MAX(connection->loop->result_max, (size_t)CONNECTION_LIST_MAX) + ENVELOPE);
	wire->next = pipes->wires;
	pipes->wires = wire;
	connection->wire = wire;
	if (result == 0)
		result = launcher->start(wire, connection->server, (int[]){pairs[0][0], pairs[1][0], pairs[2][0]}, err);
	for (int i = 0; i < 3; i++)
		fd_close(&pairs[i][0]);
	if (result < 0)
		wire->launcher = NULL; /* nothing to end */
	return result;
}

void pipe_started(struct pipe_wire *wire)
{
	if (wire->connection != NULL)
		connection_started(wire->connection);
}

static void take_errors(struct pipe_wire *wire, const char *data, size_t length);

/* A path of the sentence that is not in the program's jail; the caller's. */
static char *what_it_cannot_see(const struct pipe_wire *wire, const char *text)
{
	const struct upstream_server *server = wire->connection != NULL ? wire->connection->server : NULL;
	const struct bind_strings *folders = server == NULL        ? NULL
					     : server->names_binds ? &server->binds
								   : &wire->loop->config->upstream.binds;
	const char *path;
	const size_t length = server != NULL && server->jail ? upstream_cause_unseen(text, folders, &path) : 0;

	return length == 0 ? xstrdup("")
			   : xasprintf(" (%.*s is not in the server's jail: name its folder in upstream.binds)",
				       (int)length, path);
}

/* All that is known of it, without its secrets. Of a server that was ready it may hold what owners sent, which no log
 * has. */
static void tell_operator(const struct pipe_wire *wire)
{
	const size_t start = wire->n_errors > LOGGED ? wire->n_errors - LOGGED : 0;
	auto_buf struct buf shown = {0};

	if (wire->connection == NULL || wire->n_errors == 0 || wire->connection->state == CONNECTION_READY)
		return;
	buf_init(&shown, SIZE_MAX);
	mask_bytes(wire->connection->mask, wire->errors + start, wire->n_errors - start, &shown);
	buf_putc(&shown, '\0');
	log_event(LOG_WARN, "upstream server ended", "server", wire->connection->server->name, "stderr", shown.data,
		  NULL);
}

void pipe_failed(struct pipe_wire *wire, const char *why)
{
	auto_free char *data = xmalloc(READ_SIZE);
	auto_buf struct buf words;
	ssize_t n;

	/* What it wrote to standard error before its end may not be read yet. */
	for (int i = 0; i < LAST_READS && wire->error >= 0 && (n = read(wire->error, data, READ_SIZE)) > 0; i++)
		take_errors(wire, data, (size_t)n);
	buf_init(&words, 5 * UPSTREAM_CAUSE_MAX);
	upstream_cause(wire->errors, wire->n_errors, &words);
	buf_putc(&words, '\0');
	auto_free char *unseen = what_it_cannot_see(wire, words.data);
	auto_free char *text = xasprintf("%s%s%s%s", why, *words.data ? ", it wrote: " : "", words.data, unseen);

	tell_operator(wire);
	if (wire->connection != NULL)
		connection_lost(wire->connection, why, text);
}

static void write_out(struct pipe_wire *wire)
{
	struct buf *out = &wire->outgoing;

	while (wire->written < out->length) {
		ssize_t n = write(wire->in, out->data + wire->written, out->length - wire->written);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return; /* full; or it ended, which its output says */
		wire->written += (size_t)n;
	}
	wire->written = 0;
	buf_reset(out);
}

static void pipe_send(struct upstream_connection *connection, struct upstream_exchange *exchange)
{
	struct pipe_wire *wire = connection->wire;
	struct buf *body = &exchange->body;

	/* Line ends can only be between values. */
	for (size_t i = 0; i < body->length; i++)
		if (body->data[i] == '\n' || body->data[i] == '\r')
			body->data[i] = ' ';
	buf_add(&wire->outgoing, body->data, body->length);
	buf_putc(&wire->outgoing, '\n');
	exchange->sent = true;
	write_out(wire);
	if (wire->outgoing.overflow)
		log_event(LOG_WARN, "upstream server does not read", "server", connection->server->name, NULL);
	if (exchange->kind == EXCHANGE_NOTICE)
		connection_failed(exchange, &(struct failure){.kind = FAILURE_LOST, .text = ""});
}

static void pipe_forget(struct upstream_connection *connection, struct upstream_exchange *exchange)
{
	(void)connection;
	(void)exchange;
}

static void pipe_close(struct upstream_connection *connection)
{
	struct pipe_wire *wire = connection->wire;

	if (wire == NULL)
		return;
	connection->wire = NULL;
	wire->connection = NULL;
	reader_free(steal(&wire->reading));
	wire->since_us = wire->loop->now_us;
	fd_close(&wire->in);
}

const struct transport pipe_transport = {
	.open = pipe_open,
	.send = pipe_send,
	.forget = pipe_forget,
	.close = pipe_close,
};

/* The number behind the last "id": in the bytes; 0: there is none. */
static int64_t id_in(const char *text, size_t length)
{
	static const char key[] = "\"id\":";
	int64_t id = 0;

	for (const char *at = text; (at = memmem(at, length - (size_t)(at - text), key, strlen(key))) != NULL; at++) {
		const char *digits = at + strlen(key), *end = text + length;
		size_t n = 0;
		struct raw number = {digits, 0};

		while (digits + n < end && digits[n] >= '0' && digits[n] <= '9')
			n++;
		number.length = n;
		raw_int(number, &id);
	}
	return id;
}

/* Not JSON, or too deep: where it begins as an answer does it fails its call, anything else is passed over. */
static void wrong_line(struct pipe_wire *wire, const char *text, size_t length, const struct err *why)
{
	static const char key[] = "\"jsonrpc\"";
	const size_t reach = MIN(length, ID_REACH);
	struct upstream_exchange *exchange = NULL;

	if (length > 0 && text[0] == '{' && memmem(text, reach, key, strlen(key)) != NULL)
		exchange = connection_find(wire->connection, id_in(text, reach));
	if (exchange != NULL) {
		connection_failed(exchange, &(struct failure){.kind = FAILURE_GARBLED, .text = why->text});
		return;
	}
	if (wire->rubbish++ == 0)
		log_event(LOG_DEBUG, "upstream server printed a line that is not JSON", "server",
			  wire->connection->server->name, NULL);
}

/* The line that was read, unless the reader has it still. */
static void deliver(struct pipe_wire *wire)
{
	if (wire->reading == NULL || !reader_done(wire->reading))
		return;
	auto_reading struct reading *reading = steal(&wire->reading);
	struct share *share = &wire->connection->share;
	const int64_t began_us = share_clock() - reading->took_us;

	if (reading->result < 0)
		wrong_line(wire, reading->text, reading->length, &reading->err);
	for (size_t i = 0; wire->connection != NULL && i < reading->count; i++)
		connection_received(wire->connection, NULL, &reading->messages[i]);
	share_charge_large(share, began_us);
}

static void take_line(struct pipe_wire *wire)
{
	const struct upstream_connection *connection = wire->connection;
	size_t length;
	char *text = buf_steal(&wire->line, &length);

	wire->reading = reader_read(connection->loop->reader, text, length, wire->line.max, connection->mask);
	deliver(wire);
}

/* A line that was too long: `line` holds its begin and, behind ID_REACH bytes, its end. */
static void long_line(struct pipe_wire *wire)
{
	int64_t id = id_in(wire->line.data, wire->line.length);
	struct upstream_exchange *exchange = connection_find(wire->connection, id);

	if (exchange == NULL)
		log_event(LOG_WARN, "upstream server wrote a line that is too long", "server",
			  wire->connection->server->name, NULL);
	else
		connection_failed(exchange,
				  &(struct failure){.kind = FAILURE_LARGE, .text = "the program writes a longer line"});
}

/* Cuts what is kept of a line that is too long down to its begin and its end. */
static void keep_ends(struct pipe_wire *wire, const char *data, size_t length)
{
	struct buf *line = &wire->line;
	size_t keep = MIN(length, ID_REACH);

	if (line->length > 2 * ID_REACH) {
		memmove(line->data + ID_REACH, line->data + line->length - ID_REACH, ID_REACH);
		line->length = 2 * ID_REACH;
		line->overflow = false;
	}
	buf_add(line, data + length - keep, keep);
}

static void take_output(struct pipe_wire *wire, const char *data, size_t length)
{
	while (length > 0 && wire->connection != NULL && wire->reading == NULL) {
		const char *end = memchr(data, '\n', length);
		size_t n = end != NULL ? (size_t)(end - data) : length;

		if (!wire->skipping && wire->line.length + n > wire->line.max)
			wire->skipping = true;
		if (wire->skipping)
			keep_ends(wire, data, n);
		else
			buf_add(&wire->line, data, n);
		data += n + (end != NULL);
		length -= n + (end != NULL);
		if (end == NULL)
			break;
		if (wire->skipping)
			long_line(wire);
		else if (wire->line.length > 0)
			take_line(wire);
		wire->skipping = false;
		buf_reset(&wire->line);
	}
	if (wire->reading != NULL)
		buf_add(&wire->ahead, data, length);
}

/* The reader has its line no longer: what came behind it. */
static void go_on(struct pipe_wire *wire)
{
	auto_buf struct buf ahead = wire->ahead;

	deliver(wire);
	buf_init(&wire->ahead, READ_SIZE);
	take_output(wire, ahead.data, ahead.length);
}

static void take_errors(struct pipe_wire *wire, const char *data, size_t length)
{
	size_t over;

	if (length > ERRORS_MAX) {
		data += length - ERRORS_MAX;
		length = ERRORS_MAX;
	}
	over = wire->n_errors + length > ERRORS_MAX ? wire->n_errors + length - ERRORS_MAX : 0;
	memmove(wire->errors, wire->errors + over, wire->n_errors - over);
	wire->n_errors -= over;
	memcpy(wire->errors + wire->n_errors, data, length);
	wire->n_errors += length;
}

/* A connection that rests is not read, */
static bool rests(const struct pipe_wire *wire)
{
	return wire->connection != NULL && share_rests(&wire->connection->share, wire->loop->now_us);
}

/* nor one whose line the reader has. */
static bool waits(const struct pipe_wire *wire)
{
	return wire->reading != NULL && !reader_done(wire->reading);
}

/* Once a turn, so that none keeps the others waiting. */
static void read_from(struct pipe_wire *wire, int *fd, void (*take)(struct pipe_wire *, const char *, size_t))
{
	char data[READ_SIZE];
	ssize_t n = *fd >= 0 ? read(*fd, data, sizeof(data)) : 0;

	if (n > 0) {
		take(wire, data, (size_t)n);
	} else if (*fd >= 0 && (n == 0 || (errno != EAGAIN && errno != EINTR))) {
		bool output = *fd == wire->out;

		fd_close(fd);
		if (output && wire->launcher != NULL && wire->launcher != wire->loop->pipes->bare)
			wire->launcher->terminate(wire, false); /* its jail reports why it ended */
		else if (output)
			pipe_failed(wire, "the program ended");
	}
}

/* True: nothing is left of it. */
static bool let_go(struct pipe_wire *wire)
{
	int64_t waited = wire->loop->now_us - wire->since_us;

	if (wire->launcher == NULL || wire->launcher->ended(wire))
		return true;
	if (wire->asked < 1 + (waited > 2 * PATIENCE) && waited > PATIENCE) {
		wire->launcher->terminate(wire, waited > 2 * PATIENCE);
		wire->asked++;
	}
	return false;
}

static void free_wire(struct pipe_wire *wire)
{
	fd_close(&wire->in);
	fd_close(&wire->out);
	fd_close(&wire->error);
	buf_clear(&wire->outgoing);
	buf_clear(&wire->line);
	buf_clear(&wire->ahead);
	free(wire->errors);
	free(wire);
}

void pipes_turn(struct connection_loop *loop)
{
	for (struct pipe_wire *wire = loop->pipes->wires; wire != NULL; wire = wire->next) {
		if (wire->outgoing.length > wire->written && wire->in >= 0)
			write_out(wire);
		read_from(wire, &wire->error, take_errors);
		if (wire->reading != NULL && !waits(wire) && !rests(wire))
			go_on(wire);
		if (wire->reading == NULL && !rests(wire))
			read_from(wire, &wire->out, take_output);
	}
	for (struct pipe_wire **at = &loop->pipes->wires; *at != NULL;) {
		struct pipe_wire *wire = *at;

		if (wire->connection != NULL || !let_go(wire)) {
			at = &wire->next;
			continue;
		}
		*at = wire->next;
		free_wire(wire);
	}
}

int64_t pipes_wake(const struct connection_loop *loop)
{
	int64_t wake = INT64_MAX;

	for (const struct pipe_wire *wire = loop->pipes->wires; wire != NULL; wire = wire->next)
		if (wire->connection == NULL)
			wake = MIN(wake, loop->now_us + LAST_WAIT);
		else if (rests(wire) || (wire->reading != NULL && !waits(wire)))
			wake = MIN(wake, wire->connection->share.rests_until_us);
	return wake;
}

bool pipes_leaving(const struct connection_loop *loop)
{
	return loop->pipes->wires != NULL;
}

size_t pipes_poll(const struct connection_loop *loop, struct pollfd *ret, size_t room)
{
	size_t count = 0;

	for (const struct pipe_wire *wire = loop->pipes->wires; wire != NULL && count + 3 <= room; wire = wire->next) {
		const struct pollfd fds[] = {{wire->reading != NULL || rests(wire) ? -1 : wire->out, POLLIN, 0},
					     {wire->error, POLLIN, 0},
					     {wire->in, POLLOUT, 0}};

		for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
			if ((i < 2 || wire->outgoing.length > wire->written) && fds[i].fd >= 0)
				ret[count++] = fds[i];
	}
	return count;
}

int pipes_open(struct connection_loop *loop, const struct launcher *bare, const struct launcher *jailed)
{
	loop->pipes = xcalloc(1, sizeof(*loop->pipes));
	loop->pipes->bare = bare;
	loop->pipes->jailed = jailed;
	return 0;
}

void pipes_close(struct connection_loop *loop)
{
	struct pipe_wire *wire;

	while ((wire = loop->pipes->wires) != NULL) {
		if (wire->launcher != NULL && !wire->launcher->ended(wire)) {
			wire->launcher->terminate(wire, true);
			while (!wire->launcher->ended(wire))
				;
		}
		loop->pipes->wires = wire->next;
		free_wire(wire);
	}
	free(loop->pipes);
}
