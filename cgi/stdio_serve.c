/*
 * stdio_serve.c - see stdio_serve.h.
 *
 * A line becomes a request as the web server would have handed it on, with the headers that a client over HTTP sends, and goes the
 * same way (mcp.c); the reply's body is the answer's line. So both eras, all checks and all tools are those of HTTP. What HTTP carries
 * outside the message is kept here: the session that `initialize` opened belongs to the process, and modern headers repeat
 * the body by construction. The first thread reads lines and answers what opens the session and what is no request; every other
 * request gets a thread, so that a long run holds up nothing. A request's client "leaves" when notifications/cancelled names its id: its
 * hangup descriptor is one end of a socket pair whose other end is then shut down.
 *
 * A second process on the same data folder (two desktop programs) finds the gateway's lock taken and writes beside it, as a CLI does; they
 * tell each other what they record (job_news.h).
 */
#include "stdio_serve.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/log.h"
#include "../lib/util.h"
#include "mcp.h"
#include "server.h"
#include "thread.h"

#define READ_SIZE     (64 * 1024)
#define LEAVE_SECONDS 2 /* from cancelling to leaving: clients kill after as long */
#define PARAMS_MAX    10
#define SESSION_MAX   128

struct stdio {
	struct server server;
	char session[SESSION_MAX];
	pthread_mutex_t lock; /* for the list below and for standard output */
	pthread_cond_t ended;
	struct task *tasks; /* requests under way */
	size_t n_tasks;
	int ended_fd; /* eventfd: one more has ended */
	bool broken;  /* nobody reads our output any more */
};

struct task {
	struct task *next;
	struct stdio *stdio;
	struct buf line;
	struct json_object *document;
	char *id;    /* as text */
	int ends[2]; /* [0] is the request's hangup descriptor */
};

static volatile sig_atomic_t stopping;

static void on_signal(int number)
{
	(void)number;
	stopping = 1;
}

/* --- configuration -------------------------------------------------------------------------------------------------------- */

static int make_folders(char *path, struct err *err)
{
	for (char *p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			return err_errno(err, "cannot make the folder %s", path);
		*p = '/';
	}
	return 0;
}

int stdio_prepare(struct config *config, struct err *err)
{
	const char *base = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
	auto_free char *path = NULL;

	if (config->data_dir[0])
		return 0;
	if (base && base[0] == '/')
		path = xasprintf("%s/sallyport", base);
	else if (home && home[0] == '/')
		path = xasprintf("%s/.local/share/sallyport", home);
	else
		return err_set(err, ERR_INVALID,
			       "neither XDG_DATA_HOME nor HOME names a folder for the record: set one of them, or data_dir");
	int result = make_folders(path, err);

	if (result < 0)
		return result;
	struct json_object *value = json_object_new_string(path);

	json_add(config->document, "data_dir", value); /* the document owns the struct's strings */
	config->data_dir = json_object_get_string(value);
	return 0;
}

/* --- answers -------------------------------------------------------------------------------------------------------------- */

