/*
 * files_zip.c - see files.h; the only file of the gateway that knows libarchive.
 *
 * The archive is made while it is sent: neither memory nor disk holds it. Names that are not UTF-8 show their bytes as
 * \xNN, because a zip archive cannot say what they are. A client that takes nothing for STREAM_SEND_SECONDS, or
 * less than SLOWEST_BYTES a second, ends it.
 */
#include "files.h"

#include <archive.h>
#include <archive_entry.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "lib/store/blob/store_blob.h"
#include "lib/store/record/store_resource.h"

#define BLOCK         (64 * 1024)
#define SLOW_SECONDS  60          /* after which a client must have taken so much a second: */
#define SLOWEST_BYTES (16 * 1024) /* a request thread waits for it */

struct zip {
	struct http_exchange *exchange;
	const struct files_place *place;
	struct archive *archive;
	struct archive_entry *entry;
	char *block;
	int64_t began_us, sent;
	bool failed;
};

static bool too_slow(const struct zip *zip)
{
	const int64_t seconds = (clock_monotonic_us() - zip->began_us) / 1000000;

	return seconds > SLOW_SECONDS && zip->sent / seconds < SLOWEST_BYTES;
}

static void send_head(struct reply *reply)
{
	reply->status = 200;
	reply_header(reply, "Content-Type", "application/zip");
	reply_header(reply, "Content-Disposition", "attachment; filename=\"files.zip\"");
	reply_header(reply, "Content-Security-Policy", "sandbox; default-src 'none'");
}

/* The first piece comes with the head. */
static la_ssize_t send_piece(struct archive *archive, void *arg, const void *data, size_t length)
{
	struct zip *zip = arg;
	const struct request *request = zip->exchange->request;
	struct reply *reply = zip->exchange->reply;
	auto_buf struct buf head = {0};

	(void)archive;
	if (!request->send) {
		buf_add(&reply->body, data, length);
		return reply->body.overflow ? -1 : (la_ssize_t)length;
	}
	if (!reply->streamed) {
		reply->delegated = true; /* no Content-Length: it is not known */
		reply_header(reply, "X-Accel-Buffering", "no");
		buf_init(&head, 2 * HTTP_HEADER_MAX);
		reply_print_head(reply, &head);
		reply->streamed = true;
		reply->gone = request->send(request->arg, head.data, head.length) < 0;
	}
	if (!reply->gone)
		reply->gone = too_slow(zip) || request->send(request->arg, data, length) < 0;
	zip->sent += (int64_t)length;
	return reply->gone ? -1 : (la_ssize_t)length;
}

/* Not 0: no more files. */
static int add_file(void *arg, const struct store_file *file)
{
	struct zip *zip = arg;
	auto_buf struct buf name = {0};
	auto_close int fd = -1;
	ssize_t got = 0;

	if (!files_place_has(zip->place, file))
		return 0;
	buf_init(&name, 4 * JAIL_NAME_MAX + 1);
	utf8_safe(&name, file->name, file->name_length);
	archive_entry_clear(zip->entry);
	archive_entry_set_pathname_utf8(zip->entry, name.data);
	archive_entry_set_size(zip->entry, file->size);
	archive_entry_set_filetype(zip->entry, AE_IFREG);
	archive_entry_set_perm(zip->entry, file->mode & 0777u);
	archive_entry_set_mtime(zip->entry, (time_t)(file->mtime_us / 1000000), 0);
	zip->failed = store_blob_open(zip->exchange->server->store, file->blob, &fd, NULL, NULL) < 0 ||
		      archive_write_header(zip->archive, zip->entry) != ARCHIVE_OK;
	while (!zip->failed && (got = read(fd, zip->block, BLOCK)) > 0)
		zip->failed = archive_write_data(zip->archive, zip->block, (size_t)got) < 0;
	zip->failed |= got < 0;
	return zip->failed;
}

int files_zip(struct http_exchange *exchange, const struct files_place *place, struct err *err)
{
	if (exchange->reply->head) {
		send_head(exchange->reply);
		return 0;
	}
	struct zip zip = {.exchange = exchange,
			  .place = place,
			  .archive = archive_write_new(),
			  .entry = archive_entry_new(),
			  .block = xmalloc(BLOCK),
			  .began_us = clock_monotonic_us()};
	const struct store_page page = {.limit = -1};
	int result = 0;

	if (archive_write_set_format_zip(zip.archive) != ARCHIVE_OK ||
	    archive_write_set_options(zip.archive, "zip:hdrcharset=UTF-8") < ARCHIVE_WARN ||
	    archive_write_set_bytes_per_block(zip.archive, BLOCK) != ARCHIVE_OK ||
	    archive_write_set_bytes_in_last_block(zip.archive, 1) != ARCHIVE_OK ||
	    archive_write_open(zip.archive, &zip, NULL, send_piece, NULL) != ARCHIVE_OK)
		result = err_set(err, ERR_SYSTEM, "the archive: %s", archive_error_string(zip.archive));
	if (result == 0) {
		send_head(exchange->reply);
		result = store_conversation_files(exchange->server->store, place->conversation.row, &page, add_file,
						  &zip, err);
		zip.failed |= result < 0;
		/* an archive that failed gets no end, so that nobody takes it for a whole one */
		if (zip.failed)
			archive_write_fail(zip.archive);
		else
			zip.failed = archive_write_close(zip.archive) != ARCHIVE_OK;
	}
	if (zip.failed && exchange->reply->streamed) {
		log_event(LOG_WARN, "archive cut short", "reason",
			  exchange->reply->gone ? "the client left" : "a file cannot be read", NULL);
		exchange->reply->gone = true;
		result = 0;
	} else if (zip.failed) {
		result = err_set(err, ERR_SYSTEM, "the archive cannot be made");
	}
	archive_write_free(zip.archive);
	archive_entry_free(zip.entry);
	free(zip.block);
	return result;
}
