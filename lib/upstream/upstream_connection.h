/*
 * upstream_connection.h - one connection to one upstream server: its state, what is under way on it, and what a
 * transport (HTTP, the pipes of a process) owes it. Everything here happens on the upstream thread.
 *
 *   state         event                         next
 *   CLOSED        an order comes                STARTING (pipes), or by the era that is known: READY, INITIALIZING,
 *                                               else PROBING
 *   STARTING      the program runs              PROBING, or INITIALIZING where legacy is known
 *   PROBING       discover is answered          READY (modern)
 *   PROBING       discover is refused, silence  INITIALIZING
 *   INITIALIZING  initialize is answered        READY
 *   READY         the session is gone           INITIALIZING (HTTP)
 *   any           transport or handshake fails  CLOSED; what waits learns it
 *   READY         idle                          CLOSED
 *
 * An order is what a caller wants: a call, or the list of tools. It becomes one exchange (one JSON-RPC request) or
 * several after each other: pages of a list, rounds of input_required, polls of a task. connection_enter() is the only
 * function that changes the state.
 */
#pragma once

#include "lib/base/buf.h"
#include "lib/base/share.h"
#include "upstream.h"
#include "upstream_reader.h"
#include "upstream_revision.h"

#define CONNECTION_IN_FLIGHT 16
#define CONNECTION_WORK_US   20000 /* of the thread that what a server sends may take at once; see share.h */
#define CONNECTION_LIST_MAX  (8 << 20) /* bytes of all pages of a list */

enum connection_state {
	CONNECTION_CLOSED,
	CONNECTION_STARTING,
	CONNECTION_PROBING,
	CONNECTION_INITIALIZING,
	CONNECTION_READY,
};
enum connection_era { ERA_UNKNOWN, ERA_MODERN, ERA_LEGACY };

/* What all connections of a process share. */
struct connection_loop {
	const struct config *config;
	void *multi; /* libcurl's, of upstream_http.c */
	struct reader *reader;
	size_t result_max;
	int64_t now_us; /* clock_monotonic_us, of this turn */
	int64_t next_id;
	int starting; /* programs that start at this moment */
	/* An upstream server asks something of us while `order` is under way; NULL: nobody can be asked. */
	upstream_ask *_Atomic ask;
	void *_Atomic ask_arg;
	upstream_changed *_Atomic changed; /* NULL: nobody wants to know */
	void *_Atomic changed_arg;
	struct question *questions;
	uint64_t next_question;
	struct renewals *renewals; /* of upstream_renew.c */
	struct pipes *pipes; /* of upstream_pipe.c */
	struct jails *jails; /* of upstream_jail.c */
};

/* One call or one list. */
struct upstream_order {
	struct upstream_order *next;
	uint64_t id;
	struct upstream_key key;
	bool list, dispatched; /* list: else a call */
	char *method, *tool, *arguments;
	size_t length;
	char *owner, *run;
	int64_t timeout_us, deadline_us; /* the deadline begins anew when the call is sent */
	struct upstream_list *held;      /* what `definition` belongs to */
	const struct upstream_tool *definition;
	void (*progress)(void *arg, double progress, double total, const char *text);
	upstream_done *done;
	upstream_listed *listed;
	void *arg;

	struct upstream_connection *connection;
	struct upstream_exchange *exchange; /* the message that is under way; NULL: waits */
	int64_t not_before_us;         /* waits until then: for a server that is busy, or a task to be polled */
	int64_t queued_us, started_us; /* clock_now_us */
	int attempts, rounds, reconnects;
	bool renewed; /* it waited for a new token once */
	int64_t token; /* of its progress, which stays when the call has become a task; 0: none */
	char *task;                      /* its id; "": none was made yet but one must be */
	int asked;                       /* questions that wait for an answer */
	char *responses, *request_state; /* JSON, for the next round of input_required; NULL: none */
	struct upstream_list *building;
	char *cursor;
	int pages;
	size_t bytes;
};

