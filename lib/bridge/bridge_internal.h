/* bridge_internal.h - what bridge*.c share. One thread works on all of it, under bridge.lock; other threads open and
 * close runs (under the lock) and leave answers (under answers_lock). */
#pragma once

#include <pthread.h>

#include "bridge.h"
#include "bridge_frame.h"
#include "lib/base/buf.h"
#include "lib/base/share.h"
#include "lib/base/util.h"

struct bridge_watch {
	void (*ready)(struct bridge_watch *watch, uint32_t events);
};

struct bridge_output {
	struct bridge_output *next;
	char *bytes;
	size_t length, sent;
};

struct bridge_connection {
	struct bridge_watch watch;
	struct bridge_connection *next;
	struct bridge_run *run;
	int fd; /* -1: it is over */
	int64_t number;
	int64_t last_id;
	bool ends; /* nothing more is read; closed when all is written */
	unsigned char head[BRIDGE_HEAD];
	size_t got; /* of the head and of the frame behind it */
	char *frame;
	uint32_t length;
	char ahead[4096]; /* bytes that were read and not taken yet */
	size_t ahead_at, ahead_end;
	struct bridge_output *first, **last;
	size_t n_outputs;
	uint32_t watched;
	bool unsettled; /* something is to be written, read on or begun at the end of this turn */
};

/* A call between its frame and its answer. Held by the run while it is in its list, and by the provider until its
 * answer. */
struct bridge_inflight {
	struct bridge_call call; /* what the provider sees */
	struct bridge *bridge;
	struct bridge_inflight *next; /* of the run, in order of arrival */
	struct bridge_run *run;     /* NULL: nobody waits for the answer any more */
	struct bridge_run *owner;   /* stays until it was answered */
	struct bridge_connection *connection;
	int64_t id;
	size_t record;
	bool begun, answered;
	bool held, again; /* a person is asked; the answer that comes is "go on" */
	int64_t deadline_us;
	int64_t left_us, held_us; /* of its deadline when it was held; when that was */
	char *arguments, *uri;
	/* its answer, on its way to the bridge's thread */
	struct bridge_inflight *next_answer;
	struct bridge_answer answer;
	char *texts; /* that it points into */
};

struct bridge_run {
	struct bridge_watch watch;
	struct bridge_run *next;
	struct bridge *bridge;
	struct bridge_spec spec;
	struct upstream_list **lists;
	int listener;
	bool closed, full; /* full: as many connections as it may have */
	struct bridge_connection *connections;
	size_t n_connections;
	int64_t connected; /* ever */
	struct bridge_inflight *inflight, **inflight_last;
	int64_t begun; /* in-flight requests that a provider has */
	size_t held;   /* bytes of the in-flight requests' arguments */
	size_t owed;   /* answers that are to come, also of in-flight requests that nobody waits for */
	struct bridge_report report;
	int64_t result_bytes;
	struct share share; /* of the thread; while it rests no frame is read */
	int64_t waits_since_us, credit_us, waited_us; /* since 0: it does not wait */
	bool told;                                    /* that it waits */
	size_t asking;                                /* in-flight requests that are held */
	int64_t asks_since_us, asked_us;              /* since 0: nobody is asked */
};

struct bridge {
	struct upstream *upstream; /* whose thread serves it; NULL: `thread` */
	struct upstream_source source;
	pthread_t thread;
	pthread_cond_t left;
	bool over; /* the thread has left */
	int loop, wake_fd;
	struct bridge_watch wake;
	pthread_mutex_t lock;
	struct bridge_run *runs;
	bool stop, unsettled; /* one of the connections is */
	pthread_mutex_t answers_lock;
	struct bridge_inflight *answers, **answers_last;
};

/* bridge_connection.c */
void bridge_accept(struct bridge_watch *watch, uint32_t events);           /* of a run's listener */
void bridge_send(struct bridge_connection *connection, struct buf *frame); /* takes the bytes; out with bridge_settle */
void bridge_unsettled(struct bridge_connection *connection);
void bridge_settle(struct bridge *bridge); /* what is unsettled by now */
void bridge_connection_watch(struct bridge_connection *connection);        /* reads and writes, or not, as is due now */
void bridge_rested(struct bridge_run *run, int64_t now_us);                /* it may be read again, if it is time */
void bridge_connection_close(struct bridge_connection *connection);
void bridge_connection_free(struct bridge_connection *connection);

/* bridge_clock.c */
void bridge_clock_note(struct bridge_run *run); /* a call came or went */
int64_t bridge_clock_deadline(const struct bridge_run *run);
void bridge_clock_tick(struct bridge_run *run, int64_t now_us);

/* bridge_call.c */
#define BRIDGE_FRAME_MAX (256 << 20)
void bridge_fail(struct bridge_connection *connection, int64_t id, const struct bridge_failure *failure);
void bridge_asked(struct bridge_connection *connection, struct bridge_frame *frame);
/* In-flight requests of a connection, or (NULL) of all of the run, are over. */
void bridge_cancel(struct bridge_run *run, const struct bridge_connection *connection);
void bridge_take_turn(const struct bridge *bridge); /* the thread that runs here takes its turns */
void bridge_wake(struct bridge *bridge);            /* nothing, on its own thread */
void bridge_take_answers(struct bridge *bridge);    /* that arrived */
void bridge_tick(struct bridge_run *run, int64_t now_us);
int64_t bridge_deadline(const struct bridge_run *run);
void bridge_begin_waiting(struct bridge_run *run); /* hands on what may go to the provider */

/* bridge_describe.c: answers to search, describe and servers, as JSON */
void bridge_print_servers(struct buf *out, const struct bridge_run *run);
void bridge_print_tools(struct buf *out, const struct bridge_run *run, size_t list, const char *tool,
			const char *detail);
void bridge_print_search(struct buf *out, const struct bridge_run *run, const struct bridge_frame *frame);
