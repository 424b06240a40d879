/*
 * bind_meant.c - see bind_meant.h.
 *
 * The object is walked by the table and copied where something changes; values that stay are shared. Texts that are
 * read as JSON have one budget of values together, so that a body of texts builds no more than a body of values may.
 */
#include "bind_meant.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "utf8.h"
#include "util.h"

#define WORDS_MAX  8  /* of a name */
#define WORD_LEAST 3  /* letters of an abbreviation */
#define PATH_MAX_  96 /* "files[2].filename" */
#define INDEX_SIZE 24

struct meant {
	struct bind_ignored *ignored; /* NULL: nobody wants to know */
	int values;                   /* that texts may still have */
	struct err *err;
};

/* -------- near misses --------------------------------------------------------------------------------- */

/* "firstName", "first_name" and "First-Name" are the words first and name, in small letters. */
struct words {
	char text[STR_NEAR_MAX + 1];
	const char *word[WORDS_MAX]; /* each ends with a NUL in … */
	char split[2 * STR_NEAR_MAX + 2];
	size_t count;
};

static bool begins_word(const char *name, size_t at)
{
	return at > 0 && isupper((unsigned char)name[at]) && !isupper((unsigned char)name[at - 1]);
}

/* False: too long to be a near miss of anything. */
static bool split(const char *name, struct words *ret)
{
	size_t joined = 0, to = 0;
	bool in_word = false;

	*ret = (struct words){0};
	if (strlen(name) > STR_NEAR_MAX)
		return false;
	for (size_t i = 0; name[i]; i++) {
		if (!isalnum((unsigned char)name[i])) {
			in_word = false;
			continue;
		}
		if (!in_word || begins_word(name, i)) {
			if (ret->count == WORDS_MAX)
				return false;
			to += to > 0; /* behind the NUL of the word before */
			ret->word[ret->count++] = ret->split + to;
			in_word = true;
		}
		ret->split[to++] = ret->text[joined++] = (char)tolower((unsigned char)name[i]);
	}
	return ret->count > 0;
}

/* sessionId is no session, contentType no content. */
static bool names_property(const struct words *words)
{
	static const char *const properties[] = {"id", "ids", "uuid", "guid", "type"};

	for (size_t i = 0; words->count > 1 && i < ARRAY_SIZE(properties); i++)
		if (streq(words->word[words->count - 1], properties[i]))
			return true;
	return false;
}

/* "lang" and "language", "args" and "arguments": one begins as the other does, an s at the end aside. */
static bool abbreviates(const char *a, const char *b)
{
	size_t length = MIN(strlen(a), strlen(b));

	if (length > WORD_LEAST && (strlen(a) < strlen(b) ? a : b)[length - 1] == 's')
		length--;
	return length >= WORD_LEAST && strncmp(a, b, length) == 0;
}

/* "code" and "entrypoint_code". */
static bool ends_with(const struct words *longer, const struct words *one)
{
	return longer->count > 1 && one->count == 1 && strlen(one->text) > WORD_LEAST &&
	       streq(longer->word[longer->count - 1], one->text);
}

bool bind_near(const char *name, const char *known, bool given)
{
	struct words ours, theirs;

	if (!split(name, &theirs) || !split(known, &ours))
		return strcasecmp(name, known) == 0;
	if (streq(theirs.text, ours.text))
		return true;
	if (names_property(&theirs) && !names_property(&ours))
		return false;
	if (!given && (str_near(name, known) || ends_with(&ours, &theirs)))
		return true;
	return abbreviates(theirs.word[0], ours.word[0]) && (theirs.count == 1 || !given || ours.count > 1);
}

static const struct bind *row_of(const struct bind *table, const char *key)
{
	const struct bind *found = NULL;

	for (; table->name != NULL && found == NULL; table++) {
		if (!bind_in_view(table, BIND_PLAIN))
			continue;
		if (table->type == BIND_INLINE)
			found = row_of(table->table, key);
		else if (streq(table->name, key))
			found = table;
	}
	return found;
}

