/*
 * tool_wait.c - waiting for a run while its client gets its progress.
 *
 * With a progressToken the client gets what the program printed since the last message, at most every
 * MCP_PROGRESS_PAUSE_US, and a message when a keep-alive is due, which keeps its timer going. Without one, only the
 * keep-alives of the stream. A client of the modern era cancels by leaving (unless the call has an idempotency key and
 * can be repeated), one of the legacy era by notifications/cancelled; either way the job goes on to its
 * end, which is CX, on its own: what was printed until then is recorded.
 *
 * What servers say of the progress of calls (bridge_progress.h) goes to the client at the same pace, in other messages.
 *
 * Calls of tools that need the user's approval (bridge_question.h) are asked about meanwhile: in the legacy era by
 * requests on the call's stream, one after the other; in the modern era by an answer that asks back (tool_park.h).
 */
#include <sys/epoll.h>

#include "cgi/http/hub.h"
#include "cgi/mcp/mcp_stream.h"
#include "cgi/mcp/progress.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "tool_ask.h"
#include "tool_common.h"
#include "tool_park.h"

#define GATHER_MS 50 /* calls that a program makes at once are asked about at once */

struct watch {
	struct mcp_call *mcp;
	struct job *job;
	struct bridge_progress *progress;   /* of servers; NULL: there will be none */
	int64_t offset[2];                  /* how much of each stream was sent */
	int64_t told_us;                    /* when */
	struct bridge_questions *questions; /* NULL: there will be none */
	struct bridge_listener listener;
	struct mcp_question question;       /* that the client has */
	int64_t asked;                      /* its number; 0: none */
};

/* How many milliseconds to sleep until there may be something to tell. */
static int patience(const struct watch *watch)
{
	if (!watch->mcp)
		return -1;
	int keep_alive = watch->mcp->stream ? stream_patience_ms(watch->mcp->stream) : -1;
	int64_t pause = watch->told_us + MCP_PROGRESS_PAUSE_US - clock_monotonic_us();

	if (!mcp_wants_progress(watch->mcp))
		return keep_alive;
	return pause > 0 ? (int)(pause / 1000) + 1 : MIN(keep_alive, (int)(MCP_PROGRESS_PAUSE_US / 1000));
}

bool tool_progress(struct bridge_progress *progress, struct buf *ret)
{
	struct bridge_progress_text report;

	if (!bridge_progress_take(progress, &report))
		return false;
	utf8_printable(ret, report.text, report.length);
	if (report.cut)
		buf_puts(ret, "…");
	return true;
}

static void tell(struct watch *watch)
{
	bool due = stream_patience_ms(watch->mcp->stream) == 0;
	auto_buf struct buf text = {0};

	buf_init(&text, MAX(2 * MCP_PROGRESS_TEXT_MAX, TOOL_PROGRESS_MAX));
	watch->told_us = clock_monotonic_us();
	progress_new_output(watch->job, watch->offset, &text);
	/* Bytes of output, or one more where a sign of life was counted before. */
	if (text.length > 0 || due)
		mcp_progress(watch->mcp, MAX(watch->offset[0] + watch->offset[1], watch->mcp->progress + 1), -1,
			     text.length > 0 ? text.data : NULL);
	/* What a server said counts one more, as a sign of life does. */
	buf_reset(&text);
	if (watch->progress && tool_progress(watch->progress, &text))
		mcp_progress(watch->mcp, watch->mcp->progress + 1, -1, text.data);
}

/* -------- questions to the user ----------------------------------------------------------------------- */

/* On the stream of a legacy session: takes the answer to the question that the client has, if it came, and asks the
 * next one. A client that refuses to ask its user is a no. */
