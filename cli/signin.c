/*
 * signin.c - see signin.h. Facts: RFC 8252 section 7.3 (the loopback interface).
 *
 * The listener is a socket of the loopback interface, at the port that the client is registered with. It is open to
 * everybody on this computer: it answers a GET of the one path, and takes nothing that lacks the state of this sign-in.
 * A wrong answer does not end the waiting, neither from there nor on standard input, where the address of a browser on
 * another machine is pasted.
 */
#include "signin.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli.h"
#include "lib/base/host.h"
#include "lib/base/util.h"
#include "lib/upstream/upstream_grant.h"
#include "lib/upstream/upstream_sign_in.h"

#define WAIT_US     (600 * INT64_C(1000000))
#define REQUEST_MS  2000
#define REQUEST_MAX 16384
#define PASTED_MAX  16384
#define PATH        "/callback"

struct waiting {
	const struct upstream_server *server;
	struct upstream_sign_in *sign_in;
	char *redirect, *path; /* of the redirect's address */
	int listener, input;   /* -1: none */
	struct buf line;       /* what was pasted so far */
	struct upstream_login login;
	bool done;
};

static void clear_waiting(struct waiting *waiting)
{
	upstream_sign_in_free(waiting->sign_in);
	upstream_login_clear(&waiting->login);
	free(waiting->redirect);
	free(waiting->path);
	fd_close(&waiting->listener);
	buf_clear(&waiting->line);
}

/* -------- where the answer comes back to -------------------------------------------------------------- */

/* A listening socket of this computer; port 0: a free one. -1 and errno. */
static int listen_at(uint16_t port, uint16_t *ret_port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
	socklen_t length = sizeof(address);
	auto_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) < 0 ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 8) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &length) < 0)
		return -1;
	*ret_port = ntohs(address.sin_port);
	return steal_fd(&fd);
}

/* Listens where the address says, if that is this computer. */
static int listen_for(struct waiting *waiting, const char *redirect)
{
	struct host_url url;
	uint16_t port;

	if (host_url_parse(redirect, &url) < 0)
		return -1;
	waiting->listener = str_starts(redirect, "http://") ? listen_at(url.port, &port) : -1;
	if (waiting->listener < 0 && str_starts(redirect, "http://"))
		return -1;
	waiting->redirect = xstrdup(redirect);
	waiting->path = xstrndup(redirect + url.origin, strcspn(redirect + url.origin, "?"));
	return 0;
}

/* As the entry says, else as a client that registered itself did before, else at a free port. */
static int choose_redirect(struct waiting *waiting, const struct config *config, struct err *err)
{
	const char *named = waiting->server->oauth.redirect_uri;
	auto_login struct upstream_login kept = {0};
	uint16_t port;

	if (named != NULL)
		return listen_for(waiting, named) == 0
			       ? 0
			       : err_errno(err, "mcpServers.%s.oauth.redirect_uri: listening at %s",
					   waiting->server->name, named);
	if (upstream_login_read(config->data_dir, waiting->server, &kept, NULL) == 0 && kept.registered != NULL &&
	    kept.redirect_uri != NULL && str_starts(kept.redirect_uri, "http://127.0.0.1:") &&
	    listen_for(waiting, kept.redirect_uri) == 0)
		return 0;
	waiting->listener = listen_at(0, &port);
	if (waiting->listener < 0)
		return err_errno(err, "listening at 127.0.0.1");
	waiting->redirect = xasprintf("http://127.0.0.1:%u" PATH, port);
	waiting->path = xstrdup(PATH);
	return 0;
}

/* -------- what comes ---------------------------------------------------------------------------------- */

/* 0: go on, or it is done (waiting->done). */
static int take_answer(struct waiting *waiting, const char *text, struct err *err)
{
	int result = upstream_sign_in_end(waiting->sign_in, text, &waiting->login, err);

	waiting->done = result == 0;
	return result;
}

