/* tool_interpreter.h - the part of the set "interpreter" that its execute_code has in another file. */
#pragma once

#include "tool_common.h"

struct interpreter_call {
	struct bind_text code;
	const char *language; /* NULL: the sandbox's */
	const char *key, *key_hash;
};
/* Runs the code in the client's sandbox; ERR_NOT_FOUND where it has none. */
int interpreter_execute(struct tool_call *call, const struct interpreter_call *what, struct tool_result *ret,
			struct err *err);
