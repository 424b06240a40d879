/*
 * api_files.c - ids, and the files of sessions: upload, list, download, removal; see api.h.
 *
 * A file is found by looking at the names of its session, whose ids are computed: there are few, and no table has to be
 * kept. Bytes and headers of a download are those of /files/ (cgi/http/files.c), nginx and ranges included.
 */
#include <string.h>

#include "api.h"
#include "cgi/http/files.h"
#include "cgi/http/multipart.h"
#include "lib/base/text.h"
#include "lib/base/util.h"
#include "lib/job/job_edit.h"
#include "lib/store/db/crypto.h"
#include "lib/store/record/store_resource.h"

#define NO_SESSION "no such session, or no such file in it"

/* -------- ids ------------------------------------------------------------------------------------------ */

/* 21 characters of base64url. */
static void print_id(const uint8_t *bytes, char ret[API_ID_SIZE])
{
	auto_buf struct buf text = {0};

	buf_init(&text, 64);
	base64_encode(&text, bytes, 16);
	for (size_t i = 0; i < API_ID_SIZE - 1; i++)
		ret[i] = text.data[i] == '+' ? '-' : text.data[i] == '/' ? '_' : text.data[i];
	ret[API_ID_SIZE - 1] = '\0';
}

bool api_id_valid(const char *id)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

	return strlen(id) == API_ID_SIZE - 1 && strspn(id, letters) == API_ID_SIZE - 1;
}

void api_id_new(char ret[API_ID_SIZE])
{
	uint8_t bytes[16];

	random_bytes(bytes, sizeof(bytes));
	print_id(bytes, ret);
}

void api_file_id(const char *name, size_t length, char ret[API_ID_SIZE])
{
	uint8_t hash[SHA256_SIZE];

	sha256_bytes(name, length, hash);
	print_id(hash, ret);
}

/* -------- upload -------------------------------------------------------------------------------------- */

static struct job_request caller(const struct http_exchange *exchange, const char *session)
{
	return (struct job_request){.owner = exchange->token.owner,
				    .token_id = exchange->token.id,
				    .client = &exchange->client,
				    .conversation = session,
				    .paths = true};
}

static int upload(struct http_exchange *exchange, const struct buf *body, struct err *err)
{
	auto_multipart struct multipart form = {0};
	char session[API_ID_SIZE];
	struct job_engine *engine;
	struct job_edited done;
	int result = multipart_parse(request_param(exchange->request, "CONTENT_TYPE"), body, &form, err);

	if (result < 0)
		return result;
	auto_free char *named = multipart_field(&form, "session_id");

	if (named && !api_id_valid(named))
		return err_member(err, "session_id", "must be one that an answer named");
	api_id_new(session);
	if (named)
		memcpy(session, named, sizeof(session));
	struct job_request who = caller(exchange, session);
	auto_free struct job_file *files = xcalloc(form.count + 1, sizeof(*files));
	auto_json struct json_object *object = json_object_new_object();
	struct json_object *listed = json_object_new_array();

	json_add_string(object, "message", "success");
	json_add_string(object, "session_id", session);
	json_add(object, "files", listed);
	for (size_t i = 0; i < form.count; i++) {
		const struct multipart_part *part = &form.parts[i];
		char id[API_ID_SIZE];

		if (!part->filename)
			continue;
		files[who.n_files++] =
			(struct job_file){.name = part->filename, .data = part->data, .length = part->length};
		struct json_object *file = json_object_new_object();

		api_file_id(part->filename, strlen(part->filename), id);
		json_add_string(file, "fileId", id);
		json_add_string(file, "filename", part->filename);
		json_object_array_add(listed, file);
	}
	who.files = files;
	if (who.n_files == 0)
		return err_set(err, ERR_INVALID, "the form has no part with a file");
	result = server_engine(exchange->server, &engine, err);
	if (result == 0)
		result = job_edit_put(engine, &who, &done, err);
	if (result == 0)
		reply_json(exchange->reply, 200, object);
	return result;
}

void api_upload(struct http_exchange *exchange)
{
	auto_buf struct buf body = {0};
	struct err err = ERR_INIT;

	if (!files_change_enter(exchange, STORE_SCOPE_FILES))
		return;
	if (files_change_body(exchange, &body) && upload(exchange, &body, &err) < 0)
		files_change_refuse(exchange->reply, &err);
	files_change_leave(exchange);
}

/* -------- list ---------------------------------------------------------------------------------------- */

struct listing {
	struct http_exchange *exchange;
	const char *session;
	struct json_object *files;
};

