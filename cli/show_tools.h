/* show_tools.h - a run's calls of tools, as `show` prints them. */
#pragma once

#include "cli.h"
#include "lib/store/record/store_tool.h"

/* Nothing is printed of a run that named no servers. */
int show_tools(struct store *store, const char *execution, struct err *err);
/* Members "servers" and "toolCalls". */
void show_tools_print_json(const struct store_tools *tools, struct json_object *object);
/* The same, out of the record. */
int show_tools_json(struct store *store, const char *execution, struct json_object *object, struct err *err);
