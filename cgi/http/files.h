/*
 * files.h - GET /files/{hash}/{path}: download of a conversation's file.
 *
 * The hash (HMAC over owner and conversation, 64 hexadecimal digits) is the capability: anyone who has the URL may
 * read, nobody can make one up. Bytes are sent by the web server where gateway.accel_prefix names its internal location
 * of the blob folder, else by us. What a guest wrote must not act in the name of this site: nosniff, a sandboxing
 * Content-Security-Policy, and attachment unless it is one of the four image types or plain text.
 */
#pragma once

#include "exchange.h"
#include "lib/store/store_file.h"

void files_handle(struct exchange *exchange, const char *method, const char *rest);
/* One of the types that are shown in place and handed to models: PNG, JPEG, GIF, WebP. */
bool files_is_image(const char *media_type);