/* The table's first name of which `key` is a near miss; NULL: none. */
static const char *near_name(const struct bind *table, struct json_object *object, const char *key)
{
	const char *name = NULL;

	for (; table->name != NULL && name == NULL; table++) {
		if (!bind_in_view(table, BIND_PLAIN))
			continue;
		if (table->type == BIND_INLINE)
			name = near_name(table->table, object, key);
		else if (bind_near(key, table->name, json_object_object_get_ex(object, table->name, NULL)))
			name = table->name;
	}
	return name;
}

/* -------- members that the table does not have -------------------------------------------------------- */

static void note(struct bind_ignored *ignored, const char *path, const char *key)
{
	const size_t length = strlen(ignored->names);
	auto_buf struct buf name = {0};

	buf_init(&name, BIND_IGNORED_MAX);
	utf8_printable(&name, path, strlen(path));
	utf8_printable(&name, key, utf8_cut(key, strlen(key), BIND_IGNORED_NAME));
	if (ignored->more > 0 || name.overflow || length + name.length + sizeof(", ") > sizeof(ignored->names))
		ignored->more++;
	else
		snprintf(ignored->names + length, sizeof(ignored->names) - length, "%s%s", length > 0 ? ", " : "",
			 name.data);
}

static int unknown(struct meant *meant, const struct bind *table, struct json_object *object, const char *key,
		   const char *path)
{
	const char *near = meant->ignored != NULL ? near_name(table, object, key) : NULL;
	char full[2 * PATH_MAX_];

	if (near == NULL) {
		if (meant->ignored != NULL)
			note(meant->ignored, path, key);
		return 0;
	}
	snprintf(full, sizeof(full), "%s%s", path, key);
	return err_member(meant->err, full, "unknown member, did you mean \"%s\"?", near);
}

/* -------- values -------------------------------------------------------------------------------------- */

/* The value that a text is exactly, if it has this type; NULL: it is not. */
static struct json_object *read_text(struct meant *meant, struct json_object *text, enum json_type type)
{
	const char *data = json_object_get_string(text);
	const size_t length = (size_t)json_object_get_string_len(text);
	struct json_object *value = NULL;

	if (json_parse_budget(data, length, &meant->values, &value, NULL) < 0)
		return NULL;
	if (json_object_is_type(value, type))
		return value;
	json_object_put(value);
	return NULL;
}

static struct json_object *bool_of(struct json_object *text)
{
	const char *data = json_object_get_string(text);

	if (strcasecmp(data, "true") == 0 || strcasecmp(data, "false") == 0)
		return json_object_new_boolean(tolower((unsigned char)*data) == 't');
	return NULL;
}

static struct json_object *int_of(struct meant *meant, struct json_object *text)
{
	struct json_object *value = read_text(meant, text, json_type_int);

	return value != NULL ? value : read_text(meant, text, json_type_double);
}

/* The text of a number, of true or false; NULL: the value is none. */
static struct json_object *text_of(struct json_object *value)
{
	auto_buf struct buf text = {0};

	if (!json_object_is_type(value, json_type_int) && !json_object_is_type(value, json_type_double) &&
	    !json_object_is_type(value, json_type_boolean))
		return NULL;
	buf_init(&text, SIZE_MAX);
	json_print(&text, value);
	return json_object_new_string_len(text.data, (int)text.length);
}

/* What a member's value is read as before its parts are looked at; the caller's. */
static struct json_object *value_of(struct meant *meant, const struct bind *bind, struct json_object *value)
{
	const bool is_text = json_object_is_type(value, json_type_string);
	struct json_object *read = NULL;

	switch (bind->type) {
	case BIND_BOOL:
		read = is_text ? bool_of(value) : NULL;
		break;
	case BIND_INT:
		read = is_text ? int_of(meant, value) : NULL;
		break;
	case BIND_STRING:
	case BIND_CHARS:
	case BIND_CHOICE:
	case BIND_TEXT:
		read = text_of(value);
		break;
	case BIND_STRINGS:
	case BIND_OBJECTS:
		read = is_text ? read_text(meant, value, json_type_array) : NULL;
		break;
	case BIND_STRING_MAP:
		read = is_text ? read_text(meant, value, json_type_object) : NULL;
		if (is_text && read == NULL)
			read = read_text(meant, value, json_type_array);
		break;
	case BIND_OBJECT:
		read = is_text ? read_text(meant, value, json_type_object) : NULL;
		break;
	case BIND_INLINE:
	case BIND_ANY:
		break;
	}
	return read != NULL ? read : json_object_get(value);
}

