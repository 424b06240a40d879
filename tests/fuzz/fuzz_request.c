/*
 * Whatever a web server passes on, the gateway answers with a proper reply. The input is a request: lines "NAME=value"
 * (CGI's names), an empty line, the body; "TOKEN" in a value stands for a good token, "SESSION" for a session's id. The
 * server has a real store and no jailer, so tools refuse in words.
 */
#include "fuzz.h"

#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cgi/routes.h"
#include "cgi/server_start.h"
#include "lib/base/log.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"

#define PARAMS_MAX 64

static struct server server;
static struct config config;
static char folder[] = "/tmp/sp-fuzz-XXXXXX";
static char token[STORE_TOKEN_TEXT];
static struct session session;

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
	(void)status;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void close_all(void)
{
	server_close(&server);
	nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void open_all(void)
{
	struct store *store;
	struct store_token added;
	struct err err = ERR_INIT;

	log_open("fuzz", LOG_ERROR);
	PROMISE(mkdtemp(folder) != NULL);
	PROMISE(config_load(NULL, &config, &err) == 0);
	config.data_dir = folder;
	config.public_base_url = "https://box.example";
	config.jailer.socket = "/nonexistent/jailer.sock";
	PROMISE(store_open(folder, STORE_SERVE, &store, &err) == 0);
	PROMISE(store_token_add(store, "alice", "", token, &added, &err) == 0);
	store_close(store);
	PROMISE(server_open(&server, &config, STORE_WRITE, &err) == 0);
	PROMISE(sessions_add(server.sessions, &added, &(struct session_client){.protocol = "2025-03-26"}, &session,
			     &err) == 0);
	atexit(close_all);
}

struct body {
	const char *data;
	size_t length;
};

static int read_body(void *arg, struct buf *out, struct err *err)
{
	const struct body *body = arg;

	(void)err;
	buf_add(out, body->data, body->length);
	return 0;
}

/* The line with TOKEN and SESSION filled in; the caller frees. */
static char *param(const char *line, size_t length)
{
	auto_free char *text = xstrndup(line, length);
	char *value = strchrnul(text, '='); /* the name may hold these words, too */
	char *place = strstr(value, "TOKEN"), *other = strstr(value, "SESSION");

	if (place)
		return xasprintf("%.*s%s%s", (int)(place - text), text, token, place + 5);
	if (other)
		return xasprintf("%.*s%s%s", (int)(other - text), text, session.id, other + 7);
	return xstrdup(text);
}

static void check(const struct reply *reply)
{
	static const int statuses[] = {200, 202, 400, 401, 403, 404, 405, 406, 413, 415};
	auto_buf struct buf head = {0};
	bool known = false;

	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++)
		known = known || statuses[i] == reply->status;
	PROMISE(known);
	PROMISE(!reply->body.overflow && !reply->headers.overflow);
	PROMISE((reply->status == 202) == (reply->headers.length == 0));
	buf_init(&head, 4 * HTTP_HEADER_MAX);
	reply_print_head(reply, &head);
	for (size_t i = 0; i < head.length; i++) /* lines end with CRLF, and nothing else is a control character */
		PROMISE((unsigned char)head.data[i] >= ' ' || head.data[i] == '\r' || head.data[i] == '\n');
	PROMISE(strstr(head.data, "\r\n\r\n") == head.data + head.length - 4);
	if (strstr(head.data, "application/json"))
		PROMISE(json_scan(reply->body.data, reply->body.length, NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
	const char *text = (const char *)data, *end = text + length;
	char *params[PARAMS_MAX + 1] = {NULL};
	size_t count = 0;
	auto_reply struct reply reply;

	if (!server.store)
		open_all();
	while (text < end && *text != '\n' && count < PARAMS_MAX) {
		const char *line_end = memchr(text, '\n', (size_t)(end - text));

		if (!line_end)
			line_end = end;
		params[count++] = param(text, (size_t)(line_end - text));
		text = line_end < end ? line_end + 1 : end;
	}
	text += text < end;
	struct body body = {text, (size_t)(end - text)};
	const struct request request = {
		.params = (const char *const *)params, .read_body = read_body, .arg = &body, .hangup_fd = -1};

	reply_init(&reply);
	routes_handle(&server, &request, &reply);
	check(&reply);
	for (size_t i = 0; i < count; i++)
		free(params[i]);
	return 0;
}
