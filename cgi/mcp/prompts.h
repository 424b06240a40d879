/*
 * prompts.h - prompts as data.
 *
 * One file per prompt (or group of prompts) exports const structs, cgi/tool/tool_table.c lists them. Arguments are
 * checked before `get` is called: all that are required are there, every value is a string; an unknown name is -32602.
 */
#pragma once

#include "mcp.h"

struct prompt_argument {
	const char *name, *description;
	bool required;
};
struct prompt {
	const char *name, *title, *description;
	const struct prompt_argument *arguments;      /* ended by {0}; NULL: none */
	bool (*enabled)(const struct config *config); /* NULL: always */
	/* Appends messages {role, content}. `arguments` is an object, never NULL. A prompt may set call->result itself
	 * instead, or mcp_fail. */
	int (*get)(struct mcp_call *call, struct json_object *arguments, struct json_object *messages);
	/* Appends strings that the argument may have and that begin with ask->value; NULL: nothing to suggest. */
	int (*complete)(struct mcp_call *call, const struct mcp_completion *ask, struct json_object *values,
			struct err *err);
};

int mcp_prompts_list(struct mcp_call *call);
int mcp_prompts_get(struct mcp_call *call);
/* NULL: there is none of this name. */
const struct prompt *prompt_find(const struct server *server, const char *name);
/* {"role":"user","content":{"type":"text","text":…}} */
void prompt_add_text(struct json_object *messages, const char *text);
