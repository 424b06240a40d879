/* api.c - see api.h: the routes. */
#include "api.h"

#include <string.h>

#include "lib/base/embed.h"
#include "lib/base/util.h"

#define NOT_FOUND "nothing here: openapi.json says what there is"

EMBED(api_document, "cgi/api/openapi.json");

/* "SESSION" or "SESSION/FILE" */
static bool take_ids(const char *rest, char session[API_ID_SIZE], char file[API_ID_SIZE])
{
	const char *slash = strchrnul(rest, '/');

	if (slash - rest != API_ID_SIZE - 1)
		return false;
	memcpy(session, rest, API_ID_SIZE - 1);
	session[API_ID_SIZE - 1] = file[0] = '\0';
	if (*slash && !api_id_valid(slash + 1))
		return false;
	if (*slash)
		memcpy(file, slash + 1, API_ID_SIZE);
	return api_id_valid(session);
}

static bool is(const char *method, const char *wanted, struct reply *reply)
{
	if (streq(method, wanted))
		return true;
	reply_header(reply, "Allow", "%s", wanted);
	reply_refuse(reply, 405, "this method is not allowed here");
	return false;
}

static void serve_file(struct http_exchange *exchange, const char *method, const char *rest, bool listing)
{
	char session[API_ID_SIZE], file[API_ID_SIZE];

	if (!take_ids(rest, session, file) || (!listing && !*file))
		reply_refuse(exchange->reply, 404, NOT_FOUND);
	else if (!*file && is(method, "GET", exchange->reply))
		api_list(exchange, session);
	else if (*file && is(method, listing ? "DELETE" : "GET", exchange->reply))
		api_file(exchange, method, session, file);
}

void api_handle(struct http_exchange *exchange, const char *method, const char *rest)
{
	struct reply *reply = exchange->reply;

	if (!exchange->server->config->api.enabled) {
		reply_refuse(reply, 404, "nothing here: the endpoint is /mcp");
	} else if (streq(rest, "openapi.json")) {
		if (!is(method, "GET", reply))
			return;
		reply->status = 200;
		reply_header(reply, "Content-Type", "application/json");
		buf_add(&reply->body, api_document, (size_t)((uintptr_t)api_document_end - (uintptr_t)api_document));
	} else if (streq(rest, "exec")) {
		if (is(method, "POST", reply))
			api_exec(exchange);
	} else if (streq(rest, "upload")) {
		if (is(method, "POST", reply))
			api_upload(exchange);
	} else if (str_starts(rest, "files/")) {
		serve_file(exchange, method, rest + strlen("files/"), true);
	} else if (str_starts(rest, "download/")) {
		serve_file(exchange, method, rest + strlen("download/"), false);
	} else {
		reply_refuse(reply, 404, NOT_FOUND);
	}
}
