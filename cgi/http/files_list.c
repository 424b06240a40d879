/*
 * files_list.c - see files.h.
 *
 * A conversation may have ten thousand files, and a program may ask for them often: so the JSON is printed row by row,
 * as the database gives it, without an object for each. What people see is made in the same way. Names are chosen by
 * programs: in the page they are escaped, and its policy forbids scripts besides.
 */
#include "files.h"

#include <string.h>

#include "lib/base/log.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "lib/store/record/store_resource.h"
#include "uri.h"

struct listing {
	struct http_exchange *exchange;
	const struct files_place *place;
	int64_t count, bytes;
};

static void put_address(struct http_exchange *exchange, const struct store_conversation *conversation,
			const struct store_file *file, struct buf *out)
{
	const struct files_target target = {file->name, file->name_length, false};

	files_place_address(exchange->server->config, exchange->server->store, conversation, &target, out);
}

struct json_object *files_list_object(struct http_exchange *exchange, const struct store_conversation *conversation,
				      const struct store_file *file)
{
	struct json_object *object = json_object_new_object();
	auto_buf struct buf url = {0};
	char modified[CLOCK_TEXT_SIZE];

	buf_init(&url, URI_MAX);
	put_address(exchange, conversation, file, &url);
	clock_text(file->mtime_us, modified);
	json_add(object, "name", json_new_safe(file->name, file->name_length));
	json_add_string(object, "url", url.data);
	json_add_int(object, "size", file->size);
	json_add_string(object, "media_type", file->media_type);
	json_add_string(object, "modified", modified);
	return object;
}

/* A name as JSON: most are plain, and there may be ten thousand of them. */
static void put_name(struct buf *out, const char *name, size_t length)
{
	bool plain = true;

	for (size_t i = 0; plain && i < length; i++)
		plain = name[i] >= ' ' && name[i] < 0x7f && name[i] != '"' && name[i] != '\\';
	if (plain) {
		buf_putc(out, '"');
		buf_add(out, name, length);
		buf_putc(out, '"');
		return;
	}
	auto_json struct json_object *safe = json_new_safe(name, length);

	json_print(out, safe);
}

/* The members of files_list_object, without making one. */
static int add_object(void *arg, const struct store_file *file)
{
	struct listing *listing = arg;
	struct http_exchange *exchange = listing->exchange;
	struct buf *body = &exchange->reply->body;
	char modified[CLOCK_TEXT_SIZE];

	if (!files_place_has(listing->place, file))
		return 0;
	buf_puts(body, listing->count++ > 0 ? ",{\"name\":" : "{\"name\":");
	listing->bytes += file->size;
	put_name(body, file->name, file->name_length);
	buf_puts(body, ",\"url\":\"");
	put_address(exchange, &listing->place->conversation, file, body);
	clock_text(file->mtime_us, modified);
	buf_printf(body, "\",\"size\":%lld,\"media_type\":\"%s\",\"modified\":\"%s\"}", (long long)file->size,
		   file->media_type, modified);
	return 0;
}

/* -------- the page ------------------------------------------------------------------------------------ */

static void put_text(struct buf *out, const char *text, size_t length)
{
	auto_buf struct buf safe = {0};

	buf_init(&safe, 4 * length + 1);
	utf8_printable(&safe, text, length);
	for (size_t i = 0; i < safe.length; i++) {
		const char c = safe.data[i];

		if (c == '<' || c == '>' || c == '&' || c == '"' || c == '\'')
			buf_printf(out, "&#%d;", c);
		else
			buf_putc(out, c);
	}
}

