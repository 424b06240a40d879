/*
 * json.c - bytes to documents; see json.h. Writing and building is json_print.c.
 *
 * The bytes are scanned first, and only what passed is given to json-c's tokener, which then has nothing left to be
 * lenient about. If the tokener refuses them all the same, that is a bug of ours and the error says so. The tokener
 * takes the text with a length, so NULs in values survive.
 *
 * The scanner walks the bytes once, by recursive descent, with the grammar of RFC 8259 and no memory but the keys of
 * the objects that are open: each key is unescaped into one arena that is used as a stack, and when an object ends its
 * keys are sorted and neighbours compared (so "a" and "\u0061" are found equal, and 65,536 hostile keys cost no more
 * than honest ones: a hash table would need a secret to promise that). Recursion is bounded by JSON_DEPTH_MAX.
 */
#include <json-c/json_tokener.h>
#include <limits.h>
#include <math.h>

#include "json.h"
#include "utf8.h"
#include "util.h"

#define DIGITS_SURELY_FINITE 300 /* so many before the point, without exponent */

struct key {
	size_t start, length; /* in the arena */
	size_t position;      /* in the text, for the error */
};

struct scan {
	const char *text;
	size_t length;
	size_t at;
	int depth, values, values_max;
	struct buf arena; /* unescaped keys of all open objects */
	struct key *keys;
	size_t n_keys, keys_size;
	bool halves; /* half of a surrogate pair is U+FFFD, not an error */
	bool pairs;  /* some escape was a surrogate pair, or half of one */
	struct err *err;
};

static int fail_at(struct scan *scan, size_t position, const char *what)
{
	size_t line = 1;

	for (size_t i = 0; i < position; i++)
		line += scan->text[i] == '\n';
	return err_set(scan->err, ERR_INVALID, "not JSON: %s at byte %zu (line %zu)", what, position + 1, line);
}

static int fail(struct scan *scan, const char *what)
{
	return fail_at(scan, scan->at, scan->at >= scan->length ? "the text ends too early" : what);
}

/* The byte at the current place; -1 at the end. */
static int peek(const struct scan *scan)
{
	return scan->at < scan->length ? (unsigned char)scan->text[scan->at] : -1;
}

static bool take(struct scan *scan, char c)
{
	if (peek(scan) != (unsigned char)c)
		return false;
	scan->at++;
	return true;
}

static void skip_blanks(struct scan *scan)
{
	while (scan->at < scan->length && strchr(" \t\n\r", scan->text[scan->at]) != NULL &&
	       scan->text[scan->at] != '\0')
		scan->at++;
}

static bool is_digit(int c)
{
	return c >= '0' && c <= '9';
}

static void skip_digits(struct scan *scan)
{
	while (is_digit(peek(scan)))
		scan->at++;
}

static int scan_number(struct scan *scan)
{
	size_t start = scan->at;
	bool negative = take(scan, '-'), fraction = false, exponent = false;
	size_t digits = scan->at;

	if (!is_digit(peek(scan)))
		return fail(scan, negative ? "no digit after the minus sign" : "unexpected character");
	if (take(scan, '0')) {
		if (is_digit(peek(scan)))
			return fail(scan, "a number with a leading zero");
	} else {
		skip_digits(scan);
	}
	size_t integer = scan->at - digits;

	if (take(scan, '.')) {
		if (!is_digit(peek(scan)))
			return fail(scan, "no digit after the decimal point");
		fraction = true;
		skip_digits(scan);
	}
	if (take(scan, 'e') || take(scan, 'E')) {
		exponent = true;
		if (!take(scan, '+'))
			take(scan, '-');
		if (!is_digit(peek(scan)))
			return fail(scan, "no digit in the exponent");
		skip_digits(scan);
	}
	/* json-c stores int64: the digits are compared without converting. */
	const char *limit = negative ? "9223372036854775808" : "9223372036854775807";

	if (!fraction && !exponent && (integer > 19 || (integer == 19 && memcmp(scan->text + digits, limit, 19) > 0)))
		return fail_at(scan, start, "an integer beyond 64 bits");
	if (exponent || (fraction && integer > DIGITS_SURELY_FINITE)) {
		auto_free char *copy = xstrndup(scan->text + start, scan->at - start);

		if (!isfinite(strtod(copy, NULL)))
			return fail_at(scan, start, "a number beyond the range of a double");
	}
	return 0;
}

