/*
 * store_calls.c - see store_calls.h.
 *
 * Each line is written by one write() to a file opened for appending, so lines of several threads do not mix. A line
 * that was cut by the end of the process, or by a full disk, does not parse and is passed over.
 */
#include "store_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/json.h"
#include "lib/base/util.h"
#include "lib/store/blob/store_blob.h"

#define LINE_MAX_BYTES (64 << 20)
#define NO_LIST        "[]"
#define INTERRUPTED    "the gateway ended while this call was under way: whether the tool acted is not known"

int store_calls_open(struct store *store, const char *execution, int *ret_fd, struct err *err)
{
	auto_close int fd = -1;
	int result = store_running_open(store, execution, "calls", &fd, err);

	if (result < 0)
		return result;
	if (fcntl(fd, F_SETFL, O_APPEND) < 0)
		return err_errno(err, "appending to running/%s.calls", execution);
	*ret_fd = steal_fd(&fd);
	return 0;
}

static int append(int fd, struct json_object *line, struct err *err)
{
	auto_buf struct buf text = {0};

	buf_init(&text, LINE_MAX_BYTES);
	json_print(&text, line);
	json_object_put(line);
	buf_putc(&text, '\n');
	ssize_t written = write(fd, text.data, text.length);

	if (written < 0)
		return err_errno(err, "noting a call");
	return (size_t)written == text.length ? 0 : err_set(err, ERR_SYSTEM, "noting a call: the disk is full");
}

int store_calls_sending(int fd, const struct store_tool_call *call, const char *alias, struct err *err)
{
	struct json_object *line = json_object_new_object();

	json_add_int(line, "seq", call->seq);
	json_add_int(line, "connection", call->connection);
	json_add_string(line, "server", call->server);
	json_add_string(line, "alias", alias);
	json_add_string(line, "tool", call->tool);
	json_add_bool(line, "read", call->is_read);
	json_add_string(line, "definition", call->definition);
	json_add_string(line, "arguments", call->arguments);
	json_add_string(line, "hash", call->arguments_hash);
	json_add_string(line, "decision", call->decision);
	json_add_string(line, "rule", call->rule);
	json_add_string(line, "decided_by", call->decided_by);
	json_add_int(line, "approval_us", call->approval_us);
	json_add_int(line, "started_us", call->started_us);
	return append(fd, line, err);
}

int store_calls_ended(int fd, const struct store_tool_call *call, struct err *err)
{
	struct json_object *line = json_object_new_object();
	auto_free char *large = xasprintf("%zu bytes, which were lost with the gateway", call->result_length);
	const bool kept = call->result_length <= STORE_CALLS_RESULT_MAX;

	json_add_int(line, "seq", call->seq);
	json_add_string(line, "state", call->state);
	json_add_string(line, "kind", call->kind);
	json_add_bool(line, "is_error", call->is_error);
	json_add_bytes(line, "result", kept ? call->result : large, kept ? call->result_length : strlen(large));
	json_add_string(line, "protocol", call->protocol);
	json_add_int(line, "attempts", call->attempts);
	json_add_int(line, "finished_us", call->finished_us);
	return append(fd, line, err);
}

/* -------- reading ------------------------------------------------------------------------------------- */

static char *copy_of(struct json_object *line, const char *key)
{
	const char *text = json_get_string(line, key);

	return text ? xstrdup(text) : NULL;
}

static void copy_into(struct json_object *line, const char *key, char *ret, size_t size)
{
	const char *text = json_get_string(line, key);

	snprintf(ret, size, "%s", text ? text : "");
}

static int64_t number_of(struct json_object *line, const char *key)
{
	return json_object_get_int64(json_get(line, key, json_type_int));
}

static bool truth_of(struct json_object *line, const char *key)
{
	return json_object_get_boolean(json_get(line, key, json_type_boolean));
}

