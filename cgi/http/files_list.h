/*
 * files_list.h - GET /files/HASH/ and /files/HASH/FOLDER/: the files there. A page for people (Accept: text/html), JSON
 * for programs, with ?zip all of them in one archive.
 */
#pragma once

#include "files_place.h"

void files_list(struct http_exchange *exchange, const struct files_place *place);
/* {"name","url","size","media_type","modified"}; the caller's. */
struct json_object *files_list_object(struct http_exchange *exchange, const struct store_conversation *conversation,
				      const struct store_file *file);
