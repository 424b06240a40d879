/*
 * upstream_sse.h - reads an event stream (HTML standard 9.2.6) as it arrives, in pieces of any size.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

#define SSE_ID_MAX 1024

struct sse_reader {
	struct buf line, data;
	bool began, after_cr, overflow; /* overflow: a line or an event was longer than `max`; nothing more is read */
	char type[32];                  /* of the event that is being read */
	char id[SSE_ID_MAX];            /* the last one that came; "": none */
	int64_t retry_ms;               /* -1: none came */
};
void sse_reader_init(struct sse_reader *reader, size_t max);
void sse_reader_clear(struct sse_reader *reader);
/* `event` is called for each event with data; "message" is the type of one without. It returns false to stop. */
bool sse_reader_read(struct sse_reader *reader, const char *data, size_t length,
		     bool (*event)(void *arg, const char *type, const char *text, size_t length), void *arg);
