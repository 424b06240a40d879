/* job_source.c - a program's text as it is run: without what a chat or an editor put around it; see job_internal.h. */
#include <string.h>

#include "job_internal.h"
#include "lib/base/util.h"

#define CR_LANGUAGE "bash" /* reads \r as part of words; other interpreters and compilers take CRLF */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static struct bind_text trimmed(const char *data, size_t length)
{
	for (; length > 0 && is_blank(*data); length--)
		data++;
	while (length > 0 && is_blank(data[length - 1]))
		length--;
	return (struct bind_text){data, length};
}

/* ``` or ~~~ with at most a word behind it. */
static bool opens(const struct bind_text *line)
{
	if (line->length < 3 || (memcmp(line->data, "```", 3) != 0 && memcmp(line->data, "~~~", 3) != 0))
		return false;
	const struct bind_text word = trimmed(line->data + 3, line->length - 3);

	for (size_t i = 0; i < word.length; i++)
		if (is_blank(word.data[i]) || word.data[i] == '`')
			return false;
	return true;
}

/* The text between the lines of a Markdown fence that is around all of it; false: there is none. */
static bool inside_fence(const struct bind_text *code, struct bind_text *ret)
{
	const struct bind_text text = trimmed(code->data, code->length);
	const char *first_end = text.length > 0 ? memchr(text.data, '\n', text.length) : NULL,
		   *last_begin = first_end ? memrchr(text.data, '\n', text.length) : NULL;

	if (!first_end || first_end == last_begin)
		return false;
	const struct bind_text first = trimmed(text.data, (size_t)(first_end - text.data)),
			       last = trimmed(last_begin, (size_t)(text.data + text.length - last_begin));

	if (!opens(&first) || last.length != 3 || memcmp(last.data, first.data, 3) != 0)
		return false;
	*ret = (struct bind_text){first_end + 1, (size_t)(last_begin - first_end)};
	return true;
}

void job_source(const char *language, const struct bind_text *code, struct buf *own, struct bind_text *ret)
{
	*ret = *code;
	buf_init(own, code->length);
	inside_fence(code, ret);
	if (!streq(language, CR_LANGUAGE) || !memmem(ret->data, ret->length, "\r\n", 2))
		return;
	for (size_t i = 0; i < ret->length; i++)
		if (ret->data[i] != '\r' || i + 1 == ret->length || ret->data[i + 1] != '\n')
			buf_putc(own, ret->data[i]);
	*ret = (struct bind_text){own->data, own->length};
}
