/* files_zip.h - the files of a conversation, or below a folder of it, as one zip archive. */
#pragma once

#include "files_place.h"

/* Sends the archive piece by piece, where the server can; else the reply holds it. Negative: nothing was sent. What
 * fails later cuts the archive short, which its reader notices. */
int files_zip(struct http_exchange *exchange, const struct files_place *place, struct err *err);