static void reply(int fd, const char *status, const char *text)
{
	auto_free char *page = xasprintf("<!doctype html><title>Sallyport</title><p>%s</p>\n", text);
	auto_free char *answer = xasprintf("HTTP/1.1 %s\r\nContent-Type: text/html; charset=utf-8\r\n"
					   "Content-Length: %zu\r\nCache-Control: no-store\r\n"
					   "Content-Security-Policy: default-src 'none'\r\n"
					   "Referrer-Policy: no-referrer\r\n"
					   "Connection: close\r\n\r\n%s",
					   status, strlen(page), page);

	send(fd, answer, strlen(answer), MSG_NOSIGNAL);
}

/* The target of a GET; NULL: it is none. The caller's. */
static char *read_request(int fd)
{
	auto_buf struct buf request = {0};
	char bytes[1024];

	buf_init(&request, REQUEST_MAX);
	while (strstr(request.data, "\r\n\r\n") == NULL && !request.overflow) {
		struct pollfd wait = {.fd = fd, .events = POLLIN};
		const ssize_t n = poll(&wait, 1, REQUEST_MS) == 1 ? read(fd, bytes, sizeof(bytes)) : 0;

		if (n <= 0)
			return NULL;
		buf_add(&request, bytes, (size_t)n);
	}
	if (request.overflow || !str_starts(request.data, "GET "))
		return NULL;
	return xstrndup(request.data + strlen("GET "), strcspn(request.data + strlen("GET "), " \r\n"));
}

static int take_connection(struct waiting *waiting, struct err *err)
{
	auto_close int fd = accept4(waiting->listener, NULL, NULL, SOCK_CLOEXEC);
	auto_free char *target = fd >= 0 ? read_request(fd) : NULL;
	struct err problem = ERR_INIT;

	if (target == NULL)
		return 0;
	const size_t length = strcspn(target, "?");

	if (strlen(waiting->path) != length || strncmp(target, waiting->path, length) != 0) {
		reply(fd, "404 Not Found", "There is nothing here.");
		return 0;
	}
	int result = take_answer(waiting, target, &problem);

	if (result == 0) {
		reply(fd, "200 OK", "Signed in. You can close this window.");
	} else if (result == -ERR_INVALID) {
		reply(fd, "400 Bad Request", "This is not the answer that Sallyport waits for.");
		return 0;
	} else {
		reply(fd, "400 Bad Request", "The sign-in failed: the terminal says why.");
		*err = problem;
	}
	return result;
}

/* A line is an address; after the end of the input nothing comes any more. */
static int take_line(struct waiting *waiting, struct err *err)
{
	char bytes[1024];
	const ssize_t n = read(waiting->input, bytes, sizeof(bytes));
	char *end;

	if (n > 0)
		buf_add(&waiting->line, bytes, (size_t)n);
	else if (n == 0 || errno != EINTR)
		waiting->input = -1;
	if (waiting->input < 0 && waiting->line.length > 0)
		buf_putc(&waiting->line, '\n');
	while (!waiting->done && (end = strchr(waiting->line.data, '\n')) != NULL) {
		const char *begin = waiting->line.data + strspn(waiting->line.data, " \t\r");
		auto_free char *text = xstrndup(begin, strcspn(begin, " \t\r\n"));
		auto_free char *rest = xstrdup(end + 1);

		buf_reset(&waiting->line);
		buf_puts(&waiting->line, rest);
		if (*text == '\0')
			continue;
		int result = take_answer(waiting, text, err);

		if (result < 0 && result != -ERR_INVALID)
			return result;
		if (result < 0)
			cli_complain(err);
	}
	return 0;
}

