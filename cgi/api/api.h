/*
 * api.h - /v1/: a plain HTTP API for programs that do not speak MCP, in the shape that chat front ends call already
 * (LibreChat's code interpreter). Off unless api.enabled.
 *
 *     POST   /v1/exec                          a program in, its output and the files that it made out
 *     POST   /v1/upload                        a form: files into a new session
 *     GET    /v1/files/SESSION                 what is in it
 *     DELETE /v1/files/SESSION/FILE
 *     GET    /v1/download/SESSION/FILE         the bytes, as below /files/
 *     GET    /v1/openapi.json                  all of this for machines
 *
 * Same tokens (X-API-Key, or Authorization: Bearer), same jails, same record: a session is a conversation that has its
 * id as name, and a file's id is made of its name. Both have the 21 characters that the front ends insist on. Each
 * program begins in a new session, unless it names one: files that it names are copied into it, so that a file which
 * many programs share is changed by none.
 */
#pragma once

#include "cgi/http/http.h"
#include "lib/store/record/store_file.h"

#define API_ID_SIZE 22

void api_handle(struct http_exchange *exchange, const char *method, const char *rest);

/* The parts: api_exec.c, api_files.c. */
void api_exec(struct http_exchange *exchange);
void api_upload(struct http_exchange *exchange);
void api_list(struct http_exchange *exchange, const char *session);
void api_file(struct http_exchange *exchange, const char *method, const char *session, const char *id);

bool api_id_valid(const char *id);
void api_id_new(char ret[API_ID_SIZE]);
void api_file_id(const char *name, size_t length, char ret[API_ID_SIZE]);
/* The file with this id in a session of the caller's; its name (free it) and row. ERR_NOT_FOUND. */
int api_file_find(struct http_exchange *exchange, const char *session, const char *id, char **ret_name,
		  struct store_file *ret, struct err *err);
