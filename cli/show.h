/* show.h - the parts of `sallyport show`: a conversation step by step, and a run's calls of tools. */
#pragma once

#include "cli.h"
#include "lib/store/record/store_tool.h"

/* show_steps.c: uploads, runs, and the changes of the conversation's files. */
struct show_steps {
	const char *owner; /* NULL: the only one who has it */
	const char *conversation;
	bool json; /* an object a step, on a line of its own */
};
/* ERR_NOT_FOUND: nothing ran there; ERR_CONFLICT: several owners have a conversation of this name. */
int show_steps(struct store *store, const struct show_steps *which, struct err *err);

/* show_tools.c: nothing is printed of a run that named no servers. */
int show_tools(struct store *store, const char *execution, struct err *err);
/* Members "servers" and "tool_calls". */
void show_tools_print_json(const struct store_tools *tools, struct json_object *object);
/* The same, out of the record. */
int show_tools_json(struct store *store, const char *execution, struct json_object *object, struct err *err);