static int read_object(struct meant *meant, const struct bind *table, struct json_object *object, const char *path,
		       struct json_object **ret);

static int read_member(struct meant *meant, const struct bind *bind, struct json_object *given, const char *path,
		       struct json_object **ret);

/* The array with each item read as `item` says. */
static int read_items(struct meant *meant, const struct bind *item, struct json_object *array, const char *path,
		      struct json_object **ret)
{
	auto_json struct json_object *items = json_object_new_array();

	for (size_t i = 0; i < json_object_array_length(array); i++) {
		char place[PATH_MAX_ + INDEX_SIZE];
		struct json_object *read;

		snprintf(place, sizeof(place), "%s[%zu]", path, i);
		int result = read_member(meant, item, json_object_array_get_idx(array, i), place, &read);

		if (result < 0)
			return result;
		json_object_array_add(items, read);
	}
	*ret = steal(&items);
	return 0;
}

/* A map's values are texts; as a list, it is one of pairs, which have nothing else. */
static int read_map(struct meant *meant, struct json_object *map, const char *path, struct json_object **ret)
{
	static const struct bind pair[] = {
		{.name = "name", .type = BIND_STRING}, {.name = "value", .type = BIND_STRING}, {0}};
	static const struct bind item = {.name = "", .type = BIND_OBJECT, .table = pair};

	if (json_object_is_type(map, json_type_array))
		return read_items(meant, &item, map, path, ret);
	*ret = json_object_new_object();
	json_object_object_foreach(map, key, value)
	{
		struct json_object *text = text_of(value);

		json_add(*ret, key, text != NULL ? text : json_object_get(value));
	}
	return 0;
}

static int read_member(struct meant *meant, const struct bind *bind, struct json_object *given, const char *path,
		       struct json_object **ret)
{
	static const struct bind text = {.name = "", .type = BIND_STRING};
	auto_json struct json_object *value = value_of(meant, bind, given);
	const bool is_array = json_object_is_type(value, json_type_array),
		   is_object = json_object_is_type(value, json_type_object);
	const struct bind one = {.name = bind->name, .type = BIND_OBJECT, .table = bind->table};
	char inner[PATH_MAX_];

	if (bind->type == BIND_STRINGS && is_array)
		return read_items(meant, &text, value, path, ret);
	if (bind->type == BIND_OBJECTS && is_array)
		return read_items(meant, &one, value, path, ret);
	if (bind->type == BIND_STRING_MAP && (is_array || is_object))
		return read_map(meant, value, path, ret);
	if (bind->type == BIND_OBJECT && is_object) {
		snprintf(inner, sizeof(inner), "%s.", path);
		return read_object(meant, bind->table, value, inner, ret);
	}
	*ret = steal(&value);
	return 0;
}

/* `path` is in front of the members' names. */
static int read_object(struct meant *meant, const struct bind *table, struct json_object *object, const char *path,
		       struct json_object **ret)
{
	auto_json struct json_object *read = json_object_new_object();

	json_object_object_foreach(object, key, value)
	{
		const struct bind *bind = row_of(table, key);
		struct json_object *member = NULL;
		char place[PATH_MAX_];

		snprintf(place, sizeof(place), "%s%s", path, key);
		int result = bind != NULL ? read_member(meant, bind, value, place, &member)
					  : unknown(meant, table, object, key, path);

		if (result < 0)
			return result;
		if (bind != NULL)
			json_add(read, key, member);
	}
	*ret = steal(&read);
	return 0;
}

int bind_as_meant(const struct bind *table, struct json_object *object, struct json_object **ret,
		  struct bind_ignored *ret_ignored, struct err *err)
{
	struct bind_ignored ignored = {0};
	struct meant meant = {ret_ignored != NULL ? &ignored : NULL, BIND_TEXT_VALUES, err};
	int result = read_object(&meant, table, object, "", ret);

	if (result == 0 && ret_ignored != NULL)
		*ret_ignored = ignored;
	return result;
}
