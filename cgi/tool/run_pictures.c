/* run_pictures.c - see run_pictures.h. */
#include "run_pictures.h"

#include <string.h>

#include "cgi/http/files.h"
#include "lib/base/log.h"
#include "lib/base/text.h"
#include "lib/base/util.h"
#include "lib/store/blob/store_blob.h"
#include "run_text.h"

bool run_pictures_has(const struct store_file *file)
{
	return files_is_image(file->media_type);
}

static void add_block(struct json_object *content, const char *media_type, const char *data, size_t length)
{
	struct json_object *block = json_object_new_object();
	auto_buf struct buf text = {0};

	buf_init(&text, 2 * RUN_IMAGE_MAX);
	base64_encode(&text, data, length);
	json_add_string(block, "type", "image");
	json_add_string(block, "data", text.data);
	json_add_string(block, "mimeType", media_type);
	json_object_array_add(content, block);
}

static int read_whole(struct server *server, struct job_picture *picture, struct err *err)
{
	auto_close int fd = -1;
	int result = store_blob_open(server->store, picture->file->blob, &fd, NULL, err);

	return result < 0 ? result : read_fd(fd, RUN_IMAGE_MAX, &picture->data, &picture->length, err);
}

static void note(struct buf *notes, const struct store_file *file, const char *what)
{
	run_text_name(notes, file->name, file->name_length);
	buf_printf(notes, " %s\n", what);
}

/* True: it is shown. */
static bool add_picture(struct server *server, struct job_picture *picture, size_t *left, struct json_object *content,
			struct buf *notes)
{
	struct err err = ERR_INIT;

	if (picture->is == JOB_PICTURE_BROKEN) {
		note(notes, picture->file, "does not decode as a picture and is not shown");
		return false;
	}
	if (picture->is == JOB_PICTURE_LARGE) {
		note(notes, picture->file, "is too large to be shown");
		return false;
	}
	if (picture->is == JOB_PICTURE_UNKNOWN) {
		note(notes, picture->file, "could not be decoded in time and is not shown");
		return false;
	}
	if (picture->is == JOB_PICTURE_WHOLE && read_whole(server, picture, &err) < 0) {
		log_event(LOG_ERROR, "image cannot be read", "blob", picture->file->blob, "error", err.text, NULL);
		note(notes, picture->file, "cannot be read");
		return false;
	}
	if (picture->length > *left) {
		note(notes, picture->file, "is not shown: there are too many pictures");
		return false;
	}
	*left -= picture->length;
	add_block(content, picture->media_type, picture->data, picture->length);
	if (picture->is == JOB_PICTURE_SCALED) {
		run_text_name(notes, picture->file->name, picture->file->name_length);
		buf_printf(notes, " is shown as a smaller copy: it has %lld x %lld pixels, %lld bytes\n",
			   (long long)picture->width, (long long)picture->height, (long long)picture->file->size);
	}
	return true;
}

/* Those that are looked at: each content once. */
static size_t choose(const struct store_file *const *files, size_t count, struct job_picture *pictures,
		     struct buf *notes)
{
	int64_t left = JOB_PICTURES_BYTES;
	size_t n = 0, many = 0;

	for (size_t i = 0; i < count; i++) {
		size_t same = 0;

		while (same < n && !streq(pictures[same].file->blob, files[i]->blob))
			same++;
		if (same < n)
			continue;
		if (n == RUN_IMAGES_COUNT || files[i]->size > MIN((int64_t)JOB_PICTURE_FILE, left)) {
			many++;
			continue;
		}
		left -= files[i]->size;
		pictures[n++] = (struct job_picture){.file = files[i]};
	}
	if (many > 0)
		buf_printf(notes, "%zu images are too many or too large to be shown here\n", many);
	return n;
}

size_t run_pictures_add(const struct tool_call *call, const struct store_file *const *files, size_t count,
			struct json_object *content, struct buf *notes)
{
	struct server *server = call->server;
	struct job_picture pictures[RUN_IMAGES_COUNT];
	const size_t n = choose(files, count, pictures, notes);
	struct job_engine *engine;
	struct err err = ERR_INIT;
	size_t left = RUN_IMAGES_MAX, shown = 0;
	int result = n == 0 ? 0 : server_engine(server, &engine, &err);

	if (n > 0 && result == 0)
		result = job_pictures_look(engine, call->token->owner, pictures, n, RUN_IMAGE_MAX, &err);
	if (result < 0) {
		log_event(LOG_WARN, "pictures cannot be looked at", "error", err.text, NULL);
		buf_puts(notes, "pictures are not shown: they cannot be decoded here\n");
		return 0;
	}
	for (size_t i = 0; i < n; i++)
		shown += add_picture(server, &pictures[i], &left, content, notes);
	job_pictures_clear(pictures, n);
	return shown;
}
