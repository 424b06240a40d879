/*
 * server.h - the jailer's clients: connections, verbs, answers, back-pressure.
 *
 * A client that sends rubbish loses its connection, one that does not read its answers is not read from either, one
 * that goes takes its jails with it. Nothing that a client does reaches another client's jails: they are found by
 * connection and number. When there are too many, who has never said anything goes first: connections alone cannot keep
 * anybody out.
 */
#pragma once

#include "jail/cell/cell.h"
#include "versions.h"

#define SERVER_CLIENTS_MAX 256
#define SERVER_QUEUE_MAX   64   /* unread answers; beyond them the client is not read from */
#define SERVER_HELD_FDS    1024 /* descriptors of one client that wait in its jails' queues; beyond them the same */

struct server_client;
struct server {
	struct cells *cells;
	struct runners *runners;
	const struct config *config;
	const struct identity *identity;
	struct server_client *clients;
	size_t n_clients;
	struct versions *versions; /* NULL: runners are answered as they are */
	bool gone; /* private mode: the last client is gone */
	bool private;
};

/* A client of a jailer that could not start hears why. */
void server_refuse(int fd, const struct err *why);
/* Takes the connection over. */
void server_add(struct server *server, int fd);
/* Sends what waits, drops who is gone; between events. */
void server_tick(struct server *server);
void server_clear(struct server *server);
