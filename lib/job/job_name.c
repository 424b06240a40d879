/* job_name.c - which names files, conversations and variables may have; see job.h. */
#include "job.h"

#include <string.h>

#include "lib/base/utf8.h"
#include "lib/base/util.h"

/* UTF-8 without control characters (C0, DEL, C1): what people, file systems and logs can live with. */
static int check_name(const char *name, size_t max, const char *member, struct err *err)
{
	size_t length = name ? strlen(name) : 0;

	if (length == 0)
		return err_member(err, member, "must not be empty");
	if (length > max)
		return err_member(err, member, "must have at most %zu bytes, not %zu", max, length);
	if (!utf8_valid(name, length))
		return err_member(err, member, "must be UTF-8");
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)name[i];

		if (c < 0x20 || c == 0x7f || (c == 0xc2 && (unsigned char)name[i + 1] < 0xa0))
			return err_member(err, member, "must not contain control characters (byte %zu)", i + 1);
	}
	return 0;
}

int job_file_name_check(const char *name, const char *member, struct err *err)
{
	int result = check_name(name, JOB_FILE_NAME_MAX, member, err);

	if (result < 0)
		return result;
	if (strchr(name, '/'))
		return err_member(err, member, "must be a file name without \"/\"");
	if (streq(name, ".") || streq(name, ".."))
		return err_member(err, member, "must not be \"%s\"", name);
	return 0;
}

int job_file_path_check(const char *path, const char *member, struct err *err)
{
	if (strlen(path) > JAIL_NAME_MAX)
		return err_member(err, member, "must have at most %d bytes, not %zu", JAIL_NAME_MAX, strlen(path));
	if (*path == '/')
		return err_member(err, member, "must be relative, without \"/\" in front");
	int levels = 0;

	for (const char *segment = path, *end; segment; segment = *end ? end + 1 : NULL) {
		if (++levels > JAIL_LEVELS_MAX)
			return err_member(err, member, "must have at most %d folders", JAIL_LEVELS_MAX - 1);
		end = strchrnul(segment, '/');
		if (end == segment && *path)
			return err_member(err, member, "must not contain \"//\" or end with \"/\"");
		auto_free char *name = xstrndup(segment, (size_t)(end - segment));
		int result = job_file_name_check(name, member, err);

		if (result < 0)
			return result;
	}
	return 0;
}

int job_conversation_check(const char *name, const char *member, struct err *err)
{
	return check_name(name, STORE_CONVERSATION_MAX, member, err);
}

bool job_variable_valid(const char *name, size_t length)
{
	if (length == 0 || (*name >= '0' && *name <= '9'))
		return false;
	return strspn(name, "_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") >= length;
}
