/*
 * bridge_tools.c - see bridge_tools.h.
 *
 * The request, the job, and the bridge from the opening of the run until its last call was answered, hold it. A call is
 * decided when it is made (upstream_policy.h), then handed to the pool; its answer comes on the pool's thread and goes
 * to the bridge as it is.
 */
#include "bridge_tools.h"

#include <stdio.h>
#include <string.h>

#include "bridge_files.h"
#include "bridge_progress.h"
#include "bridge_question.h"
#include "lib/base/config.h"
#include "lib/base/log.h"
#include "lib/base/mask.h"
#include "lib/base/util.h"
#include "lib/store/record/store_calls.h"
#include "lib/upstream/upstream_pin.h"

struct tools {
	struct job_tools job;
	struct bridge_tools_spec spec;
	char *owner, *grant, *execution;
	struct upstream_list **lists;
	size_t count;
	enum upstream_pin **pins; /* of each list's tools */
	const char **decisions;
	struct bridge_files files;
	struct bridge_run *run;
	struct bridge_questions *questions;
	struct bridge_progress *progress; /* NULL: no server is asked for it */
	struct mask *mask;                /* of the run's secrets; NULL: none */
	int calls_fd;                     /* running/ID.calls: opened with the first call */
};

static void free_run(struct job_tools *job)
{
	struct tools *tools = container_of(job, struct tools, job);

	for (size_t i = 0; i < tools->count; i++) {
		upstream_list_free(tools->lists[i]);
		free(tools->pins[i]);
	}
	free(tools->pins);
	bridge_files_clear(&tools->files);
	bridge_questions_free(tools->questions);
	bridge_progress_free(tools->progress);
	mask_free(tools->mask);
	fd_close(&tools->calls_fd);
	free(tools->lists);
	free(tools->decisions);
	free(tools->owner);
	free(tools->grant);
	free(tools->execution);
	free(tools);
}

/* -------- what a crash leaves of calls (store_calls.h) ------------------------------------------------- */

/* A text without the run's secrets: itself, or in `room`. */
static const char *veiled(const struct tools *tools, const char *text, size_t length, struct buf *room)
{
	if (!tools->mask)
		return text;
	buf_init(room, SIZE_MAX);
	mask_bytes(tools->mask, text, length, room);
	return room->data;
}

static struct store_tool_call call_of(const struct bridge_call *call)
{
	const bool asked = call->approval.given;
	struct store_tool_call ret = {
		.seq = call->seq,
		.connection = call->connection,
		.server = unconst(call->list->server->name),
		.tool = unconst(call->tool ? call->tool->name : call->uri),
		.is_read = call->tool == NULL,
		.arguments = unconst(call->arguments),
		.decision = unconst(asked ? "ask" : "allow"),
		.rule = asked ? unconst(call->approval.rule) : NULL,
		.decided_by = asked ? unconst(call->approval.by) : NULL,
		.approval_us = call->approval.us,
		.started_us = clock_now_us(),
		.finished_us = clock_now_us(),
	};

	if (call->tool)
		snprintf(ret.definition, sizeof(ret.definition), "%s", call->tool->hash);
	return ret;
}

static int note_sending(struct tools *tools, const struct bridge_call *asked, struct err *err)
{
	struct store_tool_call call = call_of(asked);
	int result = tools->calls_fd >= 0 || !tools->spec.traced
			     ? 0
			     : store_calls_open(tools->spec.store, tools->execution, &tools->calls_fd, err);

	if (result < 0 || tools->calls_fd < 0)
		return result;
	auto_buf struct buf tool = {0}, arguments = {0};

	bridge_record_hash(asked->arguments, asked->length, call.arguments_hash);
	call.tool = unconst(veiled(tools, call.tool, strlen(call.tool), &tool));
	call.arguments = unconst(veiled(tools, asked->arguments, asked->length, &arguments));
	return store_calls_sending(tools->calls_fd, &call, asked->list->server->alias, err);
}

static void note_ended(const struct tools *tools, const struct bridge_call *asked, const struct upstream_answer *answer)
{
	const bool is_result = answer->kind == UPSTREAM_RESULT;
	const char *text = is_result ? answer->result : answer->text ? answer->text : "";
	struct store_tool_call call = call_of(asked);
	auto_buf struct buf result = {0};
	struct err err = ERR_INIT;

	if (tools->calls_fd < 0)
		return;
	call.is_error = is_result && answer->is_error;
	call.result_length = is_result ? answer->length : strlen(text);
	call.result = unconst(veiled(tools, text, call.result_length, &result));
	call.result_length = tools->mask ? result.length : call.result_length;
	call.attempts = answer->attempts;
	snprintf(call.state, sizeof(call.state), "%s",
		 answer->kind == UPSTREAM_CANCELLED   ? "cancelled"
		 : is_result && !answer->is_error ? "done"
						  : "failed");
	snprintf(call.kind, sizeof(call.kind), "%s", upstream_kind_name(answer->kind));
	snprintf(call.protocol, sizeof(call.protocol), "%s", answer->protocol ? answer->protocol : "");
	if (store_calls_ended(tools->calls_fd, &call, &err) < 0)
		log_event(LOG_WARN, "the end of a call is not noted", "id", tools->execution, "error", err.text, NULL);
}

