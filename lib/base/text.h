/*
 * text.h - hex and base64 (RFC 4648).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "err.h"

void hex_encode(const uint8_t *data, size_t length, char *ret); /* 2*length+1 bytes */
int hex_decode(const char *text, size_t length, uint8_t *ret);  /* lower and upper case; 0 or -1 */
void base64_encode(struct buf *out, const void *data, size_t length);
/* Standard alphabet, padding required, no blanks, canonical last digits; ERR_INVALID says at which character it fails.
 */
int base64_decode(const char *text, size_t length, struct buf *out, struct err *err);
/* As people and models send it: line ends within, blanks around lines, padding left out, the alphabet of URLs (- and
 * _), and behind "data:TYPE;base64,". */
int base64_decode_meant(const char *text, size_t length, struct buf *out, struct err *err);
/* The alphabet of URLs (- and _) without padding, as tokens have it (RFC 7515): one spelling, nothing else. */
void base64url_encode(struct buf *out, const void *data, size_t length);
int base64url_decode(const char *text, size_t length, struct buf *out, struct err *err);
