/*
 * upstream_http_transfer.h - one HTTP request and what came of it, as libcurl's callbacks collect it.
 */
#pragma once

#include <curl/curl.h>

#include "upstream_connection.h"
#include "upstream_sse.h"

#define HTTP_SPARE    16         /* handles that are kept for the next requests */
#define HTTP_ENVELOPE (64 << 10) /* bytes of a message around its result */

struct message {
	struct message *next;
	size_t length;
	char *text;
};

struct transfer {
	struct transfer *next;
	struct upstream_connection *connection; /* NULL: a goodbye */
	struct upstream_exchange *exchange;     /* NULL: nobody waits for it any more */
	CURL *easy;                    /* NULL: waits to begin again */
	struct curl_slist *headers;
	char *challenge; /* WWW-Authenticate, of scheme Bearer; NULL: none */
	struct buf body;
	struct sse_reader sse;
	bool streams, large, private_address, done, dead;
	bool paused;       /* its connection rests, or the reader has an event of it */
	bool posts, again; /* again: libcurl would have sent it a second time */
	CURLcode code;
	bool handed;             /* its body was given to be read */
	struct reading *reading; /* NULL: none; else what comes behind it waits */
	struct message *first, **last; /* events that came */
	int resumes;
	int64_t resume_us, retry_after_us;
};
struct http {
	CURLM *multi;
	struct transfer *transfers;
	CURL *spare[HTTP_SPARE];
	size_t n_spare;
};

/* Not begun yet. `exchange` NULL: for a goodbye. */
struct transfer *http_transfer_new(struct upstream_connection *connection, struct upstream_exchange *exchange);
/* POST of the exchange's body, GET of a stream (from behind the event last_id, if not NULL), DELETE of the session. */
void http_transfer_begin(struct transfer *transfer, struct upstream_connection *connection, const char *method,
			 const char *last_id);
void http_transfer_end(struct transfer *transfer, struct http *http); /* the request; the transfer stays */
void http_transfer_reap(struct http *http);                      /* frees those that are dead */