/* -------- the provider -------------------------------------------------------------------------------- */

static void done(void *arg, const struct upstream_answer *answer)
{
	const struct bridge_call *call = arg;
	const bool is_result = answer->kind == UPSTREAM_RESULT, asked = call->approval.given;

	note_ended(call->provider_arg, call, answer);

	bridge_answer(arg, &(struct bridge_answer){
				   .kind = upstream_kind_name(answer->kind),
				   .is_error = is_result && answer->is_error,
				   .result = is_result ? answer->result : NULL,
				   .length = is_result ? answer->length : 0,
				   .text = answer->text,
				   .decision = asked ? "ask" : "allow",
				   .rule = asked ? call->approval.rule : NULL,
				   .decided_by = asked ? call->approval.by : NULL,
				   .approval_us = call->approval.us,
				   .started_us = answer->started_us,
				   .protocol = answer->protocol,
				   .attempts = answer->attempts,
			   });
}

static void progressed(void *arg, double done, double total, const char *text)
{
	const struct bridge_call *call = arg;
	const struct tools *tools = call->provider_arg;
	auto_buf struct buf room = {0};

	bridge_progress_put(tools->progress, call, done, total, veiled(tools, text, strlen(text), &room));
}

static void call(void *arg, struct bridge_call *asked)
{
	struct tools *tools = arg;
	char rule[UPSTREAM_RULE_SIZE];
	struct upstream_question question = {.grant = tools->grant,
					     .server = asked->list->server,
					     .tool = asked->tool ? asked->tool->name : "resources/read",
					     .definition = asked->tool,
					     .pin = UPSTREAM_PIN_KNOWN};

	for (size_t i = 0; i < tools->count && asked->tool; i++)
		if (tools->lists[i] == asked->list) /* as the definition was when the run began */
			question.pin = tools->pins[i][asked->tool - asked->list->tools];
	const enum upstream_decision decision =
		asked->approval.given ? UPSTREAM_ALLOW : upstream_decide(&question, rule);

	if (decision == UPSTREAM_DENY) {
		auto_free char *text = xasprintf("not allowed (%s)", rule);

		return bridge_answer(asked, &(struct bridge_answer){
						    .kind = "denied", .text = text, .decision = "deny", .rule = rule});
	}
	if (decision == UPSTREAM_ASK &&
	    !bridge_question_put(tools->questions, asked, rule, upstream_policy_lenient(&question)))
		return;
	struct err err = ERR_INIT;
	const bool counted = upstream_count_call(tools->spec.upstream, tools->owner, &err) == 0;

	if (!counted || note_sending(tools, asked, &err) < 0) {
		enum upstream_kind kind = counted ? UPSTREAM_UNAVAILABLE : UPSTREAM_LIMIT;

		return bridge_answer(asked,
				     &(struct bridge_answer){.kind = upstream_kind_name(kind), .text = err.text});
	}
	const struct upstream_call upstream = {
		.key = {.server = asked->list->server, .owner = tools->owner, .run = tools->execution},
		.method = asked->tool ? NULL : "resources/read",
		.tool = asked->tool ? asked->tool->name : asked->uri,
		.arguments = asked->arguments,
		.length = asked->length,
		.definition = asked->tool,
		.list = asked->list,
		.timeout_us = asked->timeout_us,
		.progress = tools->progress ? progressed : NULL,
	};
	asked->handle = upstream_call(tools->spec.upstream, &upstream, done, asked);
}

static void cancel(void *arg, struct bridge_call *asked)
{
	struct tools *tools = arg;

	if (bridge_question_drop(tools->questions, asked))
		bridge_answer(asked, &(struct bridge_answer){.kind = "cancelled"});
	else if (asked->handle)
		upstream_cancel(tools->spec.upstream, asked->handle);
}

static void release(void *arg)
{
	struct tools *tools = arg;

	struct job_tools *job = &tools->job;

	if (tools->spec.upstream)
		upstream_end_run(tools->spec.upstream, tools->execution);
	job_tools_release(&job);
}

static const struct bridge_provider provider = {.call = call, .cancel = cancel, .release = release};

/* -------- for the engine ------------------------------------------------------------------------------ */

static int open_run(struct job_tools *job, const struct job_tools_run *run, struct job_tools_given *ret,
		    struct err *err)
{
	struct tools *tools = container_of(job, struct tools, job);
	struct bridge_spec spec = {.lists = tools->lists,
				   .count = tools->count,
				   .decisions = tools->decisions,
				   .provider = &provider,
				   .arg = tools,
				   .waits = run->waits,
				   .waits_arg = run->arg};

