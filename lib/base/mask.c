/*
 * mask.c - see mask.h.
 *
 * The automaton is a trie of all forms without their line ends; a node's `back` is the node of its longest proper
 * suffix that is in the trie, and `match` the length of the longest form that ends there. Nodes have few children
 * (mostly one), so these are a list; the root's are a table.
 *
 * A stream counts places (of bytes) and symbols (bytes that are no line ends). It remembers the places of the last
 * symbols, so that a match of so many symbols tells at which byte it began. Bytes are held back from the place where
 * the longest form may have begun that the state is in the middle of: no later match begins before. What was matched
 * is a list of spans, in order and apart from each other.
 */
#include "mask.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "secret.h"
#include "utf8.h"
#include "util.h"

#define LINE_ENDS 2     /* so many in a row, CR and LF, are passed over */
#define PIECE     65536 /* bytes between two times that what is safe is let go */

struct node {
	uint32_t child, next, back;
	uint32_t depth, match;
	unsigned char byte;
};

struct mask {
	_Atomic int references;
	struct node *nodes; /* 0 is the root */
	uint32_t count, size;
	uint32_t depth; /* the greatest */
	uint32_t root[256];
};

struct mask_span {
	unsigned long long from, to;
	bool marked; /* the mark was put; the rest of the bytes goes without */
};

/* -------- forms of a value --------------------------------------------------------------------------- */

static const char standard_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char url_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
static const char *const hex_digits[] = {"0123456789abcdef", "0123456789ABCDEF"};

/* What percent-encoding leaves as it is, besides letters and digits. */
static const struct {
	const char *plain;
	bool plus; /* a blank becomes '+' */
	bool rare;
} url_kinds[] = {
	{"-._~", false, false},                /* RFC 3986 */
	{"-._~/", false, false},               /* Python's quote */
	{"-_.!~*'()", false, true},            /* encodeURIComponent */
	{"-_.!~*'();/?:@&=+$,#", false, true}, /* encodeURI */
	{"-._*", true, true},                  /* HTML forms */
	{"-._~", true, true},                  /* Python's quote_plus */
};

struct forms {
	const struct mask_value *value;
	mask_form_each *each;
	void *arg;
	char *room; /* for the longest: six bytes for each of the value */
};

static void hex(const struct forms *forms, const char *digits)
{
	size_t length = 0;

	for (size_t i = 0; i < forms->value->length; i++) {
		unsigned char byte = (unsigned char)forms->value->data[i];

		forms->room[length++] = digits[byte >> 4];
		forms->room[length++] = digits[byte & 15];
	}
	forms->each(forms->arg, forms->room, length);
}

/* The digits that only the value decides, where `before` bytes (0 to 2) of its first group are others. */
static void base64(const struct forms *forms, const char *digits, size_t before)
{
	size_t bits = 8 * (before + forms->value->length), first = (8 * before + 5) / 6, length = 0;

	for (size_t i = first; 6 * (i + 1) <= bits; i++) {
		unsigned value = 0;

		for (size_t bit = 6 * i; bit < 6 * i + 6; bit++) {
			unsigned char byte = (unsigned char)forms->value->data[bit / 8 - before];

			value = value << 1 | (byte >> (7 - bit % 8) & 1U);
		}
		forms->room[length++] = digits[value];
	}
	forms->each(forms->arg, forms->room, length);
	/* At the end of what is encoded the last digit is filled up with zeros. */
	if (bits % 6) {
		unsigned last = (unsigned char)forms->value->data[forms->value->length - 1];

		forms->room[length++] = digits[last << (6 - bits % 6) & 63];
		forms->each(forms->arg, forms->room, length);
	}
}

