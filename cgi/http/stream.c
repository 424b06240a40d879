/* stream.c - see stream.h. */
#include "stream.h"

#include "lib/base/util.h"

#define EVENT_OVERHEAD 256 /* field names and id of an event */

void stream_init(struct stream *stream, const struct request *request, struct reply *reply)
{
	*stream = (struct stream){.request = request, .reply = reply, .sent_us = clock_monotonic_us()};
}

void stream_init_forward(struct stream *stream, int (*forward)(void *arg, const char *data), void *arg)
{
	*stream = (struct stream){.forward = forward, .arg = arg, .open = true, .sent_us = clock_monotonic_us()};
}

bool stream_offered(const struct request *request)
{
	return request->send || request->message;
}

bool stream_possible(const struct stream *stream)
{
	const char *accept = request_param(stream->request, "HTTP_ACCEPT");

	if (stream->request->message)
		return true;
	return stream->request->send && (!accept || !*accept || strstr(accept, "*/*") ||
					 strcasestr(accept, "text/event-stream") || strcasestr(accept, "text/*"));
}

static void send_bytes(struct stream *stream, const struct buf *bytes)
{
	if (!stream->gone && stream->request->send &&
	    stream->request->send(stream->request->arg, bytes->data, bytes->length) < 0)
		stream->gone = true;
	stream->sent_us = clock_monotonic_us();
}

static void send_head(struct stream *stream)
{
	struct reply *reply = stream->reply;
	auto_buf struct buf head = {0};

	if (stream->open)
		return;
	reply->status = 200;
	reply->delegated = true; /* no Content-Length: it is not known */
	reply_header(reply, "Content-Type", "text/event-stream");
	reply_header(reply, "Cache-Control", "no-cache, no-transform");
	reply_header(reply, "X-Accel-Buffering", "no");
	buf_init(&head, 2 * HTTP_HEADER_MAX);
	reply_print_head(reply, &head);
	reply->streamed = stream->open = true;
	send_bytes(stream, &head);
}

static void send_text(struct stream *stream, const char *text)
{
	auto_buf struct buf bytes = {0};

	buf_init(&bytes, EVENT_OVERHEAD);
	buf_puts(&bytes, text);
	send_bytes(stream, &bytes);
}

/* nginx passes a head on only together with something: the padding of its FastCGI record looks to it like the beginning
 * of a body. */
void stream_open(struct stream *stream)
{
	if (stream->open)
		return;
	send_head(stream);
	send_text(stream, ": open\n\n");
}

void stream_event(struct stream *stream, const char *id, const char *event, const char *data)
{
	auto_buf struct buf text = {0};

	if (stream->forward) {
		stream->gone = stream->gone || stream->forward(stream->arg, data) < 0;
		stream->sent_us = clock_monotonic_us();
		return;
	}
	send_head(stream);
	if (stream->request->message) {
		if (!stream->gone && stream->request->message(stream->request->arg, data) < 0)
			stream->gone = true;
		stream->sent_us = clock_monotonic_us();
		return;
	}
	buf_init(&text, strlen(data) + EVENT_OVERHEAD);
	buf_printf(&text, "event: %s\n", event ? event : "message");
	if (id)
		buf_printf(&text, "id: %s\n", id);
	buf_puts(&text, "data: ");
	buf_puts(&text, data);
	buf_puts(&text, "\n\n");
	send_bytes(stream, &text);
}

void stream_prime(struct stream *stream, const char *id)
{
	auto_buf struct buf text = {0};

	send_head(stream);
	buf_init(&text, EVENT_OVERHEAD);
	buf_printf(&text, "id: %s\nretry: %d\ndata: \n\n", id, STREAM_RETRY_MS);
	send_bytes(stream, &text);
}

int stream_patience_ms(const struct stream *stream)
{
	int64_t left = stream->sent_us + STREAM_KEEP_ALIVE_SECONDS * 1000000LL - clock_monotonic_us();

	return left > 0 ? (int)(left / 1000) + 1 : 0;
}

void stream_keep_alive(struct stream *stream)
{
	if (stream_patience_ms(stream) > 0)
		return;
	if (stream->forward) { /* due again later: who waits for it must not spin */
		stream->sent_us = clock_monotonic_us();
		return;
	}
	send_head(stream);
	send_text(stream, ": keep-alive\n\n");
}

void stream_end(struct stream *stream)
{
	if (stream->forward)
		return;
	stream_open(stream);
	if (!stream->gone && stream->request->end)
		stream->request->end(stream->request->arg);
	stream->gone = true;
}