	bridge_caps(tools->spec.config, &spec.caps);
	tools->execution = xstrdup(run->execution);
	tools->mask = mask_keep(run->mask);
	bridge_questions_veil(tools->questions, run->mask);
	job->references++; /* the bridge's, until `release` */
	int result = bridge_open(tools->spec.bridge, &spec, &tools->run, err);
	if (result < 0)
		return result;
	*ret = (struct job_tools_given){.env = bridge_environment, .socket = bridge_run_socket(tools->run)};
	return 0;
}

static void close_run(struct job_tools *job, struct store_tools *ret)
{
	struct tools *tools = container_of(job, struct tools, job);
	struct bridge_report report;

	bridge_close(steal(&tools->run), &report);
	bridge_record(tools->lists, tools->count, &report, ret);
}

static int add_list(struct tools *tools, const char *name, struct err *err)
{
	const struct upstream_server *server;
	int result = upstream_find(tools->spec.upstream, name, &server, err);

	if (result < 0)
		return result;
	if (!upstream_policy_granted(tools->grant, server))
		return err_set(err, ERR_DENIED, "servers: this token may not use the server %s", name);
	if (server->problem)
		return err_set(err, ERR_UNAVAILABLE, "the server %s cannot be used: %s", name, server->problem);
	for (size_t i = 0; i < tools->count; i++)
		if (tools->lists[i]->server == server)
			return 0;
	const struct upstream_key key = {.server = server, .owner = tools->owner, .run = tools->execution};
	const int64_t deadline = clock_monotonic_us() + server->start_seconds * 1000000;
	result = upstream_list(tools->spec.upstream, &key, deadline, &tools->lists[tools->count], err);
	if (result < 0)
		return err_wrap(err, "the server %s", name);
	const struct upstream_list *list = tools->lists[tools->count];
	enum upstream_pin **pins = &tools->pins[tools->count++];

	if (tools->spec.store)
		return upstream_pin_states(tools->spec.store, list, tools->spec.traced, pins, err);
	if (server->pin)
		return err_set(err, ERR_DENIED,
			       "the server %s has pin: true, and there is no record to compare its tools with", name);
	*pins = xcalloc(list->count + 1, sizeof(**pins)); /* without a record nothing is known to have changed */
	return 0;
}

static void decide(struct tools *tools)
{
	char rule[UPSTREAM_RULE_SIZE];
	size_t total = 0, n = 0;

	for (size_t i = 0; i < tools->count; i++)
		total += tools->lists[i]->count;
	tools->decisions = xcalloc(total + 1, sizeof(*tools->decisions));
	for (size_t i = 0; i < tools->count; i++)
		for (size_t k = 0; k < tools->lists[i]->count; k++) {
			const struct upstream_tool *tool = &tools->lists[i]->tools[k];
			const struct upstream_question question = {.grant = tools->grant,
								   .server = tools->lists[i]->server,
								   .tool = tool->name,
								   .definition = tool,
								   .pin = tools->pins[i][k]};

			tools->decisions[n++] = upstream_decision_name(upstream_decide(&question, rule));
		}
}

static int make_files(struct tools *tools, struct err *err)
{
	size_t count = 0;
	const struct upstream_server *servers =
		tools->spec.upstream ? upstream_servers(tools->spec.upstream, &count) : NULL;
	auto_free struct bridge_known *known = xcalloc(count + 1, sizeof(*known));
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		if (upstream_policy_granted(tools->grant, &servers[i]))
			known[n++] = (struct bridge_known){servers[i].name, servers[i].description};
	const struct bridge_files_spec files = {.lists = tools->lists,
						.count = tools->count,
						.decisions = tools->decisions,
						.runner = tools->spec.runner,
						.known = known,
						.n_known = n};

	return bridge_files_make(&files, &tools->files, err);
}

int bridge_tools_new(const struct bridge_tools_spec *spec, struct job_tools **ret, struct err *err)
{
	struct tools *tools = xcalloc(1, sizeof(*tools));
	int result = 0;

	*tools = (struct tools){.job = {.references = 1, .open = open_run, .close = close_run, .free = free_run},
				.spec = *spec,
				.owner = xstrdup(spec->owner),
				.grant = spec->grant ? xstrdup(spec->grant) : NULL,
				.questions = bridge_questions_new(spec->refusal),
				.progress = spec->progress ? bridge_progress_new() : NULL,
				.calls_fd = -1};
	tools->lists = xcalloc(spec->servers.count + 1, sizeof(*tools->lists));
	tools->pins = xcalloc(spec->servers.count + 1, sizeof(*tools->pins));
	for (size_t i = 0; i < spec->servers.count && result == 0; i++)
		result = add_list(tools, spec->servers.items[i], err);
	if (result == 0) {
		decide(tools);
		result = make_files(tools, err);
	}
	if (result < 0) {
		free_run(&tools->job);
		return result;
	}
	tools->job.files = tools->files.files;
	tools->job.n_files = tools->files.count;
	*ret = &tools->job;
	return 0;
}

struct bridge_questions *bridge_tools_questions(struct job_tools *job)
{
	return container_of(job, struct tools, job)->questions;
}

struct bridge_progress *bridge_tools_progress(struct job_tools *job)
{
	return container_of(job, struct tools, job)->progress;
}
