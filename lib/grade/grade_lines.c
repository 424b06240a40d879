/* grade_lines.c - see grade_lines.h. */
#include "grade_lines.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>

#include "lib/base/util.h"

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
	if (archive_read_open_filename(archive, path, sizeof(block)) != ARCHIVE_OK)
		return err_set(err, ERR_NOT_FOUND, "%s: %s", path, archive_error_string(archive));
	int result = archive_read_next_header(archive, &entry);
	if (result == ARCHIVE_EOF)
		return 0;
	while (result == ARCHIVE_OK && (n = archive_read_data(archive, block, sizeof(block))) > 0)
		buf_add(out, block, (size_t)n);
	if (result != ARCHIVE_OK || n < 0)
		return err_set(err, ERR_INVALID, "%s: %s", path, archive_error_string(archive));
	if (out->overflow)
		return err_set(err, ERR_LIMIT, "%s holds more than %d bytes", path, GRADE_LINES_BYTES);
	return 0;
}

int grade_lines_read(const char *path, struct json_object **ret, struct err *err)
{
	__attribute__((cleanup(archive_pointer))) struct archive *archive = archive_read_new();
	auto_json struct json_object *lines = json_object_new_array();
	auto_buf struct buf text = {0};
	size_t number = 0;

	buf_init(&text, GRADE_LINES_BYTES);
	int result = read_all(archive, path, &text, err);
	for (char *at = text.data, *end = text.data + text.length; result == 0 && at < end; number++) {
		char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t length = (size_t)((newline ? newline : end) - at);
		struct json_object *line = NULL;

		if (strspn(at, " \t\r") < length) {
			result = json_parse(at, length, &line, err);
			if (result == 0 && !json_object_is_type(line, json_type_object))
				result = err_set(err, ERR_INVALID, "not an object");
			if (result < 0) {
				json_object_put(line);
				return err_wrap(err, "%s, line %zu", path, number + 1);
			}
			if (number == GRADE_LINES_MAX)
				return err_set(err, ERR_LIMIT, "%s has more than %d lines", path, GRADE_LINES_MAX);
			json_object_array_add(lines, line);
		}
		at += length + 1;
	}
	if (result == 0)
		*ret = steal(&lines);
	return result;
}