/* Four hex digits at the current place, or -1. */
static int32_t take_hex4(struct scan *scan)
{
	int32_t code = 0;

	if (scan->length - scan->at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		char c = scan->text[scan->at + (size_t)i];
		int value = is_digit(c)            ? c - '0'
			    : c >= 'a' && c <= 'f' ? c - 'a' + 10
			    : c >= 'A' && c <= 'F' ? c - 'A' + 10
						   : -1;

		if (value < 0)
			return -1;
		code = code << 4 | value;
	}
	scan->at += 4;
	return code;
}

static void add_code_point(struct buf *out, uint32_t code)
{
	if (code < 0x80) {
		buf_putc(out, (char)code);
	} else if (code < 0x800) {
		buf_putc(out, (char)(0xc0 | code >> 6));
		buf_putc(out, (char)(0x80 | (code & 0x3f)));
	} else if (code < 0x10000) {
		buf_putc(out, (char)(0xe0 | code >> 12));
		buf_putc(out, (char)(0x80 | (code >> 6 & 0x3f)));
		buf_putc(out, (char)(0x80 | (code & 0x3f)));
	} else {
		buf_putc(out, (char)(0xf0 | code >> 18));
		buf_putc(out, (char)(0x80 | (code >> 12 & 0x3f)));
		buf_putc(out, (char)(0x80 | (code >> 6 & 0x3f)));
		buf_putc(out, (char)(0x80 | (code & 0x3f)));
	}
}

/* Behind "\\u": the character, a surrogate pair read as one; negative: err says what is wrong. */
static int32_t scan_code_point(struct scan *scan)
{
	size_t start = scan->at - 2;
	int32_t code = take_hex4(scan), low;
	const size_t behind = scan->at;

	if (code < 0)
		return fail_at(scan, start, "an escape \\u without four hex digits");
	if (code < 0xd800 || code > 0xdfff)
		return code;
	low = code < 0xdc00 && take(scan, '\\') && take(scan, 'u') ? take_hex4(scan) : -1;
	scan->pairs = true;
	if (low < 0xdc00 || low > 0xdfff) {
		scan->at = behind;
		return scan->halves ? UTF8_REPLACEMENT : fail_at(scan, start, "half of a surrogate pair");
	}
	return 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
}

/* Behind a backslash. `key` is where the character goes, NULL for a value. */
static int scan_escape(struct scan *scan, struct buf *key)
{
	static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	size_t start = scan->at - 1;
	int c = peek(scan);
	const char *letter = c > 0 ? strchr(letters, c) : NULL;
	int32_t code;

	if (letter != NULL) {
		scan->at++;
		if (key != NULL)
			buf_putc(key, meant[letter - letters]);
		return 0;
	}
	if (!take(scan, 'u'))
		return fail(scan, "an unknown escape");
	code = scan_code_point(scan);
	if (code < 0)
		return -ERR_INVALID;
	if (key == NULL)
		return 0;
	if (code == 0)
		return fail_at(scan, start, "a NUL in a member's name");
	add_code_point(key, (uint32_t)code);
	return 0;
}

