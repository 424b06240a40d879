/*
 * gateway.h - for unit tests of cgi/: a server on a real store in a temporary folder, without jailer, and requests to
 * it.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <unistd.h>

#include "cgi/mcp/mcp.h"
#include "cgi/routes.h"
#include "cgi/server_start.h"
#include "lib/base/util.h"
#include "lib/store/record/store_token.h"

#define FIXTURE_PARAMS 32

struct fixture {
	char folder[32];
	struct config config;
	struct server server;
	char token[STORE_TOKEN_TEXT], other[STORE_TOKEN_TEXT]; /* of the owners "alice" and "bob" */
	struct store_token alice;
};

/* What the fixture's last request got. */
struct answer {
	int status;
	char *head;
	char *body;
	struct json_object *json; /* NULL: no JSON */
};

static inline int fixture_open(struct fixture *fixture)
{
	struct err err = ERR_INIT;

	*fixture = (struct fixture){.folder = "/tmp/sp-unit-XXXXXX"};
	assert_non_null(mkdtemp(fixture->folder));
	fixture->config.data_dir = fixture->folder;
	fixture->config.public_base_url = "https://box.example:8443/x";
	fixture->config.tools.text = "plain";
	fixture->config.limits.sandboxes = 16;
	fixture->config.limits.body_mb = 1;
	fixture->config.limits.answer_kb = 9;
	fixture->config.limits.in_flight = 8;
	fixture->config.limits.wall_seconds = 30;
	fixture->config.limits.wall_seconds_max = 300;
	fixture->config.limits.memory_mb = 256;
	fixture->config.limits.memory_mb_max = 2048;
	fixture->config.retention.owner_mb = 16;
	fixture->config.retention.conversation_days = 1;
	fixture->config.retention.when_full = "refuse";
	fixture->config.gateway.accel_prefix = "";
	fixture->config.gateway.socket = "";
	fixture->config.api.jwt_key = "";
	fixture->config.jailer.socket =
		"/nonexistent/jailer.sock"; /* these tests have no jailer: calls that need one must say so */
	struct store *store;

	if (store_open(fixture->folder, STORE_SERVE, &store, &err) < 0)
		fail_msg("%s", err.text);
	struct store_token bob;

	assert_int_equal(store_token_add(store, "alice", "", fixture->token, &fixture->alice, &err), 0);
	assert_int_equal(store_token_add(store, "bob", "", fixture->other, &bob, &err), 0);
	store_close(store);
	if (server_open(&fixture->server, &fixture->config, STORE_WRITE, &err) < 0)
		fail_msg("%s", err.text);
	return 0;
}

static inline int fixture_remove(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
	(void)status;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline void fixture_close(struct fixture *fixture)
{
	server_close(&fixture->server);
	nftw(fixture->folder, fixture_remove, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void answer_clear(struct answer *answer)
{
	free(answer->head);
	free(answer->body);
	json_object_put(answer->json);
	*answer = (struct answer){0};
}
#define auto_answer __attribute__((cleanup(answer_clear)))

static inline int fixture_body(void *arg, struct buf *body, struct err *err)
{
	(void)err;
	buf_puts(body, arg);
	return 0;
}

/* One request; `body` NULL: none. Further variables ("HTTP_ORIGIN=…") until NULL. The token is alice's unless a
 * variable names one. */
static inline struct answer ask(struct fixture *fixture, const char *method, const char *uri, const char *body, ...)
{
	const char *params[FIXTURE_PARAMS] = {0};
	auto_free char *method_param = xasprintf("REQUEST_METHOD=%s", method),
		       *uri_param = xasprintf("REQUEST_URI=%s", uri);
	auto_free char *token = xasprintf("HTTP_AUTHORIZATION=Bearer %s", fixture->token),
		       *text = xstrdup(body ? body : "");
	size_t count = 0;
	auto_reply struct reply reply;
	auto_buf struct buf head = {0};
	va_list more;

	/* The first one of a name counts, so the caller's come first. */
	va_start(more, body);
	for (const char *p; (p = va_arg(more, const char *)) && count < FIXTURE_PARAMS - 6;)
		params[count++] = p;
	va_end(more);
	params[count++] = method_param;
	params[count++] = uri_param;
	params[count++] = token;
	params[count++] = "CONTENT_TYPE=application/json";
	params[count++] = "HTTP_HOST=localhost";
	const struct request request = {.params = params, .read_body = fixture_body, .arg = text, .hangup_fd = -1};

	reply_init(&reply);
	buf_init(&head, HTTP_HEADER_MAX * 2);
	routes_handle(&fixture->server, &request, &reply);
	reply_print_head(&reply, &head);
	struct answer answer = {.status = reply.status, .head = buf_steal(&head, NULL)};

	if (reply.body.length)
		json_parse(reply.body.data, reply.body.length, &answer.json, NULL);
	answer.body = buf_steal(&reply.body, NULL);
	buf_init(&reply.body, 1);
	buf_init(&head, 1);
	return answer;
}

/* error.code of a JSON-RPC answer; 0: none. */
static inline int rpc_code(const struct answer *answer)
{
	struct json_object *error = json_get(answer->json, "error", json_type_object);

	return error ? json_object_get_int(json_get(error, "code", json_type_int)) : 0;
}

static inline const char *rpc_text(const struct answer *answer)
{
	const char *text = json_get_string(json_get(answer->json, "error", json_type_object), "message");

	return text ? text : "";
}

/* The value of a reply's header in a static buffer; NULL if absent. */
static inline const char *header_of(const struct answer *answer, const char *name)
{
	static char value[1024];
	auto_free char *start = xasprintf("\r\n%s: ", name);
	const char *line = strstr(answer->head, start);

	if (!line)
		return NULL;
	line += strlen(start);
	snprintf(value, sizeof(value), "%.*s", (int)strcspn(line, "\r"), line);
	return value;
}

/* The test program's own, and what sets it up and takes it down for a group or a test. */
static struct fixture fixture;

static inline int open_fixture(void **state)
{
	(void)state;
	return fixture_open(&fixture);
}

static inline int close_fixture(void **state)
{
	(void)state;
	fixture_close(&fixture);
	return 0;
}
