/* What raw_check lets through is JSON that can be taken apart, and passes again unchanged; event streams read the same
 * in one piece and byte by byte. */
#include "fuzz.h"

#include <string.h>

#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "lib/upstream/upstream_raw.h"
#include "lib/upstream/upstream_sse.h"

#define OUT_MAX (1 << 22)

static void take_apart(struct raw value, int depth)
{
	struct raw item;
	size_t at = 0;
	int64_t integer;
	double number;
	auto_free char *string = raw_string(value);

	PROMISE(value.length > 0 && depth <= 64);
	raw_int(value, &integer);
	raw_number(value, &number);
	raw_member(value, "a");
	while (raw_item(value, &at, &item))
		take_apart(item, depth + 1);
}

static bool note(void *arg, const char *type, const char *text, size_t length)
{
	buf_puts(arg, type);
	buf_putc(arg, ':');
	buf_add(arg, text, length);
	return true;
}

static void read_stream(const char *text, size_t length, size_t piece, struct buf *out)
{
	struct sse_reader reader;

	buf_init(out, OUT_MAX);
	sse_reader_init(&reader, OUT_MAX);
	for (size_t at = 0; at < length; at += piece)
		sse_reader_read(&reader, text + at, MIN(piece, length - at), note, out);
	buf_puts(out, reader.id);
	sse_reader_clear(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
	const char *text = (const char *)data;
	auto_buf struct buf clean, again, whole, bytes, canonical;

	buf_init(&clean, OUT_MAX);
	buf_init(&again, OUT_MAX);
	buf_init(&canonical, OUT_MAX);
	read_stream(text, length, MAX(length, 1), &whole);
	read_stream(text, length, 1, &bytes);
	PROMISE(whole.length == bytes.length && memcmp(whole.data, bytes.data, whole.length) == 0);
	if (raw_check(text, length, &clean, NULL) < 0)
		return 0;
	PROMISE(utf8_valid(clean.data, clean.length));
	PROMISE(raw_check(clean.data, clean.length, &again, NULL) == 0);
	PROMISE(again.length == clean.length && memcmp(again.data, clean.data, clean.length) == 0);
	take_apart(raw_value(clean.data, clean.length), 0);
	raw_canonical(&canonical, raw_value(clean.data, clean.length));
	buf_reset(&again);
	PROMISE(raw_check(canonical.data, canonical.length, &again, NULL) == 0);
	return 0;
}
