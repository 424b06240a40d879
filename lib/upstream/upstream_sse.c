/* upstream_sse.c - see upstream_sse.h. */
#include "upstream_sse.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/util.h"

void sse_reader_init(struct sse_reader *reader, size_t max)
{
	*reader = (struct sse_reader){.retry_ms = -1};
	buf_init(&reader->line, max);
	buf_init(&reader->data, max);
}

void sse_reader_clear(struct sse_reader *reader)
{
	buf_clear(&reader->line);
	buf_clear(&reader->data);
}

/* A whole line, without its end. False: the reader of the events wants no more. */
static bool take_line(struct sse_reader *reader, bool (*event)(void *, const char *, const char *, size_t), void *arg)
{
	char *line = reader->line.data, *end = line + reader->line.length;
	char *colon = memchr(line, ':', reader->line.length), *value = end;
	uint64_t number;
	bool more = true;

	if (line == end) {
		if (reader->data.length > 0)
			more = event(arg, reader->type[0] != '\0' ? reader->type : "message", reader->data.data,
				     reader->data.length - 1);
		buf_reset(&reader->data);
		reader->type[0] = '\0';
		return more;
	}
	if (colon != NULL) { /* a comment has the name "" */
		*colon = '\0';
		value = colon + 1;
		value += *value == ' ';
	}
	const size_t length = (size_t)(end - value);

	if (streq(line, "data")) {
		buf_add(&reader->data, value, length);
		buf_putc(&reader->data, '\n');
	} else if (streq(line, "event")) {
		snprintf(reader->type, sizeof(reader->type), "%.*s", (int)MIN(length, sizeof(reader->type)), value);
	} else if (streq(line, "id") && length < sizeof(reader->id) && memchr(value, '\0', length) == NULL) {
		memcpy(reader->id, value, length);
		reader->id[length] = '\0';
	} else if (streq(line, "retry") && strlen(value) == length && parse_u64(value, 0, INT32_MAX, &number) == 0) {
		reader->retry_ms = (int64_t)number;
	}
	return true;
}

bool sse_reader_read(struct sse_reader *reader, const char *data, size_t length,
		     bool (*event)(void *arg, const char *type, const char *text, size_t length), void *arg)
{
	static const char bom[] = "\xef\xbb\xbf";
	bool more = true;

	for (size_t i = 0; more && i < length && !reader->overflow;) {
		size_t end = i;

		if (reader->after_cr && data[i] == '\n') {
			reader->after_cr = false;
			i++;
			continue;
		}
		reader->after_cr = false;
		while (end < length && data[end] != '\r' && data[end] != '\n')
			end++;
		buf_add(&reader->line, data + i, end - i);
		reader->overflow = reader->line.overflow;
		i = end;
		if (end == length)
			break;
		reader->after_cr = data[i++] == '\r';
		if (!reader->began && str_starts(reader->line.data, bom)) {
			reader->line.length -= strlen(bom);
			memmove(reader->line.data, reader->line.data + strlen(bom), reader->line.length + 1);
		}
		reader->began = true;
		more = take_line(reader, event, arg);
		buf_reset(&reader->line);
		reader->overflow |= reader->data.overflow;
	}
	return more && !reader->overflow;
}
