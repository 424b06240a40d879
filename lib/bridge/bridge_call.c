/*
 * bridge_call.c - calls between the frame that asks and the frame that answers.
 *
 * Each call is counted first, refused ones too. What passes the checks gets a record and a deadline, and goes to the
 * provider when fewer than caps.in_flight of its run are there; the others wait in order. A call that ends before its
 * provider has answered (its deadline, a cancel, the end of its connection or run) is answered at once; the provider's
 * answer is dropped when it comes.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bridge_internal.h"
#include "bridge_stub.h"

static void inflight_free(struct bridge_inflight *inflight)
{
	upstream_list_free(inflight->call.list);
	free(inflight->arguments);
	free(inflight->uri);
	free(inflight->texts);
	free(inflight);
}

/* -------- what becomes of an answer: the frame that the program reads, and the record ------------------ */

void bridge_fail(struct bridge_connection *connection, int64_t id, const struct bridge_failure *failure)
{
	struct buf frame;

	buf_init(&frame, BRIDGE_FRAME_MAX);
	bridge_frame_failure(&frame, id, failure);
	bridge_send(connection, &frame);
}

/* NULL: it has none. */
static struct store_tool_call *record_of(const struct bridge_inflight *inflight)
{
	return inflight->record == SIZE_MAX ? NULL : &inflight->run->report.records[inflight->record];
}

static void set(char **field, const char *text)
{
	free(*field);
	*field = text ? xstrdup(text) : NULL;
}

/* In its record. */
static void note(struct bridge_inflight *inflight, const struct bridge_answer *answer)
{
	struct store_tool_call *record = record_of(inflight);
	const char *bytes = answer->result ? answer->result : answer->text ? answer->text : "";
	bool is_result = streq(answer->kind, "result");

	if (!record)
		return;
	const char *state = is_result && !answer->is_error     ? "done"
			    : streq(answer->kind, "cancelled") ? "cancelled"
			    : streq(answer->kind, "denied") || streq(answer->kind, "approval") ||
					    streq(answer->kind, "limit") || (!inflight->begun && !is_result)
				    ? "refused"
				    : "failed";
	snprintf(record->state, sizeof(record->state), "%s", state);
	snprintf(record->kind, sizeof(record->kind), "%s", answer->kind);
	record->is_error = answer->is_error;
	record->result_length = answer->result ? answer->length : strlen(bytes);
	record->result = xmemdup(bytes, record->result_length);
	set(&record->decision, answer->decision);
	set(&record->rule, answer->rule);
	set(&record->decided_by, answer->decided_by);
	snprintf(record->protocol, sizeof(record->protocol), "%s", answer->protocol ? answer->protocol : "");
	record->attempts = answer->attempts;
	record->approval_us = answer->approval_us;
	record->started_us = answer->started_us ? answer->started_us : record->started_us;
	record->finished_us = clock_now_us();
}

/* All text blocks of a result that says it failed, one after the other. */
static char *failure_text(const char *result, size_t length)
{
	auto_json struct json_object *object = NULL;
	auto_buf struct buf text = {0};
	struct json_object *blocks;

	buf_init(&text, 1 << 20);
	if (json_parse(result, length, &object, NULL) < 0)
		return xstrdup("the tool failed");
	blocks = json_get(object, "content", json_type_array);
	for (size_t i = 0; blocks && i < json_object_array_length(blocks); i++) {
		struct json_object *block = json_object_array_get_idx(blocks, i);
		struct json_object *part = json_get(block, "text", json_type_string);

		if (part && text.length > 0)
			buf_putc(&text, '\n');
		if (part)
			buf_add(&text, json_object_get_string(part), (size_t)json_object_get_string_len(part));
	}
	buf_putc(&text, '\0');
	return text.length > 1 ? xstrdup(text.data) : xstrdup("the tool failed");
}

static void tell(struct bridge_connection *to, const struct bridge_inflight *inflight,
		 const struct bridge_answer *answer)
{
	const struct bridge_call *call = &inflight->call;
	const struct upstream_tool *tool = call->tool;
	struct json_object *schema = tool ? json_get(tool->object, "outputSchema", json_type_object) : NULL;
	bool wrap = json_object_get_boolean(json_get(schema, "x-fastmcp-wrap-result", json_type_boolean));
	struct buf frame;

	if (streq(answer->kind, "result") && !answer->is_error) {
		buf_init(&frame, BRIDGE_FRAME_MAX);
		bridge_frame_result(&frame, inflight->id, wrap, answer->result, answer->length);
		bridge_send(to, &frame);
		return;
	}
	bool shows = tool && (streq(answer->kind, "invalid") || answer->is_error);
	auto_free char *text = answer->is_error ? failure_text(answer->result, answer->length) : NULL;
	auto_free char *signature = shows ? bridge_stub_signature(tool) : NULL;
	const struct bridge_failure failure = {
		.kind = answer->is_error ? "tool" : answer->kind,
		.server = call->list->server->name,
		.tool = tool ? tool->name : call->uri,
		.text = text           ? text
			: answer->text ? answer->text
				       : "",
		.signature = signature,
		.result = answer->is_error ? answer->result : NULL,
		.length = answer->length,
	};

	bridge_fail(to, inflight->id, &failure);
}

