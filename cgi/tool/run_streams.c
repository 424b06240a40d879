/*
 * run_streams.c - see run_streams.h.
 *
 * The engine's result has the beginning of a stream; its end comes from the record. What a terminal would show is a
 * sequence of pieces of the stream, so that a place in what is shown is a place in the stream, from which read_output
 * reads on. How much fits is found by making it safe and looking at the length.
 */
#include "run_streams.h"

#include <string.h>

#include "lib/base/log.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"

#define LOOKED_AT (64 * 1024) /* bytes of the end that are looked at for what a terminal would show */

/* -------- what a terminal shows ----------------------------------------------------------------------- */

struct piece {
	size_t at, length; /* in the stream's part */
};
struct visible {
	struct buf text; /* the pieces, one behind the other */
	struct piece *pieces;
	size_t count, size;
};

static void visible_clear(struct visible *visible)
{
	buf_clear(&visible->text);
	free(visible->pieces);
}
#define auto_visible __attribute__((cleanup(visible_clear)))

static void add_piece(struct visible *visible, const char *data, size_t at, size_t length)
{
	struct piece *last = visible->count > 0 ? &visible->pieces[visible->count - 1] : NULL;

	buf_add(&visible->text, data + at, length);
	if (last && last->at + last->length == at) {
		last->length += length;
		return;
	}
	if (visible->count == visible->size) {
		visible->size = MAX(2 * visible->size, (size_t)16);
		visible->pieces = xrealloc(visible->pieces, visible->size, sizeof(*visible->pieces));
	}
	visible->pieces[visible->count++] = (struct piece){at, length};
}

/* Of each line what stands behind its last \r; those that end the line belong to its end. */
static void visible_init(struct visible *visible, const char *data, size_t length)
{
	*visible = (struct visible){0};
	buf_init(&visible->text, SIZE_MAX);
	buf_reserve(&visible->text, length);
	if (length > 0 && !memchr(data, '\r', length)) {
		add_piece(visible, data, 0, length);
		return;
	}
	for (size_t at = 0, end; at < length; at = end) {
		const char *newline = memchr(data + at, '\n', length - at);
		size_t text_end = newline ? (size_t)(newline - data) : length;

		end = text_end + (newline != NULL);
		while (text_end > at && data[text_end - 1] == '\r')
			text_end--;
		const char *over = text_end > at ? memrchr(data + at, '\r', text_end - at) : NULL;
		size_t begin = over ? (size_t)(over - data) + 1 : at;

		add_piece(visible, data, begin, end - begin);
	}
}

/* Where in the stream's part the byte `offset` of the text is. */
static size_t place_of(const struct visible *visible, size_t offset)
{
	size_t end = 0;

	for (size_t i = 0; i < visible->count; i++) {
		const struct piece *piece = &visible->pieces[i];

		end = piece->at + piece->length;
		if (offset < piece->length)
			return piece->at + offset;
		offset -= piece->length;
	}
	return end;
}

/* How many bytes of the text are behind the byte `place` of the stream's part. */
static size_t behind(const struct visible *visible, size_t place)
{
	size_t total = 0;

	for (size_t i = visible->count; i-- > 0 && visible->pieces[i].at + visible->pieces[i].length > place;)
		total += MIN(visible->pieces[i].length, visible->pieces[i].at + visible->pieces[i].length - place);
	return total;
}

/* -------- how much fits ------------------------------------------------------------------------------- */

static size_t safe_length(const char *data, size_t length)
{
	auto_buf struct buf safe = {0};

	buf_init(&safe, SIZE_MAX);
	utf8_safe(&safe, data, length);
	return safe.length;
}

/* How many bytes from the beginning, or (`from_end`) from the end, become at most `room` bytes of text. */
static size_t fitting(const char *data, size_t length, size_t room, bool from_end)
{
	size_t n = MIN(length, room), safe;

	while (n > 0 && (safe = safe_length(from_end ? data + length - n : data, n)) > room)
		n = MIN(n - 1, n * room / safe);
	if (n == length)
		return n;
	if (!from_end)
		return utf8_cut(data, length, n);
	/* not in the middle of a character */
	for (int i = 0; i < 3 && n > 0 && ((unsigned char)data[length - n] & 0xc0) == 0x80; i++)
		n--;
	return n;
}

size_t run_text_part(const char *data, size_t length, size_t room)
{
	return fitting(data, length, room, false);
}

/* As text; what is beyond the room as it is is not looked at. */
static size_t wanted(const struct visible *visible, bool more, size_t room)
{
	if (more || visible->text.length > room)
		return MAX(visible->text.length, room + 1);
	return safe_length(visible->text.data, visible->text.length);
}

