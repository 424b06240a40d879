/*
 * api_exec.c - POST /v1/exec: see api.h.
 *
 * The body's members are those of LibreChat's client; what else it sends is passed over, because front ends add members
 * without notice. A program that fails is an answer like any other: its text is in stderr, its verdict in status. What
 * only we can say (a limit was met) is the last line of stderr, because nothing else is shown to the model.
 */
#include <string.h>

#include "api.h"
#include "cgi/http/client.h"
#include "cgi/http/files.h"
#include "lib/base/bind_meant.h"
#include "lib/base/util.h"
#include "lib/job/job.h"
#include "lib/store/blob/store_blob.h"

struct file_ref {
	const char *id, *name, *session;
};
struct exec_body {
	const char *language, *session;
	struct bind_text code, stdin_text;
	struct bind_strings args;
	struct bind_objects files;
};
#define REF(name_, field)                                                                                              \
	{                                                                                                              \
		.name = name_, .type = BIND_STRING, .offset = offsetof(struct file_ref, field), .flags = BIND_REQUIRED \
	}
static const struct bind ref_table[] = {
	REF("id", id),
	REF("session_id", session),
	BIND_MEMBER(struct file_ref, name, "name", BIND_STRING),
	{0},
};
static const struct bind body_table[] = {
	BIND_MEMBER(struct exec_body, language, "lang", BIND_STRING, .flags = BIND_REQUIRED, .min = 1),
	BIND_MEMBER(struct exec_body, code, "code", BIND_TEXT, .flags = BIND_REQUIRED, .min = 1),
	BIND_MEMBER(struct exec_body, args, "args", BIND_STRINGS, .max = 1024),
	BIND_MEMBER(struct exec_body, stdin_text, "stdin", BIND_TEXT),
	BIND_MEMBER(struct exec_body, session, "session_id", BIND_STRING),
	BIND_MEMBER(struct exec_body, files, "files", BIND_OBJECTS, .max = JOB_FILES_MAX, .table = ref_table,
		    .size = sizeof(struct file_ref)),
	{0},
};

static int parse(const struct buf *text, struct json_object **ret, struct exec_body *body, struct err *err)
{
	auto_json struct json_object *document = NULL, *meant = NULL;
	int result = json_parse_received(text->data, text->length, &document, err);

	if (result < 0)
		return result;
	if (!json_object_is_type(document, json_type_object))
		return err_set(err, ERR_INVALID, "the body must be a JSON object");
	result = bind_as_meant(body_table, document, &meant, NULL, err);
	if (result == 0)
		result = bind_parse_asked(body_table, meant, body, err);
	if (result == 0 && body->session && *body->session && !api_id_valid(body->session))
		result = err_member(err, "session_id", "must be one that an answer named");
	if (result == 0)
		*ret = steal(&meant);
	else
		bind_clear(body_table, body);
	return result;
}

/* -------- files of other sessions --------------------------------------------------------------------- */

struct inputs {
	struct job_file *files;
	size_t count;
};

static void inputs_clear(struct inputs *inputs)
{
	for (size_t i = 0; i < inputs->count; i++) {
		free(unconst(inputs->files[i].name));
		free(unconst(inputs->files[i].data));
	}
	free(inputs->files);
}

static int load(struct http_exchange *exchange, const struct file_ref *ref, int64_t *left, struct job_file *ret,
		struct err *err)
{
	auto_free char *name = NULL, *data = NULL;
	auto_close int fd = -1;
	struct store_file file = {0};
	size_t length = 0;
	int result = api_id_valid(ref->id) && api_id_valid(ref->session)
			     ? api_file_find(exchange, ref->session, ref->id, &name, &file, err)
			     : err_set(err, ERR_NOT_FOUND, "no such file");

	if (result == 0 && file.size > *left)
		result = err_set(err, ERR_LIMIT, "the files have more than %lld MiB together",
				 (long long)exchange->server->config->limits.data_mb);
	if (result == 0)
		result = store_blob_open(exchange->server->store, file.blob, &fd, NULL, err);
	if (result == 0)
		result = read_fd(fd, (size_t)file.size, &data, &length, err);
	if (result < 0)
		return result;
	*left -= file.size;
	*ret = (struct job_file){.name = steal(&name), .data = steal(&data), .length = length};
	return 0;
}

/* Of two of one name the later one counts. Files of the session itself are there already. */
static int load_all(struct http_exchange *exchange, const struct exec_body *body, const char *session,
		    struct inputs *ret, struct err *err)
{
	const struct file_ref *refs = body->files.items;
	int64_t left = exchange->server->config->limits.data_mb << 20;

