/*
 * tool_wait.c - waiting for a run while its client gets its progress.
 *
 * With a progressToken the client gets what the program printed since the last message, at most every
 * MCP_PROGRESS_PAUSE_US, and a message when a keep-alive is due, which keeps its timer going. Without one, only the
 * keep-alives of the stream. A client of the modern era cancels by leaving, one of the legacy era by
 * notifications/cancelled; either way the job goes on to its end, which is CX, on its own: what was printed until then
 * is recorded.
 */
#include "cgi/http/hub.h"
#include "cgi/mcp/mcp_stream.h"
#include "cgi/mcp/progress.h"
#include "lib/base/util.h"
#include "tool_common.h"

struct watch {
	struct mcp_call *mcp;
	struct job *job;
	int64_t offset[2]; /* how much of each stream was sent */
	int64_t told_us;   /* when */
};

/* How many milliseconds to sleep until there may be something to tell. */
static int patience(const struct watch *watch)
{
	int keep_alive = watch->mcp->stream ? stream_patience_ms(watch->mcp->stream) : -1;
	int64_t pause = watch->told_us + MCP_PROGRESS_PAUSE_US - clock_monotonic_us();

	if (!mcp_wants_progress(watch->mcp))
		return keep_alive;
	return pause > 0 ? (int)(pause / 1000) + 1 : MIN(keep_alive, (int)(MCP_PROGRESS_PAUSE_US / 1000));
}

static void tell(struct watch *watch)
{
	bool due = stream_patience_ms(watch->mcp->stream) == 0;
	auto_buf struct buf text = {0};

	buf_init(&text, 2 * MCP_PROGRESS_TEXT_MAX);
	watch->told_us = clock_monotonic_us();
	progress_new_output(watch->job, watch->offset, &text);
	/* Bytes of output, or one more where a sign of life was counted before. */
	if (text.length > 0 || due)
		mcp_progress(watch->mcp, MAX(watch->offset[0] + watch->offset[1], watch->mcp->progress + 1), -1,
			     text.length > 0 ? text.data : NULL);
}

static bool cancelled(struct mcp_call *mcp)
{
	return mcp->flight && hub_cancelled(mcp->exchange->server->hub, mcp->flight);
}

int tool_wait(struct tool_call *call, struct job *job, const struct job_result **ret, struct err *err)
{
	struct watch watch = {.mcp = call->mcp, .job = job};
	int wake_fd = call->mcp && call->mcp->flight ? call->mcp->flight->wake_fd : -1;
	struct err own = ERR_INIT;
	int result;

	while ((result = job_wait_some(job, call->hangup_fd, wake_fd, call->mcp ? patience(&watch) : -1, &own)) > 0) {
		if (result == JOB_WOKEN && cancelled(call->mcp)) {
			result = err_set(&own, ERR_CANCELLED, "the client cancelled it");
			break;
		}
		if (mcp_wants_progress(call->mcp))
			tell(&watch);
		mcp_keep_alive(call->mcp);
	}
	if (own.code == ERR_CANCELLED)
		job_cancel(job);
	if (result == 0)
		return job_wait(job, -1, ret, err);
	if (err)
		*err = own;
	return result;
}
