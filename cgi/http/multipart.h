/*
 * multipart.h - the parts of a multipart/form-data body (RFC 7578), which is in memory.
 *
 * Strict: the boundary of the header, CRLF, a Content-Disposition in each part, an end. Parts point into the body.
 */
#pragma once

#include "lib/base/buf.h"
#include "lib/base/err.h"

#define MULTIPART_PARTS_MAX  256
#define MULTIPART_NAME_MAX   1024 /* bytes of a name, or of a file's name */
#define MULTIPART_HEADER_MAX 8192 /* bytes of a part's headers */

struct multipart_part {
	char *name, *filename; /* decoded; filename NULL: it is no file. Owned */
	const char *data;
	size_t length;
};
struct multipart {
	struct multipart_part *parts;
	size_t count;
};
/* ERR_INVALID says what is wrong; ERR_LIMIT: too many parts. `content_type` NULL: none. */
int multipart_parse(const char *content_type, const struct buf *body, struct multipart *ret, struct err *err);
void multipart_clear(struct multipart *form);
#define auto_multipart __attribute__((cleanup(multipart_clear)))
/* The value of a field; NULL: it is not there, or has a NUL. The caller's. */
char *multipart_field(const struct multipart *form, const char *name);
