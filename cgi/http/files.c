/*
 * files.c - see files.h.
 *
 * An address is taken apart first (files_place.c), whatever the method: what it does not name is 404 for everybody. A
 * download opens the blob, so that a lost one is our error, and then leaves the bytes to the web server, which knows
 * ranges itself, or sends them; a blob never changes, so one range of it is all that has to be kept. The entity tag is
 * the blob's name: two contents of one size and second have different ones, unlike tags made of times.
 */
#include "files.h"

#include <string.h>

#include "access.h"
#include "lib/base/log.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "lib/store/audit/store_audit.h"
#include "lib/store/blob/store_blob.h"
#include "lib/store/blob/store_pack.h"
#include "uri.h"

#define NOT_FOUND "no such file"

bool files_is_image(const char *media_type)
{
	return streq(media_type, "image/png") || streq(media_type, "image/jpeg") || streq(media_type, "image/gif") ||
	       streq(media_type, "image/webp");
}

/* A name as people see it in a download dialogue: the last segment, in both spellings of RFC 6266. */
static void disposition(struct reply *reply, const char *name, size_t length, bool shown)
{
	const char *slash = memrchr(name, '/', length);
	const char *base = slash ? slash + 1 : name;
	size_t base_length = length - (size_t)(base - name);
	auto_buf struct buf ascii = {0}, safe = {0}, extended = {0};

	buf_init(&ascii, HTTP_HEADER_MAX);
	buf_init(&safe, HTTP_HEADER_MAX);
	buf_init(&extended, HTTP_HEADER_MAX);
	for (size_t i = 0; i < base_length; i++) {
		unsigned char c = (unsigned char)base[i];

		buf_putc(&ascii, c < ' ' || c > '~' || strchr("\"\\%;", c) ? '_' : (char)c);
	}
	utf8_safe(&safe, base, base_length);
	uri_encode(safe.data, safe.length, "-._~", &extended);
	reply_header(reply, "Content-Disposition", "%s; filename=\"%s\"; filename*=UTF-8''%s",
		     shown ? "inline" : "attachment", ascii.data, extended.data);
}

#define LINK "link" /* the actor where the address was enough, and no token was sent */

static void log_download(struct http_exchange *exchange, const struct store_conversation *conversation,
			 const struct store_file *file)
{
	const char *hash = conversation->hash;
	char place[SHA256_HEX_SIZE], actor[STORE_AUDIT_OBJECT_SIZE];
	struct store_audit entry;

	snprintf(actor, sizeof(actor), "token:%s", exchange->token.id);
	store_audit_place(hash, place);
	store_audit_init(&entry, STORE_AUDIT_FILE_GET, "conversation", place);
	entry.actor = exchange->token.id[0] ? actor : LINK;
	entry.owner = conversation->owner;
	store_audit_int(&entry, "bytes", file->size);
	store_audit_text(&entry, "name", file->name, file->name_length);
	store_audit_client(&entry, &exchange->client);
	store_audit_later(exchange->server->store, &entry);
}

void files_headers(struct reply *reply, const char *media_type, const char *name, size_t length)
{
	bool image = files_is_image(media_type), plain = streq(media_type, "text/plain");
	/* No page of this origin can use a file as its script or style: with nosniff, browsers go by the type. */
	const bool hidden = streq(media_type, "text/javascript") || streq(media_type, "text/css");

	reply_header(reply, "Content-Type", "%s%s", hidden ? "text/plain" : media_type,
		     str_starts(media_type, "text/") ? "; charset=utf-8" : "");
	disposition(reply, name, length, image || plain);
	reply_header(reply, "X-Content-Type-Options", "nosniff");
	reply_header(reply, "Content-Security-Policy", "sandbox; default-src 'none'");
	reply_header(reply, "Cache-Control", "private, no-cache");
}

/* The two numbers of "FIRST-LAST", "FIRST-" (last: the largest) or "-LENGTH" (first: -1); negative: something else. */
static int read_range(const char *range, int64_t *ret_first, int64_t *ret_last)
{
	const char *dash = strchr(range, '-');
	auto_free char *from = dash ? xstrndup(range, (size_t)(dash - range)) : NULL;
	uint64_t first = 0, last = INT64_MAX;

	if (!dash || (!*from && !dash[1]))
		return -1;
	if ((*from && parse_u64(from, 0, INT64_MAX, &first) < 0) ||
	    (dash[1] && parse_u64(dash + 1, 0, INT64_MAX, &last) < 0))
		return -1;
	*ret_first = *from ? (int64_t)first : -1;
	*ret_last = (int64_t)last;
	return 0;
}

