/*
 * job_files.c - files that a request puts into a conversation, or that a jail is filled with: checked and kept as blobs
 * by the request's thread, put into the conversation by the writer, reported as news by the reactor.
 */
#include "job_internal.h"

#include <stdio.h>
#include <string.h>

#include "lib/store/audit/store_audit.h"
#include "lib/store/blob/store_blob.h"

#define MEMBER_SIZE 64

void job_inputs_add(struct job_input **inputs, size_t *count, const struct store_file *file)
{
	struct job_input *input;

	if ((*count & (*count - 1)) == 0) /* twice the room: for thousands copying would be the most */
		*inputs = xrealloc(*inputs, MAX(*count * 2, (size_t)1), sizeof(**inputs));
	input = &(*inputs)[(*count)++];
	input->name = xstrndup(file->name, file->name_length);
	input->file = *file;
	input->file.name = input->name;
}

void job_inputs_free(struct job_input *inputs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(inputs[i].name);
	free(inputs);
}

/* The same file, or one would have to be a folder for the other. */
static bool same_place(const char *a, const char *b)
{
	size_t length = MIN(strlen(a), strlen(b));

	return strncmp(a, b, length) == 0 && (a[length] == '\0' || a[length] == '/') &&
	       (b[length] == '\0' || b[length] == '/');
}

/* Name and place of one of the files. */
static int check_file(const struct job_request *request, size_t index, bool upload, struct err *err)
{
	const char *name = request->files[index].name;
	char member[MEMBER_SIZE];
	int result;

	if (upload)
		snprintf(member, sizeof(member), "filename");
	else
		snprintf(member, sizeof(member), "files[%zu].filename", index);
	if (request->paths)
		result = job_file_path_check(name, member, err);
	else
		result = job_file_name_check(name, member, err);
	if (result < 0)
		return result;
	for (size_t i = 0; i < index; i++)
		if (same_place(name, request->files[i].name))
			return err_member(err, member, "has the same name as files[%zu]%s", i,
					  request->paths ? ", or one is a folder of the other" : "");
	return 0;
}

int job_take_files(const struct job_request *request, bool upload, struct job_files *ret, struct err *err)
{
	int64_t bytes = 0, now = clock_now_us();

	if (request->n_files > 0 && !request->conversation)
		return err_member(err, "files", "need a conversation");
	if (request->n_files > JOB_FILES_MAX)
		return err_member(err, "files", "at most %d files with one request, not %zu", JOB_FILES_MAX,
				  request->n_files);
	for (size_t i = 0; i < request->n_files; i++) {
		int result = check_file(request, i, upload, err);

		if (result < 0)
			return result;
		bytes += (int64_t)request->files[i].length;
	}
	if (bytes > ret->bytes_max)
		return err_set(err, ERR_LIMIT, "files: %lld bytes do not fit into /data, which holds %lld",
			       (long long)bytes, (long long)ret->bytes_max);
	ret->items = xcalloc(request->n_files + 1, sizeof(*ret->items));
	ret->count = request->n_files;
	for (size_t i = 0; i < request->n_files; i++) {
		struct job_input *input = &ret->items[i];

		input->name = xstrdup(request->files[i].name);
		input->file = (struct store_file){
			.name = input->name, .name_length = strlen(input->name), .mode = 0644, .mtime_us = now};
	}
	return 0;
}

int job_store_files(struct store *store, const struct job_request *request, const struct job_files *files,
		    struct err *err)
{
	for (size_t i = 0; i < files->count; i++) {
		const struct job_file *from = &request->files[i];
		struct store_file *file = &files->items[i].file;
		int result = store_blob_put(store, from->data, from->length, file->blob, err);

		if (result < 0)
			return err_wrap(err, "keeping the file \"%s\"", file->name);
		file->size = (int64_t)from->length;
		store_media_type(file->name, file->name_length, (const unsigned char *)from->data, from->length,
				 file->media_type);
	}
	return 0;
}

int job_put_files(struct store_txn *txn, const struct job_files *files, int64_t *ret_row, struct err *err)
{
	struct store_conversation conversation;
	int result = store_txn_conversation(txn, files->owner, files->conversation, &conversation, err);

	for (size_t i = 0; result == 0 && i < files->count; i++) {
		result = store_txn_file_place(txn, conversation.row, files->items[i].file.name, err);
		if (result == 0)
			result = store_txn_file_put(txn, conversation.row, &files->items[i].file, err);
		if (result == 0)
			result = store_txn_audit_file(txn, conversation.row, files->items[i].file.name,
						      files->items[i].file.name_length, &files->caller, err);
	}
	if (result == 0 && files->count > 0)
		result = store_txn_conversation(txn, files->owner, files->conversation, &conversation, err);
	if (result < 0)
		return result;
	if (files->count > 0 && conversation.bytes > files->bytes_max)
		return err_set(err, ERR_LIMIT,
			       "with this the conversation's files have %lld bytes; a program's /data holds %lld",
			       (long long)conversation.bytes, (long long)files->bytes_max);
	*ret_row = conversation.row;
	return 0;
}

void job_tell_files(const struct job_engine *engine, const struct job_files *files)
{
	struct job_news news = {.owner = files->owner, .conversation = files->conversation};

	for (size_t i = 0; engine->tell && i < files->count; i++) {
		news.name = files->items[i].file.name;
		news.name_length = files->items[i].file.name_length;
		engine->tell(engine->tell_arg, &news);
	}
}
