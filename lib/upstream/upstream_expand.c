/* upstream_expand.c - ${NAME} in an entry of upstream.file; see upstream_config.h. */
#include "upstream_config.h"

#include <ctype.h>
#include <fcntl.h>
#include <string.h>

#include "lib/base/util.h"

#define VALUE_MAX    65536
#define SECRET_LEAST 6 /* a shorter text would be masked wherever it occurs by chance */

void upstream_expand_keep(struct upstream_secrets *secrets, const char *value)
{
	if (strlen(value) < SECRET_LEAST)
		return;
	for (size_t i = 0; i < secrets->count; i++)
		if (streq(secrets->items[i], value))
			return;
	secrets->items = xrealloc(secrets->items, secrets->count + 1, sizeof(*secrets->items));
	secrets->items[secrets->count++] = xstrdup(value);
}

void upstream_expand_clear(struct upstream_secrets *secrets)
{
	for (size_t i = 0; i < secrets->count; i++)
		free(secrets->items[i]);
	free(secrets->items);
	*secrets = (struct upstream_secrets){0};
}

static bool is_name(const char *name)
{
	if (!isalpha((unsigned char)name[0]) && name[0] != '_')
		return false;
	for (; *name != '\0'; name++)
		if (!isalnum((unsigned char)*name) && *name != '_')
			return false;
	return true;
}

/* The variable's value: of the file in `folder`, which may end with a newline, else of the environment. NULL: it is not
 * set. The caller's. */
static char *value_of(const char *name, const char *folder)
{
	const char *environment = getenv(name);

	if (folder[0] != '\0') {
		auto_free char *path = xasprintf("%s/%s", folder, name), *text = NULL;
		size_t length;

		if (read_file_at(AT_FDCWD, path, VALUE_MAX, &text, &length, NULL) == 0 && strlen(text) == length) {
			while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == '\r'))
				text[--length] = '\0';
			return steal(&text);
		}
	}
	return environment != NULL && environment[0] != '\0' ? xstrdup(environment) : NULL;
}

struct expand {
	const char *folder;
	struct upstream_secrets *secrets;
	struct err *err;
};

/* Appends what "${inside}" means. */
static int replace_one(const struct expand *expand, const char *inside, const char *member, struct buf *out)
{
	const char *otherwise = strstr(inside, ":-");
	auto_free char *name = otherwise != NULL ? xstrndup(inside, (size_t)(otherwise - inside)) : xstrdup(inside);
	const char *plain = str_starts(name, "env:") ? name + strlen("env:") : name;

	if (!is_name(plain))
		return err_member(expand->err, member,
				  "${%s} is not known here: use ${NAME} or ${NAME:-default} with a variable's name",
				  inside);
	auto_free char *value = value_of(plain, expand->folder);

	if (value == NULL && otherwise == NULL)
		return err_member(expand->err, member, "the variable %s is not set", plain);
	if (value != NULL)
		upstream_expand_keep(expand->secrets, value);
	buf_puts(out, value != NULL ? value : otherwise + strlen(":-"));
	return 0;
}

/* The text with its variables replaced; *ret is the caller's, NULL where there are none. */
static int replace_all(const struct expand *expand, const char *text, const char *member, char **ret)
{
	auto_buf struct buf out;
	bool any = false;
	const char *end;

	buf_init(&out, VALUE_MAX);
	for (; *text != '\0'; text++) {
		if (!str_starts(text, "${") || (end = strchr(text, '}')) == NULL) {
			buf_putc(&out, *text);
			continue;
		}
		auto_free char *inside = xstrndup(text + 2, (size_t)(end - text) - 2);
		int result = replace_one(expand, inside, member, &out);

		if (result < 0)
			return result;
		any = true;
		text = end;
	}
	if (out.overflow)
		return err_member(expand->err, member, "is longer than %d bytes", VALUE_MAX);
	*ret = any ? buf_steal(&out, NULL) : NULL;
	return 0;
}

static int expand_value(const struct expand *expand, struct json_object *value, const char *member)
{
	auto_free char *text = NULL;
	int result = 0;

	if (json_object_is_type(value, json_type_string)) {
		result = replace_all(expand, json_object_get_string(value), member, &text);
		if (result == 0 && text != NULL)
			json_object_set_string(value, text);
	} else if (json_object_is_type(value, json_type_array)) {
		for (size_t i = 0; result == 0 && i < json_object_array_length(value); i++) {
			auto_free char *path = xasprintf("%s[%zu]", member, i);

			result = expand_value(expand, json_object_array_get_idx(value, i), path);
		}
	} else if (json_object_is_type(value, json_type_object)) {
		json_object_object_foreach(value, key, item)
		{
			auto_free char *path = xasprintf("%s.%s", member, key);

			if (result == 0)
				result = expand_value(expand, item, path);
		}
	}
	return result;
}

int upstream_expand(struct json_object *entry, const char *folder, struct upstream_secrets *secrets, struct err *err)
{
	static const char *const members[] = {"command", "args", "env", "cwd", "url", "headers", "oauth"};
	const struct expand expand = {folder, secrets, err};
	int result = 0;

	for (size_t i = 0; result == 0 && i < ARRAY_SIZE(members); i++) {
		struct json_object *value;

		if (json_object_object_get_ex(entry, members[i], &value))
			result = expand_value(&expand, value, members[i]);
	}
	return result;
}
