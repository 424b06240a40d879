/*
 * run_python_answer.h - what run_python answers, as mcp-server-code-execution-mode does: status, summary, exitCode,
 * servers, stdout and stderr as lines, error, timeoutSeconds; those that are empty are left out.
 *
 * The text is one block: "compact" for models, or "toon" (tools.bridge_output). structuredContent holds the same
 * members; in the compact form less of them, where the text says it already. What else Sallyport knows of the run is
 * in the result's _meta.
 */
#pragma once

#include "lib/job/job.h"
#include "tool_common.h"

/* Of a run that ended: adds the text block, sets ret->form. */
void run_python_answer(const struct tool_call *call, const struct job_result *result, struct tool_result *ret);
/* Of a call that was refused (struct tool, refused). */
void run_python_refused(const struct config *config, struct json_object *arguments, const struct err *err,
			struct tool_result *ret);
