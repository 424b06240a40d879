/*
 * stdio_serve.c - see stdio_serve.h.
 *
 * A line becomes a request as the web server would have handed it on, with the headers that a client over HTTP sends,
 * and goes the same way (mcp_endpoint.c); the reply's body is the answer's line. So both eras, all checks and all tools
 * are those of HTTP. What HTTP carries outside the message is kept here: the session that `initialize` opened belongs
 * to the process (stdio_news.c), and modern headers repeat the body by construction. The first thread reads lines and
 * answers what opens the session and what is no request; every other request, or batch, gets a thread, so that a long
 * run holds up nothing. A request's client "leaves" when notifications/cancelled names its id: its hangup descriptor is
 * one end of a socket pair whose other end is then shut down.
 *
 * The end of standard input ends us when everything is answered that has an answer of its own: then the server stops,
 * and with it the subscriptions.
 *
 * A second process on the same data folder (two desktop programs) finds the gateway's lock taken and writes next to it,
 * as a CLI does; they tell each other what they record (job_news.h).
 */
#include "stdio_serve.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cgi/http/server.h"
#include "cgi/mcp/mcp_endpoint.h"
#include "cgi/server_start.h"
#include "lib/base/log.h"
#include "lib/base/util.h"
#include "stdio_news.h"
#include "stdio_params.h"

#define READ_SIZE     (64 * 1024)
#define LOOK_MS       200 /* how often the thread that waits for the client looks whether a signal came */
#define LEAVE_SECONDS 2 /* from cancelling to leaving: clients kill after as long */

struct stdio {
	struct server server;
	struct stdio_news *news; /* of the session; the first thread's */
	pthread_mutex_t lock;    /* for what follows, and for standard output */
	char session[ID_SIZE];
	pthread_cond_t ended;
	struct pending *pending; /* requests under way */
	size_t n_pending, n_listening; /* listening: subscriptions among them */
	int ended_fd; /* eventfd: one more has ended */
	bool broken;  /* nobody reads our output any more */
};

struct pending {
	struct pending *next;
	struct stdio *stdio;
	struct buf line;
	struct json_object *document;
	char *id;    /* as text */
	bool listening;
	int ends[2]; /* [0] is the request's hangup descriptor */
};

static volatile sig_atomic_t stopping;

static void on_signal(int number)
{
	(void)number;
	stopping = 1;
}

/* -------- answers ------------------------------------------------------------------------------------- */

/* Has SIGTERM or SIGINT arrived? Also checks pending signals: they are handled by the main thread, which may itself be
 * blocked in write_out() or waiting for a thread that is. */
static bool asked_to_stop(void)
{
	sigset_t pending;

	return stopping ||
	       (sigpending(&pending) == 0 && (sigismember(&pending, SIGTERM) || sigismember(&pending, SIGINT)));
}

/* A pipe with room takes PIPE_BUF bytes without blocking, so a client that does not read cannot delay a stop. */
static bool write_out(const char *data, size_t length)
{
	struct pollfd fd = {.fd = STDOUT_FILENO, .events = POLLOUT};

	while (length > 0) {
		int ready = poll(&fd, 1, LOOK_MS);
		ssize_t written = ready > 0 ? write(STDOUT_FILENO, data, MIN(length, PIPE_BUF)) : 0;

		if ((ready < 0 || written < 0) && errno != EINTR)
			return false;
		if (ready == 0 && asked_to_stop())
			return false;
		data += MAX(written, 0);
		length -= (size_t)MAX(written, 0);
	}
	return true;
}

static void send_line(struct stdio *stdio, const char *data, size_t length)
{
	pthread_mutex_lock(&stdio->lock);
	if (!stdio->broken && (!write_out(data, length) || !write_out("\n", 1)))
		stdio->broken = true;
	pthread_mutex_unlock(&stdio->lock);
}

