/* A form is refused with a sentence, or its parts lie within the body, one behind the other, and have names. */
#include <string.h>

#include "cgi/http/multipart.h"
#include "fuzz.h"
#include "lib/base/util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
	/* the first line is the Content-Type */
	const uint8_t *newline = length > 0 ? memchr(data, '\n', length) : NULL;
	auto_multipart struct multipart form = {0};
	auto_buf struct buf body = {0};
	struct err err = ERR_INIT;

	if (!newline || memchr(data, '\0', (size_t)(newline - data)))
		return 0;
	auto_free char *type = xstrndup((const char *)data, (size_t)(newline - data));

	buf_init(&body, length);
	buf_add(&body, newline + 1, length - (size_t)(newline + 1 - data));
	int result = multipart_parse(type, &body, &form, &err);

	if (result < 0) {
		PROMISE((result == -ERR_INVALID || result == -ERR_LIMIT) && err.text[0] != '\0' && form.count == 0);
		return 0;
	}
	const char *at = body.data;

	PROMISE(form.count <= MULTIPART_PARTS_MAX);
	for (size_t i = 0; i < form.count; i++) {
		const struct multipart_part *part = &form.parts[i];

		PROMISE(part->name && strlen(part->name) <= MULTIPART_NAME_MAX);
		PROMISE(!part->filename || strlen(part->filename) <= MULTIPART_NAME_MAX);
		PROMISE(part->data >= at && part->data + part->length <= body.data + body.length);
		at = part->data + part->length;
	}
	return 0;
}