static int ask_on_stream(struct watch *watch, const char *who, struct err *err)
{
	auto_json struct json_object *answer = NULL;
	struct bridge_question *questions;
	struct err own = ERR_INIT;

	if (watch->asked && !bridge_question_pending(watch->questions, watch->asked)) {
		mcp_question_end(watch->mcp, &watch->question, true);
		watch->asked = 0;
	}
	if (watch->asked) {
		int result = mcp_question_poll(watch->mcp, &watch->question, 0, &answer, &own);

		if (result == -ERR_CANCELLED)
			*err = own;
		if (result == -ERR_CANCELLED || (result == 0 && !answer))
			return MIN(result, 0);
		mcp_question_end(watch->mcp, &watch->question, false);
		bridge_question_answer(watch->questions, watch->asked, tool_ask_verdict(answer));
		watch->asked = 0;
	}
	size_t count = bridge_question_list(watch->questions, 0, &questions);

	own = ERR_INIT;
	if (count > 0 && mcp_question_begin(watch->mcp, "elicitation/create", tool_ask_params(who, questions),
					    &watch->question, &own) < 0)
		bridge_questions_refuse(watch->questions, own.text);
	else if (count > 0)
		watch->asked = questions[0].number;
	bridge_question_list_free(questions, count);
	return 0;
}

/* 0; TOOL_ASKED: the call is answered with the questions; ERR_CANCELLED. */
static int ask(struct watch *watch, struct tool_run *run, struct tool_call *call, struct err *err)
{
	struct bridge_question *questions;
	struct err own = ERR_INIT;

	bridge_questions_heard(&watch->listener);
	if (!call->revision->modern)
		return ask_on_stream(watch, run->who, err);
	size_t count = bridge_question_list(watch->questions, 0, &questions);

	bridge_question_list_free(questions, count);
	if (count == 0 || job_wait_some(run->job, call->hangup_fd, -1, GATHER_MS, NULL) <= 0)
		return 0;
	if (tool_park(call, run, &own) == 0)
		return TOOL_ASKED;
	bridge_questions_refuse(watch->questions, own.text);
	return 0;
}

/* Readable when there may be an answer, a cancel or a question; -1: nothing but the in-flight request is watched. */
static int watch_all(struct watch *watch, int inflight_fd)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct err err = ERR_INIT;
	int both = epoll_create1(EPOLL_CLOEXEC);

	if (both < 0)
		err_errno(&err, "cannot make an epoll descriptor");
	if (both >= 0 && bridge_questions_listen(watch->questions, &watch->listener, &err) == 0) {
		epoll_ctl(both, EPOLL_CTL_ADD, watch->listener.fd, &event);
		if (inflight_fd >= 0)
			epoll_ctl(both, EPOLL_CTL_ADD, inflight_fd, &event);
		return both;
	}
	bridge_questions_refuse(watch->questions, err.text);
	watch->questions = NULL;
	fd_close(&both);
	return -1;
}

static int wait_and_ask(struct tool_call *call, struct tool_run *run, struct watch *watch, int wake_fd, struct err *err)
{
	int result;

	while ((result = job_wait_some(run->job, call->hangup_fd, wake_fd, patience(watch), err)) > 0) {
		if (result == JOB_WOKEN && call->mcp->inflight &&
		    hub_cancelled(call->mcp->exchange->server->hub, call->mcp->inflight))
			return err_set(err, ERR_CANCELLED, "the client cancelled it");
		if (watch->questions && (result = ask(watch, run, call, err)) != 0)
			return result;
		if (watch->mcp && mcp_wants_progress(watch->mcp))
			tell(watch);
		mcp_keep_alive(call->mcp);
	}
	return result;
}

int tool_wait(struct tool_call *call, struct tool_run *run, const struct job_result **ret, struct err *err)
{
	struct watch watch = {.mcp = call->mcp,
			      .job = run->job,
			      .progress = run->progress,
			      .questions = call->mcp ? run->questions : NULL};
	int inflight_fd = call->mcp && call->mcp->inflight ? call->mcp->inflight->wake_fd : -1;
	auto_close int both = watch.questions ? watch_all(&watch, inflight_fd) : -1;
	struct err own = ERR_INIT;

	/* Over HTTP a client that left may have lost its connection: with a key, its repeated call gets this result. */
	if (job_keyed(run->job) && call->mcp && !call->mcp->exchange->request->message)
		call->hangup_fd = -1;
	int result = wait_and_ask(call, run, &watch, both >= 0 ? both : inflight_fd, &own);

	if (watch.asked)
		mcp_question_end(call->mcp, &watch.question, true);
	if (watch.questions)
		bridge_questions_leave(watch.questions, &watch.listener);
	if (own.code == ERR_CANCELLED)
		job_cancel(run->job);
	if (result == 0)
		return job_wait(run->job, -1, ret, err);
	if (err && result < 0)
		*err = own;
	return result;
}
