/*
 * upstream_raw.c - see upstream_raw.h.
 *
 * raw_check walks the grammar once by recursive descent, bounded by JSON_DEPTH_MAX, and copies as it goes. After it,
 * finding a value's end needs no grammar: brackets are counted outside of strings. Members are looked for by walking
 * one object's members, so a document is read a few times, not built.
 */
#include "upstream_raw.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"

struct check {
	const char *text;
	size_t length, at;
	size_t copied; /* everything before it is in `out` */
	int depth;
	struct buf *out;
	struct err *err;
};

static int fail(struct check *check, const char *what)
{
	if (check->at >= check->length)
		what = "the text ends too early";
	return err_set(check->err, ERR_INVALID, "not JSON: %s at byte %zu", what, check->at + 1);
}

static int peek(const struct check *check)
{
	return check->at < check->length ? (unsigned char)check->text[check->at] : -1;
}

static bool is_blank(int c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_blanks(struct check *check)
{
	while (is_blank(peek(check)))
		check->at++;
}

static int hex4(const struct check *check, size_t at)
{
	int code = 0;

	for (size_t i = at; i < at + 4; i++) {
		int c = i < check->length ? (unsigned char)check->text[i] : 0;

		if (!isxdigit(c))
			return -1;
		code = code * 16 + (isdigit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
	}
	return code;
}

/* At the `u` of an escape. */
static int check_code(struct check *check)
{
	int code = hex4(check, check->at + 1), low = -1;

	if (code < 0)
		return fail(check, "an escape without four hex digits");
	if (code < 0xd800 || code > 0xdfff) {
		check->at += 5;
		return 0;
	}
	if (code < 0xdc00 && check->at + 6 < check->length && check->text[check->at + 5] == '\\' &&
	    check->text[check->at + 6] == 'u')
		low = hex4(check, check->at + 7);
	if (low >= 0xdc00 && low <= 0xdfff) {
		check->at += 11;
		return 0;
	}
	buf_add(check->out, check->text + check->copied, check->at + 1 - check->copied);
	buf_puts(check->out, "fffd");
	check->at += 5;
	check->copied = check->at;
	return 0;
}

/* What is behind the characters that need no look: most of all. */
static int skip_plain(struct check *check)
{
	const unsigned char *text = (const unsigned char *)check->text;
	size_t at = check->at;

	while (at < check->length && text[at] >= ' ' && text[at] < 0x7f && text[at] != '"' && text[at] != '\\')
		at++;
	check->at = at;
	return peek(check);
}

static int check_string(struct check *check)
{
	if (peek(check) != '"')
		return fail(check, "no string where one must be");
	for (check->at++; skip_plain(check) != '"';) {
		int c = peek(check), result = 0;

		if (c < ' ')
			return fail(check, "a control character in a string");
		if (c == '\\') {
			check->at++;
			if (peek(check) == 'u')
				result = check_code(check);
			else if (peek(check) > 0 && strchr("\"\\/bfnrt", peek(check)) != NULL)
				check->at++;
			else
				result = fail(check, "an unknown escape");
		} else {
			size_t bytes = utf8_length(check->text + check->at, check->length - check->at);

			if (bytes == 0)
				result = fail(check, "bytes that are not UTF-8");
			check->at += bytes;
		}
		if (result < 0)
			return result;
	}
	check->at++;
	return 0;
}

static size_t skip_digits(struct check *check)
{
	size_t start = check->at;

	while (isdigit(peek(check)))
		check->at++;
	return check->at - start;
}

static int check_number(struct check *check)
{
	check->at += peek(check) == '-';
	if (peek(check) == '0')
		check->at++;
	else if (skip_digits(check) == 0)
		return fail(check, "an unexpected character");
	if (isdigit(peek(check)))
		return fail(check, "a number with a leading zero");
	if (peek(check) == '.') {
		check->at++;
		if (skip_digits(check) == 0)
			return fail(check, "no digit after the decimal point");
	}
	if (peek(check) == 'e' || peek(check) == 'E') {
		check->at++;
		check->at += peek(check) == '+' || peek(check) == '-';
		if (skip_digits(check) == 0)
			return fail(check, "no digit in the exponent");
	}
	return 0;
}

static int check_value(struct check *check);

/* Members or items behind the opening bracket, up to and with the closing one. */
static int check_inside(struct check *check, char close)
{
	int result = 0;

	check->at++;
	if (++check->depth > JSON_DEPTH_MAX)
		return fail(check, "deeper than allowed");
	skip_blanks(check);
	for (bool first = true; first ? peek(check) != close : peek(check) == ','; first = false) {
		if (!first)
			check->at++;
		skip_blanks(check);
		if (close == '}') {
			result = check_string(check);
			skip_blanks(check);
			if (result == 0 && peek(check) != ':')
				result = fail(check, "no colon behind a member's name");
			check->at++;
		}
		if (result == 0)
			result = check_value(check);
		if (result < 0)
			return result;
		skip_blanks(check);
	}
	if (peek(check) != close)
		return fail(check, "no comma or closing bracket");
	check->at++;
	check->depth--;
	return 0;
}

static int check_value(struct check *check)
{
	static const char *const words[] = {"true", "false", "null"};

	skip_blanks(check);
	if (peek(check) == '{')
		return check_inside(check, '}');
	if (peek(check) == '[')
		return check_inside(check, ']');
	if (peek(check) == '"')
		return check_string(check);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		size_t length = strlen(words[i]);

		if (check->length - check->at >= length && memcmp(check->text + check->at, words[i], length) == 0) {
			check->at += length;
			return 0;
		}
	}
	return check_number(check);
}

int raw_check(const char *text, size_t length, struct buf *out, struct err *err)
{
	struct check check = {.text = text, .length = length, .out = out, .err = err};
	int result = check_value(&check);

	if (result < 0)
		return result;
	skip_blanks(&check);
	if (check.at < length)
		return fail(&check, "text behind the value");
	buf_add(out, text + check.copied, length - check.copied);
	return out->overflow ? err_set(err, ERR_LIMIT, "longer than %zu bytes", out->max) : 0;
}

/* The text behind the string that begins at `at`. Results are long strings, and each member that is looked for passes
 * them: strcspn, which knows vectors, takes a tenth of a loop's time. */
static const char *behind_string(const char *at)
{
	for (at++; *(at += strcspn(at, "\"\\")) == '\\';)
		at += 2;
	return at + 1;
}

static const char *behind_blanks(const char *at, const char *end)
{
	while (at < end && is_blank((unsigned char)*at))
		at++;
	return at;
}

static const char *behind_value(const char *at, const char *end)
{
	int depth = 0;

	do {
		if (*at == '"') {
			at = behind_string(at);
			continue;
		}
		if (depth == 0 && *at != '{' && *at != '[') {
			while (at < end && !is_blank((unsigned char)*at) && strchr(",]}:", *at) == NULL)
				at++;
			break;
		}
		depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
		at++;
	} while (depth > 0);
	return at;
}

struct raw raw_value(const char *text, size_t length)
{
	const char *end = text + length, *start = behind_blanks(text, end);

	while (end > start && is_blank((unsigned char)end[-1]))
		end--;
	return (struct raw){start, (size_t)(end - start)};
}

bool raw_is_object(struct raw value)
{
	return value.text != NULL && value.length > 0 && value.text[0] == '{';
}

bool raw_is(struct raw value, const char *text)
{
	return value.text != NULL && value.length == strlen(text) && memcmp(value.text, text, value.length) == 0;
}

/* Does the string (with its quotes) mean the name? Only one with escapes needs to be read. */
static bool key_is(struct raw key, const char *name)
{
	size_t length = strlen(name);

	if (memchr(key.text, '\\', key.length) == NULL)
		return key.length == length + 2 && memcmp(key.text + 1, name, length) == 0;
	auto_free char *text = raw_string(key);

	return text != NULL && streq(text, name);
}

bool raw_next(struct raw object, size_t *at, struct raw *ret_name, struct raw *ret_value)
{
	if (!raw_is_object(object))
		return false;
	const char *end = object.text + object.length, *name = behind_blanks(object.text + MAX(*at, 1), end);

	if (*name == ',')
		name = behind_blanks(name + 1, end);
	if (*name != '"')
		return false;
	const char *behind = behind_string(name), *value = behind_blanks(behind_blanks(behind, end) + 1, end);

	*ret_name = (struct raw){name, (size_t)(behind - name)};
	behind = behind_value(value, end);
	*ret_value = (struct raw){value, (size_t)(behind - value)};
	*at = (size_t)(behind - object.text);
	return true;
}

void raw_members(struct raw object, const char *const names[], size_t count, struct raw ret[])
{
	struct raw name, value;

	memset(ret, 0, count * sizeof(*ret));
	for (size_t at = 0; raw_next(object, &at, &name, &value);)
		for (size_t i = 0; i < count; i++)
			if (key_is(name, names[i]))
				ret[i] = value;
}

struct raw raw_member(struct raw object, const char *name)
{
	struct raw found;

	raw_members(object, &name, 1, &found);
	return found;
}

bool raw_item(struct raw array, size_t *at, struct raw *ret)
{
	if (array.text == NULL || array.length == 0 || array.text[0] != '[')
		return false;
	const char *end = array.text + array.length, *start = behind_blanks(array.text + MAX(*at, 1), end);

	if (*at > 0 && *start == ',')
		start = behind_blanks(start + 1, end);
	if (*start == ']')
		return false;
	const char *behind = behind_value(start, end);

	*ret = (struct raw){start, (size_t)(behind - start)};
	*at = (size_t)(behind - array.text);
	return true;
}

char *raw_string(struct raw value)
{
	auto_json struct json_object *object = NULL;

	if (value.text == NULL || value.length < 2 || value.text[0] != '"')
		return NULL;
	if (json_parse(value.text, value.length, &object, NULL) < 0)
		return NULL;
	size_t length = (size_t)json_object_get_string_len(object);
	const char *text = json_object_get_string(object);

	return strlen(text) == length ? xstrdup(text) : NULL;
}

bool raw_int(struct raw value, int64_t *ret)
{
	char text[24], *end;

	if (value.text == NULL || value.length == 0 || value.length >= sizeof(text))
		return false;
	memcpy(text, value.text, value.length);
	text[value.length] = '\0';
	errno = 0;
	long long number = strtoll(text, &end, 10);

	if (errno != 0 || *end != '\0' || (text[0] != '-' && !isdigit((unsigned char)text[0])))
		return false;
	*ret = number;
	return true;
}

bool raw_number(struct raw value, double *ret)
{
	char text[64], *end;

	if (value.text == NULL || value.length == 0 || value.length >= sizeof(text) ||
	    (value.text[0] != '-' && !isdigit((unsigned char)value.text[0])))
		return false;
	memcpy(text, value.text, value.length);
	text[value.length] = '\0';
	*ret = strtod(text, &end);
	return *end == '\0' && isfinite(*ret);
}

struct raw_pair {
	struct raw key, value;
};

static int by_key(const void *one, const void *two)
{
	const struct raw_pair *a = one, *b = two;
	int order = memcmp(a->key.text, b->key.text, MIN(a->key.length, b->key.length));

	return order != 0 ? order : (a->key.length > b->key.length) - (a->key.length < b->key.length);
}

static void canonical_object(struct buf *out, struct raw object)
{
	auto_free struct raw_pair *pairs = NULL;
	struct raw_pair pair;
	size_t count = 0;

	for (size_t at = 0; raw_next(object, &at, &pair.key, &pair.value); pairs[count++] = pair)
		if ((count & (count - 1)) == 0)
			pairs = xrealloc(pairs, MAX(2 * count, 1), sizeof(*pairs));
	if (count > 0)
		qsort(pairs, count, sizeof(*pairs), by_key);
	buf_putc(out, '{');
	for (size_t i = 0; i < count; i++) {
		buf_puts(out, i > 0 ? "," : "");
		buf_add(out, pairs[i].key.text, pairs[i].key.length);
		buf_putc(out, ':');
		raw_canonical(out, pairs[i].value);
	}
	buf_putc(out, '}');
}

void raw_canonical(struct buf *out, struct raw value)
{
	struct raw item;
	size_t at = 0;

	if (raw_is_object(value)) {
		canonical_object(out, value);
	} else if (value.length > 0 && value.text[0] == '[') {
		buf_putc(out, '[');
		while (raw_item(value, &at, &item)) {
			buf_puts(out, out->data[out->length - 1] == '[' ? "" : ",");
			raw_canonical(out, item);
		}
		buf_putc(out, ']');
	} else {
		buf_add(out, value.text, value.length);
	}
}
