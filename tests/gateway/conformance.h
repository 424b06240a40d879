/*
 * conformance.h - the fixtures of the official conformance suite: tools, resources and prompts that mean nothing, in a
 * gateway that is never installed.
 *
 * The environment variable SP_FIXTURES switches them on, which is refused unless public_base_url is on loopback; then
 * no token is asked for either, and requests from elsewhere than loopback are refused. Names, schemas and texts are the
 * suite's.
 */
#pragma once

#include "cgi/mcp/prompts.h"
#include "cgi/mcp/resources.h"
#include "cgi/mcp/tools.h"

extern const struct fixtures conformance_fixtures;
extern const char conformance_png[]; /* base64 */
extern struct store_token conformance_token; /* whose requests without a token are */
extern const struct prompt conformance_prompts[];    /* ended by {0} */
extern const struct tool *const conformance_tools[]; /* ended by NULL */

/* {"content":[{"type":"text",…}]} as result */
int conformance_text(struct mcp_call *call, const char *text);
/* conformance_tasks.c: tools that go on as tasks. */
int conformance_greet(struct mcp_call *call, struct json_object *arguments);
int conformance_compute(struct mcp_call *call, struct json_object *arguments);
int conformance_failing(struct mcp_call *call, struct json_object *arguments);
int conformance_protocol_error(struct mcp_call *call, struct json_object *arguments);
int conformance_confirm(struct mcp_call *call, struct json_object *arguments);
int conformance_multi_input(struct mcp_call *call, struct json_object *arguments);
int conformance_input_task(struct mcp_call *call, struct json_object *arguments);
/* conformance_ask.c: tools that ask the client, over the stream (legacy) … */
int conformance_sampling(struct mcp_call *call, struct json_object *arguments);
int conformance_elicitation(struct mcp_call *call, struct json_object *arguments);
int conformance_defaults(struct mcp_call *call, struct json_object *arguments);
int conformance_enums(struct mcp_call *call, struct json_object *arguments);
/* … conformance_input.c: and by results that ask for input (modern). */
int conformance_input(struct mcp_call *call, struct json_object *arguments);
/* 1: everything that the tool asks for is there; 0: the result asks; negative: failed. */
int conformance_rounds(struct mcp_call *call);
int conformance_prompt_input(struct mcp_call *call, struct json_object *arguments, struct json_object *messages);