static int add_row(void *arg, const struct store_file *file)
{
	struct listing *listing = arg;
	struct http_exchange *exchange = listing->exchange;
	struct buf *body = &exchange->reply->body;
	auto_buf struct buf url = {0};
	char modified[CLOCK_TEXT_SIZE];

	if (!files_place_has(listing->place, file))
		return 0;
	buf_init(&url, URI_MAX);
	put_address(exchange, &listing->place->conversation, file, &url);
	clock_text(file->mtime_us, modified);
	listing->count++;
	listing->bytes += file->size;
	buf_puts(body, "<tr><td><a href=\"");
	put_text(body, url.data, url.length);
	buf_puts(body, "\">");
	put_text(body, file->name, file->name_length);
	buf_printf(body, "</a><td>%lld<td>%.19s\n", (long long)file->size, modified);
	return 0;
}

/* Ours, and what others chose in it is escaped: links and downloads work, scripts do not. */
#define PAGE_POLICY                                                                                                    \
	"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox allow-downloads"

static int list_objects(struct listing *listing, struct err *err)
{
	const struct store_page page = {.limit = -1};
	struct reply *reply = listing->exchange->reply;

	buf_puts(&reply->body, "{\"files\":[");
	int result = store_conversation_files(listing->exchange->server->store, listing->place->conversation.row,
					      &page, add_object, listing, err);

	reply->status = 200;
	reply_header(reply, "Content-Type", "application/json");
	buf_printf(&reply->body, "],\"count\":%lld,\"bytes\":%lld}", (long long)listing->count,
		   (long long)listing->bytes);
	return result;
}

static int list_rows(struct listing *listing, struct err *err)
{
	const struct store_page page = {.limit = -1};
	const struct server *server = listing->exchange->server;
	const struct files_place *place = listing->place;
	const struct files_target target = {place->name.data, place->name.length, true};
	const char *title = place->conversation.name;
	struct reply *reply = listing->exchange->reply;
	auto_buf struct buf url = {0};

	buf_init(&url, URI_MAX);
	files_place_address(server->config, server->store, &place->conversation, &target, &url);
	buf_puts(&reply->body, "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>");
	put_text(&reply->body, title, strlen(title));
	buf_puts(&reply->body, "</title>\n<h1>");
	put_text(&reply->body, title, strlen(title));
	buf_puts(&reply->body, "</h1>\n<p><a href=\"");
	put_text(&reply->body, url.data, url.length);
	buf_printf(&reply->body, "%szip\">All files as a zip archive</a>\n",
		   server->config->files.url_seconds == 0 ? "?" : "&amp;");
	buf_puts(&reply->body, "<table><tr><th>File<th>Bytes<th>Modified (UTC)\n");
	int result = store_conversation_files(server->store, place->conversation.row, &page, add_row, listing, err);

	reply->status = 200;
	reply_header(reply, "Content-Type", "text/html; charset=utf-8");
	reply_header(reply, "Content-Security-Policy", PAGE_POLICY);
	buf_printf(&reply->body, "</table>\n<p>%lld files, %lld bytes\n", (long long)listing->count,
		   (long long)listing->bytes);
	return result;
}

void files_list(struct http_exchange *exchange, const struct files_place *place)
{
	struct reply *reply = exchange->reply;
	struct listing listing = {exchange, place, 0, 0};
	auto_free char *zip = request_query(exchange->request, "zip");
	const char *accept = request_param(exchange->request, "HTTP_ACCEPT");
	struct err err = ERR_INIT;
	int result;

	reply_header(reply, "X-Content-Type-Options", "nosniff");
	reply_header(reply, "Cache-Control", "private, no-store");
	reply_header(reply, "Referrer-Policy", "no-referrer");
	reply_header(reply, "Vary", "Accept");
	if (zip)
		result = files_zip(exchange, place, &err);
	else if (accept && strstr(accept, "text/html"))
		result = list_rows(&listing, &err);
	else
		result = list_objects(&listing, &err);
	if (result < 0) {
		log_event(LOG_ERROR, "files cannot be listed", "error", err.text, NULL);
		buf_reset(&reply->headers);
		reply_refuse(reply, 500, "the files cannot be listed");
	} else if (!zip && listing.count == 0 && place->name.length > 0) {
		buf_reset(&reply->headers);
		reply_refuse(reply, 404, "no such file");
	}
}
