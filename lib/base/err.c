/* err.c - see err.h. Allocates nothing, so it works when memory is short and in small children. */
#include "err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "utf8.h"
#include "util.h"

#define RPC_INVALID  (-32602)
#define RPC_INTERNAL (-32603)

static const struct err_info infos[ERR_CODES] = {
	[ERR_NONE] = {"none", 0, 200, 0},
	[ERR_INVALID] = {"invalid", RPC_INVALID, 400, 2},
	[ERR_NOT_FOUND] = {"not-found", RPC_INVALID, 404, 3},
	[ERR_DENIED] = {"denied", RPC_INVALID, 403, 4},
	[ERR_CONFLICT] = {"conflict", RPC_INVALID, 409, 5},
	[ERR_LIMIT] = {"limit", RPC_INVALID, 413, 6},
	[ERR_BUSY] = {"busy", RPC_INTERNAL, 503, 7},
	[ERR_UNAVAILABLE] = {"unavailable", RPC_INTERNAL, 503, 8},
	[ERR_CANCELLED] = {"cancelled", RPC_INTERNAL, 499, 9},
	[ERR_SYSTEM] = {"system", RPC_INTERNAL, 500, 10},
	[ERR_CORRUPT] = {"corrupt", RPC_INTERNAL, 500, 11},
	[ERR_INTERNAL] = {"internal", RPC_INTERNAL, 500, 12},
};

const struct err_info *err_info(enum err_code code)
{
	return (unsigned)code < ERR_CODES ? &infos[code] : &infos[ERR_INTERNAL];
}

/* Copies text so that the result is one line of valid UTF-8: what is not becomes '?', a blank for a newline or tab. */
static void copy_line(char *to, size_t size, const char *from)
{
	size_t length = strlen(from), used = 0;

	for (size_t at = 0; at < length;) {
		size_t step = utf8_length(from + at, length - at);

		if (used + MAX(step, 1) >= size)
			break;
		if (step > 1) {
			memcpy(to + used, from + at, step);
			used += step;
			at += step;
			continue;
		}
		unsigned char byte = (unsigned char)from[at++];

		if (byte == '\n' || byte == '\t' || byte == '\r')
			to[used++] = ' ';
		else
			to[used++] = step == 1 && byte >= 0x20 && byte != 0x7f ? (char)byte : '?';
	}
	to[used] = '\0';
}

int err_set(struct err *err, enum err_code code, const char *format, ...)
{
	char text[2 * ERR_TEXT_SIZE]; /* arguments may point into err */
	va_list args;

	if (err == NULL)
		return -(int)code;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	copy_line(err->text, sizeof(err->text), text);
	err->code = code;
	err->member[0] = '\0';
	return -(int)code;
}

int err_member(struct err *err, const char *member, const char *format, ...)
{
	char name[ERR_MEMBER_SIZE], text[ERR_TEXT_SIZE];
	va_list args;

	if (err == NULL)
		return -ERR_INVALID;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	copy_line(name, sizeof(name), member);
	err_set(err, ERR_INVALID, "%s: %s", name, text);
	memcpy(err->member, name, sizeof(name));
	return -ERR_INVALID;
}

const char *err_reason(const struct err *err)
{
	const char *text = err->text + strlen(err->member);

	return strncmp(text, ": ", 2) == 0 ? text + 2 : text;
}

int err_errno(struct err *err, const char *format, ...)
{
	int number = errno;
	char text[ERR_TEXT_SIZE];
	va_list args;

	if (err == NULL)
		return -ERR_SYSTEM;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	/* The reason is what a reader needs: a text that is too long is cut, not the reason. */
	const char *remedy = number == EFBIG    ? " (see ulimit -f, LimitFSIZE= of systemd)"
			     : number == EMFILE ? " (see ulimit -n, LimitNOFILE= of systemd)"
			     : number == ENFILE ? " (see the sysctl fs.file-max)"
						: "";
	err_set(err, ERR_SYSTEM, "%.*s: %s%s", ERR_TEXT_SIZE - 128, text, strerror(number), remedy);
	errno = number;
	return -ERR_SYSTEM;
}

int err_wrap(struct err *err, const char *format, ...)
{
	char context[ERR_TEXT_SIZE], member[ERR_MEMBER_SIZE];
	va_list args;

	if (err == NULL)
		return -ERR_INTERNAL;
	va_start(args, format);
	vsnprintf(context, sizeof(context), format, args);
	va_end(args);
	memcpy(member, err->member, sizeof(member));
	err_set(err, err->code, "%s: %s", context, err->text);
	memcpy(err->member, member, sizeof(member));
	return -(int)err->code;
}