static void url(const struct forms *forms, const char *plain, bool plus, const char *digits)
{
	size_t length = 0;

	for (size_t i = 0; i < forms->value->length; i++) {
		unsigned char byte = (unsigned char)forms->value->data[i];
		bool alphanumeric = (byte >= '0' && byte <= '9') || ((byte | 32) >= 'a' && (byte | 32) <= 'z');

		if (byte == ' ' && plus) {
			forms->room[length++] = '+';
		} else if (alphanumeric || (byte && strchr(plain, byte))) {
			forms->room[length++] = (char)byte;
		} else {
			forms->room[length++] = '%';
			forms->room[length++] = digits[byte >> 4];
			forms->room[length++] = digits[byte & 15];
		}
	}
	forms->each(forms->arg, forms->room, length);
}

static void unicode(const struct forms *forms, size_t *length, unsigned unit, const char *digits)
{
	memcpy(forms->room + *length, "\\u", 2);
	for (int i = 0; i < 4; i++)
		forms->room[*length + 2 + (size_t)i] = digits[unit >> (12 - 4 * i) & 15];
	*length += 6;
}

/* A character of more than one byte, as one unit of UTF-16 or two. */
static void character(const struct forms *forms, size_t *length, const char *data, size_t step, const char *digits)
{
	unsigned code = (unsigned char)data[0] & (0xffu >> (step + 1));

	for (size_t i = 1; i < step; i++)
		code = code << 6 | ((unsigned char)data[i] & 63);
	if (code < 0x10000) {
		unicode(forms, length, code, digits);
		return;
	}
	unicode(forms, length, 0xd800 + ((code - 0x10000) >> 10), digits);
	unicode(forms, length, 0xdc00 + ((code - 0x10000) & 0x3ff), digits);
}

