/*
 * recorder.c - linked into the gateway of the tests (build/bin-recorded): writes down what it and its clients say, for
 * check.js to judge.
 *
 * The objects of that gateway are those of the one that is installed; the only difference is this one, which sets
 * mcp_observer before main where SP_EXCHANGES names a file. Each message becomes one line, written by one write in
 * append mode: gateways of all suites share the file, and one that is killed leaves whole lines. A line is
 *
 *   {"pid", "received", "protocol", "message", "request", "sent", "tool"}
 *
 * message is the JSON-RPC object, a client's notification or response where received is true, else ours; protocol the
 * revision that is spoken, absent before `initialize` chose one and where the request was refused before anybody looked
 * at it. The rest is there only if the message answers or belongs to a request: request is that; sent is false for an
 * answer that its client does not get (cancelled); tool, for tools/call, is what tools/list says of the tool at this
 * moment.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cgi/mcp/mcp.h"
#include "cgi/mcp/tools.h"
#include "lib/base/util.h"

#define LINE_MAX_BYTES (512 * 1024 * 1024)

static int file = -1;

static struct json_object *described(const struct mcp_call *call)
{
	const char *name = json_get_string(call->message->params, "name");

	if (!streq(call->message->method, "tools/call") || !name)
		return NULL;
	/* Results have details in one place or the other, unless the client asked for none. */
	unsigned results = tool_results(&call->exchange->token) ? TOOL_RESULTS_STRUCTURED : 0;
	auto_json struct json_object *list = tools_describe(call->exchange->server, ~0U, results);

	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *tool = json_object_array_get_idx(list, i);

		if (streq(json_get_string(tool, "name"), name))
			return json_object_get(tool);
	}
	return NULL;
}

static void add_call(struct json_object *line, const struct mcp_call *call)
{
	struct json_object *request = json_object_new_object();

	json_add_string(request, "jsonrpc", "2.0");
	json_add(request, "id", json_object_get(call->message->id));
	json_add_string(request, "method", call->message->method);
	if (call->message->params)
		json_add(request, "params", json_object_get(call->message->params));
	json_add(line, "request", request);
	json_add_bool(line, "sent", !call->silent && !call->exchange->reply->gone);
	json_add(line, "tool", described(call));
}

static void record(const struct mcp_seen *seen)
{
	auto_json struct json_object *line = json_object_new_object();
	auto_buf struct buf text = {0};

	json_add_int(line, "pid", getpid());
	json_add_bool(line, "received", seen->received);
	json_add(line, "message", json_object_get(seen->message));
	if (seen->protocol)
		json_add_string(line, "protocol", seen->protocol);
	if (seen->call)
		add_call(line, seen->call);
	buf_init(&text, LINE_MAX_BYTES);
	json_print(&text, line);
	buf_putc(&text, '\n');
	if (!seen->message || text.overflow || write(file, text.data, text.length) != (ssize_t)text.length)
		abort(); /* a record with holes proves nothing */
}

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("SP_EXCHANGES");

	if (!path || !path[0])
		return;
	file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (file < 0) {
		perror(path);
		_exit(EXIT_FAILURE);
	}
	mcp_observer = record;
}
