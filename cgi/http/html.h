/*
 * html.h - pages out of templates with typed holes: the only way in which pages are written.
 *
 *     html_put(html, "<a href=\"/admin/run/{}\">{}</a>", html_part(id), html_text(name));
 *
 * A template is a string literal; anything else does not compile. Each {} takes the next value, and every value passes
 * one function that escapes it for text and for quoted attributes alike: & < > " ' become entities, and what is not
 * printable (bytes that are not UTF-8, controls, characters that turn the direction of text) becomes visible as \xNN.
 * So what a guest or a client wrote is never markup.
 *
 * The template is followed as it is written: a hole outside of quotes within a tag, a hole at the beginning of an
 * address (href, src, action) whose value was not made by html_address, or a number of holes that is not the number of
 * values makes the page `wrong`, and the caller does not send it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

enum html_kind {
	HTML_NONE,
	HTML_LINE,  /* one line: line breaks become visible, too */
	HTML_LINES, /* for <pre>: line breaks and tabs stay */
	HTML_ADDRESS, /* a whole address: its scheme is the caller's to check */
	HTML_PART,  /* a segment of an address, or a value in its query: percent-encoded */
	HTML_ROOM,  /* a short text of ours, in `room` */
};
struct html_value {
	enum html_kind kind;
	const char *data;
	size_t length;
	char room[40];
};

enum html_place { HTML_OUTSIDE, HTML_TAG, HTML_QUOTED };
struct html {
	struct buf *out; /* the caller's */
	enum html_place place;
	char attribute[12]; /* whose value it is */
	bool fresh;         /* nothing stands between its quotes yet */
	bool wrong;
};
void html_init(struct html *html, struct buf *out);
/* Is the page complete and as it must be? */
bool html_sound(const struct html *html);

#define html_put(html, template, ...)                                                                                  \
	html_fill(html, "" template "", (const struct html_value[]){{HTML_NONE, 0, 0, ""}, ##__VA_ARGS__},             \
		  sizeof((const struct html_value[]){{HTML_NONE, 0, 0, ""}, ##__VA_ARGS__}) /                          \
				  sizeof(struct html_value) -                                                          \
			  1)
/* html_put calls it; `values` begins with one that counts as none. */
void html_fill(struct html *html, const char *template, const struct html_value *values, size_t count);

/* The texts must live until html_put returns. NULL is the empty text. */
struct html_value html_text(const char *text);
struct html_value html_bytes(const char *data, size_t length);
struct html_value html_lines(const char *data, size_t length);
struct html_value html_part(const char *text);
struct html_value html_address(const char *text);
struct html_value html_part_bytes(const char *data, size_t length);
struct html_value html_number(int64_t number);          /* 12,345 */
struct html_value html_plain(int64_t number);           /* 12345 */
struct html_value html_size(int64_t bytes);             /* 1.4 MiB */
struct html_value html_duration(int64_t us);            /* 31 ms, 1.25 s, 3 min */
struct html_value html_date(int64_t us);                /* 2026-11-21 08:11:09, UTC */
struct html_value html_iso(int64_t us);                 /* 2026-11-21T08:11:09Z, for <time datetime> */
struct html_value html_ago(int64_t us, int64_t now_us); /* 5 min ago */
struct html_value html_tenths(int64_t tenths);          /* 0.7 */
