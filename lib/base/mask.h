/*
 * mask.h - takes secrets out of bytes that are shown or kept.
 *
 * A mask is made of values. What it finds of them, in any of the forms below, becomes MASK_MARK; matches that overlap
 * or touch become one. Bytes may come in pieces of any size: a stream holds back what may be the beginning of a match,
 * at most about the length of the longest form.
 *
 *     value         as it is
 *     base64        standard and URL alphabet, at each of the three places in a group of three bytes: what of the
 *                   digits the value alone decides
 *     hexadecimal   lower and upper case
 *     URL           percent-encoded as RFC 3986, encodeURIComponent, encodeURI and forms do, in both cases
 *     JSON          what its escapes make of quotes, backslashes and control characters, and of all that is not ASCII
 *                   where it is escaped, too (Python)
 *
 * Line ends within a match do not hide it (base64 and xxd break lines), as long as no empty line is among them. A value
 * of fewer than MASK_LEAST bytes is not looked for: it would be found everywhere. A program that wants to get a secret
 * out can do so (split it, reverse it, encrypt it): a mask only keeps honest programs from showing secrets.
 *
 * The automaton is Aho's and Corasick's: the time is that of the bytes, whatever they are. It holds the values and is
 * therefore made of secret memory (secret.h), and it is only read: streams of several threads can share it.
 */
#pragma once

#include "buf.h"

#define MASK_MARK  "***"
#define MASK_LEAST 4
/* Of a longer value the rarer forms (encodeURI, form, URL alphabet, JSON in ASCII) are not looked for. */
#define MASK_LONG 4096

struct mask_value {
	const char *data;
	size_t length;
};
/* Calls `each` with every form of the value, some more than once. */
typedef void mask_form_each(void *arg, const char *form, size_t length);
void mask_forms(const struct mask_value *value, mask_form_each *each, void *arg);

struct mask;
/* NULL where no value is long enough. The values may go afterwards. */
struct mask *mask_new(const struct mask_value *values, size_t count);
struct mask *mask_keep(struct mask *mask); /* one more holder; from any thread; NULL is fine */
void mask_free(struct mask *mask);         /* one holder less; NULL is fine */
void mask_free_pointer(struct mask **mask);
#define auto_mask __attribute__((cleanup(mask_free_pointer)))

struct mask_stream {
	const struct mask *mask;
	size_t marks; /* so many were put */
	/* mask.c's own: */
	unsigned state, line_ends;
	unsigned long long place, base, symbols, *places;
	struct mask_span *spans;
	size_t n_spans, spans_size;
	struct buf held;
};
void mask_stream_init(struct mask_stream *stream, const struct mask *mask); /* a NULL mask lets everything through */
void mask_stream_add(struct mask_stream *stream, const char *data, size_t length, struct buf *to);
void mask_stream_end(struct mask_stream *stream, struct buf *to); /* what was held back */
void mask_stream_clear(struct mask_stream *stream);
#define auto_mask_stream __attribute__((cleanup(mask_stream_clear)))

/* All at once. Returns how many marks. */
size_t mask_bytes(const struct mask *mask, const char *data, size_t length, struct buf *to);
/* In place, for a text in an array of `size` bytes: cut at a character where the marks made it too long. */
void mask_text(const struct mask *mask, char *text, size_t size);
