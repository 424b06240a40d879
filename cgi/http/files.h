/*
 * files.h - /files/HASH/PATH: a conversation's files. Who has the address may read them; to change them takes a bearer
 * token of the owner.
 *
 *     GET /files/HASH/NAME         a file of the conversation
 *     GET /files/HASH/[FOLDER/]    the files there: a page for people (Accept: text/html), JSON for programs, with ?zip
 *                                  all of them in one archive
 *     PUT /files/HASH/NAME         the body is the file; 201 where it is new, else 200
 *     POST /files/HASH/[FOLDER/]   multipart/form-data: each part that is a file, all or none
 *     DELETE /files/HASH/NAME      204; NAME/ is a folder with everything below it
 *
 * The hash (HMAC over owner and conversation, 64 hexadecimal digits) is the capability: anyone who has the address may
 * read, nobody can make one up. With files.url_seconds it alone is not enough: the addresses that we give out name the
 * second until which they count, and a signature over that, the conversation and the path. A conversation that was
 * removed and made again has the same hash, but none of its old addresses. A bearer token of the owner may always read.
 *
 * Bytes are sent by the web server where gateway.accel_prefix names its internal location of the blob folder, else by
 * us; either way in ranges, and an entity tag (the SHA-256) ties the parts together. What a guest wrote must not act in
 * the name of this site: nosniff, a sandboxing Content-Security-Policy, and attachment unless it is one of the four
 * image types or plain text. Changes are made in order with the conversation's runs and recorded as the tools' uploads
 * and removals are; no byte goes through a model.
 */
#pragma once

#include "http.h"
#include "lib/store/record/store_file.h"

void files_handle(struct http_exchange *exchange, const char *method, const char *rest);

/* -------- files_place.c: what an address means, and who may use it ------------------------------------ */

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

/* -------- files.c: downloads -------------------------------------------------------------------------- */

/* GET and HEAD of a file; that the caller may read it was checked. */
void files_download(struct http_exchange *exchange, const char *method, const struct files_place *place);
/* What the reply says of such a file: type, name, how it is shown, and the three headers above. */
void files_headers(struct reply *reply, const char *media_type, const char *name, size_t length);
/* One of the types that are shown in place and handed to models: PNG, JPEG, GIF, WebP. */
bool files_is_image(const char *media_type);

/* -------- files_list.c, files_zip.c: folders ---------------------------------------------------------- */

void files_list(struct http_exchange *exchange, const struct files_place *place);
/* {"name","url","size","media_type","modified"}; the caller's. */
struct json_object *files_list_object(struct http_exchange *exchange, const struct store_conversation *conversation,
				      const struct store_file *file);
/* Sends the archive piece by piece, where the server can; else the reply holds it. Negative: nothing was sent. What
 * fails later cuts the archive short, which its reader notices. */
int files_zip(struct http_exchange *exchange, const struct files_place *place, struct err *err);

/* -------- files_change.c ------------------------------------------------------------------------------ */

void files_change(struct http_exchange *exchange, const char *method, const struct files_place *place);
/* Reads the body within limits.body_mb, all of it. false: the reply says why not. */
bool files_change_body(struct http_exchange *exchange, struct buf *body);
/* Status and text of a refusal or failure. */
void files_change_refuse(struct reply *reply, const struct err *err);
/* May the token do what needs `scope`, now? Then files_change_leave follows. false: the reply says why not. */
bool files_change_enter(struct http_exchange *exchange, unsigned scope);
void files_change_leave(struct http_exchange *exchange);
