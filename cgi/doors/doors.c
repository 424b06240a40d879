/*
 * doors.c - what the doors have in common, see doors.h.
 *
 * A request is read and taken apart on a thread of requests. Then it leaves that thread (request_parked): what it asks
 * for, the token's row and the descriptor of its connection are a doors_call, which waits in the line. A thread of the
 * line takes it up, runs it, and sends the reply. A process that cannot park (CGI) runs it at once. While it waits it
 * counts for what it takes parsed, which for many small values is several times the body's bytes.
 */
#include "doors.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "cgi/http/access.h"
#include "cgi/http/body.h"
#include "cgi/http/client.h"
#include "cgi/http/fcgi.h"
#include "cgi/http/files.h"
#include "lib/base/metrics.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"

#define SPARE_US   INT64_C(3000000) /* for the answer's way */
/* What json-c takes for a value besides its text. */
#define VALUE_BYTES  128
#define ARRAY_BYTES  512
#define OBJECT_BYTES 1024
#define REPLACEMENT "\xef\xbf\xbd"  /* U+FFFD */

/* What has begun and can stop half-way does so. */
static atomic_bool over;
static _Atomic int64_t stopped_us;

/* Held for reading between asking for the engine and handing a job in: doors_stop waits for it. */
static pthread_rwlock_t submitting = PTHREAD_RWLOCK_INITIALIZER;

int doors_open(struct server *server, struct err *err)
{
	const struct config *config = server->config;
	const long processors = sysconf(_SC_NPROCESSORS_ONLN);
	const size_t places = (size_t)(config->doors.places ? config->doors.places : MAX(processors, 1));

	if (!config->doors.fusion && !config->doors.piston)
		return 0;
	fcgi_cap_descriptors(DOORS_WAITING_MAX + places); /* what runs keeps its connection, too */
	server->doors = doors_line_new(places);
	return server->doors ? 0 : err_set(err, ERR_SYSTEM, "doors: no thread can be started");
}

void doors_stop(struct server *server)
{
	if (!server->doors)
		return;
	stopped_us = clock_monotonic_us();
	doors_line_stop(server->doors);
	pthread_rwlock_wrlock(&submitting);
	pthread_rwlock_unlock(&submitting);
}

void doors_close(struct server *server)
{
	if (!server->doors)
		return;
	doors_line_settle(server->doors, stopped_us + JOB_DRAIN_SECONDS * INT64_C(1000000));
	over = true;
	doors_line_free(steal(&server->doors));
	doors_repeat_clear();
}

struct job_grading_until doors_until(const struct doors_call *call)
{
	return (struct job_grading_until){.over = &over, .hangup_fd = call->exchange.request->hangup_fd};
}

/* -------- a request on its way ------------------------------------------------------------------------ */

static struct doors_call *call_of(struct doors_waiter *waiter)
{
	return container_of(waiter, struct doors_call, waiter);
}

static void call_free(struct doors_call *call)
{
	call->door->clear(call->asked);
	free(call->asked);
	buf_clear(&call->body);
	free(call->address);
	free(call);
}

static void answer(struct doors_waiter *waiter)
{
	struct doors_call *call = call_of(waiter);

	call->exchange.end(&call->exchange);
	call->parked.answer(&call->parked, &call->reply);
	reply_clear(&call->reply);
	call_free(call);
}

/* Runs it; an answer that nobody is there to take waits for who sends the same again. */
static void run(struct doors_call *call)
{
	struct reply *reply = &call->reply;

	call->door->run(call);
	if (!call->repeat.lost && (reply->gone || !doors_waiter_gone(&call->waiter)))
		return;
	if (!reply->gone && reply->status == 200)
		doors_repeat_keep(&call->repeat, reply);
	else
		doors_repeat_drop(&call->repeat);
	reply->gone = true;
}

static void take(struct doors_waiter *waiter, enum doors_turn turn)
{
	struct doors_call *call = call_of(waiter);

	if (turn == DOORS_BEGIN) {
		if (!doors_repeat_take(&call->repeat, &call->reply))
			run(call);
	} else {
		call->door->late(&call->reply);
		if (call->fronted)
			call->reply.status = 503;
		metrics_add(METRIC_DOOR_LATE, call->door->name, NULL, 1);
	}
	answer(waiter);
}

static void drop(struct doors_waiter *waiter)
{
	call_of(waiter)->reply.gone = true;
	answer(waiter);
}

