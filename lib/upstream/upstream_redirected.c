/* upstream_redirected.c - see upstream_redirected.h. */
#include "upstream_redirected.h"

#include <ctype.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/util.h"

#define TEXT_MAX 16384

static int hex_of(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *digit = c != '\0' ? strchr(digits, tolower((unsigned char)c)) : NULL;

	return digit != NULL ? (int)(digit - digits) : -1;
}

/* A value of a form as text; NULL: it is none, or has a NUL. The caller's. */
static char *decode(const char *text, size_t length)
{
	auto_buf struct buf out = {0};

	buf_init(&out, TEXT_MAX);
	for (size_t i = 0; i < length; i++) {
		char c = text[i] == '+' ? ' ' : text[i];

		if (c == '%') {
			if (i + 2 >= length || hex_of(text[i + 1]) < 0 || hex_of(text[i + 2]) < 0)
				return NULL;
			c = (char)(hex_of(text[i + 1]) << 4 | hex_of(text[i + 2]));
			i += 2;
		}
		if (c == '\0')
			return NULL;
		buf_putc(&out, c);
	}
	return out.overflow ? NULL : buf_steal(&out, NULL);
}

void upstream_redirected_clear(struct upstream_redirected *answer)
{
	free(answer->code);
	free(answer->state);
	free(answer->iss);
	free(answer->error);
	free(answer->error_description);
}

int upstream_redirected_read(const char *text, struct upstream_redirected *ret)
{
	const struct {
		const char *name;
		char **to;
	} parts[] = {{"code", &ret->code},
		     {"state", &ret->state},
		     {"iss", &ret->iss},
		     {"error", &ret->error},
		     {"error_description", &ret->error_description}};
	const char *query = strchr(text, '?');

	query = query != NULL ? query + 1 : text;
	while (*query != '\0' && *query != '#') {
		const size_t length = strcspn(query, "&#"), name = strcspn(query, "=&#");

		for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
			if (strlen(parts[i].name) != name || strncmp(parts[i].name, query, name) != 0)
				continue;
			if (*parts[i].to != NULL || name == length)
				return -1;
			*parts[i].to = decode(query + name + 1, length - name - 1);
			if (*parts[i].to == NULL)
				return -1;
		}
		query += length + (query[length] == '&');
	}
	return 0;
}