static void send_line(struct stdio *stdio, const char *data, size_t length)
{
	pthread_mutex_lock(&stdio->lock);
	if (!stdio->broken && (write_all(STDOUT_FILENO, data, length) < 0 || write_all(STDOUT_FILENO, "\n", 1) < 0))
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

/* The session that a reply opens. */
static void keep_session(struct stdio *stdio, const struct reply *reply)
{
	static const char name[] = "Mcp-Session-Id: ";
	const char *found = strstr(reply->headers.data, name);

	if (found) {
		found += sizeof(name) - 1;
		snprintf(stdio->session, sizeof(stdio->session), "%.*s", (int)strcspn(found, "\r"), found);
	}
}

/* --- one message as a request ----------------------------------------------------------------------------------------------- */

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

/* Progress, before the answer. */
static int send_message(void *arg, const char *text)
{
	struct stdio *stdio = ((const struct incoming *)arg)->stdio;

	send_line(stdio, text, strlen(text));
	return 0;
}

static void add_param(char *params[PARAMS_MAX], const char *name, const char *value)
{
	size_t i = 0;

	while (params[i])
		i++;
	params[i] = xasprintf("%s=%s", name, value);
}

/* The member that Mcp-Name repeats, if the method has one. */
static const char *name_of(const char *method, struct json_object *params)
{
	if (str_starts(method, "tasks/"))
		return json_get_string(params, "taskId");
	return json_get_string(params, str_starts(method, "resources/") ? "uri" : "name");
}

static void add_headers(char *params[PARAMS_MAX], struct json_object *document)
{
	struct json_object *message_params = json_get(document, "params", json_type_object);
	const char *version = json_get_string(json_get(message_params, "_meta", json_type_object), MCP_META_VERSION);
	const char *method = json_get_string(document, "method"), *name = method ? name_of(method, message_params) : NULL;
	auto_buf struct buf encoded = {0};

	add_param(params, "REQUEST_METHOD", "POST");
	add_param(params, "CONTENT_TYPE", "application/json");
	if (!version || !method)
		return;
	add_param(params, "HTTP_MCP_PROTOCOL_VERSION", version);
	add_param(params, "HTTP_MCP_METHOD", method);
	if (!name)
		return;
	buf_init(&encoded, 2 * strlen(name) + 32);
	buf_puts(&encoded, "=?base64?");
	base64_encode(&encoded, name, strlen(name));
	buf_puts(&encoded, "?=");
	add_param(params, "HTTP_MCP_NAME", encoded.data);
}

static void answer(struct stdio *stdio, struct json_object *document, struct buf *line, int hangup_fd, bool opens)
{
	char *params[PARAMS_MAX] = {0};
	bool notification = json_get_string(document, "method") && !json_object_object_get_ex(document, "id", NULL);
	auto_reply struct reply reply;

	add_headers(params, document);
	if (stdio->session[0] && !opens)
		add_param(params, "HTTP_MCP_SESSION_ID", stdio->session);
	struct incoming incoming = {stdio, line};
	const struct request request = {
		.params = (const char *const *)params,
		.read_body = line_body,
		.message = send_message,
		.arg = &incoming,
		.hangup_fd = hangup_fd,
	};
	struct exchange exchange = {.server = &stdio->server, .request = &request, .reply = &reply, .token = {.owner = STDIO_OWNER}};

	reply_init(&reply);
	mcp_handle(&exchange, "POST", "");
	if (opens)
		keep_session(stdio, &reply);
	if (reply.body.overflow)
		send_error(stdio, NULL, RPC_INTERNAL, "Internal error: the answer is larger than the server can send");
	else if (reply.body.length > 0 && !reply.gone && !notification) /* what HTTP says to a bad one has no place here */
		send_line(stdio, reply.body.data, reply.body.length);
	for (size_t i = 0; params[i]; i++)
		free(params[i]);
}

/* --- requests side by side -------------------------------------------------------------------------------------------------- */

static void task_free(struct task *task)
{
	buf_clear(&task->line);
	json_object_put(task->document);
	free(task->id);
	close_pointer(&task->ends[0]);
	close_pointer(&task->ends[1]);
	free(task);
}

static void *run_task(void *arg)
{
	struct task *task = arg, **link;
	struct stdio *stdio = task->stdio;

	answer(stdio, task->document, &task->line, task->ends[0], false);
	pthread_mutex_lock(&stdio->lock);
	for (link = &stdio->tasks; *link != task; link = &(*link)->next)
		;
	*link = task->next;
	task_free(task);
	stdio->n_tasks--;
	pthread_cond_broadcast(&stdio->ended);
	if (write(stdio->ended_fd, &(uint64_t){1}, sizeof(uint64_t)) < 0)
		log_event(LOG_WARN, "a request's end is not noticed", "error", strerror(errno), NULL);
	pthread_mutex_unlock(&stdio->lock);
	return NULL;
}

static char *id_text(struct json_object *id)
{
	auto_buf struct buf text = {0};

	buf_init(&text, SIZE_MAX);
	json_print(&text, id);
	return buf_steal(&text, NULL);
}

/* Takes over document and line. */
static void start_task(struct stdio *stdio, struct json_object *document, struct buf *line)
{
	struct task *task = xcalloc(1, sizeof(*task));
	pthread_t thread;

	*task = (struct task){.stdio = stdio, .line = *line, .document = document, .ends = {-1, -1}};
	task->id = id_text(json_object_object_get(document, "id"));
	*line = (struct buf){0};
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, task->ends) < 0)
		log_event(LOG_WARN, "a request cannot be cancelled", "error", strerror(errno), NULL);
	pthread_mutex_lock(&stdio->lock);
	task->next = stdio->tasks;
	stdio->tasks = task;
	stdio->n_tasks++;
	pthread_mutex_unlock(&stdio->lock);
	if (thread_start(&thread, true, run_task, task))
		run_task(task);
}

