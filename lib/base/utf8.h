/*
 * utf8.h - is it UTF-8 (RFC 3629: shortest form, no surrogates, up to U+10FFFF), and if not, make it so visibly.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"

#define UTF8_REPLACEMENT 0xfffd /* U+FFFD stands for what is no character */

/* Bytes of the byte order mark that data begins with: 3 or 0. */
size_t utf8_mark(const char *data, size_t length);
/* Bytes of the character that data begins with (1 to 4), 0 if it begins with none. A NUL is a character of one byte. */
size_t utf8_length(const char *data, size_t length);
bool utf8_valid(const char *data, size_t length);
/* Appends data with every byte that is not part of valid UTF-8 written as \xNN; returns how many bytes were replaced.
 * Control characters stay: JSON escapes them. */
size_t utf8_safe(struct buf *out, const char *data, size_t length);
/* The longest prefix of at most `max` bytes that ends on a character's boundary. */
size_t utf8_cut(const char *data, size_t length, size_t max);
/* Appends data for a terminal or log line: as utf8_safe, and control characters (also C1, bidi overrides) as \xNN. */
void utf8_printable(struct buf *out, const char *data, size_t length);
