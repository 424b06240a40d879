/*
 * normalise_file.c - see normalise_file.h.
 *
 * PCRE2 counts the steps of a match and gives up at a limit, which POSIX regcomp has no way to say; the just-in-time
 * compiler is not used, since it counts otherwise. Patterns see bytes, because output need not be UTF-8.
 */
#include "normalise_file.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fcntl.h>
#include <pcre2.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/util.h"
#include "lib/store/db/crypto.h"
#include "normalise.h"

#define FILE_BYTES  (1 << 20)
#define TEXT_MAX    4096
#define NAME_LENGTH 32
#define HEAP_KIB    1024
#define HASH_SHOWN  16

static struct own {
	char *name, *pattern, *replacement;
	int64_t version;
	pcre2_code *code;
} owns[NORMALISE_FILE_MAX];
static size_t count;

size_t normalise_file_count(void)
{
	return count;
}

const char *normalise_file_name(size_t i)
{
	return owns[i].name;
}

int64_t normalise_file_version(size_t i)
{
	return owns[i].version;
}

const char *normalise_file_pattern(size_t i)
{
	return owns[i].pattern;
}

const char *normalise_file_replacement(size_t i)
{
	return owns[i].replacement;
}

void normalise_file_identity(size_t i, struct buf *ret)
{
	auto_free char *both = xasprintf("%s\n%s", owns[i].pattern, owns[i].replacement);
	char hash[SHA256_HEX_SIZE];

	sha256_hex(both, strlen(both), hash);
	buf_printf(ret, "%s/%lld:%.*s", owns[i].name, (long long)owns[i].version, HASH_SHOWN, hash);
}

/* -------- reading ------------------------------------------------------------------------------------- */

static void own_clear(struct own *own)
{
	free(own->name);
	free(own->pattern);
	free(own->replacement);
	pcre2_code_free(own->code);
	*own = (struct own){0};
}

void normalise_file_forget(void)
{
	while (count > 0)
		own_clear(&owns[--count]);
}

static bool name_fits(const char *name)
{
	size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return length > 0 && length <= NAME_LENGTH && !name[length] && name[0] != '-';
}

static int check_name(const char *path, const char *name, struct err *err)
{
	unsigned ignored;

	if (!name || !name_fits(name))
		return err_set(err, ERR_INVALID,
			       "%s: a normaliser needs a \"name\" of small letters, digits and dashes, at most %d",
			       path, NAME_LENGTH);
	if (normalise_parse(name, &ignored, NULL) == 0)
		return err_set(err, ERR_INVALID, "%s: there is a normaliser \"%s\" already", path, name);
	return 0;
}

/* Nothing else is in it. */
static int check_members(const char *path, struct json_object *object, const char *const *names, struct err *err)
{
	json_object_object_foreach(object, name, value)
	{
		size_t i = 0;

		(void)value;
		while (names[i] && !streq(names[i], name))
			i++;
		if (!names[i])
			return err_set(err, ERR_INVALID, "%s: unknown member \"%s\"", path, name);
	}
	return 0;
}

static int compile(const char *path, struct own *own, struct err *err)
{
	int code = 0;
	PCRE2_SIZE place = 0;
	PCRE2_UCHAR text[128] = "";

	own->code = pcre2_compile((PCRE2_SPTR)own->pattern, PCRE2_ZERO_TERMINATED, 0, &code, &place, NULL);
	if (own->code)
		return 0;
	pcre2_get_error_message(code, text, sizeof(text));
	return err_set(err, ERR_INVALID, "%s: the pattern of \"%s\", character %zu: %s", path, own->name,
		       (size_t)place + 1, (const char *)text);
}

static int read_one(const char *path, struct json_object *object, struct err *err)
{
	static const char *const members[] = {"name", "version", "pattern", "replacement", NULL};
	struct own *own = &owns[count];

	if (!json_object_is_type(object, json_type_object))
		return err_set(err, ERR_INVALID, "%s: a normaliser is an object", path);
	const char *name = json_get_string(object, "name"), *pattern = json_get_string(object, "pattern");
	const char *replacement = json_get_string(object, "replacement");
	struct json_object *version = json_get(object, "version", json_type_int);
	int result = check_name(path, name, err);

	if (result == 0)
		result = check_members(path, object, members, err);
	if (result < 0)
		return result;
	if (count == NORMALISE_FILE_MAX)
		return err_set(err, ERR_LIMIT, "%s: more than %d normalisers", path, NORMALISE_FILE_MAX);
	if (!pattern || !replacement || !version || strlen(pattern) > TEXT_MAX || strlen(replacement) > TEXT_MAX)
		return err_set(
			err, ERR_INVALID,
			"%s: \"%s\" needs a \"version\" (a number), a \"pattern\" and a \"replacement\" of at most "
			"%d bytes",
			path, name, TEXT_MAX);
	*own = (struct own){xstrdup(name), xstrdup(pattern), xstrdup(replacement), json_object_get_int64(version),
			    NULL};
	result = compile(path, own, err);
	if (result < 0)
		own_clear(own);
	else
		count++;
	return result;
}

int normalise_file_load(const char *path, struct err *err)
{
	static const char *const members[] = {"normalisers", NULL};
	auto_json struct json_object *document = NULL;
	auto_free char *text = NULL;
	struct json_object *list;
	size_t length = 0;
	int result = read_file_at(AT_FDCWD, path, FILE_BYTES, &text, &length, err);

	if (result == 0)
		result = json_parse_commented(text, length, &document, err);
	if (result < 0)
		return err_wrap(err, "%s", path);
	list = json_object_is_type(document, json_type_object) ? json_get(document, "normalisers", json_type_array)
							       : NULL;
	if (!list)
		return err_set(err, ERR_INVALID, "%s needs a member \"normalisers\", an array", path);
	result = check_members(path, document, members, err);
	for (size_t i = 0; result == 0 && i < json_object_array_length(list); i++)
		result = read_one(path, json_object_array_get_idx(list, i), err);
	return result;
}

/* -------- applying ------------------------------------------------------------------------------------ */

static void free_context(pcre2_match_context **context)
{
	pcre2_match_context_free(*context);
}

static void free_match(pcre2_match_data **match)
{
	pcre2_match_data_free(*match);
}

void normalise_file_apply(size_t i, const char *line, size_t length, struct buf *ret)
{
	__attribute__((cleanup(free_match))) pcre2_match_data *match =
		pcre2_match_data_create_from_pattern(owns[i].code, NULL);
	__attribute__((cleanup(free_context))) pcre2_match_context *context = pcre2_match_context_create(NULL);
	size_t at = 0, kept = ret->length;

	if (!match || !context)
		abort();
	pcre2_set_match_limit(context, NORMALISE_FILE_STEPS);
	pcre2_set_heap_limit(context, HEAP_KIB);
	for (size_t from = 0; from <= length;) {
		int found = pcre2_match(owns[i].code, (PCRE2_SPTR)line, length, from, 0, match, context);
		const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(match);

		if (found < 0 && found != PCRE2_ERROR_NOMATCH) { /* a limit: the line stays */
			ret->length = kept;
			at = 0;
		}
		if (found < 0)
			break;
		from = ends[1];
		if (ends[1] <= ends[0] || ends[0] < at) { /* empty, or before what was replaced (\K): go on behind */
			from = MAX(from, at) + 1;
			continue;
		}
		buf_add(ret, line + at, ends[0] - at);
		buf_puts(ret, owns[i].replacement);
		at = ends[1];
	}
	buf_add(ret, line + at, length - at);
}
