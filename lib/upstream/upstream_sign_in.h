/*
 * upstream_sign_in.h - a person signs in at a server's authorization server: code with PKCE (OAuth 2.1, RFC 7636), for
 * a program on this computer (RFC 8252).
 *
 *     upstream_sign_in_begin(config, server, redirect, scope, &sign_in, err)   finds the issuer, registers if it has to
 *     upstream_sign_in_url(sign_in)                                            what the person opens in a browser
 *     upstream_sign_in_end(sign_in, "…?code=…&state=…", &login, err)           what came back; the login is kept
 *
 * Who the client is: the entry's oauth.client_id; else the address of its metadata document (oauth.client_metadata_url)
 * where the issuer takes such; else what registered itself there before with the same redirect; else a new registration
 * (RFC 7591). Secrets of one issuer never go to another one.
 */
#pragma once

#include "upstream_login.h"

struct upstream_sign_in;
/* `redirect`: where the answer comes back to. `scope` NULL: as the entry's oauth.scopes, else as the server asks. */
int upstream_sign_in_begin(const struct config *config, const struct upstream_server *server, const char *redirect,
			   const char *scope, struct upstream_sign_in **ret, struct err *err);
const char *upstream_sign_in_url(const struct upstream_sign_in *sign_in);
const char *upstream_sign_in_issuer(const struct upstream_sign_in *sign_in);
/* `answer`: the address that the browser was sent to, or its query. ERR_INVALID: it is not an answer to this request,
 * another one may come; ERR_DENIED: the person, or the issuer, said no. */
int upstream_sign_in_end(struct upstream_sign_in *sign_in, const char *answer, struct upstream_login *ret,
			 struct err *err);
void upstream_sign_in_free(struct upstream_sign_in *sign_in); /* NULL is fine */
void upstream_sign_in_free_pointer(struct upstream_sign_in **sign_in);
#define auto_sign_in __attribute__((cleanup(upstream_sign_in_free_pointer)))
