/*
 * tool_common.h - what the tools share; each is a struct tool (cgi/mcp/tools.h) of its own.
 */
#pragma once

#include "cgi/mcp/tools.h"

struct job;
struct job_engine;
struct job_request;
/* Before a run of so many seconds (0: the default) is begun: shall it be a task? ERR_LIMIT: it is too long to be waited
 * for. */
int tool_task_choose(struct tool_call *call, int64_t wall_seconds, bool *ret, struct err *err);
/* First in the initialiser of a struct job_request: who asks. */
#define TOOL_CALLER(call_)                                                                                             \
	.owner = (call_)->token->owner, .token_id = (call_)->token->id, .session_id = (call_)->session_id,             \
	.client = (call_)->client, .trace = (call_)->trace
/* Submits it as a task and makes the answer of the call. */
int tool_task_start(struct tool_call *call, struct job_engine *engine, const struct job_request *request,
		    struct err *err);
/* Waits for a run, sends the client its progress meanwhile and asks it what its program's calls need; as job_wait. A
 * call that was cancelled: ERR_CANCELLED, the job is being ended. TOOL_ASKED: the call is answered, with a question. */
#define TOOL_ASKED 1
struct tool_run;
int tool_wait(struct tool_call *call, struct tool_run *run, const struct job_result **ret, struct err *err);
/* Appends what a server said last of a call of the run, as one line for its client. False: nothing since the last time.
 */
struct bridge_progress;
#define TOOL_PROGRESS_MAX (4 * BRIDGE_PROGRESS_MAX + 4) /* bytes of it */
bool tool_progress(struct bridge_progress *progress, struct buf *ret);

/* The runners that the jailer listed, or NULL while it is away; the caller's. */
struct json_object *tool_runners(struct server *server);
/* "name" and ", alias"…: for people. */
void tool_print_names(struct buf *out, struct json_object *runner);

/* Does the caller's token have the scope? For tools that run programs; `asked`: the call wants it. ERR_DENIED names the
 * remedy. */
int tool_network_check(const struct tool_call *call, bool asked, struct err *err);
struct bind_strings;
struct job_tools;
/* The upstream servers that a token may use (upstream_policy.h); NULL: none. */
const char *tool_grant(const struct store_token *token);
/* The pool of upstream servers, started if need be; upstream.file is set. */
struct upstream;
int tool_upstream(struct server *server, struct upstream **ret, struct err *err);
/* The servers that a program may call, for job_request.tools (job_tools_release). None named: NULL.
 * ERR_NOT_FOUND and ERR_DENIED name the server. */
int tool_servers(const struct tool_call *call, const struct bind_strings *servers, const char *language, bool network,
		 struct job_tools **ret, struct err *err);
/* The same for one that is not a program of the caller's own: whatever tools.upstream says. */
int tool_servers_named(const struct tool_call *call, const struct bind_strings *servers, const char *language,
		       bool network, struct job_tools **ret, struct err *err);
/* May programs call the tools of upstream servers here? */
bool tool_servers_code(const struct config *config);
/* For a program of run_python, which has the modules also without servers; where it names none, there need be no
 * upstream.file. */
int tool_servers_python(const struct tool_call *call, const struct bind_strings *servers, struct job_tools **ret,
			struct err *err);
/* The names of those that a caller may use, as a JSON array; the caller's. NULL: none. */
struct json_object *tool_servers_names(struct server *server);
/* What programs with network reach on this server, as a sentence. */
void tool_network_describe(const struct config *config, struct buf *out);

/* The bytes of a member that holds base64, appended. */
int tool_base64(const struct tool_call *call, const struct bind_text *text, const char *member, struct buf *out,
		struct err *err);
/* Digest of a call, for idempotency keys: tool and bound arguments in the table's order. Members called "secrets" count
 * by name only: their values must not leave a trace. */
void tool_hash(const struct tool_call *call, const void *bound, char ret[SHA256_HEX_SIZE]);
/* The members of the argument tables of many tools: whose files it is about, and for tools that act. */
#define TOOL_CONVERSATION_MEMBER(struct_, member_)                                                                     \
	BIND_MEMBER(struct_, member_, "conversationId", BIND_STRING, .flags = BIND_REQUIRED, .min = 1,                 \
		    .max = STORE_CONVERSATION_MAX, .description = "As in run_code.")
#define TOOL_KEY_MAX 128
#define TOOL_KEY_MEMBER(struct_, member_)                                                                              \
	BIND_MEMBER(struct_, member_, "idempotencyKey", BIND_STRING, .min = 1, .max = TOOL_KEY_MAX,                    \
		    .description = "Any unique text: a repeated call with the same one returns the first result.")

extern const struct tool tool_run_code, tool_reset_session, tool_upload_file, tool_list_runners, tool_read_output;
extern const struct tool tool_list_files, tool_read_file, tool_write_file, tool_delete_files, tool_diff,
	tool_restore_files;
extern const struct tool tool_search_tools, tool_describe_tools;
/* Of the sets of other systems (tools.sets). */
extern const struct tool tool_execute_code, tool_execute_code_live, tool_execute_code_both, tool_initialize_sandbox,
	tool_stop_sandbox, tool_run_python;
/* Of the set "snippets". */
extern const struct tool tool_save_snippet, tool_run_snippet, tool_list_snippets;
