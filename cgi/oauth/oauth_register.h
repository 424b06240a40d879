/*
 * oauth_register.h - POST /register: a client introduces itself (RFC 7591), for those that have no document at an
 * address of theirs. It gets an id and never a secret. How many there may be, and how often, is bounded; those that
 * nobody uses expire.
 */
#pragma once

#include "cgi/http/http.h"

void oauth_register_post(struct http_exchange *exchange, const char *method, const char *rest);
