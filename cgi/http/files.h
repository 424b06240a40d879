/*
 * files.h - /files/{hash}/{path}: a conversation's files. Who has the address may read them (files_place.h); to change
 * them (files_change.h) takes a bearer token of the owner.
 *
 * Bytes are sent by the web server where gateway.accel_prefix names its internal location of the blob folder, else by
 * us; either way in ranges, and an entity tag (the SHA-256) ties the parts together. What a guest wrote must not act in
 * the name of this site: nosniff, a sandboxing Content-Security-Policy, and attachment unless it is one of the four
 * image types or plain text.
 */
#pragma once

#include "exchange.h"
#include "lib/store/record/store_file.h"

/* GET and HEAD of a file; that the caller may read it was checked. */
struct files_place;
void files_download(struct http_exchange *exchange, const char *method, const struct files_place *place);
void files_handle(struct http_exchange *exchange, const char *method, const char *rest);
/* What the reply says of such a file: type, name, how it is shown, and the three headers above. */
void files_headers(struct reply *reply, const char *media_type, const char *name, size_t length);
/* One of the types that are shown in place and handed to models: PNG, JPEG, GIF, WebP. */
bool files_is_image(const char *media_type);
