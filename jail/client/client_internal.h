/* client_internal.h - what client.c (verbs) and client_events.c (events) share. */
#pragma once

#include <sys/types.h>

#include "jail.h"
#include "wire.h"

struct jail {
	struct jail *next;
	struct jail_client *client;
	int64_t number;
	struct jail_events events;
	void *arg;
	size_t runs, collects; /* asked for and not answered yet */
	bool failed;
};

struct jail_client {
	int socket;
	bool private; /* the jailer is */
	pid_t jailer; /* the private one whose end this client waits for, or 0 */
	struct wire_queue queue;
	struct jail *jails;
	int64_t next_number;
	bool lost;
	int guard_fd; /* jail_client_guard */
	bool held;                    /* dispatch reads no further message */
	bool background;              /* its jails give way */
	struct json_object *document; /* answer to info or runners */
	bool document_wanted;
	void (*known)(void *arg, struct json_object *runners); /* jail_client_runners_follow; NULL: not, or over */
	void *known_arg;
	int64_t pinged_us; /* monotonic: since when a sign of life is awaited; 0: none is */
	struct jail_census census; /* of the last one */
};

struct jail *client_find(struct jail_client *client, int64_t number);
/* Queues and sends what the socket takes. A connection that is gone is seen by the next dispatch, which reports it to
 * every jail. */
int client_send(struct jail_client *client, struct json_object *head, const struct wire_parts *parts, struct err *err);
