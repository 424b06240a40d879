/*
 * doors_jupyter.c - /fusion/run_jupyter: the cells of a notebook, one after the other, in a live sandbox that the
 * request has for itself; see doors.h.
 *
 * Each cell is an execution of the record. The answer names the last one, whose replay runs all of them again. As in a
 * notebook, an exception ends its cell and no other one; a cell that ends the interpreter is the last. What a cell
 * shows is the text of its last value and its open figures; its error is the traceback at the end of its standard
 * error.
 */
#include <string.h>

#include "cgi/http/client.h"
#include "doors_fusion.h"
#include "lib/base/util.h"

#define CELLS_MAX     256
#define TOTAL_SECONDS 45.0 /* for all cells, where the request says nothing */
#define PICTURES_MAX  (16 << 20) /* bytes of a cell's figures */
#define TRACEBACK     "Traceback (most recent call last):\n"
#define NO_TRACEBACK  "  File \"/code/main.py" /* how a syntax error begins */

struct notebook {
	struct json_object *document, *cells, *files, *fetch;
	double cell_seconds, total_seconds; /* cell_seconds 0: no limit of its own */
	int64_t memory_bytes;
};

static void clear(void *asked)
{
	struct notebook *notebook = asked;

	json_object_put(notebook->document);
}

/* -------- the request --------------------------------------------------------------------------------- */

static int take_cells(struct reply *reply, struct notebook *ret)
{
	ret->cells = json_get(ret->document, "cells", json_type_array);
	if (!ret->cells)
		return doors_fusion_refuse(reply, "cells", "missing", "Field required");
	if (json_object_array_length(ret->cells) > CELLS_MAX)
		return doors_fusion_refuse(reply, "cells", "too_long", "too many cells with one request: at most 256");
	for (size_t i = 0; i < json_object_array_length(ret->cells); i++)
		if (!json_object_is_type(json_object_array_get_idx(ret->cells, i), json_type_string))
			return doors_fusion_refuse(reply, "cells", "string_type", "Input should be a valid string");
	return 0;
}

static int take_seconds(struct reply *reply, const struct config *config, struct notebook *ret)
{
	struct json_object *cell = json_member(ret->document, "cell_timeout");
	int result = doors_fusion_seconds(reply, ret->document, "total_timeout", TOTAL_SECONDS, &ret->total_seconds);

	ret->total_seconds = MIN(ret->total_seconds, (double)config->limits.wall_seconds_max);
	if (result == 0 && cell && !json_object_is_type(cell, json_type_string) && json_object_get_double(cell) != 0)
		result = doors_fusion_seconds(reply, ret->document, "cell_timeout", 0, &ret->cell_seconds);
	else if (result == 0 && json_object_is_type(cell, json_type_string))
		result = doors_fusion_refuse(reply, "cell_timeout", "float_type", "Input should be a valid number");
	return result;
}

static int take_notebook(struct doors_call *call, struct notebook *ret)
{
	struct reply *reply = call->exchange.reply;
	struct err err = ERR_INIT;
	int result;

	if (json_parse(call->body.data, call->body.length, &ret->document, &err) < 0)
		return doors_fusion_refuse(reply, NULL, "json_invalid", err.text);
	if (!json_object_is_type(ret->document, json_type_object))
		return doors_fusion_refuse(reply, NULL, "model_attributes_type", "Input should be an object");
	const char *kernel = json_get_string(ret->document, "kernel");

	if (json_member(ret->document, "kernel") && (!kernel || !streq(kernel, "python3")))
		return doors_fusion_refuse(reply, "kernel", "literal_error", "Input should be 'python3'");
	if ((result = take_cells(reply, ret)) < 0 ||
	    (result = take_seconds(reply, call->exchange.server->config, ret)) < 0 ||
	    (result = doors_fusion_memory(reply, ret->document, "memory_limit_MB", &ret->memory_bytes)) < 0)
		return result;
	return doors_fusion_files(reply, ret->document, &ret->files, &ret->fetch);
}

static int take(struct doors_call *call, int64_t *ret_patience_us)
{
	struct notebook *notebook = call->asked;
	int result = take_notebook(call, notebook);

	*ret_patience_us = doors_fusion_patience(notebook->total_seconds, 0);
	return result;
}

/* -------- a cell's answer ----------------------------------------------------------------------------- */

/* The last line before `end` that begins so; NULL: there is none. */
static const char *last_line(const char *text, const char *end, const char *beginning)
{
	const size_t length = strlen(beginning);

	for (const char *at = end; at-- > text;)
		if ((at == text || at[-1] == '\n') && (size_t)(end - at) >= length &&
		    memcmp(at, beginning, length) == 0)
			return at;
	return NULL;
}

