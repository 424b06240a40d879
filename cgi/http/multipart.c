/*
 * multipart.c - see multipart.h.
 *
 * A body is: "--BOUNDARY" CRLF, then for each part its headers, an empty line and its bytes, then CRLF "--BOUNDARY";
 * behind the last one stands "--". A boundary counts only at the beginning of a line, so bytes that look like one
 * elsewhere are content. What stands before the first and behind the last boundary is ignored, as RFC 2046 says.
 */
#include "multipart.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/base/text.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"

#define BOUNDARY_MAX 70 /* RFC 2046 */

struct reader {
	const char *at, *end;
	char mark[BOUNDARY_MAX + 5]; /* CRLF "--BOUNDARY" */
	size_t mark_length;
};

/* The value behind a parameter's '=', quoted or not, into `ret`; returns what is behind it. NULL: a quote is open. */
static const char *take_value(const char *text, const char *end, struct buf *ret)
{
	const bool quoted = text < end && *text == '"';

	buf_reset(ret);
	for (text += quoted; text < end && (quoted ? *text != '"' : *text != ';'); text++) {
		if (quoted && *text == '\\' && text + 1 < end && (text[1] == '"' || text[1] == '\\'))
			text++;
		buf_putc(ret, *text);
	}
	if (quoted && text == end)
		return NULL;
	return text + quoted;
}

/* A parameter's value into `ret`; false: it is not there, or not well-formed. `text` begins behind the value that it
 * belongs to. */
static bool parameter(const char *text, const char *end, const char *name, struct buf *ret)
{
	const size_t name_length = strlen(name);

	while (text && text < end) {
		while (text < end && strchr("; \t", *text))
			text++;
		const char *equals = memchr(text, '=', (size_t)(end - text));

		if (!equals)
			return false;
		const bool wanted = (size_t)(equals - text) == name_length && strncasecmp(text, name, name_length) == 0;

		text = take_value(equals + 1, end, ret);
		if (wanted)
			return text && !ret->overflow;
	}
	return false;
}

/* Browsers write a quote and line breaks in names as %22, %0D, %0A (HTML's form encoding). */
static void unescape_name(char *name)
{
	static const struct {
		const char *code;
		char byte;
	} codes[] = {{"%22", '"'}, {"%0D", '\r'}, {"%0A", '\n'}};
	char *to = name;

	for (const char *from = name; *from; to++) {
		char byte = *from;
		size_t taken = 1;

		for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
			if (strncasecmp(from, codes[i].code, 3) == 0) {
				byte = codes[i].byte;
				taken = 3;
			}
		}
		*to = byte;
		from += taken;
	}
	*to = '\0';
}

/* Text with %XX in it; `latin`: its bytes are the first 256 characters of Unicode. */
static bool unescape_percent(const char *text, bool latin, struct buf *ret)
{
	buf_reset(ret);
	for (; *text; text++) {
		uint8_t byte = (uint8_t)*text;

		if (byte == '%') {
			if (!text[1] || hex_decode(text + 1, 2, &byte) < 0 || byte == 0)
				return false;
			text += 2;
		}
		if (latin && byte >= 0x80) {
			buf_putc(ret, (char)(0xc0 | byte >> 6));
			byte = 0x80 | (byte & 0x3f);
		}
		buf_putc(ret, (char)byte);
	}
	return ret->length > 0 && !ret->overflow && utf8_valid(ret->data, ret->length);
}

/* CHARSET'LANGUAGE'TEXT of RFC 8187, into `ret`; false: it is not well-formed. */
static bool extended(const char *value, struct buf *ret)
{
	const char *quote = strchr(value, '\''), *text = quote ? strchr(quote + 1, '\'') : NULL;
	auto_free char *charset = xstrndup(value, quote ? (size_t)(quote - value) : 0);
	const bool latin = strcasecmp(charset, "ISO-8859-1") == 0;

	return text && (latin || strcasecmp(charset, "UTF-8") == 0) && unescape_percent(text + 1, latin, ret);
}

/* Some clients send the whole path of a file, of which the last part is meant: C:\Users\me\a.csv, \\server\share\a.csv.
 */
static const char *last_part(const char *name)
{
	const bool drive = isalpha((unsigned char)name[0]) && name[1] == ':' && (name[2] == '\\' || name[2] == '/');
	const char *behind_dots = name + strspn(name, ".");

	if (!drive && *behind_dots != '\\')
		return name;
	for (const char *p = name; *p; p++)
		if ((*p == '\\' || *p == '/') && p[1])
			name = p + 1;
	return name;
}

/* The next boundary from `from` on, at the beginning of a line; NULL: there is none. */
static const char *find_mark(const struct reader *reader, const char *from)
{
	return memmem(from, (size_t)(reader->end - from), reader->mark, reader->mark_length);
}

/* Behind a boundary: the end of the form (1), or of the line (0). */
static int after_mark(struct reader *reader, struct err *err)
{
	if (reader->end - reader->at >= 2 && memcmp(reader->at, "--", 2) == 0)
		return 1;
	while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\t'))
		reader->at++;
	if (reader->end - reader->at < 2 || memcmp(reader->at, "\r\n", 2) != 0)
		return err_set(err, ERR_INVALID, "the form is broken: no line break behind a boundary");
	reader->at += 2;
	return 0;
}

