/*
 * wire.h - the jailer's protocol: one SOCK_SEQPACKET packet is one message, in both directions.
 *
 * A message is a strict JSON object (version 1, unknown members are errors), then a NUL, then a tail of NUL-terminated
 * strings: names of files, arguments, environment. They are bytes and need not be UTF-8, so they are outside of the
 * JSON; the object says how many there are. Descriptors travel next to it by SCM_RIGHTS in the order that the object
 * implies. All of it is at most JAIL_WIRE_MAX.
 *
 *   client -> jailer                                                  strings            descriptors
 *     {"v":1,"verb":"open","jail":N,"runner":…,"limits":{…},…}        -                  -
 *     {"v":1,"verb":"fill","jail":N,"files":[{"mode","mtime_us"}]}    a name a file      one a file
 *     {"v":1,"verb":"remove","jail":N,"names":F}                      F                  -
 *     {"v":1,"verb":"run","jail":N,"args":A,"env":E,"stdin":bool,…}   A + E              code [stdin] [stdout] [stderr]
 *                                                                                        [tools]
 *     {"v":1,"verb":"wait","jail":N,"waits":bool,"credit_us":…}         -                  -
 *     {"v":1,"verb":"cancel" | "collect" | "close","jail":N}          -                  -
 *     {"v":1,"verb":"info"}                                           -                  -
 *     {"v":1,"verb":"runners","known":bool}                           -                  -
 *   jailer -> client
 *     {"v":1,"event":"output","jail":N,"stdout_bytes":…,"stderr_bytes":…}
 *     {"v":1,"event":"done","jail":N,"result":{…}}
 *     {"v":1,"event":"files","jail":N,"files":[{"kind",…}]}           a name a file      one a created or changed file
 *     {"v":1,"event":"collected","jail":N}
 *     {"v":1,"event":"failed","jail":N,"code":…,"text":…}             the jail is over
 *     {"v":1,"event":"document"}                                      -                  a memfd: the answer to info
 *                                                                                        (an object), runners (a list)
 *     {"v":1,"event":"error","code":…,"text":…}                       the connection is over
 *
 * `jail` is a number that the client chose. The same code reads and writes on both sides; a hostile peer gets an error,
 * never more.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jail.h"
#include "lib/base/bind.h"
#include "lib/base/buf.h"
#include "lib/base/json.h"

#define WIRE_VERSION   1
#define WIRE_FDS_MAX   (JAIL_BATCH_FILES + 4)
#define WIRE_NAMES_MAX (40 * 1024) /* bytes of strings in one fill or files message; a sender begins another message */

/* One message that was received. Descriptors still in `fds` (>= 0) are closed by _clear; wire_take_fd sets -1. */
struct wire_message {
	char *bytes;
	struct json_object *head;
	const char **strings;
	size_t n_strings;
	int fds[WIRE_FDS_MAX];
	size_t n_fds;
};
void wire_message_clear(struct wire_message *message);
#define auto_message __attribute__((cleanup(wire_message_clear)))
int wire_take_fd(struct wire_message *message, size_t index);

/* ERR_BUSY: nothing there yet. ERR_UNAVAILABLE: the peer is gone. ERR_INVALID: not a message; the connection is of no
 * use any more. */
int wire_receive(int socket, struct wire_message *ret, struct err *err);

/* Messages that wait until the socket takes them, with their descriptors (which belong to the queue). */
struct wire_packet;
struct wire_queue {
	struct wire_packet *first, **last;
	size_t count;
	size_t n_fds;
};
void wire_queue_init(struct wire_queue *queue);
void wire_queue_clear(struct wire_queue *queue);
/* What goes next to the JSON. */
struct wire_parts {
	const char *const *strings;
	size_t n_strings;
	const int *fds;
	size_t n_fds;
};
/* Takes `head` and the descriptors over, also when it fails (ERR_LIMIT: too large). Strings are copied. `parts` NULL:
 * none. */