	ret->files = xcalloc(body->files.count + 1, sizeof(*ret->files));
	for (size_t i = 0; i < body->files.count; i++) {
		struct job_file file;

		if (streq(refs[i].session, session))
			continue;
		int result = load(exchange, &refs[i], &left, &file, err);

		if (result < 0)
			return err_wrap(err, "files[%zu]", i);
		size_t at = 0;

		while (at < ret->count && !streq(ret->files[at].name, file.name))
			at++;
		if (at < ret->count) {
			free(unconst(ret->files[at].name));
			free(unconst(ret->files[at].data));
		} else {
			ret->count++;
		}
		ret->files[at] = file;
	}
	return 0;
}

/* -------- the run ------------------------------------------------------------------------------------- */

static void answer(struct reply *reply, const struct job_result *result, const char *session)
{
	const struct jail_result *jail = &result->jail;
	auto_json struct json_object *object = json_object_new_object();
	struct json_object *files = json_object_new_array();
	auto_buf struct buf error = {0};

	for (size_t i = 0; i < result->n_changes; i++) {
		const struct job_change *change = &result->changes[i];
		char id[API_ID_SIZE];

		if (change->kind != JAIL_FILE_CREATED && change->kind != JAIL_FILE_CHANGED)
			continue;
		struct json_object *file = json_object_new_object();

		api_file_id(change->file.name, change->file.name_length, id);
		json_add_string(file, "id", id);
		json_add(file, "name", json_new_safe(change->file.name, change->file.name_length));
		json_add_string(file, "session_id", session);
		json_object_array_add(files, file);
	}
	buf_init(&error, result->stderr_text.length + sizeof(jail->message) + 64);
	buf_add(&error, result->stderr_text.data, result->stderr_text.length);
	if (jail->verdict != JAIL_OK && jail->verdict != JAIL_RE)
		buf_printf(&error, "%s[sallyport] %s: %s\n",
			   error.length > 0 && error.data[error.length - 1] != '\n' ? "\n" : "",
			   jail_verdict_text(jail->verdict), jail->message);
	json_add_string(object, "session_id", session);
	json_add_bytes(object, "stdout", result->stdout_text.data, result->stdout_text.length);
	json_add_bytes(object, "stderr", error.data, error.length);
	json_add(object, "files", files);
	json_add_string(object, "status", jail_verdict_text(jail->verdict));
	json_add_string(object, "message", jail->message);
	json_add_int(object, "exit", jail->exit_code);
	json_add_bool(object, "truncated",
		      result->stdout_more || result->stderr_more || jail->stdout_truncated || jail->stderr_truncated);
	json_add_string(object, "execution_id", result->id);
	reply_json(reply, 200, object);
	snprintf(reply->outcome, sizeof(reply->outcome), "%s", jail_verdict_text(jail->verdict));
}

static int run(struct http_exchange *exchange, const struct exec_body *body, struct err *err)
{
	__attribute__((cleanup(inputs_clear))) struct inputs inputs = {0};
	const struct job_result *done;
	struct job_engine *engine;
	struct job *job = NULL;
	char session[API_ID_SIZE];

	api_id_new(session);
	if (body->session && *body->session)
		memcpy(session, body->session, sizeof(session));
	int result = load_all(exchange, body, session, &inputs, err);

	if (result == 0)
		result = server_engine(exchange->server, &engine, err);
	const struct job_request request = {.owner = exchange->token.owner,
					    .token_id = exchange->token.id,
					    .client = &exchange->client,
					    .conversation = session,
					    .language = body->language,
					    .code = body->code,
					    .stdin_text = body->stdin_text,
					    .args = body->args,
					    .files = inputs.files,
					    .n_files = inputs.count,
					    .paths = true};

	if (result == 0)
		result = job_submit(engine, &request, &job, err);
	if (result < 0 && err && streq(err->member, "language"))
		result = err_member(err, "lang", "%s", err_reason(err));
	if (result == 0)
		result = job_wait(job, exchange->request->hangup_fd, &done, err);
	if (result == 0)
		answer(exchange->reply, done, session);
	else if (result == -ERR_CANCELLED)
		job_cancel(job);
	job_release(job);
	return result;
}

void api_exec(struct http_exchange *exchange)
{
	auto_json struct json_object *document = NULL;
	auto_buf struct buf text = {0};
	struct exec_body body = {0};
	struct err err = ERR_INIT;

	if (!files_change_enter(exchange, STORE_SCOPE_RUN))
		return;
	client_came(&exchange->client, "v1", NULL);
	if (files_change_body(exchange, &text)) {
		int result = parse(&text, &document, &body, &err);

		if (result == 0) {
			result = run(exchange, &body, &err);
			bind_clear(body_table, &body);
		}
		if (result == -ERR_CANCELLED)
			exchange->reply->gone = true;
		else if (result < 0)
			files_change_refuse(exchange->reply, &err);
	}
	files_change_leave(exchange);
}
