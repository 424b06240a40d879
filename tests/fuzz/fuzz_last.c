/* Whatever the bytes: a program is left alone, or differs in semicolons that became blanks, and no more. What was done
 * once changes nothing more when it is done again. */
#include "fuzz.h"
#include "jail/cell/last.h"
#include "lib/base/util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
	auto_free char *text = xstrndup((const char *)data, length);
	auto_buf struct buf open = {0}, again = {0};

	buf_init(&open, SIZE_MAX);
	buf_init(&again, SIZE_MAX);
	length = strlen(text);
	if (!last_open(text, length, &open)) {
		PROMISE(open.length == 0);
		return 0;
	}
	PROMISE(open.length == length);
	for (size_t i = 0; i < length; i++)
		PROMISE(open.data[i] == text[i] || (text[i] == ';' && open.data[i] == ' '));
	PROMISE(last_open(open.data, open.length, &again));
	PROMISE(again.length == length && memcmp(again.data, open.data, length) == 0);
	return 0;
}
