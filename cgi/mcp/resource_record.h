/*
 * resource_record.h - the record as resources: files of conversations and outputs of executions, only the caller's own.
 *
 *     sallyport://conversation/NAME/PATH            both percent-encoded; PATH is the file's path below /data
 *     sallyport://execution/ID/stdout, …/stderr     everything that was recorded, where an answer shows the beginning
 *     …?offset=BYTES&length=BYTES                   a part of it (both are optional)
 *
 * Text comes as text, bytes that are no UTF-8 as base64. A part that would end inside a character ends before it; what
 * came is in the content's _meta (sallyport/offset, sallyport/length, sallyport/size, and sallyport/next, the URI of
 * the next part).
 */
#pragma once

#include "lib/base/buf.h"
#include "resources.h"

#define RESOURCE_READ_MAX (4 * 1024 * 1024) /* bytes of one read; larger ones are read in parts */

extern const struct resource_provider resource_record;
