/*
 * hub.h - where threads of this process find each other: who listens, which requests are under way.
 *
 * A listener is a thread that holds a stream open and sleeps until there is something for it. An in-flight request is a
 * legacy request that is being answered: another request of its session may cancel it, or bring the answer to a
 * question that its handler asked the client. Both live on their thread's stack between _begin and _end; the hub only
 * points at them. Messages to a listener are queued up to HUB_QUEUE_MAX: a client that does not take more is cut off.
 * Thread-safe.
 */
#pragma once

#include <stdint.h>

#include "lib/store/store.h"

#define HUB_QUEUE_MAX           64  /* messages waiting for one listener */
#define HUB_FOLLOWED_MAX        32  /* resources that a session's own listener follows (STORE_SUBSCRIPTIONS_MAX) */
#define HUB_LISTENERS_MAX       220 /* in all: each holds a thread (FCGI_THREADS_MAX), and some must be left */
#define HUB_LISTENERS_OWNER_MAX 64  /* of one owner, and no more than are left for others */

enum hub_topic {
	HUB_TOOLS_CHANGED = 1 << 0,
	HUB_PROMPTS_CHANGED = 1 << 1,
	HUB_RESOURCES_CHANGED = 1 << 2,
	HUB_RESOURCE_UPDATED = 1 << 3, /* of those in `uris` */
	HUB_TASK_CHANGED = 1 << 4,     /* the same: their ids stand among the `uris` */
};

struct hub;
struct store;
struct hub *hub_new(struct store *store); /* `store`: counts refusals; may be NULL */
void hub_free(struct hub *hub); /* NULL is fine */
/* Everybody who waits returns, and nobody waits any more. */
void hub_stop(struct hub *hub);

/* What a listener gets: the news of a topic, or a text that was made for its session (hub_tell). */
struct hub_message {
	enum hub_topic topic; /* 0: none, it is a text */
	char *uri;            /* of HUB_RESOURCE_UPDATED and HUB_TASK_CHANGED; "" of the others */
	char *text;           /* NULL: it is news */
	struct hub_message *next; /* the hub's */
};
void hub_message_free(struct hub_message *message); /* NULL is fine */
void hub_message_free_pointer(struct hub_message **message);
#define auto_hub_message __attribute__((cleanup(hub_message_free_pointer)))

struct hub_listener {
	/* set before hub_listen */
	const char *owner;
	const char *session; /* the legacy session, for hub_tell; NULL: none */
	const char *stream;  /* follows this stream (hub_follow_wake); NULL: none */
	bool exclusive;      /* refused while another exclusive one of its session listens */
	unsigned topics;
	const char *const *uris; /* HUB_RESOURCE_UPDATED, HUB_TASK_CHANGED: ended by NULL; an exclusive one has
				    hub_follow_uri besides */
	/* the hub's */
	char *followed[HUB_FOLLOWED_MAX];
	struct hub_listener *next;
	struct hub_message *first, **last;
	size_t queued;
	int wake_fd;
	bool overflow;
};
/* ERR_CONFLICT: exclusive and taken; ERR_BUSY: too many; the message says so. */
int hub_listen(struct hub *hub, struct hub_listener *listener, struct err *err);
void hub_leave(struct hub *hub, struct hub_listener *listener);

enum hub_wait { HUB_MESSAGE, HUB_TIME, HUB_GONE };
/* Sleeps until there is a message (the caller's to free; NULL when it was only woken), the time is up, or the client
 * left, was cut off, or the server stops: then what saw before still comes. */
enum hub_wait hub_wait(struct hub *hub, struct hub_listener *listener, int hangup_fd, int timeout_ms,
		       struct hub_message **ret_message);

/* News of a topic to all listeners of the owner (NULL: of every owner) that want it; `uri` NULL: "". News that is in a
 * listener's queue already is not put there again. */
void hub_publish(struct hub *hub, const char *owner, enum hub_topic topic, const char *uri);
/* The exclusive listener of a session, if there is one, follows this resource from now on, or no longer. */
void hub_follow_uri(struct hub *hub, const char *session, const char *uri, bool on);
/* A text to the listener of a session; false: there is none. */
bool hub_tell(struct hub *hub, const char *session, const char *text);
/* The session has ended: so have its listeners. */
void hub_cut(struct hub *hub, const char *session);
/* Wakes those who follow a stream. */
void hub_follow_wake(struct hub *hub, const char *stream);

struct hub_inflight {
	/* set before hub_inflight_begin */
	const char *session, *id; /* id: the request's as JSON text */
	const char *stream;       /* its event stream, "" until there is one; changed under hub_inflight_stream only */
	/* the hub's */
	struct hub_inflight *next;
	int wake_fd; /* readable: cancelled, or answered, or the server stops */
	bool cancelled, stopping;
	const char *question; /* id of a request that we sent and wait for; NULL: none */
	char *answer;
};
int hub_inflight_begin(struct hub *hub, struct hub_inflight *inflight, struct err *err);
void hub_inflight_end(struct hub *hub, struct hub_inflight *inflight);
void hub_inflight_stream(struct hub *hub, struct hub_inflight *inflight, const char *stream);
/* notifications/cancelled; false: no such request (any more). `id` NULL: all requests of the session. */
bool hub_cancel(struct hub *hub, const char *session, const char *id);
/* Was it cancelled? Takes the wake-up away. */
bool hub_cancelled(struct hub *hub, struct hub_inflight *inflight);
/* Is the request whose event stream this is still being answered here? */
bool hub_stream_live(struct hub *hub, const char *stream);
/* A number that no question of this process had before: for its id. */
uint64_t hub_question_number(struct hub *hub);
/* Waits for the answer to the question `id`, which was sent before; the JSON text of the response, the caller's.
 * ERR_CANCELLED. */
void hub_question_begin(struct hub *hub, struct hub_inflight *inflight, const char *id);
int hub_question_wait(struct hub *hub, struct hub_inflight *inflight, int timeout_ms, char **ret, struct err *err);
/* A response that a client sent; false: nobody asked. */
bool hub_answer(struct hub *hub, const char *session, const char *id, const char *text);
