/*
 * uri.h - the addresses of what we keep: download URLs, and the URIs of the record's resources.
 *
 *     PUBLIC_BASE_URL/files/HASH/PATH               of a file, for browsers (files.h)
 *     sallyport://conversation/NAME/PATH            of a file, for clients of the protocol (resource_record.h)
 *     sallyport://execution/ID/stdout, …/stderr     of an output
 */
#pragma once

#include "lib/base/config.h"
#include "lib/store/record/store_file.h"

#define URI_MAX          (8 * 1024) /* bytes of one that we make */
#define URI_SCHEME       "sallyport://"
#define URI_CONVERSATION URI_SCHEME "conversation/"
#define URI_EXECUTION    URI_SCHEME "execution/"

/* RFC 3986: letters, digits and the bytes of `keep` stay, everything else becomes %XX. */
void uri_encode(const char *text, size_t length, const char *keep, struct buf *out);
/* Decodes %XX once; ERR_INVALID for bad escapes and NUL. */
int uri_decode(const char *text, struct buf *ret, struct err *err);
/* The resource of a conversation's file; its name may be any bytes. */
void uri_file(struct buf *out, const char *conversation, const char *name, size_t length);
void uri_output(struct buf *out, const char *execution_id, bool is_stderr);