static void send_error(struct stdio *stdio, struct json_object *id, int code, const char *text)
{
	auto_json struct json_object *answer = rpc_error(id, code, text, NULL);
	auto_buf struct buf line = {0};

	mcp_observe(NULL, answer);
	buf_init(&line, HTTP_HEADER_MAX);
	json_print(&line, answer);
	send_line(stdio, line.data, line.length);
}

/* -------- one message as a request -------------------------------------------------------------------- */

/* What a struct request is about here. */
struct incoming {
	struct stdio *stdio;
	const struct buf *line;
};

static int line_body(void *arg, struct buf *body, struct err *err)
{
	const struct buf *line = ((const struct incoming *)arg)->line;

	(void)err;
	buf_add(body, line->data, line->length);
	return 0;
}

/* What belongs to no request. */
static int send_news(void *stdio, const char *text)
{
	send_line(stdio, text, strlen(text));
	return 0;
}

/* Progress, before the answer. */
static int send_message(void *arg, const char *text)
{
	return send_news(((const struct incoming *)arg)->stdio, text);
}

/* The session that a reply opens takes the place of the one before. */
static void keep_session(struct stdio *stdio, const struct reply *reply)
{
	struct err err = ERR_INIT;

	if (!reply->session[0])
		return;
	stdio_news_stop(steal(&stdio->news));
	pthread_mutex_lock(&stdio->lock);
	memcpy(stdio->session, reply->session, ID_SIZE);
	pthread_mutex_unlock(&stdio->lock);
	if (stdio_news_start(&stdio->server, stdio->session, send_news, stdio, &stdio->news, &err) < 0)
		log_event(LOG_WARN, "the client gets no notifications", "error", err.text, NULL);
}

static void answer(struct stdio *stdio, struct json_object *document, struct buf *line, int hangup_fd, bool opens)
{
	char *params[STDIO_PARAMS_MAX] = {0}, session[ID_SIZE];
	bool notification = json_get_string(document, "method") && !json_object_object_get_ex(document, "id", NULL);
	auto_reply struct reply reply;

	pthread_mutex_lock(&stdio->lock);
	snprintf(session, sizeof(session), "%s", opens ? "" : stdio->session);
	pthread_mutex_unlock(&stdio->lock);
	stdio_params_fill(params, document, session);
	struct incoming incoming = {stdio, line};
	const struct request request = {
		.params = (const char *const *)params,
		.read_body = line_body,
		.message = send_message,
		.arg = &incoming,
		.hangup_fd = hangup_fd,
	};
	struct http_exchange exchange = {
		.server = &stdio->server, .request = &request, .reply = &reply, .token = {.owner = STORE_OWNER_LOCAL}};

	reply_init(&reply);
	mcp_handle(&exchange, "POST", "");
	if (reply.body.overflow)
		send_error(stdio, NULL, RPC_INTERNAL, "Internal error: the answer is larger than the server can send");
	else if (reply.body.length > 0 && !reply.gone &&
		 !notification) /* what HTTP says to a bad one has no place here */
		send_line(stdio, reply.body.data, reply.body.length);
	if (opens) /* no notification goes before this answer, and the next line comes after */
		keep_session(stdio, &reply);
	stdio_params_clear(params);
}

/* -------- requests side by side ----------------------------------------------------------------------- */

static void *run_pending(void *arg)
{
	struct pending *pending = arg, **link;
	struct stdio *stdio = pending->stdio;

	answer(stdio, pending->document, &pending->line, pending->ends[0], false);
	pthread_mutex_lock(&stdio->lock);
	for (link = &stdio->pending; *link != pending; link = &(*link)->next)
		;
	*link = pending->next;
	stdio->n_pending--;
	stdio->n_listening -= pending->listening;
	buf_clear(&pending->line);
	json_object_put(pending->document);
	free(pending->id);
	close_pointer(&pending->ends[0]);
	close_pointer(&pending->ends[1]);
	free(pending);
	pthread_cond_broadcast(&stdio->ended);
	if (write(stdio->ended_fd, &(uint64_t){1}, sizeof(uint64_t)) < 0)
		log_event(LOG_WARN, "a request's end is not noticed", "error", strerror(errno), NULL);
	pthread_mutex_unlock(&stdio->lock);
	return NULL;
}

