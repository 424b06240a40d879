/* show_tools.c - see show_tools.h. */
#include "show_tools.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/util.h"
#include "lib/store/record/store_tool.h"

#define SHOWN 60 /* bytes of arguments and results in a table */

static void add_short(struct cli_table *table, const char *text)
{
	auto_free char *part = xasprintf("%.*s%s", SHOWN, text, strlen(text) > SHOWN ? "…" : "");

	cli_table_cell(table, part, CLI_PLAIN);
}

int show_tools(struct store *store, const char *execution, struct err *err)
{
	static const struct cli_column columns[] = {
		{"#", true, 1, 0},     {"STATE", false, 5, 0},     {"DECISION", false, 5, 0}, {"MS", true, 2, 0},
		{"TOOL", false, 8, 0}, {"ARGUMENTS", false, 9, 0}, {"RESULT", false, 6, 0}};
	struct store_tools tools = {0};
	int result = store_tools_load(store, execution, &tools, err);

	if (result < 0 || tools.n_servers == 0) {
		store_tools_clear(&tools);
		return result;
	}
	auto_table struct cli_table *table = cli_table_new(columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < tools.n_calls; i++) {
		const struct store_tool_call *call = &tools.calls[i];
		const int64_t began_us = call->started_us ? call->started_us : call->queued_us;
		auto_free char *seq = xasprintf("%lld", (long long)call->seq);
		auto_free char *ms = xasprintf("%lld", (long long)(call->finished_us - began_us) / 1000);
		auto_free char *tool = xasprintf("%s.%s", call->server, call->tool);
		const bool done = streq(call->state, "done");

		cli_table_cell(table, seq, CLI_DIM);
		cli_table_cell(table, done ? call->state : call->kind, done ? CLI_GREEN : CLI_PLAIN);
		cli_table_cell(table,
			       call->decided_by ? call->decided_by
			       : call->decision ? call->decision
						: "",
			       CLI_DIM);
		cli_table_cell(table, ms, CLI_PLAIN);
		cli_table_cell(table, tool, CLI_PLAIN);
		add_short(table, call->arguments);
		add_short(table, call->result);
	}
	printf("\ntools of ");
	for (size_t i = 0; i < tools.n_servers; i++) {
		printf("%s", i ? ", " : "");
		cli_print_safe(stdout, tools.servers[i].name, strlen(tools.servers[i].name));
	}
	printf("\n");
	cli_table_print(table, stdout);
	store_tools_clear(&tools);
	return 0;
}

static struct json_object *call_json(const struct store_tool_call *call)
{
	struct json_object *object = json_object_new_object();

	json_add_int(object, "seq", call->seq);
	json_add_bytes(object, "server", call->server, strlen(call->server));
	json_add_bytes(object, "tool", call->tool, strlen(call->tool));
	json_add_bytes(object, "arguments", call->arguments, strlen(call->arguments));
	json_add_int(object, "occurrence", call->occurrence);
	json_add_string(object, "state", call->state);
	json_add_string(object, "kind", call->kind);
	json_add_string(object, "decision", call->decision);
	json_add_string(object, "rule", call->rule);
	json_add_string(object, "decided_by", call->decided_by);
	json_add_string(object, "definition", *call->definition ? call->definition : NULL);
	json_add_bytes(object, "result", call->result, call->result_length);
	json_add_string(object, "protocol", *call->protocol ? call->protocol : NULL);
	json_add_int(object, "attempts", call->attempts);
	json_add_int(object, "approval_us", call->approval_us);
	json_add_int(object, "queued_us", call->queued_us);
	json_add_int(object, "started_us", call->started_us);
	json_add_int(object, "finished_us", call->finished_us);
	return object;
}

void show_tools_print_json(const struct store_tools *tools, struct json_object *object)
{
	struct json_object *servers = json_object_new_array(), *calls = json_object_new_array();

	for (size_t i = 0; i < tools->n_servers; i++)
		json_object_array_add(servers, json_new_safe(tools->servers[i].name, strlen(tools->servers[i].name)));
	for (size_t i = 0; i < tools->n_calls; i++)
		json_object_array_add(calls, call_json(&tools->calls[i]));
	json_add(object, "servers", servers);
	json_add(object, "toolCalls", calls);
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
