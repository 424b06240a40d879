/*
 * oauth_jwt.h - checks a JWT (RFC 7519, RFC 8725, RFC 9068): one function, no input or output, no state.
 *
 *     struct oauth_keys *keys;       the issuer's, from oauth_keys_parse
 *     auto_json struct json_object *claims = NULL;
 *     result = oauth_jwt_check(text, keys, &rules, clock_now_us(), &claims, &err);
 *
 * Refused besides what the rules say: more than OAUTH_TOKEN_MAX bytes; parts that are not strict base64url of strict
 * JSON objects (a member twice is an error); `crit`; algorithms that are not in the rules ("none" and HMAC never are);
 * keys in the header (jwk, jku, x5u, x5c) are not looked at; a `typ` of something else than an access token, and with
 * rules.any_type also what is recognisably an ID token, a logout token or a refresh token.
 */
#pragma once

#include <stdbool.h>

#include "oauth_claims.h"
#include "oauth_keys.h"

#define OAUTH_TOKEN_MAX 8192 /* bytes */

/* Three parts of base64url with dots between: a JWT, whatever is in it. */
bool oauth_jwt_shaped(const char *text);
/* 0, and the claims, which are the caller's; ERR_DENIED: the reason; ERR_NOT_FOUND: everything else is right, and the
 * key's id is unknown: get the issuer's keys again. */
int oauth_jwt_check(const char *text, const struct oauth_keys *keys, const struct oauth_rules *rules, int64_t now_us,
		    struct json_object **ret_claims, struct err *err);
