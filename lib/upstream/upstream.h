/*
 * upstream.h - the MCP servers whose tools programs may call: what code mode, direct tools and the CLI use.
 *
 * One `struct upstream` a process. It owns one thread, on which everything that waits for a server happens: libcurl's
 * multi interface for `url` servers, the standard input and output of processes for `command` servers. The functions
 * below may be called from any thread; a callback comes on the upstream thread, exactly once, and must not block nor
 * call upstream_close.
 *
 *     upstream_open(config, &upstream, err)
 *     upstream_list(upstream, &key, deadline, &list, err)          blocks: the tools of one server
 *     upstream_call(upstream, &call, done, arg)                    returns at once, with an id for upstream_cancel
 *     upstream_close(upstream)                                     fails what is under way as cancelled
 *
 * Connections are made at the first use, shared as the server's entry says (share: owner, run, all) and kept while they
 * are used. Nothing is decided here: may this caller call this tool is upstream_policy.h.
 *
 * Results are bytes: what the server sent as `result`, never parsed and printed again, so that integers, the order of
 * members and text stay as they were. Two things are changed: half surrogate pairs (JavaScript writes "\ud83d" for an
 * emoji that was cut) become \ufffd, and the server's own secrets are masked.
 *
 * Facts: MCP 2024-11-05 to 2026-07-28, transports and tools; RFC 9110; the HTML standard's event streams.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/config.h"
#include "lib/base/err.h"
#include "upstream_config.h"

/* How a call ended. The names (upstream_kind_name) are what programs see. */
#define UPSTREAM_KINDS(KIND)                                                                                           \
	KIND(RESULT, "result")                   /* the server answered; is_error says how */                          \
	KIND(INVALID, "invalid")                 /* no such tool, or arguments that do not fit its schema */           \
	KIND(LIMIT, "limit")                     /* larger than a cap */                                               \
	KIND(TIMEOUT, "timeout")                 /* no answer within the call's time */                                \
	KIND(UNAVAILABLE, "unavailable")         /* the server cannot be reached or started: nothing was done */       \
	KIND(UNKNOWN_OUTCOME, "unknown_outcome") /* the connection ended after the call was sent */                    \
	KIND(PROTOCOL, "protocol")               /* what the server sent is not MCP, or it refused the request */      \
	KIND(CANCELLED, "cancelled")             /* by upstream_cancel or upstream_close */
enum upstream_kind {
#define KIND(name, text) UPSTREAM_##name,
	UPSTREAM_KINDS(KIND)
#undef KIND
};
const char *upstream_kind_name(enum upstream_kind kind);

struct upstream;
/* Reads upstream.file and starts the thread. *ret is NULL without a file. An entry that is wrong makes its server
 * unavailable (server->problem) and is logged; a file that is wrong as a whole is an error. */
int upstream_open(const struct config *config, struct upstream **ret, struct err *err);
void upstream_close(struct upstream *upstream); /* NULL is fine */

/* Connects to the servers that start with the gateway, without waiting for them. */
void upstream_warm(struct upstream *upstream);
/* One more call of the owner; ERR_LIMIT: it had upstream.calls_per_minute in this minute already. */
int upstream_count_call(struct upstream *upstream, const char *owner, struct err *err);

/* The servers of the file, in its order; they live as long as `upstream`. */
const struct upstream_server *upstream_servers(const struct upstream *upstream, size_t *ret_count);
/* By name or alias. ERR_NOT_FOUND names the nearest. */
int upstream_find(const struct upstream *upstream, const char *name, const struct upstream_server **ret,
		  struct err *err);

/* Whose connection. `run` is needed where the server's share is `run`: any text that names the run. */
struct upstream_key {
	const struct upstream_server *server;
	const char *owner, *run;
};

/* One tool as its server described it. */
struct upstream_tool {
	const char *name;
	const char *definition; /* JSON, as sent (half surrogate pairs replaced) */
	size_t length;
	struct json_object *object; /* the same, parsed */
	char hash[65];              /* SHA-256 of its canonical name, title, description, schemas, annotations */
};
/* What somebody made of a list and left with it for those who hold it later. */
struct upstream_text {
	struct upstream_text *next;
	char *key, *bytes;
	size_t length;
};
/* What a server offers, at one moment: does not change any more, and goes with the last who holds it. */
struct upstream_list {
	const struct upstream_server *server;
	struct upstream_tool *tools;
	size_t count;
	char hash[65];                /* over all definitions */
	char *definitions;            /* all of them as they came, a JSON array, */
	char definitions_hash[65];    /* and its SHA-256: what the record keeps of it */
	const char *instructions;     /* of the server; "": none */
	const char *version;          /* "name version" of the server; "": it did not say */
	const char *protocol;         /* the revision that was spoken */
	struct bind_strings left_out; /* "TOOL: why", for the operator */
	int64_t read_us;              /* clock_now_us */
	bool sealed;
	_Atomic int references;
	struct upstream_text *texts; /* upstream_list_text */
	size_t texts_length;
	struct upstream_index *_Atomic index; /* upstream_search.c; NULL: nothing was looked for yet */
};
/* The list, from the cache while it is fresh. Blocks until `deadline_us` (clock_monotonic_us) at most; *ret is the
 * caller's. The error's code: ERR_UNAVAILABLE, ERR_LIMIT, ERR_CORRUPT (not MCP). */
