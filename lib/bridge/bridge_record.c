/* bridge_record.c - a run's servers and calls as the store keeps them, see bridge.h. */
#include <string.h>

#include "bridge.h"
#include "lib/base/buf.h"
#include "lib/base/util.h"
#include "lib/upstream/upstream_raw.h"

void bridge_record_hash(const char *arguments, size_t length, char ret[SHA256_HEX_SIZE])
{
	auto_buf struct buf text = {0};

	buf_init(&text, 2 * length + 16);
	raw_canonical(&text, raw_value(arguments, length));
	sha256_hex(text.data, text.length, ret);
}

static void record_server(const struct upstream_list *list, struct store_tool_server *ret)
{
	const struct upstream_server *server = list->server;

	*ret = (struct store_tool_server){.name = xstrdup(server->name),
					  .alias = xstrdup(server->alias),
					  .description = xstrdup(server->description ? server->description : ""),
					  .definitions = xstrdup(list->definitions)};
	memcpy(ret->list, list->definitions_hash, sizeof(ret->list));
}

void bridge_record(struct upstream_list *const *lists, size_t count, struct bridge_report *report,
		   struct store_tools *ret)
{
	struct store_tool_call *calls = steal(&report->records);
	struct store_tools tools = {.n_servers = count,
				    .servers = xcalloc(count + 1, sizeof(*tools.servers)),
				    .calls = calls,
				    .n_calls = report->count,
				    .asked = report->calls};

	for (size_t i = 0; i < count; i++)
		record_server(lists[i], &tools.servers[i]);
	for (size_t i = 0; i < tools.n_calls; i++) {
		struct store_tool_call *call = &tools.calls[i];

		if (!call->result)
			call->result = xstrdup("");
		for (const struct store_tool_call *other = tools.calls; other < call; other++)
			/* The hash first: of calls to one tool it is what differs. */
			call->occurrence += streq(other->arguments_hash, call->arguments_hash) &&
					    streq(other->tool, call->tool) && streq(other->server, call->server);
	}
	*report = (struct bridge_report){0};
	*ret = tools;
}
