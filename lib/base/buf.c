/* buf.c - see buf.h. */
#include "buf.h"

#include <stdarg.h>
#include <stdio.h>

#include "util.h"

#define BUF_SIZE_FIRST 64

/* What `data` of a buffer without memory points to, so that it is a text at any time. Nobody writes it. */
static char nothing[1];

void buf_init(struct buf *buf, size_t max)
{
	*buf = (struct buf){.data = nothing, .max = max};
}

void buf_init_room(struct buf *buf, char *room, size_t size)
{
	*buf = (struct buf){.data = room, .size = size, .max = size - 1};
}

void buf_clear(struct buf *buf)
{
	if (buf->size > 0)
		free(buf->data);
	buf_init(buf, buf->max);
}

void buf_reset(struct buf *buf)
{
	buf->length = 0;
	buf->overflow = false;
	if (buf->size > 0)
		buf->data[0] = '\0';
}

/* Room for `more` bytes and the NUL; how many of them may be written. */
static size_t reserve(struct buf *buf, size_t more)
{
	if (buf->overflow)
		return 0;
	if (more > buf->max - buf->length) {
		more = buf->max - buf->length;
		buf->overflow = true;
	}
	size_t need = buf->length + more + 1;

	if (need > buf->size) {
		size_t size =
			MAX(MAX(need + need / 8, 2 * buf->size), (size_t)BUF_SIZE_FIRST); /* behind much comes little */

		buf->data = xrealloc(buf->size > 0 ? buf->data : NULL, size, 1);
		buf->size = size;
	}
	return more;
}

void buf_reserve(struct buf *buf, size_t length)
{
	if (length > buf->size && length < buf->max) {
		buf->data = xrealloc(buf->size > 0 ? buf->data : NULL, length, 1);
		buf->data[buf->length] = '\0';
		buf->size = length;
	}
}

void buf_add(struct buf *buf, const void *data, size_t length)
{
	if (length == 0 || buf->overflow)
		return;
	length = reserve(buf, length);
	memcpy(buf->data + buf->length, data, length);
	buf->length += length;
	buf->data[buf->length] = '\0';
}

void buf_puts(struct buf *buf, const char *text)
{
	buf_add(buf, text, strlen(text));
}

void buf_putc(struct buf *buf, char c)
{
	buf_add(buf, &c, 1);
}

void buf_int(struct buf *buf, long long value)
{
	char text[24], *at = text + sizeof(text);
	unsigned long long left = value < 0 ? 0 - (unsigned long long)value : (unsigned long long)value;

	do {
		*--at = (char)('0' + left % 10);
		left /= 10;
	} while (left > 0);
	if (value < 0)
		*--at = '-';
	buf_add(buf, at, (size_t)(text + sizeof(text) - at));
}

void buf_printf(struct buf *buf, const char *format, ...)
{
	char small[256];
	va_list args, again;

	if (buf->overflow)
		return;
	va_start(args, format);
	va_copy(again, args);
	int length = vsnprintf(small, sizeof(small), format, args);

	if (length >= 0 && (size_t)length < sizeof(small)) {
		buf_add(buf, small, (size_t)length);
	} else {
		auto_free char *large = NULL;

		if (length < 0 || vasprintf(&large, format, again) < 0)
			abort();
		buf_add(buf, large, (size_t)length);
	}
	va_end(again);
	va_end(args);
}

char *buf_steal(struct buf *buf, size_t *ret_length)
{
	char *data = buf->size > 0 ? buf->data : xcalloc(1, 1);

	if (ret_length != NULL)
		*ret_length = buf->length;
	buf_init(buf, buf->max);
	return data;
}