/* Takes over document and line. A batch has no id of its own: its members are cancelled by the hub. */
static void start_pending(struct stdio *stdio, struct json_object *document, struct buf *line, bool listening)
{
	struct pending *pending = xcalloc(1, sizeof(*pending));
	pthread_t thread;

	*pending = (struct pending){
		.stdio = stdio, .line = *line, .document = document, .listening = listening, .ends = {-1, -1}};
	pending->id = json_object_is_type(document, json_type_array) ? xstrdup("")
								  : mcp_id_text(json_object_object_get(document, "id"));
	*line = (struct buf){0};
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pending->ends) < 0)
		log_event(LOG_WARN, "a request cannot be cancelled", "error", strerror(errno), NULL);
	pthread_mutex_lock(&stdio->lock);
	pending->next = stdio->pending;
	stdio->pending = pending;
	stdio->n_pending++;
	stdio->n_listening += listening;
	pthread_mutex_unlock(&stdio->lock);
	if (server_thread(&thread, true, run_pending, pending))
		run_pending(pending);
}

/* The id NULL: all. */
static void cancel(struct stdio *stdio, const char *id)
{
	pthread_mutex_lock(&stdio->lock);
	for (struct pending *pending = stdio->pending; pending; pending = pending->next) {
		if ((!id || streq(pending->id, id)) && pending->ends[1] >= 0)
			shutdown(pending->ends[1], SHUT_RDWR);
	}
	pthread_mutex_unlock(&stdio->lock);
}

static size_t pending_left(struct stdio *stdio, bool listening)
{
	pthread_mutex_lock(&stdio->lock);
	size_t left = listening ? stdio->n_listening : stdio->n_pending - stdio->n_listening;

	pthread_mutex_unlock(&stdio->lock);
	return left;
}

/* -------- lines --------------------------------------------------------------------------------------- */

static void take_line(struct stdio *stdio, struct buf *line)
{
	auto_json struct json_object *document = NULL;
	struct json_object *id = NULL;
	struct err err = ERR_INIT;

	if (strspn(line->data, " \t\r") == line->length)
		return;
	if (json_parse_received(line->data, line->length, &document, &err) < 0) {
		err_wrap(&err, "Parse error");
		send_error(stdio, NULL, RPC_PARSE_ERROR, err.text);
		return;
	}
	const char *method = json_get_string(document, "method");

	if (method && streq(method, "notifications/cancelled")) {
		struct json_object *params = json_get(document, "params", json_type_object);

		if (params && json_object_object_get_ex(params, "requestId", &id)) {
			auto_free char *text = mcp_id_text(id);

			cancel(stdio, text);
		}
	}
	bool batch = json_object_is_type(document, json_type_array),
	     listening = method && streq(method, "subscriptions/listen");

	if (batch || (method && !streq(method, "initialize") && json_object_object_get_ex(document, "id", &id))) {
		if (pending_left(stdio, listening) < (listening ? STDIO_LISTENING_MAX : STDIO_REQUESTS_MAX))
			start_pending(stdio, steal(&document), line, listening);
		else
			send_error(stdio, id, RPC_INTERNAL,
				   "Too many concurrent requests: wait for the answer to one of them");
	} else {
		answer(stdio, document, line, -1, method && streq(method, "initialize"));
	}
}

/* Takes the whole lines out of what was read; what follows stays. */
static void take_lines(struct stdio *stdio, struct buf *line, const char *data, size_t length)
{
	size_t most = line->max;

	while (length > 0) {
		const char *end = memchr(data, '\n', length);
		size_t part = end ? (size_t)(end - data) : length;

		buf_add(line, data, part);
		if (end && line->overflow)
			send_error(stdio, NULL, RPC_INVALID_REQUEST,
				   "Request too large: a line has at most limits.body_mb");
		else if (end)
			take_line(stdio, line);
		if (end) {
			buf_clear(line);
			buf_init(line, most);
		}
		part += end != NULL;
		data += part;
		length -= part;
	}
}

