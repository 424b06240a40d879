/* signed.c - see signed.h. */
#include "signed.h"

#include "lib/base/text.h"
#include "lib/base/util.h"
#include "lib/store/record/store_file.h"

static void sign(struct store *store, const char *purpose, const char *owner, const char *text,
		 char ret[SHA256_HEX_SIZE])
{
	/* Neither purposes nor owners hold a newline: no two triples give the same bytes. */
	auto_free char *all = xasprintf("%s\n%s\n%s", purpose, owner, text);

	store_sign(store, all, strlen(all), ret);
}

void signed_make(struct store *store, const char *purpose, const char *owner, const char *text, struct buf *ret)
{
	char mark[SHA256_HEX_SIZE];

	sign(store, purpose, owner, text, mark);
	base64_encode(ret, text, strlen(text));
	buf_printf(ret, ".%s", mark);
}

int signed_read(struct store *store, const char *purpose, const char *owner, const char *value, struct buf *ret,
		struct err *err)
{
	const char *dot = strrchr(value, '.');
	auto_buf struct buf text = {0};
	char mark[SHA256_HEX_SIZE];

	buf_init(&text, strlen(value) + 1);
	if (!dot || strlen(dot + 1) != SHA256_HEX_SIZE - 1 ||
	    base64_decode(value, (size_t)(dot - value), &text, NULL) < 0 || memchr(text.data, '\0', text.length))
		return err_set(err, ERR_INVALID, "not a value of this server");
	sign(store, purpose, owner, text.data, mark);
	if (!equal_constant_time(mark, dot + 1, SHA256_HEX_SIZE - 1))
		return err_set(err, ERR_INVALID, "not a value of this server, altered, or another caller's");
	buf_add(ret, text.data, text.length);
	return 0;
}
