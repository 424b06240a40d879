/*
 * bridge_try.h - for tests of the bridge: a provider in this process whose tools are functions, lists of tools made of
 * JSON, and programs in a real jail that call them.
 *
 * The server is called "fs-1" (fs_1 in programs). Its tools answer at once but for `later`, which a thread answers
 * after all that it waits for are there, and `never`.
 */
#pragma once

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "jail_try.h"
#include "lib/bridge/bridge.h"
#include "lib/bridge/bridge_files.h"

#define BRIDGE_TRY_LATER 64

struct bridge_try {
	struct upstream *upstream; /* whose thread serves the bridge; NULL: its own */
	struct bridge *bridge;
	struct upstream_server server;
	struct upstream_list list;
	struct upstream_list *lists[1];
	pthread_mutex_t lock;
	struct bridge_call *later[BRIDGE_TRY_LATER]; /* not answered yet */
	size_t n_later, most_later;
	size_t together; /* so many `later` are answered at once */
	size_t calls, cancels, released;
	pthread_t caller; /* of the last call's provider */
};

static const char bridge_try_tools[] =
	"[{\"name\":\"read_file\",\"description\":\"Read one "
	"file.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{"
	"\"path\":{\"type\":\"string\"},\"from\":{\"type\":\"integer\",\"default\":1}},\"required\":[\"path\"],"
	"\"additionalProperties\":false}},"
	"{\"name\":\"get-sum\",\"description\":\"Adds.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{"
	"\"a\":{\"type\":\"number\"},\"b\":{\"type\":\"number\"}},\"required\":[\"a\",\"b\"]},"
	"\"outputSchema\":{\"type\":\"object\",\"properties\":{\"sum\":{\"type\":\"number\"}}}},"
	"{\"name\":\"fails\",\"inputSchema\":{\"type\":\"object\"}},"
	"{\"name\":\"image\",\"inputSchema\":{\"type\":\"object\"}},"
	"{\"name\":\"big\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"bytes\":{\"type\":\"integer\"}}}},"
	"{\"name\":\"later\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}}}},"
	"{\"name\":\"never\",\"inputSchema\":{\"type\":\"object\"}}]";

static inline void bridge_try_result(struct bridge_call *call, const char *text, bool is_error)
{
	bridge_answer(call, &(struct bridge_answer){.kind = "result",
						    .is_error = is_error,
						    .result = text,
						    .length = strlen(text),
						    .decision = "allow",
						    .attempts = 1});
}

/* {"content":[{"type":"text","text":…}]} */
static inline void bridge_try_text(struct bridge_call *call, const char *text)
{
	auto_json struct json_object *string = json_object_new_string(text);
	auto_buf struct buf out = {0};

	buf_init(&out, 64 << 20);
	buf_puts(&out, "{\"content\":[{\"type\":\"text\",\"text\":");
	json_print(&out, string);
	buf_puts(&out, "}]}");
	buf_putc(&out, '\0');
	bridge_try_result(call, out.data, false);
}

static inline void bridge_try_later(struct bridge_try *try, struct bridge_call *call)
{
	pthread_mutex_lock(&try->lock);
	try->later[try->n_later++] = call;
	try->most_later = MAX(try->most_later, try->n_later);
	if (streq(call->tool->name, "later") && try->n_later >= try->together)
		while (try->n_later > 0)
			bridge_try_text(try->later[--try->n_later], "later");
	pthread_mutex_unlock(&try->lock);
}

static inline void bridge_try_call(void *arg, struct bridge_call *call)
{
	struct bridge_try *try = arg;
	auto_json struct json_object *arguments = NULL;
	const char *name = call->tool ? call->tool->name : "";

	try->calls++;
	try->caller = pthread_self();
	json_parse(call->arguments, call->length, &arguments, NULL);
	if (streq(name, "read_file")) {
		auto_free char *text = xasprintf("content of %s", json_get_string(arguments, "path"));

		bridge_try_text(call, text);
	} else if (streq(name, "get-sum")) {
		struct json_object *a = NULL, *b = NULL;

		json_object_object_get_ex(arguments, "a", &a);
		json_object_object_get_ex(arguments, "b", &b);
		auto_free char *text = xasprintf("{\"content\":[],\"structuredContent\":{\"sum\":%g}}",
						 json_object_get_double(a) + json_object_get_double(b));

		bridge_try_result(call, text, false);
	} else if (streq(name, "fails")) {
		bridge_try_result(
			call, "{\"content\":[{\"type\":\"text\",\"text\":\"no such thing\"}],\"isError\":true}", true);
	} else if (streq(name, "image")) {
		bridge_try_result(
			call, "{\"content\":[{\"type\":\"image\",\"data\":\"aGVsbG8=\",\"mimeType\":\"image/png\"}]}",
			false);
	} else if (streq(name, "big")) {
		size_t size = (size_t)json_object_get_int64(json_get(arguments, "bytes", json_type_int));
		auto_free char *text = xmalloc(size + 1);

		memset(text, 'x', size);
		text[size] = '\0';
		bridge_try_text(call, text);
	} else if (!call->tool) {
		bridge_try_result(call, "{\"contents\":[{\"uri\":\"test://1\",\"text\":\"resource\"}]}", false);
	} else {
		bridge_try_later(try, call);
	}
}

