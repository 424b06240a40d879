/* uri.c - see uri.h. */
#include "uri.h"

#include <string.h>

#include "lib/base/text.h"

void uri_encode(const char *text, size_t length, const char *keep, struct buf *out)
{
	static const char digits[] = "0123456789ABCDEF";

	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)text[i];

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		    (c && strchr(keep, c))) {
			buf_putc(out, (char)c);
		} else {
			buf_putc(out, '%');
			buf_putc(out, digits[c >> 4]);
			buf_putc(out, digits[c & 15]);
		}
	}
}

int uri_decode(const char *text, struct buf *ret, struct err *err)
{
	for (const char *p = text; *p; p++) {
		uint8_t byte = (uint8_t)*p;

		if (*p == '%') {
			if (!p[1] || hex_decode(p + 1, 2, &byte) < 0 || byte == 0)
				return err_set(err, ERR_INVALID, "bad percent escape in the path");
			p += 2;
		}
		buf_putc(ret, (char)byte);
	}
	return 0;
}

void uri_file(struct buf *out, const char *conversation, const char *name, size_t length)
{
	buf_puts(out, URI_CONVERSATION);
	uri_encode(conversation, strlen(conversation), "-._~", out);
	buf_putc(out, '/');
	uri_encode(name, length, "-._~/", out);
}

void uri_output(struct buf *out, const char *execution_id, bool is_stderr)
{
	buf_printf(out, URI_EXECUTION "%s/%s", execution_id, is_stderr ? "stderr" : "stdout");
}