/* `ascii`: all that is not ASCII is escaped, too, as Python does. */
static void json(const struct forms *forms, bool ascii, const char *digits)
{
	static const char escaped[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
	const char *data = forms->value->data;
	size_t length = 0, step;

	for (size_t i = 0; i < forms->value->length; i += step) {
		unsigned char byte = (unsigned char)data[i];
		const char *found = byte ? strchr(escaped, byte) : NULL;

		step = ascii ? MAX(utf8_length(data + i, forms->value->length - i), (size_t)1) : 1;
		if (found) {
			forms->room[length++] = '\\';
			forms->room[length++] = letters[found - escaped];
		} else if (step > 1) {
			character(forms, &length, data + i, step, digits);
		} else if (byte < 32 || (ascii && byte == 127)) {
			unicode(forms, &length, byte, digits);
		} else {
			forms->room[length++] = (char)byte;
		}
	}
	forms->each(forms->arg, forms->room, length);
}

void mask_forms(const struct mask_value *value, mask_form_each *each, void *arg)
{
	auto_secret char *room = secret_alloc(6 * value->length + 1);
	const struct forms forms = {value, each, arg, room};
	bool rare = value->length <= MASK_LONG;

	each(arg, value->data, value->length);
	json(&forms, false, hex_digits[0]);
	for (size_t before = 0; before < 3; before++) {
		base64(&forms, standard_digits, before);
		if (rare)
			base64(&forms, url_digits, before);
	}
	for (size_t i = 0; i < ARRAY_SIZE(hex_digits); i++) {
		hex(&forms, hex_digits[i]);
		if (rare)
			json(&forms, true, hex_digits[i]);
		for (size_t kind = 0; kind < ARRAY_SIZE(url_kinds); kind++)
			if (rare || !url_kinds[kind].rare)
				url(&forms, url_kinds[kind].plain, url_kinds[kind].plus, hex_digits[i]);
	}
}

/* -------- the automaton ------------------------------------------------------------------------------- */

static uint32_t child_of(const struct mask *mask, uint32_t node, unsigned char byte)
{
	if (node == 0)
		return mask->root[byte];
	uint32_t child = mask->nodes[node].child;

	while (child && mask->nodes[child].byte != byte)
		child = mask->nodes[child].next;
	return child;
}

static uint32_t add_child(struct mask *mask, uint32_t parent, unsigned char byte)
{
	if (mask->count == mask->size) {
		struct node *more = secret_alloc(2 * (size_t)mask->size * sizeof(*more));

		memcpy(more, mask->nodes, mask->count * sizeof(*more));
		secret_free(mask->nodes);
		mask->nodes = more;
		mask->size *= 2;
	}
	uint32_t child = mask->count++;

	mask->nodes[child] =
		(struct node){.byte = byte, .depth = mask->nodes[parent].depth + 1, .next = mask->nodes[parent].child};
	mask->nodes[parent].child = child;
	mask->depth = MAX(mask->depth, mask->nodes[child].depth);
	if (parent == 0)
		mask->root[byte] = child;
	return child;
}

static bool is_line_end(char byte)
{
	return byte == '\n' || byte == '\r';
}

static void add_form(void *arg, const char *form, size_t length)
{
	struct mask *mask = arg;
	uint32_t node = 0;
	size_t symbols = 0;

	for (size_t i = 0; i < length; i++)
		symbols += !is_line_end(form[i]);
	if (symbols < MASK_LEAST)
		return;
	for (size_t i = 0; i < length; i++) {
		if (is_line_end(form[i]))
			continue;
		uint32_t child = child_of(mask, node, (unsigned char)form[i]);

		node = child ? child : add_child(mask, node, (unsigned char)form[i]);
	}
	mask->nodes[node].match = mask->nodes[node].depth;
}

static uint32_t step(const struct mask *mask, uint32_t node, unsigned char byte)
{
	uint32_t child;

	while (!(child = child_of(mask, node, byte)) && node)
		node = mask->nodes[node].back;
	return child;
}

/* Nearest to the root first. */
static void link_back(struct mask *mask)
{
	auto_free uint32_t *queue = xcalloc(mask->count, sizeof(*queue));
	size_t head = 0, tail = 0;

	for (uint32_t node = 0;; node = queue[head++]) {
		for (uint32_t child = mask->nodes[node].child; child; child = mask->nodes[child].next) {
			struct node *it = &mask->nodes[child];

			it->back = node ? step(mask, mask->nodes[node].back, it->byte) : 0;
			it->match = MAX(it->match, mask->nodes[it->back].match);
			queue[tail++] = child;
		}
		if (head == tail)
			return;
	}
}

struct mask *mask_new(const struct mask_value *values, size_t count)
{
	struct mask *mask = xcalloc(1, sizeof(*mask));

	mask->references = 1;
	mask->size = 1024;
	mask->nodes = secret_alloc(mask->size * sizeof(*mask->nodes));
	mask->count = 1;
	for (size_t i = 0; i < count; i++)
		if (values[i].length >= MASK_LEAST)
			mask_forms(&values[i], add_form, mask);
	if (mask->count == 1) {
		mask_free(mask);
		return NULL;
	}
	link_back(mask);
	return mask;
}

struct mask *mask_keep(struct mask *mask)
{
	if (mask)
		mask->references++;
	return mask;
}

void mask_free(struct mask *mask)
{
	if (!mask || --mask->references > 0)
		return;
	secret_free(mask->nodes);
	free(mask);
}

void mask_free_pointer(struct mask **mask)
{
	mask_free(*mask);
	*mask = NULL;
}

/* -------- streams ------------------------------------------------------------------------------------- */

void mask_stream_init(struct mask_stream *stream, const struct mask *mask)
{
	*stream = (struct mask_stream){.mask = mask};
	buf_init(&stream->held, SIZE_MAX);
	if (mask)
		stream->places = xcalloc(mask->depth, sizeof(*stream->places));
}

void mask_stream_clear(struct mask_stream *stream)
{
	if (stream->held.data)
		explicit_bzero(stream->held.data, stream->held.size);
	buf_clear(&stream->held);
	free(stream->places);
	free(stream->spans);
	*stream = (struct mask_stream){0};
}

static void add_span(struct mask_stream *stream, unsigned long long from)
{
	struct mask_span span = {from, stream->place, false};

	while (stream->n_spans > 0 && stream->spans[stream->n_spans - 1].to >= span.from) {
		const struct mask_span *last = &stream->spans[--stream->n_spans];

		span.from = MIN(span.from, last->from);
		span.marked = span.marked || last->marked;
	}
	if (stream->n_spans == stream->spans_size) {
		stream->spans_size = stream->spans_size ? 2 * stream->spans_size : 16;
		stream->spans = xrealloc(stream->spans, stream->spans_size, sizeof(*stream->spans));
	}
	stream->spans[stream->n_spans++] = span;
}

/* The place where the last so many symbols began. */
static unsigned long long began(const struct mask_stream *stream, uint32_t symbols)
{
	return symbols ? stream->places[(stream->symbols - symbols) % stream->mask->depth] : stream->place;
}

static void take(struct mask_stream *stream, char byte)
{
	const struct mask *mask = stream->mask;

	if (stream->state && is_line_end(byte)) {
		if (++stream->line_ends > LINE_ENDS)
			stream->state = 0;
		stream->place++;
		return;
	}
	stream->line_ends = 0;
	stream->state = step(mask, stream->state, (unsigned char)byte);
	if (stream->state)
		stream->places[stream->symbols++ % mask->depth] = stream->place;
	stream->place++;
	if (mask->nodes[stream->state].match)
		add_span(stream, began(stream, mask->nodes[stream->state].match));
}

/* Bytes with which no form begins, where none is under way: most of all. Returns how many. */
static size_t pass(struct mask_stream *stream, const char *data, size_t length)
{
	size_t n = 0;

	while (n < length && !stream->mask->root[(unsigned char)data[n]])
		n++;
	stream->place += n;
	return n;
}

/* Lets go what is held before the place. */
static void let_go(struct mask_stream *stream, unsigned long long safe, struct buf *to)
{
	unsigned long long at = stream->base;
	size_t done = 0;

	for (; done < stream->n_spans && stream->spans[done].from < safe; done++) {
		struct mask_span *span = &stream->spans[done];

		if (!span->marked) {
			buf_add(to, stream->held.data + (at - stream->base), span->from - at);
			buf_puts(to, MASK_MARK);
			stream->marks++;
			span->marked = true;
		}
		at = MIN(span->to, safe);
		if (span->to >= safe) { /* it may grow */
			span->from = safe;
			break;
		}
	}
	buf_add(to, stream->held.data + (at - stream->base), safe - at);
	stream->n_spans -= done;
	if (stream->n_spans > 0) /* else there may be no memory at all */
		memmove(stream->spans, stream->spans + done, stream->n_spans * sizeof(*stream->spans));
	stream->held.length -= safe - stream->base;
	if (stream->held.length > 0)
		memmove(stream->held.data, stream->held.data + (safe - stream->base), stream->held.length);
	stream->base = safe;
}

void mask_stream_add(struct mask_stream *stream, const char *data, size_t length, struct buf *to)
{
	if (!stream->mask) {
		buf_add(to, data, length);
		return;
	}
	while (length > 0) {
		size_t piece = MIN(length, (size_t)PIECE);

		buf_add(&stream->held, data, piece);
		for (size_t i = stream->state ? 0 : pass(stream, data, piece); i < piece;) {
			take(stream, data[i++]);
			if (!stream->state)
				i += pass(stream, data + i, piece - i);
		}
		let_go(stream, began(stream, stream->mask->nodes[stream->state].depth), to);
		data += piece;
		length -= piece;
	}
}

void mask_stream_end(struct mask_stream *stream, struct buf *to)
{
	if (stream->mask)
		let_go(stream, stream->place, to);
}

size_t mask_bytes(const struct mask *mask, const char *data, size_t length, struct buf *to)
{
	auto_mask_stream struct mask_stream stream;

	mask_stream_init(&stream, mask);
	mask_stream_add(&stream, data, length, to);
	mask_stream_end(&stream, to);
	return stream.marks;
}

void mask_text(const struct mask *mask, char *text, size_t size)
{
	auto_buf struct buf masked = {0};

	if (!mask)
		return;
	buf_init(&masked, SIZE_MAX);
	if (mask_bytes(mask, text, strnlen(text, size), &masked) > 0)
		snprintf(text, size, "%.*s", (int)utf8_cut(masked.data, masked.length, size - 1), masked.data);
}