/* -------- the end of a call --------------------------------------------------------------------------- */

/* Out of its run's list. */
static void leave(struct bridge_inflight *inflight)
{
	struct bridge_run *run = inflight->run;
	struct bridge_inflight **link = &run->inflight;

	while (*link != inflight)
		link = &(*link)->next;
	*link = inflight->next;
	if (!inflight->next)
		run->inflight_last = link;
	if (inflight->begun)
		run->begun--;
	if (inflight->held)
		run->asking--;
	run->held -= inflight->call.length;
	inflight->run = NULL;
	inflight->connection = NULL;
}

/* Freed when its provider has answered, or never had it. */
static void let_go(struct bridge_inflight *inflight)
{
	if (!inflight->begun || inflight->answered)
		inflight_free(inflight);
}

/* Tells the program and the record. The connection may end with it, and with that other calls. */
static void finish(struct bridge_inflight *inflight, const struct bridge_answer *answer)
{
	struct bridge_connection *to = inflight->connection;
	struct bridge_run *run = inflight->run;

	note(inflight, answer);
	leave(inflight);
	if (to)
		tell(to, inflight, answer);
	let_go(inflight);
	/* Something left: others may begin, and more may be read. */
	bridge_clock_note(run);
	bridge_begin_waiting(run);
	for (struct bridge_connection *one = run->connections; one; one = one->next)
		if (!one->ends)
			bridge_connection_watch(one);
}

static void give_up(struct bridge_inflight *inflight, const char *kind, const char *text)
{
	const struct bridge_provider *provider = inflight->run->spec.provider;

	if (inflight->begun && !inflight->answered)
		provider->cancel(inflight->call.provider_arg, &inflight->call);
	finish(inflight,
	       &(struct bridge_answer){.kind = kind,
				       .text = text,
				       .decision = inflight->held ? "ask" : NULL,
				       .rule = inflight->held ? inflight->call.approval.rule : NULL,
				       .approval_us = inflight->held ? clock_monotonic_us() - inflight->held_us : 0});
}

void bridge_cancel(struct bridge_run *run, const struct bridge_connection *connection)
{
	struct bridge_inflight *next;

	for (struct bridge_inflight *inflight = run->inflight; inflight; inflight = next) {
		next = inflight->next;
		if (connection && inflight->connection != connection)
			continue;
		if (inflight->begun && !inflight->answered)
			run->spec.provider->cancel(run->spec.arg, &inflight->call);
		note(inflight,
			    &(struct bridge_answer){.kind = "cancelled", .text = "the program ended the call"});
		leave(inflight);
		let_go(inflight);
	}
	bridge_clock_note(run);
}

/* Whose turns the thread that runs here takes; NULL: nobody's. */
static _Thread_local const void *turns_of;

static const void *thread_of(const struct bridge *bridge)
{
	return bridge->upstream ? (const void *)bridge->upstream : (const void *)bridge;
}

void bridge_take_turn(const struct bridge *bridge)
{
	turns_of = thread_of(bridge);
}

void bridge_wake(struct bridge *bridge)
{
	const uint64_t one = 1;

	if (turns_of == thread_of(bridge))
		return; /* it takes the next turn before it sleeps */
	if (write(bridge->wake_fd, &one, sizeof(one)) < 0)
		return; /* the counter is full: it will wake */
}

/* To the bridge's thread. */
static void post(struct bridge_inflight *inflight)
{
	struct bridge *bridge = inflight->bridge;

	pthread_mutex_lock(&bridge->answers_lock);
	bool first = bridge->answers == NULL;
	*bridge->answers_last = inflight;
	bridge->answers_last = &inflight->next_answer;
	pthread_mutex_unlock(&bridge->answers_lock);
	if (first) /* else it was woken already and has not come yet, or is taking them */
		bridge_wake(bridge);
}