/* "SESSION/ID.csv": clients take the id out of it again. */
static int add_file(void *arg, const struct store_file *file)
{
	const struct listing *listing = arg;
	struct json_object *object = json_object_new_object(), *metadata = json_object_new_object();
	char id[API_ID_SIZE], modified[CLOCK_TEXT_SIZE];
	const char *slash = memrchr(file->name, '/', file->name_length);
	const char *base = slash ? slash + 1 : file->name;
	const size_t length = file->name_length - (size_t)(base - file->name);
	const char *dot = memrchr(base, '.', length);
	auto_free char *extension = dot ? xstrndup(dot, length - (size_t)(dot - base)) : xstrdup("");
	auto_free char *name = NULL;

	api_file_id(file->name, file->name_length, id);
	clock_text(file->mtime_us, modified);
	name = xasprintf("%s/%s%s", listing->session, id, extension);
	json_add(object, "name", json_new_safe(name, strlen(name)));
	json_add_string(object, "id", id);
	json_add_string(object, "session_id", listing->session);
	json_add_int(object, "size", file->size);
	json_add_string(object, "lastModified", modified);
	json_add(metadata, "original-filename", json_new_safe(file->name, file->name_length));
	json_add_string(metadata, "content-type", file->media_type);
	json_add(object, "metadata", metadata);
	json_object_array_add(listing->files, object);
	return 0;
}

/* May the token read, and is the session its owner's? */
static int find_session(struct http_exchange *exchange, const char *session, struct store_conversation *ret,
			struct err *err)
{
	int result = store_conversation_find(exchange->server->store, exchange->token.owner, session, ret, err);

	return result == -ERR_NOT_FOUND ? err_set(err, ERR_NOT_FOUND, NO_SESSION) : result;
}

void api_list(struct http_exchange *exchange, const char *session)
{
	auto_json struct json_object *files = json_object_new_array();
	struct listing listing = {exchange, session, files};
	const struct store_page page = {.limit = -1};
	struct store_conversation conversation;
	struct err err = ERR_INIT;

	if (!files_change_enter(exchange, STORE_SCOPE_FILES))
		return;
	int result = find_session(exchange, session, &conversation, &err);

	if (result == 0)
		result = store_conversation_files(exchange->server->store, conversation.row, &page, add_file, &listing,
						  &err);
	if (result < 0)
		files_change_refuse(exchange->reply, &err);
	else
		reply_json(exchange->reply, 200, files);
	files_change_leave(exchange);
}

/* -------- one file ------------------------------------------------------------------------------------ */

struct search {
	const char *id;
	char *name;
	struct store_file file;
};

static int look(void *arg, const struct store_file *file)
{
	struct search *search = arg;
	char id[API_ID_SIZE];

	api_file_id(file->name, file->name_length, id);
	if (!streq(id, search->id))
		return 0;
	search->name = xmemdup(file->name, file->name_length);
	search->file = *file;
	return 1;
}

int api_file_find(struct http_exchange *exchange, const char *session, const char *id, char **ret_name,
		  struct store_file *ret, struct err *err)
{
	struct search search = {.id = id};
	struct store_conversation conversation;
	const struct store_page page = {.limit = -1};
	int result = find_session(exchange, session, &conversation, err);

	if (result == 0)
		result = store_conversation_files(exchange->server->store, conversation.row, &page, look, &search, err);
	if (result < 0)
		return result;
	if (!search.name)
		return err_set(err, ERR_NOT_FOUND, NO_SESSION);
	*ret_name = search.name;
	*ret = search.file;
	ret->name = search.name;
	return 0;
}

static int remove_file(struct http_exchange *exchange, const char *session, const struct store_file *file,
		       struct err *err)
{
	const struct bind_text name = {.data = file->name, .length = file->name_length};
	const struct job_names names = {.items = &name, .count = 1, .member = "file"};
	const struct job_request who = caller(exchange, session);
	auto_json struct json_object *object = json_object_new_object();
	struct job_engine *engine;
	struct job_edited done;
	int result = server_engine(exchange->server, &engine, err);

	if (result == 0)
		result = job_edit_remove(engine, &who, &names, &done, err);
	if (result < 0)
		return result;
	json_add_string(object, "message", "success");
	reply_json(exchange->reply, 200, object);
	return 0;
}

static int serve(struct http_exchange *exchange, const char *method, const char *session, const struct store_file *file,
		 struct err *err)
{
	auto_files_place struct files_place place = {0};

	if (streq(method, "DELETE"))
		return remove_file(exchange, session, file, err);
	int result = find_session(exchange, session, &place.conversation, err);

	if (result < 0)
		return result;
	buf_init(&place.name, JAIL_NAME_MAX);
	buf_add(&place.name, file->name, file->name_length);
	files_download(exchange, method, &place);
	return 0;
}

void api_file(struct http_exchange *exchange, const char *method, const char *session, const char *id)
{
	auto_free char *name = NULL;
	struct store_file file = {0};
	struct err err = ERR_INIT;

	if (!files_change_enter(exchange, STORE_SCOPE_FILES))
		return;
	if (api_file_find(exchange, session, id, &name, &file, &err) < 0 ||
	    serve(exchange, method, session, &file, &err) < 0)
		files_change_refuse(exchange->reply, &err);
	files_change_leave(exchange);
}
