/*
 * stream.h - server-sent events: a reply that is sent piece by piece.
 *
 * A stream is opened late, when there is something to send: until then the request can still be answered with one JSON
 * object. Once open the status is fixed. Each piece leaves at once (X-Accel-Buffering: no). A client that left, or that
 * takes nothing for STREAM_SEND_SECONDS, is `gone`: what is sent after that goes nowhere, and the code that serves the
 * stream decides what to make of it. Over stdio (request->message) an event is its data, and there is nothing else.
 *
 * A forwarded stream is one that another thread holds (the session's own one of the old transport): events are handed
 * to it, and its head and its signs of life are that thread's business.
 */
#pragma once

#include "http.h"

#define STREAM_SEND_SECONDS      30
#define STREAM_KEEP_ALIVE_SECONDS 15
#define STREAM_RETRY_MS          1000 /* clients connect again after this */

struct stream {
	const struct request *request;
	struct reply *reply;
	bool open, gone;
	int64_t sent_us; /* monotonic: when something was sent last; before it is open: when the request came */
	int (*forward)(void *arg,
		     const char *data); /* NULL: the reply is the stream; negative: nobody holds it any more */
	void *arg;
};

void stream_init(struct stream *stream, const struct request *request, struct reply *reply);
void stream_init_forward(struct stream *stream, int (*forward)(void *arg, const char *data), void *arg);
/* Does this server send anything but answers? (Plain CGI cannot.) */
bool stream_offered(const struct request *request);
/* The same for this request: its client may accept JSON only. */
bool stream_possible(const struct stream *stream);
/* Sends the head with reply->headers, and a comment so that it gets through; harmless on an open one. */
void stream_open(struct stream *stream);
/* One event. `id` NULL: none; `event` NULL: "message". `data` without line breaks. Opens the stream. */
void stream_event(struct stream *stream, const char *id, const char *event, const char *data);
/* An id before anything happened, so that a client that loses the connection can ask for what it missed. */
void stream_prime(struct stream *stream, const char *id);
/* A comment, if nothing was sent for STREAM_KEEP_ALIVE_SECONDS. Opens the stream. */
void stream_keep_alive(struct stream *stream);
/* Milliseconds until the next keep-alive is due. */
int stream_patience_ms(const struct stream *stream);
/* Ends the reply for the client while the caller goes on; not a forwarded one's. */
void stream_end(struct stream *stream);
