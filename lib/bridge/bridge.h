/*
 * bridge.h - serves the programs that call tools: sockets into jails on one side, the one that answers the calls on the
 * other.
 *
 * A run that names servers gets a socket (bridge_run_socket), which the jail makes listen at JAIL_SOCKET. The bridge's
 * thread accepts the program's connections, reads its frames (bridge_frame.h), checks each call, counts it, hands it to
 * the run's provider and writes the answer back. It never waits for a provider, nor for a program that does not read.
 *
 *     bridge_start(upstream, &bridge, err)
 *     bridge_open(bridge, &spec, &run, err)           spec.provider answers the calls
 *     bridge_run_socket(run)                          -> jail_program.tools_fd
 *     bridge_close(run, &report)                      ends connections, cancels what is under way
 *
 * Providers: the pool of upstream servers (bridge_upstream.h), the record of an earlier run (bridge_cassette.h).
 *
 * A program is not trusted: it may send anything, in any order, never read, leave calls under way, or hand its socket
 * to children. Each of its connections is judged by the run's own list of servers, and nothing but its run suffers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/store/record/store_tool.h"
#include "lib/upstream/upstream.h"
#include "lib/upstream/upstream_policy.h"

#define BRIDGE_CONNECTIONS  16           /* of a run at once; the next one waits until another one ends */
#define BRIDGE_UNREAD       2            /* frames that a program has not read: its connection is not read meanwhile */
#define BRIDGE_HELD_MAX     (8 << 20)    /* bytes of calls of a run that wait: beyond it nothing more is read */
#define BRIDGE_REFUSED_KEPT 16           /* calls beyond the cap that the report still names */
#define BRIDGE_FRAME_EXTRA  (256 * 1024) /* of a frame, besides its arguments */
#define BRIDGE_WHO_SIZE     24
#define BRIDGE_WORK_US      100000 /* of the thread that a run's frames may take at once: reading, lists, searches */

struct bridge;
/* Served by the thread of `upstream`, which must outlive it; NULL: by a thread of its own. */
int bridge_start(struct upstream *upstream, struct bridge **ret, struct err *err);
/* After the last run was closed: waits for the answers that providers still owe. NULL is fine. */
void bridge_stop(struct bridge *bridge);

struct bridge_caps {
	int64_t calls, in_flight;
	int64_t argument_bytes, result_bytes; /* of one call */
	int64_t total_bytes;                  /* results of the run */
	int64_t call_us, call_most_us;        /* deadline of a call; the most that a program may ask for */
	int64_t wait_us;                      /* time that the wall clock may stand still while the program waits */
	int64_t work_us; /* BRIDGE_WORK_US */
	int64_t ask_us; /* that a question to a person waits, and that the wall clock stands still for it besides */
};
struct config;
void bridge_caps(const struct config *config, struct bridge_caps *ret);

/* One call, as a provider sees it. The bridge's until bridge_answer, which every call gets exactly once. */
struct bridge_call {
	struct upstream_list *list;
	const struct upstream_tool *tool; /* NULL: resources/read of `uri` */
	const char *uri;
	const char *arguments; /* a JSON object */
	size_t length;
	int64_t timeout_us;
	int64_t seq;        /* of the run, from 1 on */
	int64_t connection; /* the program's, from 1 on */
	uint64_t handle;    /* the provider's */
	void *provider_arg; /* the run's */
	/* What a person said to it (bridge_question.h); written by who asks, before bridge_again. */
	struct {
		bool given;
		char rule[UPSTREAM_RULE_SIZE]; /* that wanted the question */
		char by[BRIDGE_WHO_SIZE];
		int64_t us; /* how long it took */
	} approval;
};
/* A call that its provider has, on the bridge's thread: a person is asked, so its deadline is caps.ask_us from now. */
void bridge_hold(struct bridge_call *call);
/* In the place of an answer, on any thread: hands a held call to its provider once more; its own deadline goes on. */
void bridge_again(struct bridge_call *call);
/* Exactly one of them for every call, on any thread; what is in it is copied. */
struct bridge_answer {
	const char *kind; /* "result", or why not: upstream_kind_name, "denied", "approval", "replay" */
	bool is_error;
	const char *result;
	size_t length;
	const char *text;                         /* of what is no result */
	const char *decision, *rule, *decided_by; /* NULL: the bridge's own */
	int64_t approval_us, started_us;
	const char *protocol;
	int attempts;
};
void bridge_answer(struct bridge_call *call, const struct bridge_answer *answer);

struct bridge_provider {
	/* On the bridge's thread; must not block. bridge_answer may come before it returns. */
	void (*call)(void *arg, struct bridge_call *call);
	/* The answer still comes, and goes nowhere. The call may have been answered meanwhile. */
	void (*cancel)(void *arg, struct bridge_call *call);
	/* Ranked results of a search as a JSON array; NULL: names that hold the words. */
	char *(*search)(void *arg, const char *query, const char *server, int64_t limit, const char *detail);
	/* The run is closed and every call was answered, or it could not be opened: `arg` is of no use any more. */
	void (*release)(void *arg);
};

/* What the run may call: fixed when it begins. */
struct bridge_spec {
	struct upstream_list *const *lists; /* held by the run, too */
	size_t count;
	const char *const *decisions; /* NULL, or for each list and tool in order: "allow", "ask" */
	struct bridge_caps caps;
	const struct bridge_provider *provider;
	void *arg;
	/* On the bridge's thread. The program begins to wait for tools, or goes on; `credit_us` is time that it waited
	 * before, in many short calls. NULL: nobody wants to know. */
	void (*waits)(void *arg, bool waits, int64_t credit_us);
	void *waits_arg;
};

/* Calls in the order in which they arrived, without the hash of their arguments and without `occurrence`. */
struct bridge_report {
	struct store_tool_call *records;
	size_t count;
	int64_t calls;     /* also those that are not named */
	int64_t waited_us; /* the program waited for tools */
	int64_t rests;     /* its frames took more of the thread than its share: so often they had to wait */
};
void bridge_report_clear(struct bridge_report *report);

struct bridge_run;
int bridge_open(struct bridge *bridge, const struct bridge_spec *spec, struct bridge_run **ret, struct err *err);
int bridge_run_socket(const struct bridge_run *run); /* the run's; for jail_run, which duplicates it */
/* Ends it: returns at once. `ret` NULL: nobody wants to know. */
void bridge_close(struct bridge_run *run, struct bridge_report *ret);

/* -------- a run's servers and calls as the store keeps them (bridge_record.c) ------------------------- */

/* Takes what is in the report, which is empty then. */
void bridge_record(struct upstream_list *const *lists, size_t count, struct bridge_report *report,
		   struct store_tools *ret);
/* SHA-256 over arguments in their canonical form: members sorted, no blanks; numbers as they are written. */
void bridge_record_hash(const char *arguments, size_t length, char ret[SHA256_HEX_SIZE]);

/* -------- arguments against a tool's schema (bridge_check.c) ------------------------------------------ */

/* Do the arguments of a call fit the schema, as far as it is certain that the tool's server would refuse them?
 * ERR_INVALID names the member. */
int bridge_check(const struct upstream_tool *tool, struct json_object *arguments, struct err *err);