static int take_disposition(const char *line, const char *end, struct multipart_part *part, struct err *err)
{
	static const char head[] = "content-disposition:";
	auto_buf struct buf value = {0};

	if ((size_t)(end - line) < sizeof(head) - 1 || strncasecmp(line, head, sizeof(head) - 1) != 0 || part->name)
		return 0;
	line += sizeof(head) - 1;
	buf_init(&value, MULTIPART_NAME_MAX);
	const char *semicolon = memchr(line, ';', (size_t)(end - line));

	if (!semicolon || !parameter(semicolon, end, "name", &value))
		return err_set(err, ERR_INVALID, "a part of the form has no name of at most %d bytes",
			       MULTIPART_NAME_MAX);
	part->name = xstrdup(value.data);
	auto_buf struct buf name = {0};

	buf_init(&name, MULTIPART_NAME_MAX);
	if (parameter(semicolon, end, "filename*", &value) && extended(value.data, &name)) {
		part->filename = xstrdup(last_part(name.data));
	} else if (parameter(semicolon, end, "filename", &value)) {
		unescape_name(value.data);
		part->filename = xstrdup(last_part(value.data));
	} else if (value.overflow) {
		return err_set(err, ERR_INVALID, "the name of a file has more than %d bytes", MULTIPART_NAME_MAX);
	}
	return 0;
}

static int take_headers(struct reader *reader, struct multipart_part *part, struct err *err)
{
	const char *begin = reader->at;
	int result = 0;

	for (;;) {
		const char *line = reader->at, *end = memmem(line, (size_t)(reader->end - line), "\r\n", 2);

		if (!end || end - begin > MULTIPART_HEADER_MAX)
			return err_set(err, ERR_INVALID, "the form is broken: the headers of a part have no end");
		reader->at = end + 2;
		if (end == line)
			break;
		if (memchr(line, '\0', (size_t)(end - line)))
			return err_set(err, ERR_INVALID, "the form is broken: a header of a part has a NUL");
		result = take_disposition(line, end, part, err);
		if (result < 0)
			return result;
	}
	return part->name ? 0 : err_set(err, ERR_INVALID, "a part of the form has no Content-Disposition with a name");
}

static int take_part(struct reader *reader, struct multipart *form, struct err *err)
{
	struct multipart_part *part;

	if (form->count == MULTIPART_PARTS_MAX)
		return err_set(err, ERR_LIMIT, "a form has at most %d parts", MULTIPART_PARTS_MAX);
	form->parts = xrealloc(form->parts, form->count + 1, sizeof(*form->parts));
	part = &form->parts[form->count++];
	*part = (struct multipart_part){0};
	int result = take_headers(reader, part, err);

	if (result < 0)
		return result;
	/* the line break of the empty line begins the boundary where there is no content */
	const char *mark = find_mark(reader, reader->at - 2);

	if (!mark)
		return err_set(err, ERR_INVALID, "the form is broken: it ends within a part");
	part->data = reader->at;
	part->length = mark < reader->at ? 0 : (size_t)(mark - reader->at);
	reader->at = mark + reader->mark_length;
	return 0;
}

int multipart_parse(const char *content_type, const struct buf *body, struct multipart *ret, struct err *err)
{
	static const char type[] = "multipart/form-data";
	struct reader reader = {.at = body->data, .end = body->data + body->length};
	auto_multipart struct multipart form = {0};
	auto_buf struct buf boundary = {0};

	buf_init(&boundary, BOUNDARY_MAX);
	if (!content_type || strncasecmp(content_type, type, sizeof(type) - 1) != 0 ||
	    !parameter(content_type + sizeof(type) - 1, content_type + strlen(content_type), "boundary", &boundary) ||
	    boundary.length == 0)
		return err_set(err, ERR_INVALID, "Content-Type must be multipart/form-data with a boundary");
	reader.mark_length = (size_t)snprintf(reader.mark, sizeof(reader.mark), "\r\n--%s", boundary.data);
	if (body->length >= reader.mark_length - 2 &&
	    memcmp(body->data, reader.mark + 2, reader.mark_length - 2) == 0) {
		reader.at += reader.mark_length - 2;
	} else {
		const char *mark = find_mark(&reader, reader.at);

		if (!mark)
			return err_set(err, ERR_INVALID, "the form is broken: its boundary is not in it");
		reader.at = mark + reader.mark_length;
	}
	int result;

	while ((result = after_mark(&reader, err)) == 0 && (result = take_part(&reader, &form, err)) == 0)
		;
	if (result < 0)
		return result;
	*ret = form;
	form = (struct multipart){0};
	return 0;
}

void multipart_clear(struct multipart *form)
{
	for (size_t i = 0; i < form->count; i++) {
		free(form->parts[i].name);
		free(form->parts[i].filename);
	}
	free(form->parts);
	*form = (struct multipart){0};
}

char *multipart_field(const struct multipart *form, const char *name)
{
	for (size_t i = 0; i < form->count; i++) {
		const struct multipart_part *part = &form->parts[i];

		if (!part->filename && streq(part->name, name))
			return memchr(part->data, '\0', part->length) ? NULL : xstrndup(part->data, part->length);
	}
	return NULL;
}