int upstream_list(struct upstream *upstream, const struct upstream_key *key, int64_t deadline_us,
		  struct upstream_list **ret, struct err *err);
/* The same without blocking; `list` (NULL: `err` says why) is the callback's. */
typedef void upstream_listed(void *arg, struct upstream_list *list, const struct err *err);
void upstream_list_begin(struct upstream *upstream, const struct upstream_key *key, int64_t deadline_us,
			 upstream_listed *listed, void *arg);
struct upstream_list *upstream_list_keep(struct upstream_list *list); /* one more holder */
void upstream_list_free(struct upstream_list *list);                  /* NULL is fine */
void upstream_list_free_pointer(struct upstream_list **list);
#define auto_upstream_list __attribute__((cleanup(upstream_list_free_pointer)))
/* The text of this key, which is there as long as the list; NULL: none. From any thread. */
const struct upstream_text *upstream_list_text(struct upstream_list *list, const char *key);
/* Leaves a copy with the list, unless it has one or its texts would have more than UPSTREAM_TEXTS_MAX bytes. */
void upstream_list_keep_text(struct upstream_list *list, const char *key, const char *bytes, size_t length);
#define UPSTREAM_TEXTS_MAX (4 << 20)
/* By its exact name. ERR_NOT_FOUND names the nearest. */
int upstream_list_find(const struct upstream_list *list, const char *name, const struct upstream_tool **ret,
		       struct err *err);

struct upstream_answer {
	enum upstream_kind kind;
	bool is_error;      /* RESULT: the tool says that it failed */
	bool dispatched;    /* bytes of the call went out */
	const char *result; /* RESULT: the bytes, NUL behind them */
	size_t length;
	const char *text;                           /* else: one sentence */
	const char *protocol;                       /* "2025-11-25"; "": none was agreed on */
	int attempts;                               /* how often it was sent */
	int64_t queued_us, started_us, finished_us; /* clock_now_us */
};
typedef void upstream_done(void *arg, const struct upstream_answer *answer); /* the answer is gone after it */
struct upstream_call {
	struct upstream_key key;
	const char *method;    /* NULL: tools/call with `tool` and `arguments`; "resources/read": `tool` is the uri */
	const char *tool;      /* copied, as arguments */
	const char *arguments; /* a JSON object */
	size_t length;
	const struct upstream_tool
		*definition;        /* from `list`; NULL: none known. Headers and the task form come from it */
	struct upstream_list *list; /* held while the call lasts; NULL: none */
	int64_t timeout_us;         /* 0: as the server's entry says */
	/* NULL, or what the server says meanwhile (on the upstream thread): progress < 0: none was given. */
	void (*progress)(void *arg, double progress, double total, const char *text);
};
/* Sends it when the server is ready and has room (in_flight). */
uint64_t upstream_call(struct upstream *upstream, const struct upstream_call *call, upstream_done *done, void *arg);
/* The call ends as cancelled, upstream too. Unknown ids: nothing (it may have ended meanwhile). */
void upstream_cancel(struct upstream *upstream, uint64_t id);
/* The run is over: connections of its own end, its calls should have ended. */
void upstream_end_run(struct upstream *upstream, const char *run);

/* A server asks something of us (elicitation/create; only where its entry says elicitation: relay) while it works for
 * `owner`. Answered by upstream_reply, from any thread; "" as result refuses it. Set before the first call. */
struct upstream_asked {
	uint64_t question;
	const struct upstream_server *server;
	const char *owner, *method;
	const char *parameters; /* JSON */
	size_t length;
};
typedef void upstream_ask(void *arg, const struct upstream_asked *asked);
void upstream_on_ask(struct upstream *upstream, upstream_ask *ask, void *arg);
void upstream_reply(struct upstream *upstream, uint64_t question, const char *result, size_t length);

/* A server says that its tools changed; on the upstream thread, and must not wait. Set before the first call. */
typedef void upstream_changed(void *arg);
void upstream_on_change(struct upstream *upstream, upstream_changed *changed, void *arg);

/* Somebody else's events that the upstream thread serves besides its own: who is served there makes calls and gets
 * their answers without another thread having to wake up. `fd` is watched for reading. `turn` is called when it is
 * readable (`ready`) and after every turn of the loop; it must not block, and says when it wants the next turn at the
 * latest (clock_monotonic_us; INT64_MAX: when `fd` is readable). Once it returns false, the thread forgets the source
 * and calls `left`, which may free it. All sources must have left before upstream_close. */
struct upstream_source {
	struct upstream_source *next; /* upstream's own */
	int fd;
	bool (*turn)(struct upstream_source *source, bool ready, int64_t *ret_due_us);
	void (*left)(struct upstream_source *source);
};
void upstream_serve(struct upstream *upstream, struct upstream_source *source);

/* Blocks until the answer is there; *ret is to be given back by upstream_answer_clear. */
void upstream_call_wait(struct upstream *upstream, const struct upstream_call *call, struct upstream_answer *ret);
void upstream_answer_clear(struct upstream_answer *answer);
