/*
 * store_event.h - what was sent on the event stream of a legacy request, for clients that come back for it.
 *
 * Number 0 is the opening, whose message is the request's id; the last one is the answer. Gone with the session, or
 * after STORE_EVENT_TTL_US (store_expire).
 */
#pragma once

#include "lib/store/store.h"

#define STORE_EVENT_TTL_US (3600 * 1000000ll)

struct store_event {
	char stream[ID_SIZE];
	int64_t number;
	bool last;
	const char *message;
	size_t length;
};
int store_event_add(struct store *store, const char *session, const struct store_event *event, struct err *err);

struct store_event_filter {
	const char *session, *stream;
	int64_t from; /* this number and later ones */
};
/* In order; none where the stream is another session's. */
int store_event_list(struct store *store, const struct store_event_filter *filter,
		     int (*each)(void *arg, const struct store_event *event), void *arg, struct err *err);