int wire_queue_add(struct wire_queue *queue, struct json_object *head, const struct wire_parts *parts, struct err *err);
/* Sends what the socket takes: 0 all gone, ERR_BUSY the rest waits for POLLOUT, ERR_UNAVAILABLE the peer is gone. */
int wire_queue_flush(struct wire_queue *queue, int socket, struct err *err);

/* {"v":1, key:value} to which the caller adds. */
struct json_object *wire_head(const char *key, const char *value);
struct json_object *wire_head_jail(const char *key, const char *value, int64_t jail);

/* -------- what the messages hold ---------------------------------------------------------------------- */
struct wire_file {
	int64_t mode, mtime_us;
};
/* All verbs, each once: constant, name, bind table (wire_table.c), must the jail be open? The jailer's handler is
 * do_NAME (server_verbs.c). */
#define WIRE_VERBS_EACH(VERB)                                                                                          \
	VERB(OPEN, open, open_table, false)                                                                            \
	VERB(FILL, fill, fill_table, true)                                                                             \
	VERB(REMOVE, remove, remove_table, true)                                                                       \
	VERB(RUN, run, run_table, true)                                                                                \
	VERB(WAIT, wait, wait_table, true)                                                                             \
	VERB(CANCEL, cancel, jail_table, true)                                                                         \
	VERB(COLLECT, collect, jail_table, true)                                                                       \
	VERB(CLOSE, close, jail_table, true)                                                                           \
	VERB(INFO, info, plain_table, false)                                                                           \
	VERB(RUNNERS, runners, runners_table, false)
#define WIRE_VERB_CONSTANT(constant, name, table, needs_jail) WIRE_##constant,
enum wire_verb { WIRE_VERBS_EACH(WIRE_VERB_CONSTANT) WIRE_VERBS };
const char *wire_verb_text(enum wire_verb verb);
bool wire_verb_needs_jail(enum wire_verb verb);
/* {"v":1,"verb":…,"jail":N} to which the caller adds; a jail below 0 is left out. */
struct json_object *wire_head_verb(enum wire_verb verb, int64_t jail);

struct wire_request { /* every verb's members; wire_request_parse checks that they fit the verb */
	int64_t version;
	enum wire_verb verb;
	const char *verb_name;
	int64_t jail; /* -1: the verb is not about a jail */
	const char *runner, *label;
	bool network, live, fingerprint, service, background;
	struct bind_strings hosts, binds;
	bool binds_given; /* else the jail is shown all */
	struct jail_limits limits;
	struct bind_objects files; /* struct wire_file */
	int64_t names, args, env;
	const char *entry, *cwd; /* NULL: none */
	bool stdin_given, stdout_given, stderr_given, tools, display, read_only;
	int64_t clock_us; /* 0: none */
	int64_t wall_us;  /* 0: the jail's */
	bool code; /* fill: below /code */
	bool waits; /* wait */
	bool known; /* runners: as they are known now */
	int64_t credit_us;
};
/* Fills *ret (wire_request_clear gives it back) and checks counts of strings and descriptors. */
int wire_request_parse(const struct wire_message *message, struct wire_request *ret, struct err *err);
void wire_request_clear(struct wire_request *request);

struct wire_change {
	const char *kind; /* wire_change_kinds */
	int64_t mode, mtime_us, size;
	const char *reason;
};
extern const char *const wire_change_kinds[]; /* by enum jail_change_kind, ended by NULL */
struct wire_event {
	int64_t version;
	const char *event;
	int64_t jail;
	int64_t stdout_bytes, stderr_bytes;
	struct json_object *result;
	struct bind_objects files; /* struct wire_change */
	const char *code, *text, *member;
};
int wire_event_parse(const struct wire_message *message, struct wire_event *ret, struct err *err);
void wire_event_clear(struct wire_event *event);

/* jail/client/result.c: a result as JSON and back. */
struct json_object *jail_result_print(const struct jail_result *result);
int jail_result_parse(struct json_object *object, struct jail_result *ret, struct err *err);
/* err_info(code)->name and back; unknown names are ERR_INTERNAL. */
enum err_code wire_err_code(const char *name);
