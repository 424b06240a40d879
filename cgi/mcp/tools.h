/*
 * tools.h - the tools as data: one file per tool exports one const struct tool, cgi/tool/tool_table.c lists them.
 *
 * A tool's arguments are a bind table: it parses the call and writes the inputSchema, so the two cannot drift apart.
 * Its output schema is next to the code that prints the result; the tests hold every reply against it.
 *
 * Three outcomes: a result (also of a program that failed: isError, with details), a refusal (isError with a
 * text that names the argument), and a fault of ours (tool_run fails). A client that left is ERR_CANCELLED.
 *
 * A result is made for the model: text and images. Its details are for programs. Clients disagree about who sees
 * structuredContent and _meta: some give one or both to the model instead of the text, some in addition. So there are
 * details only for those that ask: the token, the address (?results=), or the request's _meta (TOOL_RESULTS_ASKED).
 */
#pragma once

#include "cgi/http/access.h"
#include "cgi/http/server.h"
#include "lib/base/bind_meant.h"
#include "lib/store/record/store_token.h"

struct mcp_call;
#define TOOL_TEXT_MAX        25000 /* characters of the text of those that list things */
#define TOOL_DESCRIPTION_MAX 1024 /* characters: a service refuses more, and others cut */
struct tool_call {
	struct mcp_call *mcp; /* what is sent before the answer goes there; NULL: nothing can be */
	struct server *server;
	const struct store_token *token;
	const char *session_id;              /* NULL: none */
	const struct mcp_revision *revision; /* that the client speaks */
	int hangup_fd;                       /* >= 0: cancel when it reports that the client left */
	/* filled in: */
	const struct tool *tool;        /* by tool_run */
	const char *trace;                 /* of the request; "": none */
	const struct store_client *client; /* who asks */
	char outcome[32];               /* for the log: "OK", another verdict, or an error's name */
	bool answered;                  /* with a task: the answer is in mcp->result */
	struct bind_ignored ignored;    /* arguments that the tool does not have */
	bool task_needed;               /* refused because it was not called as a task */
};

struct tool_result {
	struct json_object *content;    /* array of content blocks */
	struct json_object *structured; /* the details: an object that fits the output schema; NULL: none */
	/* structuredContent in the form of another system, which always has it: the details are then in the _meta.
	 * NULL: none. */
	struct json_object *form;
	bool is_error;
	bool notes_ignored; /* the content names the arguments that were ignored; else tool_run appends a block */
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
	const void *defaults;                                /* such a struct; NULL: zeros */
	const struct bind *output;                           /* of the details (view JAIL_ANSWER), or */
	const char *output_schema;                           /* JSON */
	bool read_only, destructive, idempotent, open_world; /* annotations: hints for people who approve calls */
	/* For a row of `arguments`, a copy: the bounds that this server has; may be NULL. */
	void (*bound)(const struct config *config, struct bind *row);
	/* What depends on this server (languages, hosts) goes into the tool's description; may be NULL. */
	void (*refine)(struct server *server, struct json_object *tool);
	const struct tool_header *headers; /* ended by {0}; NULL: none */
	/* The fixtures of the conformance suite: schema as text, and answering the request by itself (call->result, or
	 * mcp_fail). */
	const char *input_schema;
	int (*serve)(struct mcp_call *call, struct json_object *arguments);
	/* `arguments` is the bound struct. On failure nothing of *ret is kept. */
	int (*call)(struct tool_call *call, const void *arguments, struct tool_result *ret, struct err *err);
	/* In the place of `arguments` and `call`, where its arguments are not known: makes the answer (`answered`). */
	int (*pass)(struct tool_call *call, struct json_object *arguments, struct err *err);
	/* For a tool in the form of another system: what it answers where the call is refused; NULL: the error's text.
	 * `arguments` as they came; NULL: none. */
	void (*refused)(const struct config *config, struct json_object *arguments, const struct err *err,
			struct tool_result *ret);
	const char *app; /* URI of the page by which clients that render apps show its results; NULL: none */
	enum tool_task task;
	/* The result of a run that this tool began, for tasks; call->mcp is NULL. */
	void (*result)(const struct tool_call *call, const struct job_result *run, struct tool_result *ret);
};

struct json_object *tool_output_schema(const struct tool *tool); /* the caller's; NULL: none */
const struct tool *tool_find(const struct server *server, const char *name);
/* Where the details of results go: both places, one or (0) none. `token` says so, with what the client's address or its
 * request asks for written over it. NULL or no word: nowhere. In _meta they have no nulls and no copy of the output. */
enum { TOOL_RESULTS_META = 1, TOOL_RESULTS_STRUCTURED = 2 };
#define TOOL_RESULTS_META_NAME "sallyport/result"
#define TOOL_RESULTS_ASKED     "sallyport/results" /* a request's _meta: content, structured, both or none */
unsigned tool_results(const struct store_token *token);
/* The array of tools/list for a token of these scopes (access_scopes): what it may not call it does not see. Output
 * schemas only where the details are structured. The caller's. */
struct json_object *tools_describe(struct server *server, unsigned scopes, unsigned results);
/* Runs it and makes the CallToolResult, the caller's. `arguments` NULL is the same as {}. */
int tool_run(const struct tool *tool, struct tool_call *call, struct json_object *arguments, struct json_object **ret,
	     struct err *err);

/* The CallToolResult, the caller's; takes the parts over. */
struct json_object *tool_result_object(const struct tool_result *result, unsigned results);

/* "[sallyport] ignored: NAME, NAME\n"; nothing where all arguments were known. */
#define TOOL_MARK "[sallyport]" /* what the server's own lines begin with */
void tool_note_ignored(const struct tool_call *call, struct buf *text);
/* A result of one text; `structured` is taken over. */
void tool_answer(struct tool_result *ret, const char *text, struct json_object *structured);
/* {"type":"text","text":…}; the bytes are made safe. */
void tool_add_text(struct json_object *content, const char *data, size_t length);
/* The property `name` in a tool's inputSchema; NULL if there is none. */
struct json_object *tool_property(struct json_object *tool, const char *name);
