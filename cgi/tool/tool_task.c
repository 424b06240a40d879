/* tool_task.c - runs that become tasks instead of being waited for; see tools.h. */
#include "cgi/mcp/mcp_tasks.h"
#include "lib/base/util.h"
#include "lib/bridge/bridge_progress.h"
#include "lib/bridge/bridge_tools.h"
#include "tool_ask.h"
#include "tool_common.h"

int tool_task_choose(struct tool_call *call, int64_t wall_seconds, bool *ret, struct err *err)
{
	const struct config_limits *limits = &call->server->config->limits;
	int64_t seconds = wall_seconds ? wall_seconds : limits->wall_seconds;
	int64_t most = limits->synchronous_seconds ? limits->synchronous_seconds : limits->wall_seconds_max;
	bool is_long = seconds > most &&
		       seconds <= limits->wall_seconds_max; /* beyond that it cannot run at all: lib/job says so */

	if (is_long && !(call->mcp && call->mcp->task.possible)) {
		call->task_needed = true;
		return err_set(err, ERR_LIMIT,
			       "timeout_seconds: %lld is more than the %lld s that a call is waited for: ask for at "
			       "most %lld%s",
			       (long long)seconds, (long long)most, (long long)most,
			       call->server->tasks ? ", or call the tool as a task" : "");
	}
	*ret = is_long || (call->mcp && call->mcp->task.asked);
	return 0;
}

/* -------- what the program of a task needs the user for, and how far its calls are -------------------- */

struct asks {
	struct task_asks task;
	struct bridge_questions *questions; /* NULL: nobody can be asked */
	struct bridge_listener listener;
	struct bridge_progress *progress; /* NULL: nobody wants to hear of it */
};

static struct json_object *questions_now(struct task_asks *task)
{
	struct asks *asks = container_of(task, struct asks, task);
	struct json_object *requests = NULL;
	struct bridge_question *list;

	bridge_questions_heard(&asks->listener);
	size_t count = bridge_question_list(asks->questions, 0, &list);

	if (count > 0)
		requests = tool_ask_requests("A program", list, count);
	bridge_question_list_free(list, count);
	return requests;
}

static void answer(struct task_asks *task, const char *key, struct json_object *response)
{
	struct asks *asks = container_of(task, struct asks, task);
	struct bridge_question *list;
	size_t count = bridge_question_list(asks->questions, 0, &list);
	char own[TOOL_ASK_KEY_SIZE];

	for (size_t i = 0; i < count; i++) {
		tool_ask_key(list[i].number, own);
		if (streq(own, key))
			bridge_question_answer(asks->questions, list[i].number, tool_ask_verdict(response));
	}
	bridge_question_list_free(list, count);
}

static bool progress_now(struct task_asks *task, struct buf *ret)
{
	return tool_progress(container_of(task, struct asks, task)->progress, ret);
}

static void free_asks(struct task_asks *task)
{
	struct asks *asks = container_of(task, struct asks, task);

	if (asks->questions)
		bridge_questions_leave(asks->questions, &asks->listener);
	bridge_questions_free(asks->questions);
	bridge_progress_free(asks->progress);
	free(asks);
}

/* `tools` NULL: its programs call nothing. */
static struct task_asks *make_asks(const struct tool_call *call, struct job_tools *tools)
{
	struct bridge_progress *progress = tools ? bridge_tools_progress(tools) : NULL;

	if (!tools)
		return NULL;
	struct asks *asks = xcalloc(1, sizeof(*asks));

	struct bridge_questions *questions = bridge_tools_questions(tools);
	struct err err = ERR_INIT;

	/* Where the client cannot be asked, the calls are refused. */
	if (!call->revision->modern)
		bridge_questions_refuse(questions, "a task in this revision of the protocol cannot ask anybody");
	else if (bridge_questions_listen(questions, &asks->listener, &err) < 0)
		bridge_questions_refuse(questions, err.text);
	else
		asks->questions = bridge_questions_keep(questions);
	asks->progress = progress ? bridge_progress_keep(progress) : NULL;
	asks->task = (struct task_asks){.fd = asks->questions ? asks->listener.fd : -1,
					.questions = questions_now,
					.answer = answer,
					.progress = progress ? progress_now : NULL,
					.free = free_asks};
	return &asks->task;
}

int tool_task_start(struct tool_call *call, struct job_engine *engine, const struct job_request *request,
		    struct err *err)
{
	struct task_start start = {.tool = call->tool->name,
				   .engine = engine,
				   .request = request,
				   .asks = make_asks(call, request->tools)};
	int result = mcp_task_start(call->mcp, &start, err);

	if (result < 0)
		return result;
	call->answered = true;
	snprintf(call->outcome, sizeof(call->outcome), "task");
	return 0;
}