static void add_server(struct store_tools *tools, const char *name, const char *alias)
{
	for (size_t i = 0; i < tools->n_servers; i++)
		if (streq(tools->servers[i].name, name))
			return;
	tools->servers = xrealloc(tools->servers, tools->n_servers + 1, sizeof(*tools->servers));
	struct store_tool_server *server = &tools->servers[tools->n_servers++];

	*server = (struct store_tool_server){.name = xstrdup(name),
					     .alias = xstrdup(alias),
					     .description = xstrdup(""),
					     .definitions = xstrdup(NO_LIST)};
	sha256_hex(NO_LIST, strlen(NO_LIST), server->list);
}

static void begin_call(struct store_tools *tools, struct json_object *line)
{
	const char *server = json_get_string(line, "server"), *alias = json_get_string(line, "alias");
	struct store_tool_call call = {
		.seq = number_of(line, "seq"),
		.connection = number_of(line, "connection"),
		.is_read = truth_of(line, "read"),
		.attempts = 1,
		.approval_us = number_of(line, "approval_us"),
		.queued_us = number_of(line, "started_us"),
		.started_us = number_of(line, "started_us"),
		.finished_us = number_of(line, "started_us"),
		.state = "failed",
		.kind = "interrupted",
	};

	copy_into(line, "definition", call.definition, sizeof(call.definition));
	copy_into(line, "hash", call.arguments_hash, sizeof(call.arguments_hash));
	call.server = copy_of(line, "server");
	call.tool = copy_of(line, "tool");
	call.arguments = copy_of(line, "arguments");
	call.decision = copy_of(line, "decision");
	call.rule = copy_of(line, "rule");
	call.decided_by = copy_of(line, "decided_by");
	call.result = xstrdup(INTERRUPTED);
	call.result_length = strlen(INTERRUPTED);
	tools->calls = xrealloc(tools->calls, tools->n_calls + 1, sizeof(*tools->calls));
	tools->calls[tools->n_calls++] = call;
	if (!call.server || !call.tool || !call.arguments || call.seq <= 0) {
		store_tool_call_clear(&tools->calls[--tools->n_calls]);
		return;
	}
	add_server(tools, server, alias ? alias : server);
	tools->asked = call.seq;
	for (size_t i = 0; i + 1 < tools->n_calls; i++) {
		const struct store_tool_call *other = &tools->calls[i];

		tools->calls[tools->n_calls - 1].occurrence += streq(other->server, server) &&
							       streq(other->tool, call.tool) &&
							       streq(other->arguments_hash, call.arguments_hash);
	}
}

static void end_call(struct store_tools *tools, struct json_object *line)
{
	const int64_t seq = number_of(line, "seq");
	struct store_tool_call *call = tools->calls;
	char *result = copy_of(line, "result");

	while (call < tools->calls + tools->n_calls && call->seq != seq)
		call++;
	if (call == tools->calls + tools->n_calls || !result) {
		free(result);
		return;
	}
	free(call->result);
	call->result = result;
	call->result_length = strlen(result);
	copy_into(line, "state", call->state, sizeof(call->state));
	copy_into(line, "kind", call->kind, sizeof(call->kind));
	copy_into(line, "protocol", call->protocol, sizeof(call->protocol));
	call->is_error = truth_of(line, "is_error");
	call->attempts = number_of(line, "attempts");
	call->finished_us = number_of(line, "finished_us");
}

int store_calls_read(int fd, struct store_tools *ret, struct err *err)
{
	struct store_tools tools = {0};
	auto_free char *text = xmalloc(STORE_CALLS_FILE_MAX);
	size_t length = 0, at = 0;
	ssize_t got;

	while (length < STORE_CALLS_FILE_MAX &&
	       (got = pread(fd, text + length, STORE_CALLS_FILE_MAX - length, (off_t)length)) != 0) {
		if (got < 0)
			return err_errno(err, "reading the calls of an interrupted run");
		length += (size_t)got;
	}
	for (const char *end; (end = memchr(text + at, '\n', length - at)); at = (size_t)(end - text) + 1) {
		auto_json struct json_object *line = NULL;

		if (json_parse(text + at, (size_t)(end - text) - at, &line, NULL) < 0)
			continue;
		if (json_get_string(line, "state"))
			end_call(&tools, line);
		else
			begin_call(&tools, line);
	}
	*ret = tools;
	return 0;
}