static struct job_stream copy_of(const char *data, size_t length)
{
	return (struct job_stream){.data = xmemdup(data, length), .length = length};
}

/* A stream of the result, and what of it is in hand. */
struct source {
	struct server *server;
	const struct job_result *result;
	bool is_stderr, more; /* more: the stream goes on behind what the result has */
	struct visible beginning;
};

static void source_init(struct source *source, struct server *server, const struct job_result *result, bool is_stderr)
{
	const struct job_stream *stream = is_stderr ? &result->stderr_text : &result->stdout_text;

	*source = (struct source){.server = server,
				  .result = result,
				  .is_stderr = is_stderr,
				  .more = is_stderr ? result->stderr_more : result->stdout_more};
	visible_init(&source->beginning, stream->data, stream->length);
}

/* The stream's last bytes as a terminal shows them; *ret_base: where they begin. False: they cannot be read. */
static bool load_end(const struct source *source, size_t least, struct visible *ret, int64_t *ret_base,
		     int64_t *ret_size)
{
	const int64_t length = (int64_t)MAX(least, (size_t)LOOKED_AT);
	const struct job_printed end = {
		.id = source->result->id, .is_stderr = source->is_stderr, .offset = -length, .length = length};
	struct job_stream printed = {0};
	struct err err = ERR_INIT;

	if (job_printed_load(source->server->store, &end, &printed, ret_size, &err) < 0) {
		log_event(LOG_ERROR, "the end of an output cannot be read", "execution", source->result->id, "error",
			  err.text, NULL);
		return false;
	}
	visible_init(ret, printed.data, printed.length);
	*ret_base = *ret_size - (int64_t)printed.length;
	free(printed.data);
	return true;
}

static void cut(const struct source *source, size_t room, bool ends, struct run_shown *ret)
{
	const struct visible *beginning = &source->beginning, *end = beginning;
	const size_t head_room = ends ? 0 : room / 2, tail_room = room - head_room;
	const size_t head = fitting(beginning->text.data, beginning->text.length, head_room, false);
	auto_visible struct visible loaded = {0};
	int64_t base = 0;

	ret->head = copy_of(beginning->text.data, head);
	ret->from = head > 0 ? (int64_t)place_of(beginning, head - 1) + 1 : 0;
	ret->hidden = ret->size - ret->from;
	if (source->more) {
		if (!load_end(source, tail_room, &loaded, &base, &ret->size))
			return;
		end = &loaded;
	}
	const size_t left = behind(end, (size_t)MAX(ret->from - base, (int64_t)0));
	const char *last = end->text.data + end->text.length;
	const size_t tail = fitting(last - left, left, tail_room, true);

	ret->tail = copy_of(last - tail, tail);
	ret->hidden = (tail > 0 ? base + (int64_t)place_of(end, end->text.length - tail) : ret->size) - ret->from;
}

static void take(const struct source *source, size_t room, bool ends, struct run_shown *ret)
{
	const struct job_result *result = source->result;
	const size_t length = source->is_stderr ? result->stderr_text.length : result->stdout_text.length;
	const int64_t written = source->is_stderr ? result->jail.stderr_bytes : result->jail.stdout_bytes;
	const struct buf *text = &source->beginning.text;

	*ret = (struct run_shown){.size = MAX((int64_t)length, source->more ? written : 0)};
	ret->from = ret->size;
	if (wanted(&source->beginning, source->more, room) > room)
		cut(source, MAX(room, (size_t)1), ends, ret);
	else
		ret->head = copy_of(text->data, text->length);
}

/* A stream has half of the room for sure, and what the other one leaves. */
void run_streams_take(struct server *server, const struct job_result *result, size_t room, bool error_ends,
		      struct run_streams *ret)
{
	struct source out, error;

	source_init(&out, server, result, false);
	source_init(&error, server, result, true);
	const size_t wants_out = wanted(&out.beginning, out.more, room),
		     wants_error = wanted(&error.beginning, error.more, room);

	take(&out, MAX(room / 2, room - MIN(wants_error, room)), false, &ret->out);
	take(&error, MAX(room / 2, room - MIN(wants_out, room)), error_ends, &ret->error);
	visible_clear(&out.beginning);
	visible_clear(&error.beginning);
}

void run_streams_clear(struct run_streams *streams)
{
	struct job_stream *const parts[] = {&streams->out.head, &streams->out.tail, &streams->error.head,
					    &streams->error.tail};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		free(parts[i]->data);
}

static bool holds(const struct job_stream *part, const char *word)
{
	return part->length > 0 && memmem(part->data, part->length, word, strlen(word));
}

bool run_shown_has(const struct run_shown *shown, const char *word)
{
	return holds(&shown->head, word) || holds(&shown->tail, word);
}
