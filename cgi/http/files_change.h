/*
 * files_change.h - files that programs put and remove over HTTP, so that no byte goes through a model: with a bearer
 * token of the conversation's owner, in order with its runs, recorded as the tools' uploads and removals are.
 *
 *     PUT /files/HASH/PATH         the body is the file; 201 where it is new, else 200
 *     POST /files/HASH/[FOLDER/]   multipart/form-data: each part that is a file, all or none
 *     DELETE /files/HASH/PATH      204; PATH/ is a folder with everything below it
 */
#pragma once

#include "files_place.h"

void files_change(struct http_exchange *exchange, const char *method, const struct files_place *place);
/* Reads the body within limits.body_mb, all of it. false: the reply says why not. */
bool files_change_body(struct http_exchange *exchange, struct buf *body);
/* Status and text of a refusal or failure. */
void files_change_refuse(struct reply *reply, const struct err *err);
/* May the token do what needs `scope`, now? Then files_change_leave follows. false: the reply says why not. */
bool files_change_enter(struct http_exchange *exchange, unsigned scope);
void files_change_leave(struct http_exchange *exchange);
