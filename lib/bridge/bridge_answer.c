/* bridge_answer.c - what becomes of a provider's answer: the frame that the program reads, and the record. */
#include <stdio.h>
#include <string.h>

#include "bridge_internal.h"
#include "bridge_stub.h"

void bridge_fail(struct bridge_connection *connection, int64_t id, const struct bridge_failure *failure)
{
	struct buf frame;

	buf_init(&frame, BRIDGE_FRAME_MAX);
	bridge_frame_failure(&frame, id, failure);
	bridge_send(connection, &frame);
}

struct bridge_record *bridge_record_of(const struct bridge_inflight *inflight)
{
	return inflight->record == SIZE_MAX ? NULL : &inflight->run->report.records[inflight->record];
}

static void set(char **field, const char *text)
{
	free(*field);
	*field = text ? xstrdup(text) : NULL;
}

void bridge_note(struct bridge_inflight *inflight, const struct bridge_answer *answer)
{
	struct bridge_record *record = bridge_record_of(inflight);
	const char *bytes = answer->result ? answer->result : answer->text ? answer->text : "";
	bool is_result = streq(answer->kind, "result");

	if (!record)
		return;
	record->state = is_result && !answer->is_error     ? "done"
			: streq(answer->kind, "cancelled") ? "cancelled"
			: streq(answer->kind, "denied") || streq(answer->kind, "approval") ||
					streq(answer->kind, "limit") || (!inflight->begun && !is_result)
				? "refused"
				: "failed";
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

static void answer_error(struct bridge_connection *to, const struct bridge_inflight *inflight,
			 const struct bridge_answer *answer)
{
	const struct bridge_call *call = &inflight->call;
	bool invalid = streq(answer->kind, "invalid");
	auto_free char *text = answer->is_error ? failure_text(answer->result, answer->length) : NULL;
	auto_free char *signature =
		call->tool && (invalid || answer->is_error) ? bridge_stub_signature(call->tool) : NULL;
	const struct bridge_failure failure = {
		.kind = answer->is_error ? "tool" : answer->kind,
		.server = call->list->server->name,
		.tool = call->tool ? call->tool->name : call->uri,
		.text = text           ? text
			: answer->text ? answer->text
				       : "",
		.signature = signature,
		.result = answer->is_error ? answer->result : NULL,
		.length = answer->length,
	};

	bridge_fail(to, inflight->id, &failure);
}

static bool wrapped(const struct upstream_tool *tool)
{
	struct json_object *schema = tool ? json_get(tool->object, "outputSchema", json_type_object) : NULL;

	return schema && json_object_get_boolean(json_get(schema, "x-fastmcp-wrap-result", json_type_boolean));
}

void bridge_tell(struct bridge_connection *to, const struct bridge_inflight *inflight,
		 const struct bridge_answer *answer)
{
	struct buf frame;

	if (!streq(answer->kind, "result") || answer->is_error) {
		answer_error(to, inflight, answer);
		return;
	}
	buf_init(&frame, BRIDGE_FRAME_MAX);
	bridge_frame_result(&frame, inflight->id, wrapped(inflight->call.tool), answer->result, answer->length);
	bridge_send(to, &frame);
}
