/* server_internal.h - what server.c (connections, answers) has of server_verbs.c (what clients ask for). */
#pragma once

#include "jail/client/wire.h"
#include "server.h"

struct server_jail {
	struct server_jail *next;
	struct server_client *client;
	int64_t number;
	struct cell *cell;
	const struct data_change *changes; /* a collection that is being sent */
	size_t n_changes, next_change;
	bool collecting;
};

struct server_client {
	struct server_client *next;
	struct server *server;
	struct loop_watch watch;
	struct wire_queue queue;
	struct server_jail *jails;
	bool wants_runners;
	bool spoke; /* at least one whole message came from it */
	bool gone;
};

void server_send(struct server_client *client, struct json_object *head);
int server_send_document(struct server_client *client, struct json_object *document, struct err *err);
void server_jail_remove(struct server_jail *jail);
/* Does what a message asks. An error ends the connection: the two sides do not speak the same language. */
int server_dispatch(struct server_client *client, struct wire_message *message, struct err *err);
