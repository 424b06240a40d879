/* grade_lines.c - see grade_lines.h. */
#include "grade_lines.h"

#include <archive.h>
#include <archive_entry.h>
#include <string.h>

#include "lib/base/text.h"
#include "lib/base/util.h"

#define LINES_BYTES (512 << 20) /* of a file, decompressed */
#define LINES_MAX   1000000

static void archive_pointer(struct archive **archive)
{
	archive_read_free(*archive);
}

static int read_all(struct archive *archive, const char *path, struct buf *out, struct err *err)
{
	struct archive_entry *entry;
	char block[65536];
	la_ssize_t n = 0;

	archive_read_support_filter_all(archive);
	archive_read_support_format_raw(archive);
	archive_read_support_format_empty(archive);
	/* NULL: standard input */
	if (archive_read_open_filename(archive, streq(path, "-") ? NULL : path, sizeof(block)) != ARCHIVE_OK)
		return err_set(err, ERR_NOT_FOUND, "%s: %s", path, archive_error_string(archive));
	int result = archive_read_next_header(archive, &entry);
	if (result == ARCHIVE_EOF)
		return 0;
	while (result == ARCHIVE_OK && (n = archive_read_data(archive, block, sizeof(block))) > 0)
		buf_add(out, block, (size_t)n);
	if (result != ARCHIVE_OK || n < 0)
		return err_set(err, ERR_INVALID, "%s: %s", path, archive_error_string(archive));
	if (out->overflow)
		return err_set(err, ERR_LIMIT, "%s holds more than %d bytes", path, LINES_BYTES);
	return 0;
}

/* One line, which is added to `lines`. */
static int read_line(const char *text, size_t length, struct json_object *lines, struct err *err)
{
	struct json_object *line = NULL;
	int result = json_parse(text, length, &line, err);

	if (result == 0 && !json_object_is_type(line, json_type_object))
		result = err_set(err, ERR_INVALID, "not an object");
	if (result < 0)
		json_object_put(line);
	else
		json_object_array_add(lines, line);
	return result;
}

int grade_lines_read(const char *path, grade_lines_bad *bad, void *arg, struct json_object **ret, struct err *err)
{
	static const char mark[] = "\xef\xbb\xbf"; /* of byte order, which editors leave */
	__attribute__((cleanup(archive_pointer))) struct archive *archive = archive_read_new();
	auto_json struct json_object *lines = json_object_new_array();
	auto_buf struct buf text = {0};
	size_t number = 0;

	buf_init(&text, LINES_BYTES);
	int result = read_all(archive, path, &text, err);
	if (result < 0)
		return result;
	const char *at = text.data + (str_starts(text.data, mark) ? 3 : 0), *end = text.data + text.length;
	if (at[strspn(at, " \t\r\n")] == '[')
		return json_parse(at, (size_t)(end - at), ret, err) < 0 ? err_wrap(err, "%s", path) : 0;
	for (; at < end; number++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t length = (size_t)((newline ? newline : end) - at);

		if (number == LINES_MAX)
			return err_set(err, ERR_LIMIT, "%s has more than %d lines", path, LINES_MAX);
		if (strspn(at, " \t\r") < length && read_line(at, length, lines, err) < 0) {
			result = err_wrap(err, "%s, line %zu", path, number + 1);
			if (!bad)
				return result;
			bad(arg, err->text);
			*err = ERR_INIT;
		}
		at += length + 1;
	}
	*ret = steal(&lines);
	return 0;
}

char *grade_line_id(struct json_object *line)
{
	static const char *const names[] = {"task_id", "problem_id", "question_id", "id", "name"};
	struct json_object *metadata = json_get(line, "metadata", json_type_object), *id = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		for (int inner = 0; inner < (metadata ? 2 : 1); inner++)
			if (json_object_object_get_ex(inner ? metadata : line, names[i], &id) &&
			    (json_object_is_type(id, json_type_string) || json_object_is_type(id, json_type_int)))
				return xstrdup(json_object_get_string(id));
	return NULL;
}

/* -------- packed -------------------------------------------------------------------------------------- */

/* zlib's format as gzip's: the same data in another wrapping, whose check is not looked at. */
static int inflate(const struct buf *packed, struct buf *ret, struct err *err)
{
	static const char head[] = "\x1f\x8b\x08\0\0\0\0\0\0\xff", tail[8];
	__attribute__((cleanup(archive_pointer))) struct archive *archive = archive_read_new();
	auto_buf struct buf wrapped = {0};
	struct archive_entry *entry;
	char block[65536];
	la_ssize_t n = 0;

	if (packed->length < 6)
		return err_set(err, ERR_INVALID, "not zlib's format");
	buf_init(&wrapped, LINES_BYTES);
	buf_add(&wrapped, head, sizeof(head) - 1);
	buf_add(&wrapped, packed->data + 2, packed->length - 6);
	buf_add(&wrapped, tail, sizeof(tail));
	archive_read_support_filter_gzip(archive);
	archive_read_support_format_raw(archive);
	if (archive_read_open_memory(archive, wrapped.data, wrapped.length) != ARCHIVE_OK ||
	    archive_read_next_header(archive, &entry) != ARCHIVE_OK)
		return err_set(err, ERR_INVALID, "not zlib's format");
	while ((n = archive_read_data(archive, block, sizeof(block))) > 0)
		buf_add(ret, block, (size_t)n);
	return n < 0 || ret->overflow ? err_set(err, ERR_INVALID, "not zlib's format, or too much") : 0;
}

/* The text in a pickle that is a text, and nothing else: no other instruction is ever looked at. */
static int pickled_text(const struct buf *pickle, const char **ret, size_t *ret_length, struct err *err)
{
	const unsigned char *at = (const unsigned char *)pickle->data, *end = at + pickle->length;
	size_t width = 0;

	if (end - at > 2 && at[0] == 0x80) /* PROTO */
		at += 2;
	if (end - at > 9 && at[0] == 0x95) /* FRAME */
		at += 9;
	if (end - at > 9)
		width = *at == 0x8c ? 1 : *at == 'X' ? 4 : *at == 0x8d ? 8 : 0; /* of a string's length */
	*ret_length = 0;
	for (size_t i = 0; i < width; i++)
		*ret_length |= (size_t)at[1 + i] << (8 * i);
	if (width == 0 || *ret_length > (size_t)(end - at) - 1 - width)
		return err_set(err, ERR_INVALID, "a pickle of something else than a text");
	*ret = (const char *)at + 1 + width;
	return 0;
}

int grade_lines_packed(const char *text, struct json_object **ret, struct err *err)
{
	auto_buf struct buf packed = {0}, pickle = {0};
	const char *inner = NULL;
	size_t length = 0;

	buf_init(&packed, LINES_BYTES);
	buf_init(&pickle, LINES_BYTES);
	int result = base64_decode(text, strlen(text), &packed, err);
	if (result == 0)
		result = inflate(&packed, &pickle, err);
	if (result == 0)
		result = pickled_text(&pickle, &inner, &length, err);
	if (result == 0)
		result = json_parse(inner, length, ret, err);
	return result;
}
