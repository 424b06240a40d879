/* show_tools.c - a run's calls of tools, see show.h. */
#include "show.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/util.h"
#include "lib/store/record/store_tool.h"

#define SHOWN 60 /* bytes of arguments and results in a table */

int show_tools(struct store *store, const char *execution, struct err *err)
{
	static const struct cli_field fields[] = {
		{"seq", "#", CLI_AS_COUNT, CLI_DIM, 0},          {"state", "STATE", CLI_AS_TEXT, 0, 0},
		{"decision", "DECISION", CLI_AS_TEXT, CLI_DIM, 0}, {"ms", "MS", CLI_AS_COUNT, 0, 0},
		{"tool", "TOOL", CLI_AS_TEXT, 0, 0},             {"arguments", "ARGUMENTS", CLI_AS_TEXT, 0, SHOWN},
		{"result", "RESULT", CLI_AS_TEXT, 0, SHOWN},
	};
	auto_json struct json_object *rows = json_object_new_array();
	struct store_tools tools = {0};
	int result = store_tools_load(store, execution, &tools, err);

	for (size_t i = 0; i < tools.n_calls; i++) {
		const struct store_tool_call *call = &tools.calls[i];
		const int64_t began_us = call->started_us ? call->started_us : call->queued_us;
		struct json_object *row = json_object_new_object();
		auto_free char *tool = xasprintf("%s.%s", call->server, call->tool);

		json_add_int(row, "seq", call->seq);
		json_add_string(row, "state", streq(call->state, "done") ? call->state : call->kind);
		json_add_string(row, "decision", call->decided_by ? call->decided_by : call->decision);
		json_add_int(row, "ms", (call->finished_us - began_us) / 1000);
		json_add_string(row, "tool", tool);
		json_add_string(row, "arguments", call->arguments);
		json_add_string(row, "result", call->result);
		json_object_array_add(rows, row);
	}
	if (result == 0 && tools.n_servers > 0) {
		printf("\ntools of ");
		for (size_t i = 0; i < tools.n_servers; i++) {
			printf("%s", i ? ", " : "");
			cli_print_safe(stdout, tools.servers[i].name, strlen(tools.servers[i].name));
		}
		putchar('\n');
		cli_print_rows(rows, fields, ARRAY_SIZE(fields), false);
	}
	store_tools_clear(&tools);
	return result;
}

void show_tools_print_json(const struct store_tools *tools, struct json_object *object)
{
	struct json_object *servers = json_object_new_array(), *calls = json_object_new_array();

	for (size_t i = 0; i < tools->n_servers; i++)
		json_object_array_add(servers, json_new_safe(tools->servers[i].name, strlen(tools->servers[i].name)));
	for (size_t i = 0; i < tools->n_calls; i++) {
		const struct store_tool_call *call = &tools->calls[i];
		struct json_object *entry = json_object_new_object();

		json_add_int(entry, "seq", call->seq);
		json_add_bytes(entry, "server", call->server, strlen(call->server));
		json_add_bytes(entry, "tool", call->tool, strlen(call->tool));
		json_add_bytes(entry, "arguments", call->arguments, strlen(call->arguments));
		json_add_int(entry, "occurrence", call->occurrence);
		json_add_string(entry, "state", call->state);
		json_add_string(entry, "kind", call->kind);
		json_add_string(entry, "decision", call->decision);
		json_add_string(entry, "rule", call->rule);
		json_add_string(entry, "decided_by", call->decided_by);
		json_add_string(entry, "definition", *call->definition ? call->definition : NULL);
		json_add_bytes(entry, "result", call->result, call->result_length);
		json_add_string(entry, "protocol", *call->protocol ? call->protocol : NULL);
		json_add_int(entry, "attempts", call->attempts);
		json_add_int(entry, "approval_us", call->approval_us);
		cli_add_time(entry, "queued", call->queued_us);
		cli_add_time(entry, "started", call->started_us);
		cli_add_time(entry, "finished", call->finished_us);
		json_object_array_add(calls, entry);
	}
	json_add(object, "servers", servers);
	json_add(object, "tool_calls", calls);
}

int show_tools_json(struct store *store, const char *execution, struct json_object *object, struct err *err)
{
	struct store_tools tools = {0};
	int result = store_tools_load(store, execution, &tools, err);

	if (result < 0)
		return result;
	show_tools_print_json(&tools, object);
	store_tools_clear(&tools);
	return 0;
}