static int wait_for_answer(struct waiting *waiting, struct err *err)
{
	const int64_t late_us = clock_monotonic_us() + WAIT_US;

	while (!waiting->done) {
		struct pollfd fds[] = {{.fd = waiting->listener, .events = POLLIN},
				       {.fd = waiting->input, .events = POLLIN}};
		const int64_t left_us = late_us - clock_monotonic_us();
		int result = 0;

		if (waiting->listener < 0 && waiting->input < 0)
			return err_set(err, ERR_INVALID, "the input ended without the address");
		if (left_us <= 0)
			return err_set(err, ERR_UNAVAILABLE, "nobody signed in within %d minutes",
				       (int)(WAIT_US / 60000000));
		if (poll(fds, ARRAY_SIZE(fds), (int)(left_us / 1000) + 1) < 0 && errno != EINTR)
			return err_errno(err, "waiting for the answer");
		if (fds[0].revents != 0)
			result = take_connection(waiting, err);
		if (result == 0 && !waiting->done && fds[1].revents != 0)
			result = take_line(waiting, err);
		if (result < 0)
			return result;
	}
	return 0;
}

/* -------- the verbs ----------------------------------------------------------------------------------- */

static void show(FILE *out, const char *before, const char *text, const char *behind)
{
	fputs(before, out);
	cli_print_safe(out, text, strlen(text));
	fputs(behind, out);
}

static void ask(const struct waiting *waiting)
{
	show(stderr, "Open this address in a browser and sign in at ", upstream_sign_in_issuer(waiting->sign_in),
	     ":\n\n");
	show(stderr, "  ", upstream_sign_in_url(waiting->sign_in), "\n\n");
	if (waiting->listener < 0)
		fputs("Paste here the address that the browser shows at the end:\n", stderr);
	else
		show(stderr, "The browser brings the answer to ", waiting->redirect,
		     ".\nIf it runs on another machine, paste here the address that it shows at the end:\n");
}

static void tell(const struct upstream_server *server, const struct upstream_login *login, bool json)
{
	auto_json struct json_object *row = json_object_new_object();
	char until[CLI_TEXT_SIZE];

	if (json) {
		json_add_string(row, "server", server->name);
		json_add_string(row, "issuer", login->issuer);
		json_add_string(row, "scope", login->scope);
		json_add_int(row, "expires_us", login->expires_us);
		json_add_bool(row, "renews", login->refresh_token != NULL);
		cli_print_json(stdout, row, false);
		return;
	}
	cli_text_time(login->expires_us, until);
	show(stdout, "signed in to ", server->name, " at ");
	show(stdout, "", login->issuer, "");
	if (login->scope != NULL)
		show(stdout, ", scopes ", login->scope, "");
	if (login->refresh_token != NULL)
		fputs(", and the tokens renew themselves\n", stdout);
	else
		show(stdout, ", until ", login->expires_us != 0 ? until : "the server says otherwise", "\n");
}

int signin_login(const struct config *config, const struct upstream_server *server, const char *scope, bool json,
		 struct err *err)
{
	__attribute__((cleanup(clear_waiting))) struct waiting waiting = {
		.server = server, .listener = -1, .input = STDIN_FILENO};

	buf_init(&waiting.line, PASTED_MAX);
	int result = choose_redirect(&waiting, config, err);

	if (result == 0)
		result = upstream_sign_in_begin(config, server, waiting.redirect, scope, &waiting.sign_in, err);
	if (result < 0)
		return result;
	ask(&waiting);
	result = wait_for_answer(&waiting, err);
	if (result < 0)
		return result;
	tell(server, &waiting.login, json);
	return CLI_OK;
}

int signin_logout(const struct config *config, const struct upstream_server *server, struct err *err)
{
	auto_login struct upstream_login login = {0};
	struct err problem = ERR_INIT;
	int result = upstream_login_read(config->data_dir, server, &login, err);

	if (result < 0 && result != -ERR_CORRUPT)
		return result;
	auto_close int lock = upstream_login_lock(config->data_dir, server, NULL, err);

	if (lock < 0)
		return lock;
	if (result == 0 && upstream_grant_revoke(server, &login, &problem) < 0)
		show(stderr, "The issuer was not told: ", problem.text, "\n");
	result = upstream_login_remove(config->data_dir, server, err);
	if (result == 0)
		show(stdout, "signed out of ", server->name, "\n");
	return result;
}