static void serve(struct stdio *stdio, const sigset_t *waiting)
{
	auto_free char *data = xmalloc(READ_SIZE);
	auto_buf struct buf line = {0};

	buf_init(&line, (size_t)stdio->server.config->limits.body_mb << 20);
	while (!stopping && !stdio->broken) {
		struct pollfd fds[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = STDOUT_FILENO}};

		if (ppoll(fds, 2, NULL, waiting) <= 0) /* signals get through only here, so none is missed */
			continue;
		if (fds[1].revents & (POLLERR | POLLHUP))
			break;
		ssize_t got = fds[0].revents ? read(STDIN_FILENO, data, READ_SIZE) : 0;

		if (fds[0].revents && got <= 0)
			break;
		take_lines(stdio, &line, data, (size_t)got);
	}
	if (line.length > 0 && !line.overflow && !stopping)
		take_line(stdio, &line); /* a last line without its end */
}

/* Until none is left, or a signal says that nobody waits for them. */
static void wait_answers(struct stdio *stdio, const sigset_t *waiting, bool listening)
{
	struct pollfd ended = {.fd = stdio->ended_fd, .events = POLLIN};
	uint64_t count;

	while (!stopping && !stdio->broken && pending_left(stdio, listening) > 0) {
		if (ppoll(&ended, 1, NULL, waiting) > 0 && read(stdio->ended_fd, &count, sizeof(count)) < 0)
			break;
	}
}

/* Until everything is answered, or a signal says that nobody waits for it. False: requests are left. */
static bool finish(struct stdio *stdio, const sigset_t *waiting)
{
	struct timespec until;
	size_t left;

	wait_answers(stdio, waiting, false);
	hub_stop(stdio->server.hub);
	wait_answers(stdio, waiting, true);
	if (pending_left(stdio, false) + pending_left(stdio, true) == 0)
		return true;
	cancel(stdio, NULL);
	server_stop(&stdio->server);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += LEAVE_SECONDS;
	pthread_mutex_lock(&stdio->lock);
	while (stdio->n_pending > 0 && pthread_cond_timedwait(&stdio->ended, &stdio->lock, &until) == 0)
		;
	left = stdio->n_pending;
	pthread_mutex_unlock(&stdio->lock);
	return left == 0;
}

int stdio_serve(const struct config *config, struct err *err)
{
	struct stdio *stdio = xcalloc(1, sizeof(*stdio));
	const struct sigaction action = {.sa_handler = on_signal};
	sigset_t signals, waiting;

	/* Before any thread is there: signals are this thread's, and only while it waits. */
	signal(SIGPIPE, SIG_IGN);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	pthread_sigmask(SIG_BLOCK, &signals, &waiting);
	pthread_mutex_init(&stdio->lock, NULL);
	pthread_cond_init(&stdio->ended, NULL);
	stdio->ended_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int result = stdio->ended_fd < 0 ? err_errno(err, "cannot make an eventfd")
					 : server_open(&stdio->server, config, STORE_SERVE, err);

	if (result == -ERR_CONFLICT) { /* another process serves this folder: next to it */
		server_close(&stdio->server);
		*err = ERR_INIT;
		result = server_open(&stdio->server, config, STORE_WRITE, err);
	}
	if (result == 0)
		result = server_stay(&stdio->server, err);
	if (result == 0) {
		serve(stdio, &waiting);
		/* What does not end in time goes with the process: its jailer ends it, the next start marks it
		 * interrupted. */
		if (!finish(stdio, &waiting))
			return 0;
		stdio_news_finish(stdio->news);
	}
	server_close(&stdio->server);
	close_pointer(&stdio->ended_fd);
	free(stdio);
	return result;
}
