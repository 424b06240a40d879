/* reply.c - building a reply and printing its head; see http.h. */
#include <ctype.h>
#include <stdarg.h>

#include "reply.h"
#include "lib/base/util.h"

void reply_init(struct reply *reply)
{
	*reply = (struct reply){.status = 500, .file_fd = -1};
	buf_init(&reply->headers, HTTP_HEADER_MAX);
	buf_init(&reply->body, HTTP_REPLY_MAX);
}

void reply_clear(struct reply *reply)
{
	buf_clear(&reply->headers);
	buf_clear(&reply->body);
	fd_close(&reply->file_fd);
}

void reply_header(struct reply *reply, const char *name, const char *format, ...)
{
	va_list arguments;
	auto_free char *value = NULL;

	va_start(arguments, format);
	if (vasprintf(&value, format, arguments) < 0)
		abort();
	va_end(arguments);
	/* A line break in a value would be a header of the client's choice. */
	for (char *p = value; *p; p++) {
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '_';
	}
	buf_puts(&reply->headers, name);
	buf_puts(&reply->headers, ": ");
	buf_puts(&reply->headers, value);
	buf_puts(&reply->headers, "\r\n");
}

void reply_json(struct reply *reply, int status, struct json_object *body)
{
	reply->status = status;
	buf_reset(&reply->body);
	reply_header(reply, "Content-Type", "application/json");
	json_print(&reply->body, body);
}

static const char *reason(int status)
{
	static const struct {
		int status;
		const char *text;
	} table[] = {
		{200, "OK"},
		{201, "Created"},
		{202, "Accepted"},
		{204, "No Content"},
		{206, "Partial Content"},
		{303, "See Other"},
		{304, "Not Modified"},
		{400, "Bad Request"},
		{401, "Unauthorized"},
		{403, "Forbidden"},
		{404, "Not Found"},
		{405, "Method Not Allowed"},
		{406, "Not Acceptable"},
		{409, "Conflict"},
		{413, "Content Too Large"},
		{415, "Unsupported Media Type"},
		{416, "Range Not Satisfiable"},
		{422, "Unprocessable Content"},
		{429, "Too Many Requests"},
		{500, "Internal Server Error"},
		{503, "Service Unavailable"},
		{504, "Gateway Timeout"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (table[i].status == status)
			return table[i].text;
	}
	return "Status";
}

void reply_refuse(struct reply *reply, int status, const char *text)
{
	auto_json struct json_object *body = json_object_new_object();
	char code[32];

	/* "not_found" of 404: what clients of OAuth's kind read as the error's code. */
	snprintf(code, sizeof(code), "%s", reason(status));
	for (char *p = code; *p; p++)
		*p = *p == ' ' ? '_' : (char)tolower((unsigned char)*p);
	json_add_string(body, "error", code);
	json_add_string(body, "error_description", text);
	if (reply->request_id[0])
		json_add_string(body, "request_id", reply->request_id);
	reply_json(reply, status, body);
}

void reply_print_head(const struct reply *reply, struct buf *out)
{
	int64_t length = reply->file_fd >= 0 ? reply->file_length : (int64_t)reply->body.length;

	buf_printf(out, "Status: %d %s\r\n", reply->status, reason(reply->status));
	buf_add(out, reply->headers.data, reply->headers.length);
	if (reply->request_id[0])
		buf_printf(out, "X-Request-Id: %s\r\n", reply->request_id);
	if (!reply->delegated && reply->status != 304) /* whose length would be the file's */
		buf_printf(out, "Content-Length: %lld\r\n", (long long)length);
	buf_puts(out, "\r\n");
}
