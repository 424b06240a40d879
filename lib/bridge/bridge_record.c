/* bridge_record.c - see bridge_record.h. */
#include "bridge_record.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/util.h"
#include "lib/upstream/upstream_raw.h"

#define LIST_MAX (16 << 20)

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
	auto_buf struct buf text = {0};

	buf_init(&text, LIST_MAX);
	buf_putc(&text, '[');
	for (size_t i = 0; i < list->count; i++) {
		const struct upstream_tool *tool = &list->tools[i];

		buf_puts(&text, i ? "," : "");
		if (tool->definition)
			buf_add(&text, tool->definition, tool->length);
		else
			json_print(&text, tool->object);
	}
	buf_putc(&text, ']');
	*ret = (struct store_tool_server){.name = xstrdup(server->name),
					  .alias = xstrdup(server->alias),
					  .description = xstrdup(server->description ? server->description : "")};
	sha256_hex(text.data, text.length, ret->list);
	ret->definitions = xmemdup(text.data, text.length);
}

static int64_t equal_before(const struct store_tools *tools, const struct store_tool_call *call)
{
	int64_t n = 0;

	for (size_t i = 0; i < tools->n_calls; i++) {
		const struct store_tool_call *other = &tools->calls[i];

		/* The hash first: of calls to one tool it is what differs. */
		n += streq(other->arguments_hash, call->arguments_hash) && streq(other->tool, call->tool) &&
		     streq(other->server, call->server);
	}
	return n;
}

static void record_call(struct bridge_record *record, struct store_tool_call *ret)
{
	*ret = (struct store_tool_call){
		.seq = record->seq,
		.connection = record->connection,
		.is_read = record->is_read,
		.is_error = record->is_error,
		.result_length = record->result_length,
		.attempts = record->attempts,
		.approval_us = record->approval_us,
		.queued_us = record->queued_us,
		.started_us = record->started_us,
		.finished_us = record->finished_us,
	};
	ret->server = steal(&record->server);
	ret->tool = steal(&record->tool);
	ret->decision = steal(&record->decision);
	ret->rule = steal(&record->rule);
	ret->decided_by = steal(&record->decided_by);
	ret->result = steal(&record->result);
	snprintf(ret->definition, sizeof(ret->definition), "%s", record->definition);
	snprintf(ret->state, sizeof(ret->state), "%s", record->state);
	snprintf(ret->kind, sizeof(ret->kind), "%s", record->kind);
	snprintf(ret->protocol, sizeof(ret->protocol), "%s", record->protocol);
	if (ret->result == NULL)
		ret->result = xstrdup("");
	bridge_record_hash(record->arguments, record->arguments_length, ret->arguments_hash);
	ret->arguments = steal(&record->arguments);
}

void bridge_record(struct upstream_list *const *lists, size_t count, struct bridge_report *report,
		   struct store_tools *ret)
{
	struct store_tools tools = {.n_servers = count, .asked = report->calls};

	tools.servers = xcalloc(count + 1, sizeof(*tools.servers));
	tools.calls = xcalloc(report->count + 1, sizeof(*tools.calls));
	for (size_t i = 0; i < count; i++)
		record_server(lists[i], &tools.servers[i]);
	for (size_t i = 0; i < report->count; i++) {
		record_call(&report->records[i], &tools.calls[i]);
		tools.calls[i].occurrence = equal_before(&tools, &tools.calls[i]);
		tools.n_calls++;
	}
	bridge_report_clear(report);
	*ret = tools;
}