enum exchange_kind {
	EXCHANGE_PROBE,
	EXCHANGE_INITIALIZE,
	EXCHANGE_LIST,
	EXCHANGE_CALL,
	EXCHANGE_TASK,    /* tasks/get */
	EXCHANGE_RESULT,  /* tasks/result */
	EXCHANGE_NOTICE,  /* a notification, or our answer to a request: nothing comes back */
	EXCHANGE_STREAM,  /* HTTP: a GET, for what the server asks outside of calls */
	EXCHANGE_GOODBYE, /* HTTP: DELETE of the session */
};
struct upstream_exchange {
	struct upstream_exchange *next;
	struct upstream_connection *connection;
	enum exchange_kind kind;
	struct upstream_order *order; /* NULL: the connection's own */
	int64_t id;          /* 0: none */
	struct buf body;
	struct buf headers;  /* HTTP: "Name: value" lines, of the modern era */
	int64_t deadline_us; /* 0: its order's */
	size_t max;          /* bytes of the answer */
	bool sent;
	int status;     /* HTTP: of the answer; 0: none yet */
	void *transfer; /* the transport's */
};

/* Why an exchange has no answer. */
struct failure {
	enum failure_kind {
		FAILURE_REFUSED, /* nothing was sent */
		FAILURE_LOST,    /* the answer will not come: the outcome is not known */
		FAILURE_STATUS,  /* HTTP: another status than 200, without a JSON-RPC error */
		FAILURE_LARGE,   /* more than exchange->max */
		FAILURE_GARBLED, /* not JSON, not MCP */
	} kind;
	int status;
	int64_t retry_after_us; /* STATUS: -1: the server did not say */
	const char *challenge;  /* STATUS: WWW-Authenticate; NULL: none */
	const char *text;
};

struct upstream_connection;
struct transport {
	/* Begins to connect; 0: connection_started comes, now or later. */
	int (*open)(struct upstream_connection *connection, struct err *err);
	/* The exchange is sent, and ends by connection_received (with its answer) or connection_failed. Notices and
	 * goodbyes end by connection_failed only where that matters to nobody: the transport frees them. */
	void (*send)(struct upstream_connection *connection, struct upstream_exchange *exchange);
	/* Nobody waits for it any more. */
	void (*forget)(struct upstream_connection *connection, struct upstream_exchange *exchange);
	void (*close)(struct upstream_connection *connection); /* no callback comes after it */
	void (*turn)(struct upstream_connection *connection);  /* once a turn of the loop; may be NULL */
	int64_t (*wake)(
		const struct upstream_connection *connection); /* when it wants a turn at last; INT64_MAX: never */
};

struct upstream_connection {
	struct upstream_connection *next;
	struct connection_loop *loop;
	const struct upstream_server *server;
	const struct transport *transport;
	char *owner, *run; /* "": anybody's */
	int instance;
	enum connection_state state;
	enum connection_era era;
	int64_t era_us; /* when it was found out */
	const char *protocol;
	char session[256]; /* HTTP: Mcp-Session-Id; "": none */
	bool worked;       /* this session has answered something */
	struct upstream_exchange *exchanges;
	struct upstream_order *orders; /* in the order in which they came */
	int in_flight;
	int64_t used_us, deadline_us; /* of the handshake */
	int probes;
	bool starting;         /* counts in loop->starting */
	int failures;          /* starts in a row that failed */
	int64_t not_before_us; /* back-off */
	int64_t started_us;
	char problem[ERR_TEXT_SIZE]; /* of the last failure; "": none */
	struct mask *mask;           /* of the server's secrets */
	char *bearer;                /* HTTP: the token that requests carry; NULL: none */
	uint64_t bearer_generation;
	struct share share; /* of the thread; while it rests nothing of it is read */
	struct upstream_list *list;
	int64_t list_until_us, list_not_before_us;
	char *instructions, *version;
	void *wire; /* the transport's */
};

