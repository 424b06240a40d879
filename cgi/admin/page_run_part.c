/*
 * page_run_part.c - see pages.h.
 *
 * What a guest wrote must not act in the name of this page: the same headers as below /files/ (cgi/http/files.h), a
 * sandboxing policy, no guessing of types, and an attachment but for four types of images. Texts are attachments, too.
 */
#include "pages.h"

#include <string.h>

#include "cgi/http/files.h"
#include "lib/base/util.h"
#include "lib/store/blob/store_blob.h"

static void send_headers(struct admin_page *page, const char *media_type, const char *name, size_t length)
{
	struct reply *reply = page->exchange->reply;

	buf_reset(&reply->headers);
	reply->status = 200;
	page->raw = true;
	files_headers(reply, media_type, name, length);
	reply_header(reply, "Referrer-Policy", "no-referrer");
	reply_header(reply, "Cross-Origin-Resource-Policy", "same-origin");
}

static int send_text(struct admin_page *page, const struct store_execution *run, const struct store_text *text,
		     const char *part, struct err *err)
{
	auto_free char *name = xasprintf("%.8s-%s.bin", run->id, part);
	auto_free char *data = NULL;
	size_t length;
	int result = store_text_read(page->exchange->server->store, text, &data, &length, err);

	if (result < 0)
		return result;
	send_headers(page, "application/octet-stream", name, strlen(name));
	buf_add(&page->exchange->reply->body, data, length);
	return 0;
}

struct search {
	const char *name;
	size_t length;
	bool found;
	char blob[SHA256_HEX_SIZE], media_type[STORE_MEDIA_TYPE_SIZE];
};

static int find_file(void *arg, const struct store_execution_file *file)
{
	struct search *search = arg;

	if (file->file.name_length != search->length || memcmp(file->file.name, search->name, search->length) != 0)
		return 0;
	search->found = file->file.blob[0];
	memcpy(search->blob, file->file.blob, sizeof(search->blob));
	memcpy(search->media_type, file->file.media_type, sizeof(search->media_type));
	return 1;
}

static int send_file(struct admin_page *page, const struct store_execution *run, struct err *err)
{
	struct store *store = page->exchange->server->store;
	struct reply *reply = page->exchange->reply;
	char phase[8], name[ADMIN_VALUE_MAX];

	if (!admin_page_query(page, "phase", phase, sizeof(phase)) ||
	    !admin_page_query(page, "name", name, sizeof(name)))
		return err_set(err, ERR_NOT_FOUND, "There is no such file");
	struct search search = {.name = name, .length = strlen(name)};
	int result = store_execution_files(store, run->id, streq(phase, "before") ? STORE_BEFORE : STORE_AFTER,
					   find_file, &search, err);

	if (result == 0 && !search.found)
		result = err_set(err, ERR_NOT_FOUND, "There is no such file");
	if (result == 0)
		result = store_blob_open(store, search.blob, &reply->file_fd, &reply->file_length, err);
	if (result < 0)
		return result;
	send_headers(page, files_is_image(search.media_type) ? search.media_type : "application/octet-stream", name,
		     search.length);
	return 0;
}

int page_run_part(struct admin_page *page, const struct store_execution *run, const char *part, struct err *err)
{
	const struct {
		const char *name;
		const struct store_text *text;
	} texts[] = {
		{"code", &run->code},
		{"stdin", &run->stdin_text},
		{"stdout", &run->stdout_text},
		{"stderr", &run->stderr_text},
	};
	const size_t length = strcspn(part, "?");

	if (length == strlen("file") && strncmp(part, "file", length) == 0)
		return send_file(page, run, err);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (strlen(texts[i].name) == length && strncmp(texts[i].name, part, length) == 0)
			return send_text(page, run, texts[i].text, texts[i].name, err);
	return err_set(err, ERR_NOT_FOUND, "A run has no such part");
}