void bridge_answer(struct bridge_call *call, const struct bridge_answer *answer)
{
	struct bridge_inflight *inflight = container_of(call, struct bridge_inflight, call);
	const char *texts[] = {answer->text, answer->decision, answer->rule, answer->decided_by, answer->protocol};
	const char **copies[] = {&inflight->answer.text, &inflight->answer.decision, &inflight->answer.rule,
				 &inflight->answer.decided_by, &inflight->answer.protocol};
	size_t size = answer->length + 1;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		size += texts[i] ? strlen(texts[i]) + 1 : 0;
	inflight->answer = *answer;
	char *at = inflight->texts = xmalloc(size + strlen(answer->kind) + 1);
	if (answer->result) {
		inflight->answer.result = memcpy(at, answer->result, answer->length);
		at[answer->length] = '\0';
		at += answer->length + 1;
	}
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (texts[i]) {
			*copies[i] = at;
			at = stpcpy(at, texts[i]) + 1;
		}
	inflight->answer.kind = at;
	stpcpy(at, answer->kind);
	post(inflight);
}

/* -------- calls that a person must allow -------------------------------------------------------------- */

void bridge_hold(struct bridge_call *call)
{
	struct bridge_inflight *inflight = container_of(call, struct bridge_inflight, call);

	inflight->held = true;
	inflight->held_us = clock_monotonic_us();
	inflight->left_us = MAX(inflight->deadline_us - inflight->held_us, 1);
	inflight->deadline_us = inflight->held_us + inflight->run->spec.caps.ask_us;
	inflight->run->asking++;
	bridge_clock_note(inflight->run);
}

void bridge_again(struct bridge_call *call)
{
	struct bridge_inflight *inflight = container_of(call, struct bridge_inflight, call);

	inflight->again = true;
	post(inflight);
}

static void answered(struct bridge_inflight *inflight)
{
	struct bridge_run *run = inflight->run;
	struct bridge_run *owner = inflight->owner;
	const struct bridge_answer *answer = &inflight->answer;
	const struct bridge_caps *caps = &owner->spec.caps;
	char text[128];

	if (inflight->again && run) {
		inflight->again = inflight->held = false;
		inflight->deadline_us = clock_monotonic_us() + inflight->left_us;
		inflight->call.timeout_us = inflight->left_us;
		run->asking--;
		bridge_clock_note(run);
		run->spec.provider->call(run->spec.arg, &inflight->call);
		return;
	}
	owner->owed--;
	inflight->answered = true;
	if (!run) {
		inflight_free(inflight);
		return;
	}
	const struct bridge_answer limit = {.kind = "limit", .text = text, .attempts = answer->attempts};
	if (answer->result && (int64_t)answer->length > caps->result_bytes) {
		snprintf(text, sizeof(text), "the result has %zu bytes, the limit is %lld", answer->length,
			 (long long)caps->result_bytes);
		return finish(inflight, &limit);
	}
	run->result_bytes += (int64_t)answer->length;
	snprintf(text, sizeof(text), "the results of this run have more than %lld bytes",
		 (long long)caps->total_bytes);
	finish(inflight, run->result_bytes > caps->total_bytes ? &limit : answer);
}

void bridge_take_answers(struct bridge *bridge)
{
	for (;;) {
		pthread_mutex_lock(&bridge->answers_lock);
		struct bridge_inflight *inflight = bridge->answers;
		if (inflight && !(bridge->answers = steal(&inflight->next_answer)))
			bridge->answers_last = &bridge->answers;
		pthread_mutex_unlock(&bridge->answers_lock);
		if (!inflight)
			return;
		const int64_t began_us = share_clock();
		struct bridge_run *owner = inflight->owner; /* freed at the end of a turn */

		answered(inflight);
		share_charge_large(&owner->share, began_us);
	}
}

/* -------- the clock, again ---------------------------------------------------------------------------- */

int64_t bridge_deadline(const struct bridge_run *run)
{
	const int64_t rests_until = run->share.rests_until_us ? run->share.rests_until_us : INT64_MAX;
	int64_t until = MIN(bridge_clock_deadline(run), rests_until);

	for (const struct bridge_inflight *inflight = run->inflight; inflight; inflight = inflight->next)
		until = MIN(until, inflight->deadline_us);
	return until;
}

void bridge_tick(struct bridge_run *run, int64_t now_us)
{
	bridge_clock_tick(run, now_us);
	bridge_rested(run, now_us);
	for (struct bridge_inflight *inflight = run->inflight; inflight;) {
		if (inflight->deadline_us > now_us) {
			inflight = inflight->next;
			continue;
		}
		if (inflight->held)
			give_up(inflight, "approval", "nobody answered the question whether this call is allowed");
		else
			give_up(inflight, "timeout", "no answer within the call's time");
		inflight = run->inflight; /* any of them may have gone with it */
	}
}

