/*
 * tool_park.c - see tool_park.h.
 *
 * A run is on the list from its first question until its time is up: then nobody can answer any more, because the
 * bridge has refused the calls (limits.tool_ask_seconds), and the list forgets it. It is looked at whenever somebody
 * comes by.
 */
#include "tool_park.h"

#include <stdio.h>
#include <string.h>

#include "cgi/mcp/mcp.h"
#include "cgi/mcp/signed.h"
#include "lib/base/text.h"
#include "lib/base/util.h"
#include "lib/bridge/bridge_tools.h"
#include "lib/job/job.h"
#include "tool_ask.h"

#define STATE_MAX  2048
#define SPARE_US   60000000 /* a client that took all of its time still finds its run */

struct tool_parked {
	pthread_mutex_t lock;
	struct tool_run *first;
	bool stopping;
};

struct tool_parked *tool_parked_new(void)
{
	struct tool_parked *parked = xcalloc(1, sizeof(*parked));

	pthread_mutex_init(&parked->lock, NULL);
	return parked;
}

void tool_run_release(struct tool_run *run)
{
	if (!run || --run->references > 0)
		return;
	job_release(run->job);
	bridge_questions_free(run->questions);
	bridge_progress_free(run->progress);
	free(run);
}

static void forget(struct tool_run **link)
{
	struct tool_run *run = *link;

	*link = run->next;
	run->parked = false;
	tool_run_release(run);
}

void tool_parked_stop(struct tool_parked *parked)
{
	pthread_mutex_lock(&parked->lock);
	parked->stopping = true;
	for (struct tool_run *run = parked->first; run; run = run->next)
		bridge_questions_refuse(run->questions, "the server is stopping");
	pthread_mutex_unlock(&parked->lock);
}

void tool_parked_free(struct tool_parked *parked)
{
	if (!parked)
		return;
	while (parked->first)
		forget(&parked->first);
	pthread_mutex_destroy(&parked->lock);
	free(parked);
}

struct tool_run *tool_run_new(struct job *job, struct job_tools *tools, const char *hash)
{
	struct bridge_progress *progress = tools ? bridge_tools_progress(tools) : NULL;
	struct tool_run *run = xcalloc(1, sizeof(*run));

	*run = (struct tool_run){.job = job,
				 .questions = tools ? bridge_questions_keep(bridge_tools_questions(tools)) : NULL,
				 .progress = progress ? bridge_progress_keep(progress) : NULL,
				 .who = "A program",
				 .references = 1};
	snprintf(run->hash, sizeof(run->hash), "%s", hash ? hash : "");
	return run;
}

/* -------- the list, under its lock -------------------------------------------------------------------- */

static void expire(struct tool_parked *parked)
{
	const int64_t now = clock_monotonic_us();

	for (struct tool_run **link = &parked->first; *link;) {
		if ((*link)->until_us <= now)
			forget(link);
		else
			link = &(*link)->next;
	}
}

static int enlist(struct tool_parked *parked, struct tool_run *run, const char *owner, struct err *err)
{
	if (parked->stopping)
		return err_set(err, ERR_UNAVAILABLE, "the server is stopping");
	if (run->parked)
		return 0;
	size_t waiting = 0;

	for (const struct tool_run *other = parked->first; other; other = other->next)
		waiting += streq(other->owner, owner) && job_wait_some(other->job, -1, -1, 0, NULL) != 0;
	if (waiting >= TOOL_PARKED_MAX)
		return err_set(err, ERR_BUSY, "%d programs of yours wait for an answer already", TOOL_PARKED_MAX);
	snprintf(run->owner, sizeof(run->owner), "%s", owner);
	run->parked = true;
	run->references++;
	run->next = parked->first;
	parked->first = run;
	return 0;
}

/* -------- the state ----------------------------------------------------------------------------------- */

static char *purpose_of(const struct tool_call *call)
{
	return xasprintf("question %s", call->tool->name);
}

static int read_state(struct tool_call *call, const char *state, const char *hash, char ret_id[ID_SIZE],
		      int64_t *ret_last, struct err *err)
{
	auto_free char *purpose = purpose_of(call);
	auto_buf struct buf text = {0};
	char digest[65];
	long long last;

	buf_init(&text, STATE_MAX);
	if (strlen(state) > STATE_MAX ||
	    signed_read(call->server->store, purpose, call->token->owner, state, &text, NULL) < 0 ||
	    sscanf(text.data, "%36s %64s %lld", ret_id, digest, &last) != 3)
		return err_set(err, ERR_INVALID, "requestState: not one of this server, owner and tool");
	if (!streq(digest, hash))
		return err_set(err, ERR_INVALID, "requestState: belongs to a call with other arguments");
	*ret_last = last;
	return 0;
}

/* -------- going and coming back ----------------------------------------------------------------------- */

int tool_park(struct tool_call *call, struct tool_run *run, struct err *err)
{
	struct tool_parked *parked = call->server->parked;
	struct bridge_question *questions;
	auto_buf struct buf state = {0};

	pthread_mutex_lock(&parked->lock);
	expire(parked);
	int result = enlist(parked, run, call->token->owner, err);

	if (result == 0)
		run->until_us = clock_monotonic_us() +
				call->server->config->limits.tool_ask_seconds * INT64_C(1000000) + SPARE_US;
	pthread_mutex_unlock(&parked->lock);
	if (result < 0)
		return result;
	buf_init(&state, STATE_MAX);
	size_t count = bridge_question_list(run->questions, 0, &questions);

	auto_free char *text = xasprintf("%s %s %lld", job_id(run->job), run->hash,
					 count > 0 ? (long long)questions[count - 1].number : 0);
	auto_free char *purpose = purpose_of(call);

	signed_make(call->server->store, purpose, call->token->owner, text, &state);
	call->mcp->result = tool_ask_result(run->who, questions, count, state.data);
	call->answered = true;
	snprintf(call->outcome, sizeof(call->outcome), "input_required");
	bridge_question_list_free(questions, count);
	return 0;
}

/* What was asked and has no answer now is a no; what was put since then waits for its own turn. */
static void answer(struct tool_call *call, const struct tool_run *run, int64_t last)
{
	struct json_object *responses = json_get(call->mcp->message->params, "inputResponses", json_type_object);
	struct bridge_question *questions;
	size_t count = bridge_question_list(run->questions, 0, &questions);
	char key[TOOL_ASK_KEY_SIZE];

	for (size_t i = 0; i < count && questions[i].number <= last; i++) {
		tool_ask_key(questions[i].number, key);
		bridge_question_answer(run->questions, questions[i].number,
				       tool_ask_verdict(json_get(responses, key, json_type_object)));
	}
	bridge_question_list_free(questions, count);
}

int tool_unpark(struct tool_call *call, const char *hash, struct tool_run **ret_run, char ret_id[ID_SIZE],
		struct err *err)
{
	struct json_object *params = call->mcp ? call->mcp->message->params : NULL;
	const char *state = params && call->revision->modern ? json_get_string(params, "requestState") : NULL;
	struct tool_parked *parked = call->server->parked;
	struct tool_run *run;
	int64_t last = 0;

	*ret_run = NULL;
	if (!state)
		return 0;
	int result = read_state(call, state, hash, ret_id, &last, err);

	if (result < 0)
		return result;
	pthread_mutex_lock(&parked->lock);
	expire(parked);
	for (run = parked->first; run && !streq(job_id(run->job), ret_id); run = run->next)
		;
	if (run)
		run->references++;
	pthread_mutex_unlock(&parked->lock);
	if (run)
		answer(call, run, last);
	*ret_run = run;
	return 1;
}
