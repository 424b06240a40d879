/*
 * mcp_tasks.h - tasks as clients see them, in both forms.
 *
 * Revision 2025-11-25: the client asks for a task (params.task of tools/call), polls tasks/get and fetches the result
 * with tasks/result, which waits for it; tasks/list and tasks/cancel. Revision 2026-07-28, extension
 * io.modelcontextprotocol/tasks: the client says in each request that it knows tasks, the server decides whether a call
 * becomes one, and tasks/get brings the result, too. Older revisions have none. The form is chosen by the era of the
 * request alone: one client names the extension in the other era as well.
 */
#pragma once

#include "mcp.h"
#include "tasks.h"
#include "tools.h"

#define MCP_TASKS_EXTENSION "io.modelcontextprotocol/tasks"
#define MCP_TASKS_PAGE      50           /* tasks in one answer to tasks/list */

/* What this server can do with tasks, added to the capabilities for clients that speak this revision. */
void mcp_task_capabilities(const struct server *server, const struct mcp_revision *revision,
			   struct json_object *capabilities);
/* Does this client's revision have a place for it? */
bool mcp_task_support_shown(const struct mcp_call *call);
/* Says in the list of tools, where the revision has a place for it, which of them may be tasks. */
void mcp_task_support(struct mcp_call *call, struct json_object *tools);
/* tools/call: sets call->task; fails where the tool and the request do not go together. */
int mcp_task_offer(struct mcp_call *call, const struct tool *tool);
/* Begins a task for a call that offers it and makes the answer; session, token and ttl of *start are filled in here. */
int mcp_task_start(struct mcp_call *call, struct task_start *start, struct err *err);
/* Modern: fails with 400 -32021 unless the request declares the extension. */
int mcp_require_tasks(struct mcp_call *call);
/* For a listener of the modern era: the task as tasks/get gives it, the caller's; NULL: it is not the owner's (any
 * more). */
struct json_object *mcp_task_describe(struct mcp_call *call, const char *id);

int mcp_tasks_get(struct mcp_call *call);
int mcp_tasks_cancel(struct mcp_call *call);
int mcp_tasks_update(struct mcp_call *call); /* modern */
int mcp_tasks_result(struct mcp_call *call); /* legacy */
int mcp_tasks_list(struct mcp_call *call);   /* legacy */

/* Shared by mcp_tasks.c and mcp_tasks_legacy.c. */
/* The members of a Task in the form of this era, put into *ret; `asks`: it waits for an answer of the client. */
void mcp_task_print(struct mcp_call *call, const struct store_task *task, bool asks, struct json_object *ret);
/* The CallToolResult of a task that has ended, the caller's. */
int mcp_task_result(struct mcp_call *call, const struct store_task *task, struct json_object **ret, struct err *err);
/* The checks that all methods begin with; *ret_id (NULL: it has none) is params.taskId. */
int mcp_task_check(struct mcp_call *call, const char **ret_id);
/* The store's failure as the JSON-RPC error: unknown, expired and another owner's are the same. */
int mcp_task_fail(struct mcp_call *call, const char *id, const struct err *err);
/* The result's task, in its _meta. */
void mcp_task_add_related(struct json_object *result, const char *id);
/* A task_tell (tasks.h). */
bool mcp_task_tell(struct server *server, const struct store_task *task, const char *token, int64_t progress,
		   const char *text);
