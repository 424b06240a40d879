/*
 * doors_fusion_files.c - files of SandboxFusion's requests: those that it sends are in the program's folder before it
 * runs, and those that it asks for are answered as they are afterwards, sent or written. See doors_fusion.h.
 */
#include <string.h>

#include "doors_fusion.h"
#include "lib/base/text.h"
#include "lib/base/util.h"
#include "lib/store/blob/store_blob.h"

#define FETCH_MAX (16 << 20) /* bytes of all files in an answer */

int doors_fusion_decode(struct json_object *files, struct doors_inputs *ret, struct err *err)
{
	if (!files)
		return 0;
	json_object_object_foreach(files, name, content)
	{
		struct buf data;

		if (!content)
			continue;
		const size_t length = (size_t)json_object_get_string_len(content);

		buf_init(&data, length + 1);
		if (base64_decode(json_object_get_string(content), length, &data, err) < 0) {
			buf_clear(&data);
			return err_member(err, "files", "%.100s: Input should be a valid base64 string", name);
		}
		struct job_file *file = &ret->files[ret->count++];

		file->name = xstrdup(doors_path(name));
		file->data = buf_steal(&data, &file->length);
	}
	return 0;
}

struct json_object *doors_fusion_base64(struct doors_call *call, const struct store_file *file, size_t *left)
{
	auto_buf struct buf text = {0};
	auto_free char *data = NULL;
	auto_close int fd = -1;
	size_t length = 0;

	if ((size_t)file->size > *left ||
	    store_blob_open(call->exchange.server->store, file->blob, &fd, NULL, NULL) < 0 ||
	    read_fd(fd, (size_t)file->size, &data, &length, NULL) < 0)
		return NULL;
	*left -= length;
	buf_init(&text, SIZE_MAX);
	base64_encode(&text, data, length);
	return json_object_new_string_len(text.data, (int)text.length);
}

struct json_object *doors_fusion_fetched(struct doors_call *call, struct json_object *names, const char *conversation)
{
	struct json_object *files = json_object_new_object();
	struct store *store = call->exchange.server->store;
	struct store_conversation place;
	size_t left = FETCH_MAX;

	if (!names || !*conversation ||
	    store_conversation_find(store, call->exchange.token.owner, conversation, &place, NULL) < 0)
		return files;
	for (size_t i = 0; i < json_object_array_length(names); i++) {
		const char *asked = json_object_get_string(json_object_array_get_idx(names, i));
		const char *name = asked ? doors_path(asked) : NULL;
		struct store_file file;

		if (!name || store_file_find(store, place.row, name, strlen(name), &file, NULL) < 0)
			continue;
		struct json_object *content = doors_fusion_base64(call, &file, &left);

		if (content)
			json_add(files, asked, content);
	}
	return files;
}