/* -------- the beginning of a call --------------------------------------------------------------------- */

void bridge_begin_waiting(struct bridge_run *run)
{
	for (struct bridge_inflight *inflight = run->inflight; inflight && run->begun < run->spec.caps.in_flight;
	     inflight = inflight->next) {
		struct store_tool_call *record = record_of(inflight);

		if (inflight->begun || inflight->connection->n_outputs >= BRIDGE_UNREAD)
			continue;
		inflight->begun = true;
		run->begun++;
		run->owed++;
		if (record)
			record->started_us = clock_now_us();
		inflight->call.timeout_us = MAX(inflight->deadline_us - clock_monotonic_us(), 1);
		run->spec.provider->call(run->spec.arg, &inflight->call);
	}
}

static struct upstream_list *find_list(const struct bridge_run *run, const char *name)
{
	for (size_t i = 0; i < run->spec.count; i++)
		if (streq(run->lists[i]->server->name, name))
			return run->lists[i];
	for (size_t i = 0; i < run->spec.count; i++)
		if (streq(run->lists[i]->server->alias, name))
			return run->lists[i];
	return NULL;
}

/* By its name, else by the one that programs write. */
static const struct upstream_tool *find_tool(const struct upstream_list *list, const char *name, struct err *err)
{
	const struct upstream_tool *found = NULL;
	char alias[UPSTREAM_ALIAS_SIZE];

	if (upstream_list_find(list, name, &found, err) == 0)
		return found;
	for (size_t i = 0; i < list->count; i++) {
		upstream_name_alias(list->tools[i].name, alias);
		if (streq(alias, name))
			return &list->tools[i];
	}
	return NULL;
}

/* The record of a call that arrived; SIZE_MAX: so many were refused that no more are named. */
static size_t add_record(struct bridge_connection *connection, const struct bridge_frame *frame)
{
	struct bridge_run *run = connection->run;
	struct bridge_report *report = &run->report;
	const char *tool = frame->op == BRIDGE_READ ? frame->uri : frame->tool;
	const char *arguments = frame->arguments ? frame->arguments : "{}";
	const size_t length = frame->arguments ? frame->length : strlen(arguments);

	if (report->count >= (size_t)run->spec.caps.calls + BRIDGE_REFUSED_KEPT)
		return SIZE_MAX;
	report->records = xrealloc(report->records, report->count + 1, sizeof(*report->records));
	report->records[report->count] = (struct store_tool_call){
		.seq = report->calls,
		.connection = connection->number,
		.server = xstrdup(frame->server),
		.tool = xstrdup(tool),
		.is_read = frame->op == BRIDGE_READ,
		.arguments = xmemdup(arguments, length),
		.state = "refused",
		.queued_us = clock_now_us(),
	};
	/* Here and not at the run's end: there the thread that ends all runs would do it, for all calls at once. */
	bridge_record_hash(arguments, length, report->records[report->count].arguments_hash);
	return report->count++;
}

/* What is wrong with the call, before anybody is asked: NULL, or the kind. */
static const char *check(const struct bridge_run *run, const struct bridge_frame *frame,
			 struct bridge_inflight *inflight, struct err *err)
{
	const struct bridge_caps *caps = &run->spec.caps;

	if (run->report.calls > caps->calls) {
		err_set(err, ERR_LIMIT, "this run has made %lld calls, the limit", (long long)caps->calls);
		return "limit";
	}
	if ((int64_t)frame->length > caps->argument_bytes) {
		err_set(err, ERR_LIMIT, "the arguments have %zu bytes, the limit is %lld", frame->length,
			(long long)caps->argument_bytes);
		return "limit";
	}
	inflight->call.list = find_list(run, frame->server);
	if (!inflight->call.list) {
		err_set(err, ERR_NOT_FOUND,
			"Server '%s' is not available: this run may call only the servers that it names",
			frame->server);
		return "invalid";
	}
	if (frame->op == BRIDGE_READ)
		return NULL;
	inflight->call.tool = find_tool(inflight->call.list, frame->tool, err);
	if (!inflight->call.tool)
		return "invalid";
	return bridge_check(inflight->call.tool, frame->values, err) < 0 ? "invalid" : NULL;
}