/* Bytes of a JSON text when it is parsed. */
static size_t parsed_bytes(const struct buf *text)
{
	size_t bytes = text->length;
	bool quoted = false;

	for (size_t i = 0; i < text->length; i++) {
		const char c = text->data[i];

		if (c == '"')
			quoted = !quoted;
		else if (quoted)
			i += c == '\\';
		else
			bytes += c == '{'		? OBJECT_BYTES
				 : c == '['		? ARRAY_BYTES
				 : c == ',' || c == ':' ? VALUE_BYTES
							: 0;
	}
	return bytes;
}

/* The request leaves its thread. What libfcgi knows of it is gone then. */
static bool park(struct doors_call *call, int64_t patience_us)
{
	struct http_exchange *from = &call->exchange;
	const struct request *request = from->request;
	struct reply *reply = from->reply;
	const char *address = request_param(request, "REMOTE_ADDR");

	call->address = xasprintf("REMOTE_ADDR=%s", address ? address : "");
	call->fronted = request_param(request, "HTTP_X_SALLYPORT_FRONT");
	if (!request->park || !request->park(request->arg, &call->parked))
		return false;
	call->params[0] = call->address;
	call->request = (struct request){.params = call->params, .hangup_fd = call->parked.fd};
	call->reply = *reply;
	reply_init(reply);
	reply->parked = true;
	from->request = &call->request;
	from->reply = &call->reply;
	from->path_token = NULL;
	call->waiter = (struct doors_waiter){.owner = call->exchange.token.owner,
					     .bytes = sizeof(*call) + call->door->copies * parsed_bytes(&call->body),
					     .until_us = from->began_us + patience_us - SPARE_US,
					     .gone_fd = call->parked.fd,
					     .take = take,
					     .drop = drop};
	return true;
}

static void take_digest(struct doors_call *call)
{
	struct sha256 *digest = sha256_new();
	const char *owner = call->exchange.token.owner;

	sha256_add(digest, owner, strlen(owner) + 1);
	sha256_add(digest, call->body.data, call->body.length);
	call->repeat = (struct doors_repeat){.door = call->door, .name = call->door->name};
	sha256_finish(digest, call->repeat.digest);
}

void doors_serve(struct http_exchange *exchange, const struct door *door)
{
	struct access_refusal refusal;
	int64_t patience_us = 0;

	exchange->waits = true;
	client_came(&exchange->client, door->name, NULL);
	if (!access_scope(exchange, STORE_SCOPE_RUN, &refusal) || !access_open(exchange, &refusal)) {
		reply_refuse(exchange->reply, refusal.status, refusal.text);
		return;
	}
	struct doors_call *call = xcalloc(1, sizeof(*call));

	call->exchange = *exchange;
	call->door = door;
	call->asked = xcalloc(1, door->size);
	if (files_change_body(&call->exchange, &call->body) && door->take(call, &patience_us) == 0) {
		take_digest(call);
		if (park(call, patience_us)) {
			doors_repeat_came(&call->repeat);
			buf_clear(&call->body);
			doors_line_put(exchange->server->doors, &call->waiter);
			return;
		}
		if (exchange->server->doors) /* no descriptor to wait with */
			door->late(exchange->reply);
		else /* a process of its own for each request (CGI) */
			door->run(call);
	}
	exchange->body_bytes = call->exchange.body_bytes;
	call_free(call);
}

/* -------- the run ------------------------------------------------------------------------------------- */

struct jail_limits doors_limits(const struct config *config, int64_t run_us, int64_t compile_us,
				int64_t memory_bytes)
{
	const struct config_limits *limits = &config->limits;
	const int64_t most_us = limits->wall_seconds_max * LIMIT_SECONDS;
	struct jail_limits ret = {0};

	if (run_us <= 0)
		run_us = limits->wall_seconds * LIMIT_SECONDS;
	ret.cpu_us = MIN(run_us, most_us);
	ret.wall_us = MIN(MIN(DOORS_WALL_TIMES * ret.cpu_us, ret.cpu_us + DOORS_WALL_MORE), most_us);
	if (compile_us > 0)
		ret.compile_wall_us = MIN(compile_us, limits->compile_seconds * LIMIT_SECONDS);
	if (memory_bytes > 0)
		ret.memory_bytes = MIN(MAX(memory_bytes, 4 * LIMIT_MEBI), limits->memory_mb_max * LIMIT_MEBI);
	return ret;
}

void doors_inputs_clear(struct doors_inputs *inputs)
{
	for (size_t i = 0; i < inputs->count; i++) {
		free(unconst(inputs->files[i].name));
		free(unconst(inputs->files[i].data));
	}
}

static void place_program(struct job_request *request, struct doors_inputs *inputs)
{
	if (inputs->count == 0 || inputs->count == JOB_FILES_MAX || request->live ||
	    (!streq(request->language, "python") && !streq(request->language, "pytest")))
		return;
	for (size_t i = 0; i < inputs->count; i++)
		if (streq(inputs->files[i].name, inputs->program))
			return;
	inputs->files[inputs->count++] = (struct job_file){.name = xstrdup(inputs->program),
							   .data = xmemdup(request->code.data, request->code.length),
							   .length = request->code.length};
	request->entry = inputs->program;
}