/* Does what is before `at` end with the words between two tracebacks? */
static bool is_chained(const char *text, const char *at)
{
	static const char *const words[] = {
		"\nDuring handling of the above exception, another exception occurred:\n\n",
		"\nThe above exception was the direct cause of the following exception:\n\n"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if ((size_t)(at - text) >= strlen(words[i]) &&
		    memcmp(at - strlen(words[i]), words[i], strlen(words[i])) == 0)
			return true;
	return false;
}

static struct json_object *error_of(const char *name, const char *value, struct json_object *lines)
{
	struct json_object *object = json_object_new_object();

	json_add_string(object, "ename", name);
	json_add_string(object, "evalue", value);
	json_add(object, "traceback", lines ? lines : json_object_new_array());
	return object;
}

/* "NAME: WORDS" or "NAME", behind the last line of a traceback that is indented. */
static struct json_object *error_in(const char *block, const char *last)
{
	struct json_object *lines = json_object_new_array();
	const char *at = strchr(last, '\n');

	while (at && at[1] == ' ')
		at = strchr(at + 1, '\n');
	at = at ? at + 1 : last;
	const size_t line = strcspn(at, "\n"), colon = MIN(strcspn(at, ":"), line);
	const char *value = at[colon] == ':' ? at + colon + 1 + (at[colon + 1] == ' ') : at + line;
	auto_free char *name = xstrndup(at, colon), *words = xstrdup(value);
	const char *dot = strrchr(name, '.');

	for (size_t length = strlen(words); length > 0 && words[length - 1] == '\n';)
		words[--length] = '\0';
	while (*block) {
		const size_t length = strcspn(block, "\n");

		json_object_array_add(lines, json_object_new_string_len(block, (int)length));
		block += length + (block[length] == '\n');
	}
	return error_of(dot ? dot + 1 : name, words, lines);
}

/* Of a cell that failed. *ret_length: as much of its standard error is not the error's. */
static struct json_object *cell_error(const struct job_result *result, const char *text, size_t *ret_length)
{
	const char *end = text + strlen(text), *last = last_line(text, end, TRACEBACK);
	const char *block = last;
	char code[16];

	if (result->jail.verdict != JAIL_RE || result->jail.ended)
		return error_of("DeadKernelError", result->jail.message, NULL);
	if (!last)
		block = last = last_line(text, end, NO_TRACEBACK);
	while (block && is_chained(text, block)) {
		const char *earlier = last_line(text, block, TRACEBACK);

		if (!earlier)
			break;
		block = earlier;
	}
	if (result->jail.exit_code == 1 && block) {
		*ret_length = (size_t)(block - text);
		return error_in(block, last);
	}
	snprintf(code, sizeof(code), "%d", result->jail.exit_code);
	return error_of("SystemExit", code, NULL);
}

/* The text of its value, and the figures that were saved for it. */
static struct json_object *shown(struct doors_call *call, const struct job_result *result)
{
	struct json_object *list = json_object_new_array(), *bundle;
	const char *value = json_object_get_string(result->jail.value);
	size_t left = PICTURES_MAX;

	if (value && *value) {
		const size_t length = strlen(value);

		bundle = json_object_new_object();
		json_add(bundle, "text/plain", doors_text(value, length - (value[length - 1] == '\n')));
		json_object_array_add(list, bundle);
	}
	for (size_t i = 0; i < result->n_changes; i++) {
		const struct job_change *change = &result->changes[i];

		if (change->kind != JAIL_FILE_CREATED || !str_starts(change->name, "figure-") ||
		    !streq(change->file.media_type, "image/png"))
			continue;
		struct json_object *data = doors_fusion_base64(call, &change->file, &left);

		if (!data)
			continue;
		bundle = json_object_new_object();
		json_add(bundle, "image/png", data);
		json_object_array_add(list, bundle);
	}
	return list;
}

/* `result` NULL: a cell without a program. */
static struct json_object *cell_answer(struct doors_call *call, const struct job_result *result)
{
	struct json_object *object = json_object_new_object(), *errors = json_object_new_array();
	auto_json struct json_object *stream = result ? doors_stream(call, result, true) : NULL;
	const char *text = stream ? json_object_get_string(stream) : "";
	size_t length = strlen(text);

	if (result && result->jail.verdict != JAIL_OK)
		json_object_array_add(errors, cell_error(result, text, &length));
	json_add(object, "stdout", result ? doors_stream(call, result, false) : json_object_new_string(""));
	json_add(object, "stderr", json_object_new_string_len(text, (int)length));
	json_add(object, "display", result ? shown(call, result) : json_object_new_array());
	json_add(object, "error", errors);
	return object;
}

/* -------- the run ------------------------------------------------------------------------------------- */

/* How far it has come. */
struct progress {
	const char *conversation;
	struct json_object *cells;        /* the answers */
	char id[ID_SIZE], sandbox[ID_SIZE]; /* of the last cell; "": none has run */
	enum jail_verdict verdict;
	int64_t left_us, wall_us;
	const char *status;               /* NULL: it goes on */
	bool late;
	struct err err;
};

/* A program's text, not only blanks. */
static bool is_blank(struct json_object *cell)
{
	const char *text = json_object_get_string(cell);

	return text[strspn(text, " \t\r\n")] == '\0';
}

static void take_result(struct doors_call *call, const struct job_result *result, struct progress *progress)
{
	const struct jail_result *jail = &result->jail;
	const bool moved = *progress->sandbox && !streq(progress->sandbox, result->sandbox_id);

	memcpy(progress->id, result->id, sizeof(progress->id));
	memcpy(progress->sandbox, result->sandbox_id, sizeof(progress->sandbox));
	progress->verdict = jail->verdict;
	progress->wall_us += jail->run.wall_us;
	/* As doors_limits counts: what a busy host takes is not the program's. */
	progress->left_us -= MAX(jail->run.cpu_us, jail->run.wall_us / DOORS_WALL_TIMES);
	progress->late = jail->verdict == JAIL_TO;
	json_object_array_add(progress->cells, cell_answer(call, result));
	if (jail->verdict == JAIL_XX || jail->verdict == JAIL_CX || moved) {
		progress->status = "SandboxError";
		err_set(&progress->err, ERR_SYSTEM, "%s",
			moved ? "the session was lost between two cells" : jail->message);
	} else if (jail->ended || (jail->verdict != JAIL_OK && jail->verdict != JAIL_RE)) {
		progress->status = "Failed";
	}
}

static int run_cell(struct doors_call *call, struct json_object *cell, struct doors_inputs *inputs,
		    struct progress *progress)
{
	const struct notebook *notebook = call->asked;
	const int64_t cell_us = (int64_t)(notebook->cell_seconds * 1e6);
	const int64_t most_us = cell_us > 0 ? MIN(cell_us, progress->left_us) : progress->left_us;
	const struct jail_limits limits =
		doors_limits(call->exchange.server->config, most_us, 0, notebook->memory_bytes);
	struct job_request request = {
		.language = "python",
		.conversation = progress->conversation,
		.live = true,
		.display = true,
		.limits = &limits,
		.code = {json_object_get_string(cell), (size_t)json_object_get_string_len(cell)},
	};
	struct job *job = NULL;
	const struct job_result *result;
	int failed = doors_run(call, &request, inputs, &job, &result, &progress->err);

	if (failed == 0)
		take_result(call, result, progress);
	job_release(job);
	return failed;
}

static void answer(struct doors_call *call, const struct progress *progress)
{
	const struct notebook *notebook = call->asked;
	auto_json struct json_object *object = json_object_new_object();
	const bool ours = progress->status && streq(progress->status, "SandboxError");

	json_add_string(object, "status", progress->status ? progress->status : "Success");
	json_add_string(object, "message", ours ? progress->err.text : "");
	json_add(object, "driver",
		 doors_fusion_step(progress->wall_us, progress->late, 0, json_object_new_string(""),
				   json_object_new_string("")));
	json_add(object, "cells", json_object_get(progress->cells));
	json_add_string(object, "executor_pod_name", *progress->id ? progress->id : NULL);
	json_add(object, "files",
		 doors_fusion_fetched(call, notebook->fetch, *progress->id ? progress->conversation : ""));
	reply_json(call->exchange.reply, 200, object);
	if (*progress->id)
		doors_name(call, progress->id, progress->verdict);
}

static void run(struct doors_call *call)
{
	const struct notebook *notebook = call->asked;
	struct http_exchange *exchange = &call->exchange;
	auto_doors_inputs struct doors_inputs inputs = {.count = 0};
	struct doors_inputs none = {.count = 0};
	auto_json struct json_object *cells = json_object_new_array();
	char id[ID_SIZE];
	struct job_engine *engine;
	size_t ended;

	id_new(id);
	auto_free char *conversation = xasprintf("%s-%s", call->door->name, id);
	struct progress progress = {.conversation = conversation,
				    .cells = cells,
				    .left_us = (int64_t)(notebook->total_seconds * 1e6),
				    .err = ERR_INIT};
	int failed = doors_fusion_decode(notebook->files, &inputs, &progress.err);

	for (size_t i = 0; failed == 0 && !progress.status && i < json_object_array_length(notebook->cells); i++) {
		struct json_object *cell = json_object_array_get_idx(notebook->cells, i);

		if (is_blank(cell)) {
			json_object_array_add(cells, cell_answer(call, NULL));
		} else if (progress.left_us <= 0) {
			progress.late = true;
			progress.status = "Failed";
		} else {
			failed = run_cell(call, cell, *progress.id ? &none : &inputs, &progress);
		}
	}
	const struct job_request who = {.owner = exchange->token.owner,
					.token_id = exchange->token.id,
					.conversation = conversation,
					.placed = true};

	if (server_engine(exchange->server, &engine, NULL) == 0)
		job_reset(engine, &who, &ended, NULL);
	if (failed == -ERR_CANCELLED)
		return; /* nobody waits any more */
	if (failed < 0 && (progress.err.code == ERR_INVALID || progress.err.code == ERR_LIMIT)) {
		doors_fusion_refuse(exchange->reply, progress.err.member[0] ? progress.err.member : NULL,
				    "value_error", progress.err.text);
		return;
	}
	if (failed < 0)
		progress.status = "SandboxError";
	answer(call, &progress);
}

const struct door doors_jupyter = {
	.name = "fusion",
	.size = sizeof(struct notebook),
	.copies = 1,
	.take = take,
	.run = run,
	.late = doors_fusion_late,
	.clear = clear,
};
