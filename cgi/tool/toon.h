/*
 * toon.h - a JSON object as TOON (Token-Oriented Object Notation, toonformat.dev), which costs a model fewer tokens.
 *
 * The part of it that answers need: members that are strings, numbers, booleans, null, or arrays of such.
 *
 *     status: success
 *     stdout[2]: one,"two, with a comma"
 */
#pragma once

#include "lib/base/buf.h"
#include "lib/base/json.h"

/* Members of other kinds (objects, arrays of arrays) are left out. Lines end with '\n', the last one, too. */
void toon_print(struct buf *out, struct json_object *object);
