/* trace.c - see trace.h. */
#include "trace.h"

#include "lib/base/text.h"
#include "lib/base/util.h"
#include "lib/store/db/crypto.h"

static const char digits[] = "0123456789abcdef";

void trace_request_id(const struct request *request, char ret[REQUEST_ID_SIZE])
{
	const char *given = request_param(request, "HTTP_X_REQUEST_ID");
	uint8_t bytes[(REQUEST_ID_SIZE - 1) / 2];

	if (given && strlen(given) == REQUEST_ID_SIZE - 1 && strspn(given, digits) == REQUEST_ID_SIZE - 1) {
		memcpy(ret, given, REQUEST_ID_SIZE);
		return;
	}
	random_bytes(bytes, sizeof(bytes));
	hex_encode(bytes, sizeof(bytes), ret);
}

/* version-trace-parent-flags; W3C Trace Context, section 3.2. Versions above 00 may have more behind that. */
bool trace_parent(const char *text, char ret[TRACE_SIZE])
{
	static const size_t fields[] = {2, 32, 16, 2};
	const char *at = text;

	for (size_t i = 0; text && i < ARRAY_SIZE(fields); i++) {
		const size_t length = strspn(at, digits);

		if (length != fields[i] || ((i == 1 || i == 2) && strspn(at, "0") == length))
			return false;
		at += length;
		if (i + 1 < ARRAY_SIZE(fields) && *at++ != '-')
			return false;
	}
	if (!text || str_starts(text, "ff") || (str_starts(text, "00") ? *at : *at && *at != '-'))
		return false;
	memcpy(ret, text, TRACE_SIZE - 1);
	ret[TRACE_SIZE - 1] = '\0';
	return true;
}
