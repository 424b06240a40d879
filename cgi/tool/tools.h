/*
 * tools.h - the tools as data: one file per tool exports one const struct tool, tools.c lists them.
 *
 * A tool's arguments are a bind table: it parses the call and writes the inputSchema, so the two cannot drift apart.
 * Its output schema stands beside the code that prints the result; the tests hold every reply against it.
 *
 * Three outcomes: a result (also of a program that failed: isError, with structuredContent), a refusal (isError with a
 * text that names the argument), and a fault of ours (tool_run fails). A client that left is ERR_CANCELLED.
 */
#pragma once

#include "cgi/http/access.h"
#include "cgi/http/server.h"
#include "lib/base/bind.h"
#include "lib/store/store_token.h"

struct mcp_call;
struct tool_call {
	struct mcp_call *mcp; /* what is sent before the answer goes there; NULL: nothing can be */
	struct server *server;
	const struct store_token *token;
	const char *session_id; /* NULL: none */
	const struct mcp_revision *revision; /* that the client speaks */
	int hangup_fd;          /* >= 0: cancel when it reports that the client left */
	/* filled in: */
	const struct tool *tool; /* by tool_run */
	char outcome[32]; /* for the log: a verdict, or an error's name */
	bool answered;    /* with a task: the answer stands in mcp->result */
	bool task_needed; /* refused because it was not called as a task */
};

struct tool_result {
	struct json_object *content;    /* array of content blocks */
	struct json_object *structured; /* object that fits the output schema */
	bool is_error;
};

/* An argument that clients of the modern era repeat in the header Mcp-Param-NAME. */
struct tool_header {
	const char *name, *argument;
};
/* May a call of it go on as a task (mcp_tasks.h)? */
enum tool_task { TOOL_TASK_NEVER, TOOL_TASK_OPTIONAL, TOOL_TASK_REQUIRED };
struct job_result;
struct tool {
	const char *name, *title, *description;
	bool (*enabled)(const struct config *config); /* where false, there is no such tool; NULL: always */
	unsigned scope; /* what the token must have: of enum store_scope, or ACCESS_FREE; 0: nobody may call it */
	const struct bind *arguments;
	size_t arguments_size;                               /* of the struct that the table describes */
	const struct bind *output;                           /* of structuredContent (view JAIL_ANSWER), or */
	const char *output_schema;                           /* JSON */
	bool read_only, destructive, idempotent, open_world; /* annotations: hints for people who approve calls */
	/* What depends on this server (languages, caps) goes into the tool's description; may be NULL. */
	void (*refine)(struct server *server, struct json_object *tool);
	const struct tool_header *headers; /* ended by {0}; NULL: none */
	/* The fixtures of the conformance suite: schema as text, and answering the request by itself (call->result, or
	 * mcp_fail). */
	const char *input_schema;
	int (*serve)(struct mcp_call *call, struct json_object *arguments);
	/* `arguments` is the bound struct. On failure nothing of *ret is kept. */
	int (*call)(struct tool_call *call, const void *arguments, struct tool_result *ret, struct err *err);
	enum tool_task task;
	/* The result of a run that this tool began, for tasks; call->mcp is NULL. */
	void (*result)(const struct tool_call *call, const struct job_result *run, struct tool_result *ret);
};

struct json_object *tool_output_schema(const struct tool *tool); /* the caller's; NULL: none */
const struct tool *tool_find(const struct server *server, const char *name);
/* The array of tools/list for a token of these scopes (access_scopes): what it may not call it does not see. The
 * caller's. */
struct json_object *tools_describe(struct server *server, unsigned scopes);
/* Runs it and makes the CallToolResult, the caller's. `arguments` NULL is the same as {}. */
int tool_run(const struct tool *tool, struct tool_call *call, struct json_object *arguments, struct json_object **ret,
	     struct err *err);

/* The CallToolResult, the caller's; takes the parts over. */
struct json_object *tool_result_object(const struct tool_result *result);

struct job;
struct job_engine;
struct job_request;
/* Before a run of so many seconds (0: the default) is begun: shall it be a task? ERR_LIMIT: it is too long to be waited
 * for. */
int tool_task_choose(struct tool_call *call, int64_t wall_seconds, bool *ret, struct err *err);
/* First in the initialiser of a struct job_request: who asks. */
#define TOOL_CALLER(call_)                                                                                             \
	.owner = (call_)->token->owner, .token_id = (call_)->token->id, .session_id = (call_)->session_id
/* Submits it as a task and makes the answer of the call. */
int tool_task_start(struct tool_call *call, struct job_engine *engine, const struct job_request *request,
		    struct err *err);
/* Waits for a job and tells the client of its progress meanwhile; as job_wait. A call that was cancelled:
 * ERR_CANCELLED, the job is being ended. */
int tool_wait(struct tool_call *call, struct job *job, const struct job_result **ret, struct err *err);

/* What a job printed on its two streams since `offset`, made safe; at most 2 * MCP_PROGRESS_TEXT_MAX bytes. A character
 * that is not whole yet waits for the next time. */
void tool_new_output(struct job *job, int64_t offset[2], struct buf *text);

/* {"type":"text","text":…}; the bytes are made safe. */
void tool_add_text(struct json_object *content, const char *data, size_t length);
/* The runners that the jailer told of, or NULL while it is away; the caller's. */
struct json_object *tool_runners(struct server *server);
/* The property `name` in a tool's inputSchema; NULL if there is none. */
struct json_object *tool_property(struct json_object *tool, const char *name);
/* "name" and ", alias"…: for people. */
void tool_print_names(struct buf *out, struct json_object *runner);

/* Does the caller's token have the scope? For tools that run programs; `asked`: the call wants it. ERR_DENIED names the
 * remedy. */
int tool_network_check(const struct tool_call *call, bool asked, struct err *err);
/* What programs with network reach on this server, as a sentence. */
void tool_network_describe(const struct config *config, struct buf *out);

/* Digest of a call, for idempotency keys: tool and bound arguments in the table's order. Members called "secrets" count
 * by name only: their values must not leave a trace. */
void tool_hash(const struct tool_call *call, const void *bound, char ret[SHA256_HEX_SIZE]);
/* The member for the argument table of a tool that acts. */
#define TOOL_KEY_MAX 128
#define TOOL_KEY_MEMBER(struct_, member_)                                                                              \
	{                                                                                                              \
		.name = "idempotencyKey", .type = BIND_STRING, .offset = offsetof(struct_, member_), .min = 1,         \
		.max = TOOL_KEY_MAX,                                                                                   \
		.description = "Any unique text. If the answer to a call is lost, repeat the call with the same key "  \
			       "and the same arguments "                                                               \
			       "within a day: it does not act again but gives the first result."                       \
	}

extern const struct tool tool_run_code, tool_reset_session, tool_upload_file, tool_list_runners;
/* Of the sets of other systems (tools.sets). */
extern const struct tool tool_execute_code, tool_execute_code_live, tool_execute_code_both, tool_initialize_sandbox,
	tool_stop_sandbox;
