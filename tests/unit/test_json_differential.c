/*
 * Is the scanner RFC 8259? A generator makes texts that are JSON or nearly; each goes with our verdict and what we
 * print for it to json_oracle.py, which asks Python's json the same. The oracle ends with 1 and names each text on
 * which the two differ.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>

#include "lib/base/json.h"
#include "lib/base/util.h"

#define TEXTS 60000
#define TEXT_MAX 4096
#define ORACLE "/usr/bin/python3 -I tests/unit/json_oracle.py"

static uint64_t seed = 0x853c49e6748fea9b;

static uint64_t next(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed * 0x9e3779b97f4a7c15 >> 20) % below;
}

#define PICK(list) (list)[next(ARRAY_SIZE(list))]

static void generate_string(struct buf *out)
{
	static const char *const pieces[] = {
		"a", "b", "\\u0061", "\\n", "\\/", "\\\"", "\\\\", "\\u0000", "\\u20ac", "€", "😀", "\\ud83d\\ude00",
		"\\uD83D\\uDE00", "\x7f", " ",
	};
	static const char *const broken[] = {"\\ud83d", "\\ude00",  "\\x",          "\\u12", "\n",
					     "\xff",    "\xc0\xaf", "\xed\xa0\x80", "\\",    "\x01"};

	buf_putc(out, '"');
	for (uint64_t n = next(4); n > 0; n--)
		buf_puts(out, next(60) == 0 ? PICK(broken) : PICK(pieces));
	buf_putc(out, '"');
}

static void generate_number(struct buf *out)
{
	static const char *const numbers[] = {
		"0",
		"-0",
		"1",
		"-1",
		"123",
		"0.5",
		"-0.0",
		"1e5",
		"1E+05",
		"1e-07",
		"2.5e+300",
		"9223372036854775807",
		"-9223372036854775808",
		"5e-324",
		"1e-400",
		"0.1",
		"0.30000000000000004",
		"123456789012345678",
		"1e15",
		"1e16",
		"1e22",
		"4.35",
		"0e999999",
	};
	static const char *const broken[] = {
		"01",
		"-",
		"+1",
		".5",
		"1.",
		"1e",
		"1e+",
		"1e400",
		"-1e309",
		"9223372036854775808",
		"-9223372036854775809",
		"NaN",
		"Infinity",
		"-Infinity",
		"0x1",
		"1_000",
		"1e5.0",
		"--1",
		"123456789012345678901234567890",
	};

	if (next(3) == 0)
		buf_printf(out, "%lld%s%llu", (long long)next(2000) - 1000, next(2) ? "." : "e",
			   (unsigned long long)next(300));
	else
		buf_puts(out, next(40) == 0 ? PICK(broken) : PICK(numbers));
}

static void generate_value(struct buf *out, int depth)
{
	static const char *const blanks[] = {"", "", "", "", " ", "\n", "\t\r"};
	static const char *const literals[] = {"true", "false", "null", "true", "null", "True", "nul", "undefined"};
	uint64_t kind = next(depth > 4 ? 5 : 8), count = next(5);

	buf_puts(out, PICK(blanks));
	if (kind < 2)
		generate_number(out);
	else if (kind < 4)
		generate_string(out);
	else if (kind == 4)
		buf_puts(out, next(10) == 0 ? PICK(literals) : literals[next(3)]);
	else
		buf_putc(out, kind == 5 ? '[' : '{');
	for (uint64_t i = 0; kind > 4 && i < count; i++) {
		if (i > 0)
			buf_putc(out, ',');
		if (kind > 5) {
			generate_string(out);
			buf_putc(out, ':');
		}
		generate_value(out, depth + 1);
	}
	if (kind > 4)
		buf_putc(out, kind == 5 ? ']' : '}');
	buf_puts(out, PICK(blanks));
}

/* Some texts get a byte changed, cut or put in. */
static void damage(struct buf *text)
{
	static const char bytes[] = "{}[],:\"\\ \n\t0123456789eE+-.truefalsn\x80\xc3\x01\x00/";
	size_t at = text->length > 0 ? next(text->length) : 0;

	if (text->length == 0 || next(3) != 0)
		return;
	if (next(3) == 0) {
		memmove(text->data + at, text->data + at + 1, text->length - at);
		text->length--;
	} else {
		text->data[at] = bytes[next(sizeof(bytes) - 1)];
	}
}

static void frame(FILE *oracle, const void *data, size_t length)
{
	uint32_t size = (uint32_t)length;

	assert_int_equal(fwrite(&size, sizeof(size), 1, oracle), 1);
	assert_int_equal(fwrite(data, 1, length, oracle), length);
}

static void nested(struct buf *text, int depth)
{
	buf_reset(text);
	for (int i = 0; i < depth; i++)
		buf_puts(text, i % 2 ? "[" : "{\"a\":");
	buf_puts(text, "0");
	for (int i = depth - 1; i >= 0; i--)
		buf_puts(text, i % 2 ? "]" : "}");
}

static void test_against_python(void **state)
{
	FILE *oracle = popen(ORACLE, "we");
	auto_buf struct buf text = {0}, printed = {0};
	size_t accepted = 0;

	(void)state;
	assert_non_null(oracle);
	signal(SIGPIPE, SIG_IGN); /* an oracle that gives up early is seen by its exit code */
	buf_init(&text, TEXT_MAX);
	buf_init(&printed, 4 * TEXT_MAX);
	for (size_t i = 0; i < TEXTS; i++) {
		auto_json struct json_object *object = NULL;

		buf_reset(&text);
		buf_reset(&printed);
		if (i % 500 == 0)
			nested(&text, JSON_DEPTH_MAX - 1 + (int)(i / 500 % 3));
		else
			generate_value(&text, 0);
		damage(&text);
		if (json_parse(text.data, text.length, &object, NULL) == 0) {
			json_print(&printed, object);
			accepted++;
		}
		frame(oracle, text.data, text.length);
		frame(oracle, printed.data, printed.length); /* empty: refused */
	}
	assert_int_equal(pclose(oracle), 0);
	assert_in_range(accepted, TEXTS / 4, TEXTS * 3 / 4); /* a generator of one kind only would prove nothing */
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_python)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