static void ask(struct bridge_connection *connection, const struct bridge_frame *frame)
{
	struct bridge_run *run = connection->run;
	struct bridge_inflight *inflight = xcalloc(1, sizeof(*inflight));
	const struct bridge_caps *caps = &run->spec.caps;
	int64_t asked_us = frame->timeout > 0 ? (int64_t)(MIN(frame->timeout, 1e6) * 1e6) : caps->call_us;
	struct err err = ERR_INIT;

	run->report.calls++;
	const char *kind = check(run, frame, inflight, &err);
	inflight->record = add_record(connection, frame);
	inflight->bridge = run->bridge;
	inflight->run = inflight->owner = run;
	inflight->connection = connection;
	inflight->id = frame->id;
	inflight->arguments = xmemdup(frame->arguments ? frame->arguments : "{}", frame->arguments ? frame->length : 2);
	inflight->uri = frame->op == BRIDGE_READ ? xstrdup(frame->uri) : NULL;
	inflight->deadline_us = clock_monotonic_us() + MIN(asked_us, caps->call_most_us);
	if (inflight->call.list)
		upstream_list_keep(inflight->call.list);
	inflight->call.uri = inflight->uri;
	inflight->call.arguments = inflight->arguments;
	inflight->call.length = frame->arguments ? frame->length : 2;
	inflight->call.seq = run->report.calls;
	inflight->call.connection = connection->number;
	inflight->call.provider_arg = run->spec.arg;
	if (inflight->call.tool && inflight->record != SIZE_MAX)
		snprintf(record_of(inflight)->definition, sizeof(record_of(inflight)->definition), "%s",
			 inflight->call.tool->hash);
	if (kind) {
		auto_free char *signature = inflight->call.tool ? bridge_stub_signature(inflight->call.tool) : NULL;

		note(inflight, &(struct bridge_answer){.kind = kind, .text = err.text});
		bridge_fail(connection, frame->id,
			    &(struct bridge_failure){.kind = kind,
						     .server = frame->server,
						     .tool = frame->op == BRIDGE_READ ? frame->uri : frame->tool,
						     .text = err.text,
						     .signature = signature});
		inflight_free(inflight);
		return;
	}
	run->held += inflight->call.length;
	*run->inflight_last = inflight;
	run->inflight_last = &inflight->next;
	bridge_clock_note(run);
	bridge_begin_waiting(run);
}

static void answer_text(struct bridge_connection *connection, int64_t id, const struct buf *text)
{
	struct buf frame;

	buf_init(&frame, BRIDGE_FRAME_MAX);
	bridge_frame_result(&frame, id, false, text->data, text->length);
	bridge_send(connection, &frame);
}

static void describe(struct bridge_connection *connection, const struct bridge_frame *frame, struct buf *text)
{
	const struct bridge_run *run = connection->run;
	struct upstream_list *list = find_list(run, frame->server);
	struct err err = ERR_INIT;
	const struct upstream_tool *tool = list && frame->tool ? find_tool(list, frame->tool, &err) : NULL;

	if (!list)
		err_set(&err, ERR_NOT_FOUND, "Server '%s' is not available", frame->server);
	if (!list || (frame->tool && !tool)) {
		bridge_fail(connection, frame->id, &(struct bridge_failure){.kind = "invalid", .text = err.text});
		return;
	}
	size_t at = 0;
	while (run->lists[at] != list)
		at++;
	bridge_print_tools(text, run, at, tool ? tool->name : NULL, frame->detail);
	answer_text(connection, frame->id, text);
}

void bridge_asked(struct bridge_connection *connection, struct bridge_frame *frame)
{
	struct bridge_inflight *inflight = connection->run->inflight;
	auto_buf struct buf text = {0};

	buf_init(&text, BRIDGE_FRAME_MAX);
	switch (frame->op) {
	case BRIDGE_CALL:
	case BRIDGE_READ:
		ask(connection, frame);
		break;
	case BRIDGE_CANCEL:
		while (inflight && !(inflight->connection == connection && inflight->id == frame->call))
			inflight = inflight->next;
		if (inflight)
			give_up(inflight, "cancelled", "the program cancelled the call");
		buf_puts(&text, "true");
		answer_text(connection, frame->id, &text);
		break;
	case BRIDGE_SERVERS:
		bridge_print_servers(&text, connection->run);
		answer_text(connection, frame->id, &text);
		break;
	case BRIDGE_SEARCH:
		bridge_print_search(&text, connection->run, frame);
		answer_text(connection, frame->id, &text);
		break;
	case BRIDGE_DESCRIBE:
		describe(connection, frame, &text);
		break;
	}
}
