/* tool_task.c - runs that become tasks instead of being waited for; see tools.h. */
#include "cgi/mcp/mcp_tasks.h"
#include "lib/base/util.h"
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

int tool_task_start(struct tool_call *call, struct job_engine *engine, const struct job_request *request,
		    struct err *err)
{
	struct task_start start = {.tool = call->tool->name, .engine = engine, .request = request};
	int result = mcp_task_start(call->mcp, &start, err);

	if (result < 0)
		return result;
	call->answered = true;
	snprintf(call->outcome, sizeof(call->outcome), "task");
	return 0;
}
