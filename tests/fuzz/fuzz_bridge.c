/*
 * What a program in a jail says to the bridge: one frame's JSON.
 *
 * Promised: what is refused says why in UTF-8; what is accepted has an id, what its operation needs, and arguments
 * whose bytes are an object and lie within the frame; an answer to it is a frame of exactly the length that its head
 * says, and its JSON is well-formed whatever the names in it are.
 */
#include "fuzz.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "lib/bridge/bridge_frame.h"

static void answer(const struct bridge_frame *frame, const struct err *err)
{
	auto_buf struct buf out = {0};
	auto_json struct json_object *again = NULL;
	const struct bridge_failure failure = {.kind = "invalid",
					       .server = frame->object ? frame->server : NULL,
					       .tool = frame->object ? frame->tool : NULL,
					       .text = err->text};

	buf_init(&out, 16 << 20);
	bridge_frame_failure(&out, frame->id, &failure);
	PROMISE(bridge_frame_length((const unsigned char *)out.data) == out.length - BRIDGE_HEAD);
	PROMISE(json_parse(out.data + BRIDGE_HEAD, out.length - BRIDGE_HEAD, &again, NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bridge_frame frame = {.id = -1};
	struct err err = ERR_INIT;
	auto_free char *bytes = xmemdup(data, size);
	int result = bridge_frame_parse(bytes, size, &frame, &err);

	if (result < 0) {
		PROMISE(err.code != ERR_NONE && utf8_valid(err.text, strlen(err.text)) && frame.id >= -1);
		frame.object = NULL;
	} else {
		PROMISE(frame.id >= 0 && frame.object != NULL && frame.timeout >= 0);
		PROMISE(frame.op != BRIDGE_CALL || (frame.server != NULL && frame.tool != NULL));
		PROMISE(frame.op != BRIDGE_READ || (frame.server != NULL && frame.uri != NULL));
		PROMISE(frame.arguments == NULL ||
			(frame.arguments > bytes && frame.arguments + frame.length < bytes + size &&
			 frame.arguments[0] == '{' && frame.arguments[frame.length - 1] == '}'));
	}
	answer(&frame, &err);
	bridge_frame_clear(&frame);
	return 0;
}
