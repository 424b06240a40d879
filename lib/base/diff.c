/*
 * diff.c - see diff.h.
 *
 * A window of lines of each side, from shortly before the first difference on, is compared by the longest common
 * subsequence: a table of at most DIFF_WINDOW × DIFF_WINDOW, so that neither time nor memory grows with the texts. What
 * lies behind the windows is not looked at, so where one was cut the diff ends with the last line that they have in
 * common.
 */
#include "diff.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "utf8.h"
#include "util.h"

#define CONTEXT 3

struct line {
	const char *start;
	size_t length;
	bool open; /* no newline behind it */
};
struct side {
	struct line *lines;
	size_t count;
	size_t first; /* number of the first line, from 1 */
	bool cut;
};
/* One line of the result; `old` and `now` are the places that come next on each side. */
struct edit {
	char kind; /* ' ' '-' '+' */
	size_t old, now;
};

static void read_side(const char *data, size_t length, size_t from, struct side *ret)
{
	const char *at = data + from, *end = data + length;

	ret->lines = xcalloc(DIFF_WINDOW, sizeof(*ret->lines));
	for (; at < end && ret->count < DIFF_WINDOW; ret->count++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;

		ret->lines[ret->count] = (struct line){at, (size_t)(stop - at), !newline};
		at = newline ? newline + 1 : end;
	}
	ret->cut = at < end;
}

static bool same(const struct line *a, const struct line *b)
{
	return a->length == b->length && a->open == b->open && memcmp(a->start, b->start, a->length) == 0;
}

/* Fills `edits` by the longest common subsequence; returns how many. */
static size_t compare(const struct side *old, const struct side *now, struct edit *edits)
{
	size_t width = now->count + 1, count = 0, i = 0, k = 0;
	auto_free uint16_t *longest = xcalloc((old->count + 1) * width, sizeof(*longest));

	for (i = old->count; i-- > 0;)
		for (k = now->count; k-- > 0;)
			longest[i * width + k] =
				same(&old->lines[i], &now->lines[k])
					? (uint16_t)(longest[(i + 1) * width + k + 1] + 1)
					: MAX(longest[(i + 1) * width + k], longest[i * width + k + 1]);
	i = k = 0;
	while (i < old->count || k < now->count) {
		struct edit edit = {'+', i, k};

		if (i < old->count && k < now->count && same(&old->lines[i], &now->lines[k]))
			edit.kind = ' ';
		else if (k == now->count ||
			 (i < old->count && longest[(i + 1) * width + k] >= longest[i * width + k + 1]))
			edit.kind = '-';
		edits[count++] = edit;
		i += edit.kind != '+';
		k += edit.kind != '-';
	}
	return count;
}

/* What only the end of a window may have made is left out. */
static size_t without_cut(const struct edit *edits, size_t count)
{
	size_t end = count;

	while (end > 0 && edits[end - 1].kind != ' ')
		end--;
	for (size_t i = 0; i < end; i++)
		if (edits[i].kind != ' ')
			return end;
	return count;
}

static size_t put_hunk(struct buf *ret, const struct side *old, const struct side *now, const struct edit *edits,
		       size_t count, size_t room)
{
	size_t removed = 0, added = 0, shown = MIN(count, room);

	for (size_t i = 0; i < count; i++) {
		removed += edits[i].kind != '+';
		added += edits[i].kind != '-';
	}
	buf_printf(ret, "@@ -%zu,%zu +%zu,%zu @@\n", old->first + edits[0].old - (removed == 0), removed,
		   now->first + edits[0].now - (added == 0), added);
	for (size_t i = 0; i < shown; i++) {
		const struct line *line = edits[i].kind == '+' ? &now->lines[edits[i].now] : &old->lines[edits[i].old];
		const size_t length = utf8_cut(line->start, line->length, DIFF_LINE_MAX);

		buf_putc(ret, edits[i].kind);
		utf8_printable(ret, line->start, length);
		buf_puts(ret, length < line->length ? "…\n" : "\n");
		if (line->open)
			buf_puts(ret, "\\ no newline at the end\n");
	}
	return shown;
}

static void put_edits(struct buf *ret, const struct side *old, const struct side *now, const struct edit *edits,
		      size_t count, size_t room)
{
	size_t at = 0, left = 0;

	while (at < count) {
		size_t first = at, common = 0;

		while (first < count && edits[first].kind == ' ')
			first++;
		if (first == count)
			break;
		const size_t start = first - at > CONTEXT ? first - CONTEXT : at;
		size_t length = 0; /* of the hunk: until more than twice the context is in common */

		for (; start + length < count && common <= (size_t)2 * CONTEXT; length++)
			common = edits[start + length].kind == ' ' ? common + 1 : 0;
		length -= common > CONTEXT ? common - CONTEXT : 0;
		if (room > 0) {
			size_t shown = put_hunk(ret, old, now, edits + start, length, room);

			room -= shown;
			left += length - shown;
		} else {
			left += length;
		}
		at = start + length;
	}
	if (left > 0 || old->cut || now->cut)
		buf_puts(ret, "… and more\n");
}

void diff_unified(const char *old, size_t old_length, const char *now, size_t now_length, size_t lines, struct buf *ret)
{
	size_t shorter = MIN(old_length, now_length), from = 0, back = 0;
	struct side before = {0}, after = {0};

	while (from < shorter && old[from] == now[from])
		from++;
	if (from == shorter && old_length == now_length)
		return;
	/* back to the beginning of a line, and as many lines as there is context */
	while (from > 0 && (old[from - 1] != '\n' || back++ < CONTEXT))
		from--;
	before.first = 1;
	for (size_t i = 0; i < from; i++)
		before.first += old[i] == '\n';
	after.first = before.first;
	read_side(old, old_length, from, &before);
	read_side(now, now_length, from, &after);
	struct edit *edits = xcalloc(before.count + after.count + 1, sizeof(*edits));
	size_t count = compare(&before, &after, edits);

	if (before.cut || after.cut)
		count = without_cut(edits, count);
	put_edits(ret, &before, &after, edits, count, lines);
	free(edits);
	free(before.lines);
	free(after.lines);
}
