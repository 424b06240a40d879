/* Whatever the secrets and the bytes: pieces make no difference, and no secret is left. Input: secrets, each ended by a
 * zero byte, an empty one, then the bytes. */
#include "fuzz.h"
#include "lib/base/mask.h"
#include "lib/base/util.h"

#define SECRETS_MAX 4

static void feed(const struct mask *mask, const char *text, size_t length, size_t piece, struct buf *to)
{
	auto_mask_stream struct mask_stream stream;

	mask_stream_init(&stream, mask);
	for (size_t at = 0; at < length; at += piece)
		mask_stream_add(&stream, text + at, MIN(piece, length - at), to);
	mask_stream_end(&stream, to);
}

static bool leaks(const struct mask_value *value, const struct buf *text)
{
	/* A mark, or the places around it, may look like a secret that has an asterisk. */
	return value->length >= MASK_LEAST && value->length <= 1000 && !memchr(value->data, '*', value->length) &&
	       !memchr(value->data, '\n', value->length) && !memchr(value->data, '\r', value->length) &&
	       memmem(text->data, text->length, value->data, value->length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
	const char *text = (const char *)data, *end;
	struct mask_value values[SECRETS_MAX];
	auto_buf struct buf whole = {0}, pieces = {0};
	size_t count = 0;

	while (count < SECRETS_MAX && (end = memchr(text, '\0', length))) {
		values[count] = (struct mask_value){text, (size_t)(end - text)};
		length -= values[count].length + 1;
		text = end + 1;
		if (values[count].length == 0)
			break;
		if (values[count].length <= 1000)
			count++;
	}
	auto_mask struct mask *mask = mask_new(values, count);

	buf_init(&whole, SIZE_MAX);
	buf_init(&pieces, SIZE_MAX);
	feed(mask, text, length, length + 1, &whole);
	feed(mask, text, length, 1 + length % 7, &pieces);
	PROMISE(whole.length == pieces.length && memcmp(whole.data, pieces.data, whole.length) == 0);
	for (size_t i = 0; i < count; i++)
		PROMISE(!leaks(&values[i], &whole));
	return 0;
}
