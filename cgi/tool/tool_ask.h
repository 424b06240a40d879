/*
 * tool_ask.h - whether a call of an upstream tool is allowed, as a question to the user of a client (elicitation).
 *
 * The sentence is made of names and arguments only: what a server says of its tools is not to be trusted here.
 */
#pragma once

#include "cgi/mcp/tools.h"
#include "lib/bridge/bridge_question.h"

#define TOOL_ASK_SHOWN 1000 /* bytes of the arguments that the sentence shows */

/* The parameters of elicitation/create; the caller's. `who`: "A program" … */
struct json_object *tool_ask_params(const char *who, const struct bridge_question *question);
/* Out of its result. All that is no clear yes is a no, and NULL is, too. */
enum bridge_verdict tool_ask_verdict(struct json_object *result);
/* The question's key in inputRequests. */
#define TOOL_ASK_KEY_SIZE 32
void tool_ask_key(int64_t number, char ret[TOOL_ASK_KEY_SIZE]);
/* {"call-7":{"method":…,"params":…}}; the caller's. */
struct json_object *tool_ask_requests(const char *who, const struct bridge_question *questions, size_t count);
/* {"resultType":"input_required", …}: what the client of the modern era gets; the caller's. `state`: signed. */
struct json_object *tool_ask_result(const char *who, const struct bridge_question *questions, size_t count,
				    const char *state);
