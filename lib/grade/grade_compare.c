/* grade_compare.c - see grade_compare.h. */
#include "grade_compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/base/buf.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"

#define SHOWN      40  /* bytes of a token that are shown */
#define NUMBER_MAX 400 /* characters of a number that need no memory of their own */

struct text {
	const char *data, *end;
};
struct token {
	const char *data;
	size_t length;
};

/* The blanks, or the other characters, that come next. */
static struct token next(struct text *text, bool blanks)
{
	struct token token = {.data = text->data};

	while (text->data < text->end && (*text->data == ' ' || (*text->data >= '\t' && *text->data <= '\r')) == blanks)
		text->data++;
	token.length = (size_t)(text->data - token.data);
	return token;
}

/* No hexadecimal numbers, "nan" or "inf", which are words: the format's numbers are those that people write. */
static bool plain_number(struct token token, double *ret)
{
	char small[NUMBER_MAX + 1], *end;
	auto_free char *large = token.length > NUMBER_MAX ? xcalloc(1, token.length + 1) : NULL;
	char *text = large ? large : small;

	if (token.length == 0 || memchr(token.data, 'x', token.length) || memchr(token.data, 'X', token.length))
		return false;
	memcpy(text, token.data, token.length);
	text[token.length] = '\0';
	*ret = strtod(text, &end);
	return *end == '\0' && isfinite(*ret);
}

static bool same_token(const struct grade_compare *how, struct token answer, struct token output)
{
	double wanted, got;

	if ((how->has_absolute || how->has_relative) && plain_number(answer, &wanted)) {
		if (answer.length == output.length && memcmp(answer.data, output.data, answer.length) == 0)
			return true;
		return plain_number(output, &got) &&
		       ((how->has_absolute && fabs(wanted - got) <= how->absolute) ||
			(how->has_relative && fabs(wanted - got) <= how->relative * fabs(wanted)));
	}
	if (answer.length != output.length)
		return false;
	return (how->case_sensitive ? memcmp(answer.data, output.data, answer.length)
				    : strncasecmp(answer.data, output.data, answer.length)) == 0;
}

static void show(struct buf *out, struct token token)
{
	if (token.length == 0) {
		buf_puts(out, "the end");
		return;
	}
	buf_putc(out, '"');
	utf8_printable(out, token.data, MIN(token.length, (size_t)SHOWN));
	buf_puts(out, token.length > SHOWN ? "…\"" : "\"");
}

bool grade_compare(const struct grade_compare *how, const char *answer, size_t answer_length, const char *output,
		   size_t output_length, char ret_why[GRADE_COMPARE_TEXT])
{
	struct text wanted = {answer, answer + answer_length}, got = {output, output + output_length};

	/* Nobody sees a byte order mark, and no program prints one because the answer has it. */
	wanted.data += utf8_mark(answer, answer_length);
	for (size_t number = 1;; number++) {
		struct token a = next(&wanted, true), b = next(&got, true);

		if (how->space_change_sensitive &&
		    (a.length != b.length || memcmp(a.data, b.data, a.length) != 0)) {
			snprintf(ret_why, GRADE_COMPARE_TEXT, "other white space before token %zu", number);
			return false;
		}
		a = next(&wanted, false);
		b = next(&got, false);
		if (a.length == 0 && b.length == 0)
			return true;
		if (a.length == 0 || b.length == 0 || !same_token(how, a, b)) {
			auto_buf struct buf text = {0};

			buf_init(&text, GRADE_COMPARE_TEXT - 1);
			buf_printf(&text, "token %zu: expected ", number);
			show(&text, a);
			buf_puts(&text, ", got ");
			show(&text, b);
			snprintf(ret_why, GRADE_COMPARE_TEXT, "%s", text.data);
			return false;
		}
	}
}

static int tolerance(const char *const *flags, size_t count, size_t *i, double *ret, struct err *err)
{
	const char *name = flags[*i];
	char *end = NULL;

	if (*i + 1 >= count)
		return err_set(err, ERR_INVALID, "%s needs a number behind it", name);
	double number = strtod(flags[++*i], &end);
	if (end == flags[*i] || *end || !(number >= 0))
		return err_set(err, ERR_INVALID, "%s: \"%s\" is not a tolerance", name, flags[*i]);
	*ret = number;
	return 0;
}

int grade_compare_flags(const char *const *flags, size_t count, struct grade_compare *ret, struct err *err)
{
	struct grade_compare how = {0};

	for (size_t i = 0; i < count; i++) {
		const char *flag = flags[i];
		bool absolute = streq(flag, "float_absolute_tolerance"),
		     relative = streq(flag, "float_relative_tolerance");
		bool both = streq(flag, "float_tolerance");
		double epsilon = 0;
		int result;

		if (streq(flag, "case_sensitive")) {
			how.case_sensitive = true;
		} else if (streq(flag, "space_change_sensitive")) {
			how.space_change_sensitive = true;
		} else if (absolute || relative || both) {
			if ((result = tolerance(flags, count, &i, &epsilon, err)) < 0)
				return result;
			if (absolute || both)
				how.absolute = epsilon, how.has_absolute = true;
			if (relative || both)
				how.relative = epsilon, how.has_relative = true;
		} else {
			return err_set(err, ERR_INVALID, "the default validator has no flag \"%s\"", flag);
		}
	}
	*ret = how;
	return 0;
}
