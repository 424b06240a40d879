/* request.c - see request.h. */
#include "request.h"

#include <string.h>

#include "lib/base/text.h"
#include "lib/base/util.h"
#include "lib/store/db/crypto.h"

static const char digits[] = "0123456789abcdef";

const char *request_param(const struct request *request, const char *name)
{
	for (const char *const *p = request->params; *p; p++) {
		const char *at = *p, *c = name;

		while (*c && *at == *c)
			at++, c++;
		if (!*c && *at == '=')
			return at + 1;
	}
	return NULL;
}

const char *request_header(const struct request *request, const char *name, char *buffer, size_t size)
{
	const char *value = request_param(request, name);

	if (!value)
		return NULL;
	value += strspn(value, " \t");
	size_t length = strlen(value);

	while (length > 0 && strchr(" \t", value[length - 1]))
		length--;
	if (length >= size)
		return NULL;
	memcpy(buffer, value, length);
	buffer[length] = '\0';
	return buffer;
}

char *request_query(const struct request *request, const char *name)
{
	const char *uri = request_param(request, "REQUEST_URI"), *at = uri ? strchr(uri, '?') : NULL;
	const size_t length = strlen(name);

	while (at && *at) {
		const char *end = strchrnul(++at, '&');

		if ((size_t)(end - at) >= length && strncmp(at, name, length) == 0) {
			if (at + length == end)
				return xstrdup("");
			if (at[length] == '=')
				return xstrndup(at + length + 1, (size_t)(end - at) - length - 1);
		}
		at = end;
	}
	return NULL;
}

void request_id(const struct request *request, char ret[REQUEST_ID_SIZE])
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
bool request_trace(const char *text, char ret[REQUEST_TRACE_SIZE])
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
	memcpy(ret, text, REQUEST_TRACE_SIZE - 1);
	ret[REQUEST_TRACE_SIZE - 1] = '\0';
	return true;
}