static inline void bridge_try_cancel(void *arg, struct bridge_call *call)
{
	struct bridge_try *try = arg;

	pthread_mutex_lock(&try->lock);
	for (size_t i = 0; i < try->n_later; i++)
		if (try->later[i] == call) {
			try->later[i] = try->later[--try->n_later];
			try->cancels++;
			bridge_answer(call, &(struct bridge_answer){.kind = "cancelled", .text = "cancelled"});
			break;
		}
	pthread_mutex_unlock(&try->lock);
}

static inline void bridge_try_release(void *arg)
{
	((struct bridge_try *)arg)->released++;
}

static const struct bridge_provider bridge_try_provider = {
	.call = bridge_try_call, .cancel = bridge_try_cancel, .release = bridge_try_release};

static const struct bridge_caps bridge_try_caps = {.calls = 200,
						   .in_flight = 8,
						   .argument_bytes = 1 << 20,
						   .result_bytes = 5 << 20,
						   .total_bytes = 64 << 20,
						   .work_us = BRIDGE_WORK_US,
						   .call_us = 60000000,
						   .call_most_us = 300000000,
						   .wait_us = 60000000};

static inline void bridge_try_list(struct upstream_list *list, const struct upstream_server *server, const char *tools)
{
	auto_json struct json_object *array = NULL;
	struct err err = ERR_INIT;

	if (json_parse(tools, strlen(tools), &array, &err) < 0)
		fail_msg("%s", err.text);
	*list = (struct upstream_list){.server = server, .references = 1};
	list->count = json_object_array_length(array);
	list->tools = xcalloc(list->count, sizeof(*list->tools));
	for (size_t i = 0; i < list->count; i++) {
		struct json_object *object = json_object_get(json_object_array_get_idx(array, i));

		list->tools[i] = (struct upstream_tool){.name = json_get_string(object, "name"), .object = object};
	}
}

static inline void bridge_try_list_clear(struct upstream_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		json_object_put(list->tools[i].object);
	free(list->tools);
	list->tools = NULL;
	free(list->index); /* a search made it */
	list->index = NULL;
}

static inline void bridge_try_begin(struct bridge_try *try, struct upstream *upstream)
{
	struct err err = ERR_INIT;

	*try = (struct bridge_try){.upstream = upstream,
				   .server = {.name = "fs-1", .description = "Files"}, .together = 1};
	upstream_name_alias(try->server.name, try->server.alias);
	bridge_try_list(&try->list, &try->server, bridge_try_tools);
	try->lists[0] = &try->list;
	pthread_mutex_init(&try->lock, NULL);
	if (bridge_start(try->upstream, &try->bridge, &err) < 0)
		fail_msg("%s", err.text);
}

static inline void bridge_try_end(struct bridge_try *try)
{
	bridge_stop(try->bridge);
	upstream_close(try->upstream);
	assert_int_equal(try->list.references, 1);
	bridge_try_list_clear(&try->list);
	pthread_mutex_destroy(&try->lock);
}

static inline struct bridge_run *bridge_try_open(struct bridge_try *try, const struct bridge_caps *caps)
{
	const struct bridge_spec spec = {
		.lists = try->lists, .count = 1, .caps = *caps, .provider = &bridge_try_provider, .arg = try};
	struct bridge_run *run;
	struct err err = ERR_INIT;

	if (bridge_open(try->bridge, &spec, &run, &err) < 0)
		fail_msg("%s", err.text);
	return run;
}
