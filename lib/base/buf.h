/*
 * buf.h - a byte buffer that grows up to a maximum which its owner names at birth.
 *
 * `data` is always followed by a NUL that does not count, so text can be handed to C functions; data may contain NULs
 * itself. Growing beyond `max` sets `overflow`, drops what does not fit and makes every later append a no-op: writers
 * append without checking, the owner checks `overflow` once at the end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct buf {
	char *data; /* never NULL after buf_init */
	size_t length;
	size_t size;
	size_t max;
	bool overflow;
};

void buf_init(struct buf *buf, size_t max);
/* Writes into `room` of the caller's, at most size - 1 bytes; such a buffer is not cleared, nor its bytes stolen. */
void buf_init_room(struct buf *buf, char *room, size_t size);
/* Room for so many bytes at once, so that it does not grow step by step. */
void buf_reserve(struct buf *buf, size_t length);
void buf_clear(struct buf *buf);                     /* gives the memory back; the struct may be initialised again */
#define auto_buf __attribute__((cleanup(buf_clear))) /* a zeroed struct (= {0}) may be cleared too */
void buf_reset(struct buf *buf);                     /* empty again, memory kept */
void buf_add(struct buf *buf, const void *data, size_t length);
void buf_puts(struct buf *buf, const char *text);
void buf_putc(struct buf *buf, char c);
void buf_int(struct buf *buf, long long value); /* decimal */
void buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Hands the bytes over (the caller frees them) and leaves the buffer as after buf_clear. */
char *buf_steal(struct buf *buf, size_t *ret_length);
