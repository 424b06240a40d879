/*
 * files_change.c - see files.h.
 *
 * The token was checked by the route; here come its owner, its scope and its place among the calls at once. Then the
 * body is read, whole: a body that ends early changes nothing. The files take their turn behind the conversation's runs
 * (lib/job), so the reply of a long run's conversation is late, and what it says is durable. Names are checked there,
 * as those of the tools are.
 */
#include "files.h"

#include <string.h>
#include <strings.h>

#include "access.h"
#include "body.h"
#include "lib/base/log.h"
#include "lib/base/util.h"
#include "lib/job/job_edit.h"
#include "multipart.h"

void files_change_refuse(struct reply *reply, const struct err *err)
{
	const int status = err->code == ERR_LIMIT ? 413 : err_info(err->code)->http;

	if (status >= 500)
		log_event(LOG_ERROR, "files cannot be changed", "error", err->text, NULL);
	reply_refuse(reply, status, err->text);
	snprintf(reply->outcome, sizeof(reply->outcome), "%s", err_info(err->code)->name);
}

static void refuse_access(const struct http_exchange *exchange, const struct access_refusal *refusal)
{
	if (refusal->status == 429)
		reply_header(exchange->reply, "Retry-After", "%lld", (long long)refusal->retry_seconds);
	if (refusal->status == 403)
		access_challenge_scope(exchange, refusal);
	reply_refuse(exchange->reply, refusal->status, refusal->text);
}

bool files_change_body(struct http_exchange *exchange, struct buf *body)
{
	const struct request *request = exchange->request;
	const char *length = request_param(request, "CONTENT_LENGTH");
	const char *encoding = request_param(request, "HTTP_CONTENT_ENCODING");
	const int64_t megabytes = exchange->server->config->limits.body_mb;
	struct err err = ERR_INIT;
	struct access_refusal refusal;
	uint64_t bytes = 0;
	bool known = length && *length;

	buf_init(body, (size_t)megabytes << 20);
	if (encoding && *encoding && strcasecmp(encoding, "identity") != 0) {
		reply_header(exchange->reply, "Accept-Encoding", "identity");
		reply_refuse(exchange->reply, 415, "the body must not be compressed (Content-Encoding)");
		return false;
	}
	if (known && parse_u64(length, 0, INT64_MAX, &bytes) < 0) {
		reply_refuse(exchange->reply, 400, "bad Content-Length");
		return false;
	}
	if (!body_enter(exchange, &refusal)) {
		refuse_access(exchange, &refusal);
		return false;
	}
	if (bytes <= body->max && request->read_body(request->arg, body, &err) < 0) {
		reply_refuse(exchange->reply, 400, err.text);
		return false;
	}
	if (bytes > body->max || body->overflow) {
		access_refused(exchange, "body");
		auto_free char *text =
			xasprintf("the body has more than %lld MiB (limits.body_mb)", (long long)megabytes);

		reply_refuse(exchange->reply, 413, text);
		return false;
	}
	if (known && body->length != bytes) {
		reply_refuse(exchange->reply, 400, "the body did not arrive whole: nothing was changed");
		return false;
	}
	return true;
}

bool files_change_enter(struct http_exchange *exchange, unsigned scope)
{
	struct access_refusal refusal;

	if (access_scope(exchange, scope, &refusal) && access_enter(exchange, &refusal))
		return true;
	refuse_access(exchange, &refusal);
	return false;
}

void files_change_leave(struct http_exchange *exchange)
{
	access_leave(exchange);
}

static struct job_request caller(const struct http_exchange *exchange, const struct files_place *place)
{
	return (struct job_request){.owner = exchange->token.owner,
				    .token_id = exchange->token.id,
				    .client = &exchange->client,
				    .conversation = place->conversation.name,
				    .paths = true};
}

static bool find(const struct http_exchange *exchange, const struct files_place *place, const char *name,
		 struct store_file *ret)
{
	return store_file_find(exchange->server->store, place->conversation.row, name, strlen(name), ret, NULL) == 0;
}

