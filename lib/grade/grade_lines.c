/* grade_lines.c - see grade_lines.h. */
#include "grade_lines.h"

#include <archive.h>
#include <archive_entry.h>
#include <string.h>

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
		return err_set(err, ERR_LIMIT, "%s holds more than %d bytes", path, LINES_BYTES);
	return 0;
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
	for (char *at = text.data + (str_starts(text.data, mark) ? 3 : 0), *end = text.data + text.length;
	     result == 0 && at < end; number++) {
		char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t length = (size_t)((newline ? newline : end) - at);
		struct json_object *line = NULL;

		if (strspn(at, " \t\r") < length) {
			result = json_parse(at, length, &line, err);
			if (result == 0 && !json_object_is_type(line, json_type_object))
				result = err_set(err, ERR_INVALID, "not an object");
			if (result < 0) {
				json_object_put(steal(&line));
				result = err_wrap(err, "%s, line %zu", path, number + 1);
				if (!bad)
					return result;
				bad(arg, err->text);
				*err = ERR_INIT;
				result = 0;
			}
			if (number == LINES_MAX)
				return err_set(err, ERR_LIMIT, "%s has more than %d lines", path, LINES_MAX);
			if (line)
				json_object_array_add(lines, line);
		}
		at += length + 1;
	}
	if (result == 0)
		*ret = steal(&lines);
	return result;
}

char *grade_line_id(struct json_object *line)
{
	struct json_object *id = NULL;

	json_object_object_get_ex(line, "task_id", &id);
	return json_object_is_type(id, json_type_string) || json_object_is_type(id, json_type_int)
		       ? xstrdup(json_object_get_string(id))
		       : NULL;
}