struct upstream_connection *connection_new(struct connection_loop *loop, const struct upstream_key *key, int instance,
					   const struct transport *transport);
void connection_free(struct upstream_connection *connection); /* orders of it are ended as cancelled */
void connection_submit(struct upstream_connection *connection, struct upstream_order *order);
void connection_cancel(struct upstream_order *order); /* upstream too; it ends as cancelled */
/* Deadlines, back-off, idle ends; and when the next of these is due (INT64_MAX: nothing is). */
void connection_turn(struct upstream_connection *connection);
int64_t connection_wake(const struct upstream_connection *connection);
void connection_close(struct upstream_connection *connection); /* politely */

/* From transports. `via` NULL: it came over a pipe. */
void connection_started(struct upstream_connection *connection);
void connection_received(struct upstream_connection *connection, struct upstream_exchange *via,
			 const struct incoming *incoming);
void connection_failed(struct upstream_exchange *exchange, const struct failure *failure); /* frees it */
void connection_lost(struct upstream_connection *connection, const char *why,
		     const char *text); /* with all exchanges */
struct upstream_exchange *connection_find(struct upstream_connection *connection, int64_t id);

/* Among the files of a connection: upstream_life.c, */
struct upstream_exchange *connection_exchange(struct upstream_connection *connection, enum exchange_kind kind,
					      struct upstream_order *order);
void connection_send(struct upstream_exchange *exchange);
void connection_drop(struct upstream_exchange *exchange); /* frees it; the transport forgets it */
void connection_enter(struct upstream_connection *connection, enum connection_state state);
/* What waits learns the text, which may have what the server wrote; the log gets why, which has nothing of it. */
void connection_broken(struct upstream_connection *connection, const char *why, const char *text);
void connection_advance(struct upstream_connection *connection);
void connection_end(struct upstream_order *order, struct upstream_answer *answer); /* frees the order */
void connection_end_error(struct upstream_order *order, enum upstream_kind kind, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void connection_again(struct upstream_order *order, int64_t after_us); /* back to those that wait */
void connection_forget_session(struct upstream_connection *connection);
/* upstream_bearer.c: tokens of those who signed in. May requests go out? If not, a token comes first, or none will
 * (*ret_problem, which is left alone otherwise). */
bool connection_may_send(struct upstream_connection *connection, const char **ret_problem);
void connection_new_mask(struct upstream_connection *connection, const struct bind_strings *more);
/* The server answered 401: is another token there, or on its way? */
bool connection_renews(struct upstream_connection *connection);
/* What a server wants that answered 401 or 403, and what to do; the caller's. */
char *connection_wanted(const struct upstream_connection *connection, const struct failure *failure);
/* upstream_handshake.c, */
void connection_shake(struct upstream_connection *connection); /* the first request that its era needs */
void connection_shaken(struct upstream_exchange *exchange, struct raw result, struct raw error);
void connection_shake_failed(struct upstream_connection *connection, enum exchange_kind kind,
			     const struct failure *failure);
/* upstream_order.c: requests of orders and their answers. */
void connection_send_order(struct upstream_order *order);
void connection_answered(struct upstream_exchange *exchange, const struct incoming *incoming);
void connection_order_failed(struct upstream_order *order, enum exchange_kind kind, const struct failure *failure);
void connection_order_free(struct upstream_order *order);
void connection_next_round(struct upstream_order *order, char *responses); /* JSON, taken over; NULL: none */
/* upstream_incoming.c: what servers ask. */
struct question;
void connection_question(struct upstream_order *order, struct raw requests); /* connection_next_round follows */
void connection_replied(struct connection_loop *loop, uint64_t question, const char *result);
/* Nobody waits for the answers to an order's questions any more; without an order, to those of a connection. */
void connection_unask(struct connection_loop *loop, const struct upstream_order *order,
		      const struct upstream_connection *connection);
