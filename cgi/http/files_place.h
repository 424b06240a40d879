/*
 * files_place.h - what an address below /files/ means, and who may use it.
 *
 *     /files/HASH/NAME      a file of the conversation
 *     /files/HASH/FOLDER/   its files below a folder; /files/HASH/: all
 *
 * The hash (HMAC over owner and conversation, 64 hexadecimal digits) is the capability: anyone who has the address may
 * read, nobody can make one up. With files.url_seconds it alone is not enough: the addresses that we give out name the
 * second until which they count, and a signature over that, the conversation and the path. A conversation that was
 * removed and made again has the same hash, but none of its old addresses. A bearer token of the owner may always read.
 */
#pragma once

#include "exchange.h"
#include "lib/store/record/store_file.h"

struct files_place {
	struct store_conversation conversation;
	struct buf name; /* of the file, or of the folder without its last slash; bytes */
	bool folder;
};
/* `rest` is the path below /files/, encoded. ERR_NOT_FOUND: there is no such conversation, or it is no such path. */
int files_place_take(struct http_exchange *exchange, const char *rest, struct files_place *ret, struct err *err);
void files_place_clear(struct files_place *place);
#define auto_files_place __attribute__((cleanup(files_place_clear)))
/* May it be read by who asks? false: the reply says why not. */
bool files_place_readable(struct http_exchange *exchange, const struct files_place *place);
/* Appends the address of a file of the conversation, or of a folder of it; with an end where files.url_seconds says so.
 */
struct files_target {
	const char *name; /* of a folder without its last slash; "": all */
	size_t length;
	bool folder;
};
void files_place_address(const struct config *config, struct store *store,
			 const struct store_conversation *conversation, const struct files_target *target,
			 struct buf *out);
/* Is the file below the place, which is a folder? */
bool files_place_has(const struct files_place *place, const struct store_file *file);
/* The same where the conversation's row is not at hand; in a workspace the path
 * there, without a public_base_url (stdio) its resource's URI. */
void files_place_download(const struct server *server, const char *conversation, const char *hash,
			  const struct store_file *file, struct buf *out);
/* A member of the address's query, "name=…" or "name"; NULL: it is not there. The caller's. */
char *files_place_query(const struct request *request, const char *name);