/* The id NULL: all. */
static void cancel(struct stdio *stdio, const char *id)
{
	pthread_mutex_lock(&stdio->lock);
	for (struct task *task = stdio->tasks; task; task = task->next) {
		if ((!id || streq(task->id, id)) && task->ends[1] >= 0)
			shutdown(task->ends[1], SHUT_RDWR);
	}
	pthread_mutex_unlock(&stdio->lock);
}

static size_t tasks_left(struct stdio *stdio)
{
	pthread_mutex_lock(&stdio->lock);
	size_t left = stdio->n_tasks;

	pthread_mutex_unlock(&stdio->lock);
	return left;
}

/* --- lines ---------------------------------------------------------------------------------------------------------------- */

static void take_line(struct stdio *stdio, struct buf *line)
{
	auto_json struct json_object *document = NULL;
	struct json_object *id = NULL;
	struct err err = ERR_INIT;

	if (strspn(line->data, " \t\r") == line->length)
		return;
	if (json_parse(line->data, line->length, &document, &err) < 0) {
		err_wrap(&err, "Parse error");
		send_error(stdio, NULL, RPC_PARSE_ERROR, err.text);
		return;
	}
	const char *method = json_get_string(document, "method");

	if (method && streq(method, "notifications/cancelled")) {
		struct json_object *params = json_get(document, "params", json_type_object);

		if (params && json_object_object_get_ex(params, "requestId", &id)) {
			auto_free char *text = id_text(id);

			cancel(stdio, text);
		}
	}
	if (method && !streq(method, "initialize") && json_object_object_get_ex(document, "id", &id)) {
		if (tasks_left(stdio) < STDIO_REQUESTS_MAX)
			start_task(stdio, steal(&document), line);
		else
			send_error(stdio, id, RPC_INTERNAL, "Too many requests at once: wait for the answer to one of them");
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
			send_error(stdio, NULL, RPC_INVALID_REQUEST, "Request too large: a line has at most limits.body_mb");
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

		/* Signals get through only here, so none is missed. */
		if (ppoll(fds, 2, NULL, waiting) < 0)
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

/* Until everything is answered, or a signal says that nobody waits for it. False: requests are left. */
static bool finish(struct stdio *stdio, const sigset_t *waiting)
{
	struct pollfd ended = {.fd = stdio->ended_fd, .events = POLLIN};
	struct timespec until;
	uint64_t count;
	size_t left;

	while (!stopping && !stdio->broken && tasks_left(stdio) > 0) {
		if (ppoll(&ended, 1, NULL, waiting) > 0 && read(stdio->ended_fd, &count, sizeof(count)) < 0)
			break;
	}
	if (tasks_left(stdio) == 0)
		return true;
	cancel(stdio, NULL);
	server_stop(&stdio->server);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += LEAVE_SECONDS;
	pthread_mutex_lock(&stdio->lock);
	while (stdio->n_tasks > 0 && pthread_cond_timedwait(&stdio->ended, &stdio->lock, &until) == 0)
		;
	left = stdio->n_tasks;
	pthread_mutex_unlock(&stdio->lock);
	return left == 0;
}

static int open_server(struct stdio *stdio, const struct config *config, struct err *err)
{
	int result = server_open(&stdio->server, config, STORE_SERVE, err);

	if (result != -ERR_CONFLICT)
		return result;
	server_close(&stdio->server);
	*err = ERR_INIT;
	return server_open(&stdio->server, config, STORE_WRITE, err);
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
	int result = stdio->ended_fd < 0 ? err_errno(err, "cannot make an eventfd") : open_server(stdio, config, err);

	if (result == 0)
		result = server_stay(&stdio->server, err);
	if (result == 0) {
		serve(stdio, &waiting);
		/* What does not end in time goes with the process: its jailer ends it, the next start marks it interrupted. */
		if (!finish(stdio, &waiting))
			return 0;
	}
	server_close(&stdio->server);
	close_pointer(&stdio->ended_fd);
	free(stdio);
	return result;
}
