/* memory.c - memory that is there, or the program aborts; see util.h. It needs nothing of ours: errors and buffers are
 * built on it. */
#include <stdarg.h>

#include "util.h"

void free_pointer(void *pointer_to_pointer)
{
	free(*(void **)pointer_to_pointer);
}

void *xmalloc(size_t size)
{
	void *memory = malloc(size > 0 ? size : 1);

	if (memory == NULL)
		abort();
	return memory;
}

void *xcalloc(size_t count, size_t size)
{
	void *memory = count > 0 && size > 0 ? calloc(count, size) : calloc(1, 1);

	if (memory == NULL)
		abort();
	return memory;
}

void *xrealloc(void *old, size_t count, size_t size)
{
	size_t bytes;
	void *memory = __builtin_mul_overflow(count, size, &bytes) ? NULL : realloc(old, MAX(bytes, (size_t)1));

	if (memory == NULL)
		abort();
	return memory;
}

char *xstrdup(const char *text)
{
	return xstrndup(text, strlen(text));
}

char *xmemdup(const void *data, size_t length)
{
	char *copy = xmalloc(length + 1);

	memcpy(copy, data, length);
	copy[length] = '\0';
	return copy;
}

char *xstrndup(const char *text, size_t length)
{
	length = strnlen(text, length);
	char *copy = xmalloc(length + 1);

	memcpy(copy, text, length);
	copy[length] = '\0';
	return copy;
}

char *xasprintf(const char *format, ...)
{
	char *text;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		abort();
	va_end(args);
	return text;
}
