/*
 * stdio_params.h - over stdio: a message's variables as a web server sets them for a POST (struct request), headers of
 * the modern era included, which repeat the body.
 */
#pragma once

#include "lib/base/json.h"

#define STDIO_PARAMS_MAX 10

/* `ret` is all NULL before and ended by NULL after; `session` "": none. */
void stdio_params_fill(char *ret[STDIO_PARAMS_MAX], struct json_object *document, const char *session);
void stdio_params_clear(char *params[STDIO_PARAMS_MAX]);
