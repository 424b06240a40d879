/* request.c - see request.h. */
#include "request.h"

#include <string.h>

#include "lib/base/util.h"

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
