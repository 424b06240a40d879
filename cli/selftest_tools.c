/* selftest_tools.c - tools for probes with tools=1, see selftest.h. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "lib/base/util.h"
#include "lib/bridge/bridge.h"
#include "lib/upstream/upstream_list.h"
#include "selftest.h"

#define SECOND    INT64_C(1000000)
#define IN_FLIGHT 8

struct selftest_tools {
	struct bridge *bridge;
	struct bridge_run *run;
	struct upstream_server server;
	struct upstream_tool tools[2];
	struct upstream_list list;
	_Atomic int64_t calls;
	pthread_mutex_t lock;
	struct bridge_call *pending[IN_FLIGHT]; /* of `never` */
};

static const char *const definitions[] = {
	"{\"name\":\"echo\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}},"
	"\"required\":[\"text\"],\"additionalProperties\":false}}",
	"{\"name\":\"never\",\"inputSchema\":{\"type\":\"object\"}}",
};

/* Replaces the call `from` by `to`: true, if there was such a call. */
static bool swap(struct selftest_tools *tools, const struct bridge_call *from, struct bridge_call *to)
{
	bool found = false;

	pthread_mutex_lock(&tools->lock);
	for (size_t i = 0; i < IN_FLIGHT && !found; i++)
		if ((found = tools->pending[i] == from))
			tools->pending[i] = to;
	pthread_mutex_unlock(&tools->lock);
	return found;
}

static void answer_call(void *arg, struct bridge_call *call)
{
	struct selftest_tools *tools = arg;

	tools->calls++;
	if (call->tool != NULL && streq(call->tool->name, "echo"))
		bridge_answer(call, &(struct bridge_answer){.kind = "result",
							    .result = call->arguments,
							    .length = call->length,
							    .decision = "allow",
							    .attempts = 1});
	else if (!swap(tools, NULL, call))
		bridge_answer(call, &(struct bridge_answer){.kind = "unavailable", .text = "too many calls"});
}

static void cancel_call(void *arg, struct bridge_call *call)
{
	if (swap(arg, call, NULL))
		bridge_answer(call, &(struct bridge_answer){.kind = "cancelled", .text = "cancelled"});
}

static void release(void *arg)
{
	(void)arg;
}

int selftest_tools_open(struct selftest_tools **ret, struct err *err)
{
	static const struct bridge_provider provider = {.call = answer_call, .cancel = cancel_call, .release = release};
	struct selftest_tools *tools = xcalloc(1, sizeof(*tools));
	struct upstream_list *lists[] = {&tools->list};
	const struct bridge_spec spec = {
		.lists = lists,
		.count = 1,
		.caps = {.calls = SELFTEST_CALLS,
			 .in_flight = IN_FLIGHT,
			 .argument_bytes = 1 << 16,
			 .result_bytes = 1 << 20,
			 .total_bytes = 4 << 20,
			 .call_us = 300 * SECOND,
			 .call_most_us = 300 * SECOND,
			 .wait_us = 60 * SECOND},
		.provider = &provider,
		.arg = tools,
	};

	pthread_mutex_init(&tools->lock, NULL);
	int result = 0;

	tools->server = (struct upstream_server){.name = "own"};
	upstream_name_alias(tools->server.name, tools->server.alias);
	tools->list = (struct upstream_list){
		.server = &tools->server, .references = 1, .tools = tools->tools, .count = ARRAY_SIZE(definitions)};
	for (size_t i = 0; result == 0 && i < ARRAY_SIZE(definitions); i++) {
		struct json_object *object = NULL;

		result = json_parse(definitions[i], strlen(definitions[i]), &object, err);
		tools->tools[i] = (struct upstream_tool){.name = json_get_string(object, "name"), .object = object};
	}
	if (result == 0)
		result = bridge_start(NULL, &tools->bridge, err);
	if (result == 0)
		result = bridge_open(tools->bridge, &spec, &tools->run, err);
	if (result < 0)
		selftest_tools_close(tools);
	else
		*ret = tools;
	return result;
}

int selftest_tools_socket(const struct selftest_tools *tools)
{
	return bridge_run_socket(tools->run);
}

int64_t selftest_tools_close(struct selftest_tools *tools)
{
	if (tools == NULL)
		return 0;
	if (tools->run != NULL)
		bridge_close(tools->run, NULL);
	bridge_stop(tools->bridge);
	for (size_t i = 0; i < ARRAY_SIZE(tools->tools); i++)
		json_object_put(tools->tools[i].object);
	pthread_mutex_destroy(&tools->lock);
	int64_t calls = tools->calls;

	free(tools);
	return calls;
}
