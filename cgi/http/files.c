/* files.c - see files.h. */
#include "files.h"

#include <string.h>

#include "lib/base/log.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "lib/store/store_audit.h"
#include "lib/store/store_blob.h"
#include "lib/store/store_file.h"
#include "uri.h"

#define HASH_DIGITS (SHA256_HEX_SIZE - 1)
#define NOT_FOUND   "no such file"

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

/* Every segment must be a name: no empty ones, no "." and "..". */
static bool name_ok(const char *name, size_t length)
{
	size_t begin = 0;

	if (length == 0 || length > JAIL_NAME_MAX)
		return false;
	for (size_t i = 0; i <= length; i++) {
		if (i < length && name[i] != '/')
			continue;
		size_t segment = i - begin;

		if (segment == 0 || (segment == 1 && name[begin] == '.') ||
		    (segment == 2 && memcmp(name + begin, "..", 2) == 0))
			return false;
		begin = i + 1;
	}
	return true;
}

/* ret_hash: the conversation's, from the address. */
static int find(struct exchange *exchange, const char *rest, struct buf *name, struct store_file *ret,
		char ret_hash[SHA256_HEX_SIZE], struct err *err)
{
	struct store_conversation conversation;
	int result;

	if (strspn(rest, "0123456789abcdef") != HASH_DIGITS || rest[HASH_DIGITS] != '/')
		return err_set(err, ERR_NOT_FOUND, NOT_FOUND);
	memcpy(ret_hash, rest, HASH_DIGITS);
	ret_hash[HASH_DIGITS] = '\0';
	/* An encoded slash is a slash: names may hold folders, and folders have no meaning of their own here. */
	if (uri_decode(rest + HASH_DIGITS + 1, name, err) < 0 || !name_ok(name->data, name->length))
		return err_set(err, ERR_NOT_FOUND, NOT_FOUND);
	result = store_conversation_by_hash(exchange->server->store, ret_hash, &conversation, err);
	if (result < 0)
		return result;
	return store_file_find(exchange->server->store, conversation.row, name->data, name->length, ret, err);
}

/* Who has the address may read the file: no token is asked for, and none is in the entry. */
static void log_download(struct exchange *exchange, const char *hash, const struct store_file *file)
{
	char place[SHA256_HEX_SIZE];
	struct store_audit entry;

	store_audit_place(hash, place);
	store_audit_init(&entry, STORE_AUDIT_FILE_GET, "conversation", place);
	store_audit_int(&entry, "bytes", file->size);
	store_audit_text(&entry, "name", file->name, file->name_length);
	store_audit_later(exchange->server->store, &entry);
}

static void set_headers(struct reply *reply, const struct store_file *file, const struct buf *name)
{
	bool image = files_is_image(file->media_type), plain = streq(file->media_type, "text/plain");

	reply_header(reply, "Content-Type", "%s%s", file->media_type,
		     str_starts(file->media_type, "text/") ? "; charset=utf-8" : "");
	disposition(reply, name->data, name->length, image || plain);
	reply_header(reply, "X-Content-Type-Options", "nosniff");
	reply_header(reply, "Content-Security-Policy", "sandbox; default-src 'none'");
	reply_header(reply, "Cache-Control", "private, no-cache");
}

void files_handle(struct exchange *exchange, const char *method, const char *rest)
{
	struct reply *reply = exchange->reply;
	const char *prefix = exchange->server->config->gateway.accel_prefix;
	struct store_file file = {0};
	struct err err = ERR_INIT;
	auto_buf struct buf name = {0};

	buf_init(&name, HTTP_PATH_MAX);
	char hash[SHA256_HEX_SIZE];
	int result = find(exchange, rest, &name, &file, hash, &err);

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
		log_download(exchange, hash, &file);
	set_headers(reply, &file, &name);
	if (prefix && prefix[0]) {
		char path[SHA256_HEX_SIZE + 1];

		store_blob_path(file.blob, path);
		reply_header(reply, "X-Accel-Redirect", "%s%s", prefix, path);
		reply->delegated = true;
		close_pointer(&reply->file_fd);
		reply->file_fd = -1;
	}
}