/* All of them; the reply lists what is there now. */
static int put_files(struct http_exchange *exchange, const struct files_place *place, const struct job_file *files,
		     size_t count, struct err *err)
{
	struct job_request who = caller(exchange, place);
	auto_json struct json_object *list = json_object_new_array(), *object = json_object_new_object();
	struct store_file before;
	const bool is_new = count == 1 && !find(exchange, place, files[0].name, &before);
	struct job_engine *engine;
	struct job_edited done;
	int result = server_engine(exchange->server, &engine, err);

	who.files = files;
	who.n_files = count;
	if (result == 0)
		result = job_edit_put(engine, &who, &done, err);
	for (size_t i = 0; result == 0 && i < count; i++) {
		struct store_file file;

		if (find(exchange, place, files[i].name, &file)) /* it may have been removed again by then */
			json_object_array_add(list, files_list_object(exchange, &place->conversation, &file));
	}
	if (result < 0)
		return result;
	json_add(object, "files", steal(&list));
	reply_json(exchange->reply, is_new ? 201 : 200, object);
	return 0;
}

static int put(struct http_exchange *exchange, const struct files_place *place, const struct buf *body, struct err *err)
{
	const struct job_file file = {.name = place->name.data, .data = body->data, .length = body->length};

	if (place->folder)
		return err_set(err, ERR_INVALID, "the path must be a file's, without a slash at its end");
	if (request_param(exchange->request, "HTTP_CONTENT_RANGE"))
		return err_set(err, ERR_INVALID, "a part of a file cannot be put (Content-Range): send all of it");
	return put_files(exchange, place, &file, 1, err);
}

/* Each part that is a file; browsers send one without a name for a field that was left empty. */
static int post(struct http_exchange *exchange, const struct files_place *place, const struct buf *body,
		struct err *err)
{
	auto_multipart struct multipart form = {0};
	int result = multipart_parse(request_param(exchange->request, "CONTENT_TYPE"), body, &form, err);
	const char *folder = place->name.data;
	size_t count = 0;

	if (result < 0)
		return result;
	if (!place->folder)
		return err_set(err, ERR_INVALID, "POST takes the address of a folder: it ends with a slash");
	struct job_file *files = xcalloc(form.count + 1, sizeof(*files));
	char **names = xcalloc(form.count + 1, sizeof(*names));

	for (size_t i = 0; i < form.count; i++) {
		const struct multipart_part *part = &form.parts[i];

		if (!part->filename || (!*part->filename && part->length == 0))
			continue;
		names[count] = xasprintf("%s%s%s", folder, *folder ? "/" : "", part->filename);
		files[count] = (struct job_file){.name = names[count], .data = part->data, .length = part->length};
		count++;
	}
	result = count == 0 ? err_set(err, ERR_INVALID, "the form has no part with a file (filename=…)")
			    : put_files(exchange, place, files, count, err);
	for (size_t i = 0; i < count; i++)
		free(names[i]);
	free(names);
	free(files);
	return result;
}

static int delete (struct http_exchange *exchange, const struct files_place *place, struct err *err)
{
	const struct bind_text name = {.data = place->name.data, .length = place->name.length};
	const struct job_names names = {.items = &name, .count = 1, .member = "path"};
	const struct job_request who = caller(exchange, place);
	struct store_file file;
	struct job_engine *engine;
	struct job_edited done;

	if (name.length == 0)
		return err_set(err, ERR_INVALID, "name a file or a folder: a conversation itself is not removed so");
	int result = place->folder ? 0
				   : store_file_find(exchange->server->store, place->conversation.row, name.data,
						     name.length, &file, err);

	if (result == 0)
		result = server_engine(exchange->server, &engine, err);
	if (result == 0)
		result = job_edit_remove(engine, &who, &names, &done, err);
	if (result == 0)
		exchange->reply->status = 204;
	return result;
}

void files_change(struct http_exchange *exchange, const char *method, const struct files_place *place)
{
	auto_buf struct buf body = {0};
	struct err err = ERR_INIT;
	int result = 0;

	/* As if it were not there: the address alone must not tell whose it is. */
	if (!streq(exchange->token.owner, place->conversation.owner)) {
		reply_refuse(exchange->reply, 404, "no such file");
		return;
	}
	if (!files_change_enter(exchange, STORE_SCOPE_FILES))
		return;
	if (streq(method, "DELETE"))
		result = delete(exchange, place, &err);
	else if (files_change_body(exchange, &body)) /* else the reply says why not */
		result = streq(method, "PUT") ? put(exchange, place, &body, &err) : post(exchange, place, &body, &err);
	if (result < 0)
		files_change_refuse(exchange->reply, &err);
	files_change_leave(exchange);
}