/* Most characters of most strings: ASCII that means itself. */
static bool is_plain(int c)
{
	return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

static int scan_string(struct scan *scan, struct buf *key)
{
	if (!take(scan, '"'))
		return fail(scan, "a string was expected");
	while (!take(scan, '"')) {
		size_t start = scan->at, step;

		while (is_plain(peek(scan)))
			scan->at++;
		if (scan->at > start) {
			if (key != NULL)
				buf_add(key, scan->text + start, scan->at - start);
			continue;
		}
		if (take(scan, '\\')) {
			if (scan_escape(scan, key) < 0)
				return -ERR_INVALID;
			continue;
		}
		if (peek(scan) < 0x20)
			return fail(scan, "a raw control character in a string");
		step = utf8_length(scan->text + start, scan->length - start);
		if (step == 0)
			return fail(scan, "a byte that is not UTF-8");
		scan->at += step;
		if (key != NULL)
			buf_add(key, scan->text + start, step);
	}
	return 0;
}

static int compare_keys(const void *a, const void *b, void *arena)
{
	const struct key *x = a, *y = b;
	const char *data = arena;
	int order = memcmp(data + x->start, data + y->start, MIN(x->length, y->length));

	if (order == 0 && x->length != y->length)
		order = x->length < y->length ? -1 : 1;
	return order != 0 ? order : x->position < y->position ? -1 : 1;
}

static int check_duplicates(struct scan *scan, size_t first)
{
	struct key *keys = scan->keys + first;
	size_t count = scan->n_keys - first;
	char *data = scan->arena.data;

	if (count < 2)
		return 0;
	qsort_r(keys, count, sizeof(*keys), compare_keys, data);
	for (size_t i = 1; i < count; i++)
		if (keys[i].length == keys[i - 1].length &&
		    memcmp(data + keys[i].start, data + keys[i - 1].start, keys[i].length) == 0)
			return fail_at(scan, keys[i].position, "a member that was there before");
	return 0;
}

static int scan_key(struct scan *scan, size_t first)
{
	struct key key = {.start = scan->arena.length, .position = scan->at};

	if (scan->n_keys - first >= JSON_KEYS_MAX)
		return fail(scan, "more than 65536 members in one object");
	if (scan_string(scan, &scan->arena) < 0)
		return -ERR_INVALID;
	key.length = scan->arena.length - key.start;
	if (scan->n_keys == scan->keys_size) {
		scan->keys_size = MAX(2 * scan->keys_size, (size_t)32);
		scan->keys = xrealloc(scan->keys, scan->keys_size, sizeof(*scan->keys));
	}
	scan->keys[scan->n_keys++] = key;
	return 0;
}

static int scan_value(struct scan *scan);

static int scan_object(struct scan *scan)
{
	size_t first = scan->n_keys, arena = scan->arena.length;

	skip_blanks(scan);
	if (take(scan, '}'))
		return 0;
	for (;;) {
		skip_blanks(scan);
		if (scan_key(scan, first) < 0)
			return -ERR_INVALID;
		skip_blanks(scan);
		if (!take(scan, ':'))
			return fail(scan, "no colon after a member's name");
		if (scan_value(scan) < 0)
			return -ERR_INVALID;
		if (!take(scan, ','))
			break;
		skip_blanks(scan);
		if (peek(scan) == '}')
			return fail(scan, "a comma before the closing brace (remove it)");
	}
	if (!take(scan, '}'))
		return fail(scan, "neither a comma nor a closing brace in an object");
	if (check_duplicates(scan, first) < 0)
		return -ERR_INVALID;
	scan->n_keys = first;
	scan->arena.length = arena;
	return 0;
}

static int scan_array(struct scan *scan)
{
	skip_blanks(scan);
	if (take(scan, ']'))
		return 0;
	for (;;) {
		if (scan_value(scan) < 0)
			return -ERR_INVALID;
		if (!take(scan, ','))
			break;
		skip_blanks(scan);
		if (peek(scan) == ']')
			return fail(scan, "a comma before the closing bracket (remove it)");
	}
	return take(scan, ']') ? 0 : fail(scan, "neither a comma nor a closing bracket in an array");
}

static int scan_literal(struct scan *scan, const char *word)
{
	size_t length = strlen(word);

	if (scan->length - scan->at < length || memcmp(scan->text + scan->at, word, length) != 0)
		return fail(scan, "unexpected character");
	scan->at += length;
	return 0;
}

/* A value and the blanks around it. */
static int scan_value(struct scan *scan)
{
	int result;

	skip_blanks(scan);
	if (++scan->values > scan->values_max)
		return fail(scan, "more than 262144 values");
	switch (peek(scan)) {
	case '{':
	case '[':
		if (++scan->depth > JSON_DEPTH_MAX)
			return fail(scan, "more than 64 levels");
		result = scan->text[scan->at++] == '{' ? scan_object(scan) : scan_array(scan);
		scan->depth--;
		break;
	case '"':
		result = scan_string(scan, NULL);
		break;
	case 't':
		result = scan_literal(scan, "true");
		break;
	case 'f':
		result = scan_literal(scan, "false");
		break;
	case 'n':
		result = scan_literal(scan, "null");
		break;
	default:
		result = scan_number(scan);
	}
	skip_blanks(scan);
	return result;
}

/* As json_scan. The caller has set halves and values_max; pairs and values are then what was found. */
static int scan_text(struct scan *scan)
{
	int result;

	if (scan->length > INT_MAX - 1)
		return err_set(scan->err, ERR_INVALID, "not JSON: longer than 2 GiB");
	buf_init(&scan->arena, scan->length);
	result = scan_value(scan);
	if (result == 0 && scan->at < scan->length)
		result = fail(scan, "something behind the end");
	buf_clear(&scan->arena);
	free(scan->keys);
	return result;
}

int json_scan(const char *text, size_t length, struct err *err)
{
	struct scan scan = {.text = text, .length = length, .values_max = JSON_VALUES_MAX, .err = err};

	return scan_text(&scan);
}

/* Fills `out` (which it initialises) with the text, which passed the scan; writes its surrogate pairs and halves as
 * UTF-8: json-c 0.16 turns some of them (\ud836\ude00, all of U+1D800 to U+1DFFF and their like) into U+FFFD. */
static void write_out_pairs(struct buf *out, const char *text, size_t length)
{
	struct scan scan = {.text = text, .length = length, .halves = true};

	buf_init(out, length);
	while (scan.at < length) {
		const char *backslash = memchr(text + scan.at, '\\', length - scan.at);
		size_t start = backslash != NULL ? (size_t)(backslash - text) : length;

		buf_add(out, text + scan.at, start - scan.at);
		scan.at = start + 1;
		if (start == length)
			break;
		int32_t code = take(&scan, 'u') ? scan_code_point(&scan) : 0;

		if (code >= 0x10000 || code == UTF8_REPLACEMENT) {
			add_code_point(out, (uint32_t)code);
		} else { /* json-c reads this escape right: the two bytes go as they are, what follows as text */
			buf_add(out, text + start, 2);
			scan.at = start + 2;
		}
	}
}

/* -------- documents ----------------------------------------------------------------------------------- */

void json_put_pointer(struct json_object **object)
{
	json_object_put(*object);
}

/* The document of a text that passed the scan. */
static int build(const char *text, size_t length, struct json_object **ret, struct err *err)
{
	struct json_tokener *tokener = json_tokener_new_ex(JSON_DEPTH_MAX + 1); /* scalars inside count as a level */
	struct json_object *object;
	enum json_tokener_error state;

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

static int parse(struct scan *scan, struct json_object **ret)
{
	auto_buf struct buf plain = {0};
	int result = scan_text(scan);

	if (result < 0)
		return result;
	if (!scan->pairs)
		return build(scan->text, scan->length, ret, scan->err);
	write_out_pairs(&plain, scan->text, scan->length);
	return build(plain.data, plain.length, ret, scan->err);
}

int json_parse(const char *text, size_t length, struct json_object **ret, struct err *err)
{
	struct scan scan = {.text = text, .length = length, .values_max = JSON_VALUES_MAX, .err = err};

	return parse(&scan, ret);
}

int json_parse_received(const char *text, size_t length, struct json_object **ret, struct err *err)
{
	const size_t mark = utf8_mark(text, length);
	struct scan scan = {.text = text + mark,
			    .length = length - mark,
			    .values_max = JSON_VALUES_MAX,
			    .halves = true,
			    .err = err};

	return parse(&scan, ret);
}

int json_parse_budget(const char *text, size_t length, int *values, struct json_object **ret, struct err *err)
{
	struct scan scan = {.text = text, .length = length, .values_max = MIN(*values, JSON_VALUES_MAX), .err = err};
	int result = parse(&scan, ret);

	*values -= MIN(scan.values, *values);
	return result;
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
