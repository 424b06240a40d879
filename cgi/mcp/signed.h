/*
 * signed.h - texts that we hand to a client and take back: cursors, requestState.
 *
 * base64(text) "." hex HMAC-SHA-256 over purpose, owner and text, under the key of the store: what comes back was made
 * here, for this owner and this purpose, and was not altered. It is not secret: the client can read it.
 */
#pragma once

#include "lib/store/store.h"

void signed_make(struct store *store, const char *purpose, const char *owner, const char *text, struct buf *ret);
/* Appends the text; ERR_INVALID: altered, or made for something else. */
int signed_read(struct store *store, const char *purpose, const char *owner, const char *value, struct buf *ret,
		struct err *err);
