/*
 * json.c - bytes to documents; see json.h.
 *
 * The bytes are scanned first (json_scan.c), and only what passed is given to json-c's tokener, which then has nothing
 * left to be lenient about. If it refuses them all the same, that is a bug of ours and says so. The tokener takes the
 * text with a length, so NULs in values survive. Writing and building is json_print.c.
 */
#include <json-c/json_tokener.h>

#include "json.h"
#include "json_scan.h"
#include "util.h"

void json_put_pointer(struct json_object **object)
{
	json_object_put(*object);
}

int json_parse(const char *text, size_t length, struct json_object **ret, struct err *err)
{
	struct json_tokener *tokener;
	struct json_object *object;
	enum json_tokener_error state;
	auto_buf struct buf plain = {0};
	bool pairs;
	int result = json_scan_text(text, length, &pairs, err);

	if (result < 0)
		return result;
	if (pairs) {
		json_write_out_pairs(&plain, text, length);
		text = plain.data;
		length = plain.length;
	}
	tokener = json_tokener_new_ex(JSON_DEPTH_MAX + 1); /* json-c counts the scalars inside as a level */
	if (tokener == NULL)
		abort();
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
	object = json_tokener_parse_ex(tokener, text, (int)length);
	state = json_tokener_get_error(tokener);
	if (state == json_tokener_continue) { /* a bare number may go on until it sees the end */
		object = json_tokener_parse_ex(tokener, "", 1);
		state = json_tokener_get_error(tokener);
	}
	json_tokener_free(tokener);
	if (state != json_tokener_success)
		return err_set(err, ERR_INTERNAL, "json-c refuses what the scanner took: %s",
			       json_tokener_error_desc(state));
	*ret = object;
	return 0;
}

/* Overwrites comments with blanks, newlines kept, so that positions in errors stay right. */
static int blank_comments(char *text, size_t length, struct err *err)
{
	bool in_string = false;

	for (size_t i = 0; i < length; i++) {
		if (in_string || text[i] != '/' || i + 1 >= length || (text[i + 1] != '/' && text[i + 1] != '*')) {
			if (in_string && text[i] == '\\')
				i++;
			else if (text[i] == '"')
				in_string = !in_string;
			continue;
		}
		bool block = text[i + 1] == '*';
		size_t end = i + 2;

		if (block) {
			while (end + 1 < length && !(text[end] == '*' && text[end + 1] == '/'))
				end++;
			if (end + 1 >= length)
				return err_set(err, ERR_INVALID, "not JSON: the comment at byte %zu has no end", i + 1);
			end += 2;
		} else {
			while (end < length && text[end] != '\n')
				end++;
		}
		for (; i < end; i++)
			if (text[i] != '\n')
				text[i] = ' ';
		i--; /* the loop steps on */
	}
	return 0;
}

int json_parse_commented(const char *text, size_t length, struct json_object **ret, struct err *err)
{
	auto_free char *copy = xmalloc(length + 1);

	memcpy(copy, text, length);
	copy[length] = '\0';
	if (blank_comments(copy, length, err) < 0)
		return -ERR_INVALID;
	return json_parse(copy, length, ret, err);
}