/* Its client has left, and may come again. */
static int linger(struct doors_call *call, struct job *job, const struct job_result **ret, struct err *err)
{
	doors_repeat_lost(&call->repeat);
	const int waited = job_wait_some(job, -1, -1, DOORS_REPEAT_GRACE_MS, err);

	if (waited == JOB_TIME && doors_repeat_over(&call->repeat))
		return -ERR_CANCELLED;
	return waited < 0 ? waited : job_wait(job, -1, ret, err);
}

int doors_run(struct doors_call *call, struct job_request *request, struct doors_inputs *inputs, struct job **ret_job,
	      const struct job_result **ret, struct err *err)
{
	struct http_exchange *exchange = &call->exchange;
	struct job_engine *engine;
	char id[ID_SIZE];

	id_new(id);
	place_program(request, inputs);
	auto_free char *conversation =
		inputs->count > 0 || inputs->fetched ? xasprintf("%s-%s", call->door->name, id) : NULL;

	request->id = id;
	if (!request->live)
		request->conversation = conversation;
	request->files = inputs->files;
	request->n_files = inputs->count;
	request->owner = exchange->token.owner;
	request->token_id = exchange->token.id;
	request->client = &exchange->client;
	request->placed = true;
	request->paths = true;
	pthread_rwlock_rdlock(&submitting);
	int result = server_engine(exchange->server, &engine, err);

	if (result == 0)
		result = job_submit(engine, request, ret_job, err);
	pthread_rwlock_unlock(&submitting);
	if (result == 0)
		result = job_wait(*ret_job, exchange->request->hangup_fd, ret, err);
	if (result == -ERR_CANCELLED && !request->live)
		result = linger(call, *ret_job, ret, err);
	if (result == -ERR_CANCELLED) {
		job_cancel(*ret_job);
		exchange->reply->gone = true;
	}
	return result;
}

void doors_name(struct doors_call *call, const char *id, enum jail_verdict verdict)
{
	struct reply *reply = call->exchange.reply;

	reply_header(reply, "X-Sallyport-Execution", "%s", id);
	snprintf(reply->outcome, sizeof(reply->outcome), "%s", jail_verdict_text(verdict));
}

int doors_arguments(struct json_object *list, struct bind_strings *ret, struct err *err)
{
	const size_t count = list ? json_object_array_length(list) : 0;

	ret->items = xcalloc(count + 1, sizeof(*ret->items));
	for (; ret->count < count; ret->count++) {
		struct json_object *item = json_object_array_get_idx(list, ret->count);

		if (!json_object_is_type(item, json_type_string))
			return err_set(err, ERR_INVALID, "args[%zu] is required as a string", ret->count);
		ret->items[ret->count] = json_object_get_string(item);
	}
	return 0;
}

bool doors_compiled_late(const struct jail_result *jail)
{
	return jail->verdict == JAIL_CE && (streq(jail->limit, "wall") || streq(jail->limit, "cpu"));
}

struct json_object *doors_text(const char *data, size_t length)
{
	auto_buf struct buf text = {0};

	buf_init(&text, 3 * length + 1);
	for (size_t at = 0, step; at < length; at += MAX(step, 1)) {
		step = utf8_length(data + at, length - at);
		if (step > 0)
			buf_add(&text, data + at, step);
		else
			buf_puts(&text, REPLACEMENT);
	}
	return json_object_new_string_len(text.data, (int)text.length);
}

struct json_object *doors_stream(struct doors_call *call, const struct job_result *result, bool is_stderr)
{
	const struct job_stream *begin = is_stderr ? &result->stderr_text : &result->stdout_text;
	const struct job_printed which = {.id = result->id, .is_stderr = is_stderr, .length = DOORS_STREAM_MAX};
	struct job_stream whole = {0};
	int64_t size;

	if (!(is_stderr ? result->stderr_more : result->stdout_more) ||
	    job_printed_load(call->exchange.server->store, &which, &whole, &size, NULL) < 0)
		return doors_text(begin->data, MIN(begin->length, DOORS_STREAM_MAX));
	struct json_object *text = doors_text(whole.data, whole.length);

	free(whole.data);
	return text;
}

const char *doors_path(const char *path)
{
	static const char data[] = "/data/";

	if (str_starts(path, data))
		path += strlen(data);
	while (str_starts(path, "./"))
		path += strlen("./");
	return job_file_path_check(path, "files", NULL) == 0 ? path : NULL;
}
