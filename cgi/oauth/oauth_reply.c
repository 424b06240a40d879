/* oauth_reply.c - see oauth_reply.h. Facts: RFC 6749, section 5.2. */
#include "oauth_reply.h"

#include <string.h>
#include <strings.h>

#include "lib/base/log.h"
#include "lib/base/util.h"

#define FAULT_SECONDS 5

void oauth_reply_error(struct http_exchange *exchange, int status, const char *error, const char *description)
{
	auto_json struct json_object *body = json_object_new_object();

	snprintf(exchange->reply->outcome, sizeof(exchange->reply->outcome), "%s", error);
	json_add_string(body, "error", error);
	json_add_string(body, "error_description", description);
	reply_header(exchange->reply, "Cache-Control", "no-store");
	reply_json(exchange->reply, status, body);
}

void oauth_reply_busy(struct http_exchange *exchange, int status, int64_t seconds, const char *description)
{
	reply_header(exchange->reply, "Retry-After", "%lld", (long long)seconds);
	oauth_reply_error(exchange, status, OAUTH_BUSY, description);
}

void oauth_reply_fault(struct http_exchange *exchange, const struct err *err)
{
	log_event(LOG_ERROR, "sign-in failed", "error", err->text, "request_id", exchange->reply->request_id, NULL);
	oauth_reply_busy(exchange, 503, FAULT_SECONDS, "the server cannot do this at the moment: try again");
}

int oauth_reply_body(struct http_exchange *exchange, struct buf *body)
{
	struct err err = ERR_INIT;

	buf_init(body, OAUTH_REPLY_BODY_MAX);
	if (exchange->request->read_body(exchange->request->arg, body, &err) < 0 && !body->overflow) {
		oauth_reply_error(exchange, 400, "invalid_request", "the body could not be read");
		return -ERR_INVALID;
	}
	if (body->overflow) {
		oauth_reply_error(exchange, 413, "invalid_request", "the body has more than 16 KiB");
		return -ERR_LIMIT;
	}
	return 0;
}

bool oauth_reply_typed(const struct http_exchange *exchange, const char *type)
{
	const char *given = request_param(exchange->request, "CONTENT_TYPE");
	const size_t length = strlen(type);

	return given && strncasecmp(given, type, length) == 0 && strchr("; \t", given[length]);
}

int oauth_reply_form(struct http_exchange *exchange, struct oauth_form *ret)
{
	auto_buf struct buf body = {0};
	struct err err = ERR_INIT;

	if (!oauth_reply_typed(exchange, "application/x-www-form-urlencoded")) {
		oauth_reply_error(exchange, 400, "invalid_request",
				  "Content-Type must be application/x-www-form-urlencoded");
		return -ERR_INVALID;
	}
	int result = oauth_reply_body(exchange, &body);

	if (result < 0)
		return result;
	result = oauth_form_parse(body.data, body.length, ret, &err);
	explicit_bzero(body.data, body.length);
	if (result < 0)
		oauth_reply_error(exchange, 400, "invalid_request", err.text);
	return result;
}