/* 1 and the part; 0: the whole (no such header, several parts, another content); -1: beyond the end. */
static int take_range(const struct request *request, const char *tag, int64_t size, int64_t *ret_first,
		      int64_t *ret_length)
{
	const char *range = request_param(request, "HTTP_RANGE"), *tied = request_param(request, "HTTP_IF_RANGE");
	int64_t first = 0, last = 0;

	if (!range || !str_starts(range, "bytes=") || (tied && *tied && !streq(tied, tag)) ||
	    read_range(range + strlen("bytes="), &first, &last) < 0 || last < first)
		return 0;
	if (first < 0) {
		first = size - MIN(last, size);
		last = size;
	}
	if (first >= size)
		return -1;
	*ret_first = first;
	*ret_length = MIN(last, size - 1) - first + 1;
	return 1;
}

/* The bytes that are asked for, from us. */
static void send_part(struct http_exchange *exchange, const char *tag)
{
	struct reply *reply = exchange->reply;
	const int64_t size = reply->file_length;
	const int part =
		take_range(exchange->request, tag, size, &reply->file_offset, &reply->file_length);

	reply_header(reply, "Accept-Ranges", "bytes");
	if (part > 0) {
		reply->status = 206;
		reply_header(reply, "Content-Range", "bytes %lld-%lld/%lld", (long long)reply->file_offset,
			     (long long)(reply->file_offset + reply->file_length - 1), (long long)size);
	} else if (part < 0) {
		fd_close(&reply->file_fd);
		buf_reset(&reply->headers);
		reply_header(reply, "Content-Range", "bytes */%lld", (long long)size);
		reply_refuse(reply, 416, "the range begins beyond the end of the file");
	}
}

void files_download(struct http_exchange *exchange, const char *method, const struct files_place *place)
{
	struct reply *reply = exchange->reply;
	const char *prefix = exchange->server->config->gateway.accel_prefix;
	const char *known = request_param(exchange->request, "HTTP_IF_NONE_MATCH");
	struct store_file file = {0};
	char tag[SHA256_HEX_SIZE + 2];
	struct err err = ERR_INIT;
	int result = store_file_find(exchange->server->store, place->conversation.row, place->name.data,
				     place->name.length, &file, &err);

	/* Opened here even if the web server sends it: a blob that is lost is an error of ours and not a bare 404 of
	 * nginx. */
	if (result == 0)
		result =
			store_blob_open(exchange->server->store, file.blob, &reply->file_fd, &reply->file_length, &err);
	else if (err.code == ERR_NOT_FOUND) {
		reply_refuse(reply, 404, NOT_FOUND);
		return;
	}
	if (result < 0) {
		log_event(LOG_ERROR, "file cannot be read", "blob", file.blob, "error", err.text, NULL);
		reply_refuse(reply, 500, "the file cannot be read");
		return;
	}
	reply->status = 200;
	if (streq(method, "GET")) /* HEAD differs in what is sent, too */
		log_download(exchange, &place->conversation, &file);
	snprintf(tag, sizeof(tag), "\"%s\"", file.blob);
	files_headers(reply, file.media_type, place->name.data, place->name.length);
	reply_header(reply, "ETag", "%s", tag);
	if (known && strstr(known, tag)) {
		reply->status = 304;
		fd_close(&reply->file_fd);
	} else if (prefix && prefix[0]) {
		char path[SHA256_HEX_SIZE + 1];

		store_blob_path(file.blob, path);
		reply_header(reply, "X-Accel-Redirect", "%s%s", prefix, path);
		reply->delegated = true;
		fd_close(&reply->file_fd);
	} else {
		send_part(exchange, tag);
	}
}

static void read_place(struct http_exchange *exchange, const char *method, const struct files_place *place)
{
	const char *hash = place->conversation.hash;
	struct access_refusal refusal;

	if (!access_read_enter(exchange, hash, &refusal)) {
		reply_header(exchange->reply, "Retry-After", "%lld", (long long)refusal.retry_seconds);
		reply_refuse(exchange->reply, refusal.status, refusal.text);
		return;
	}
	if (place->folder)
		files_list(exchange, place);
	else
		files_download(exchange, method, place);
	access_read_leave(exchange, hash);
}

void files_handle(struct http_exchange *exchange, const char *method, const char *rest)
{
	const bool reads = streq(method, "GET") || streq(method, "HEAD");
	auto_files_place struct files_place place = {0};
	struct err err = ERR_INIT;
	int result = files_place_take(exchange, rest, &place, &err);

	if (result == -ERR_NOT_FOUND) {
		reply_refuse(exchange->reply, 404, NOT_FOUND);
	} else if (result < 0) {
		log_event(LOG_ERROR, "conversation cannot be read", "error", err.text, NULL);
		reply_refuse(exchange->reply, 500, "the files cannot be read");
	} else if (!reads) {
		files_change(exchange, method, &place);
	} else if (files_place_readable(exchange, &place)) {
		read_place(exchange, method, &place);
	}
}
