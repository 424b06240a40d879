/*
 * porter.h - the helper process that stays outside the jailer's user namespace.
 *
 * Two things can only be done there: writing the maps of the jailer's user namespace, and seeing who a client is
 * (inside, SO_PEERCRED shows every host id that is not mapped as 65534). So the porter is forked first, writes the maps
 * when it is asked to, drops everything, and then, in service mode, accepts connections, checks the peer's id, and
 * hands accepted ones to the jailer. It reads nothing that a client sends. It dies with the jailer.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "identity.h"
#include "lib/base/config.h"
#include "lib/base/err.h"

#define PORTER_USERS_MAX 64

struct porter_spec {
	const struct identity *identity;
	int listen_fd; /* -1: private mode, the porter ends after the maps; else it takes the descriptor over */
	uid_t users[PORTER_USERS_MAX]; /* may connect, besides root and the one who started us */
	size_t n_users;
};
/* Host ids of config.jailer.allowed_users. */
int porter_users(const struct config *config, struct porter_spec *spec, struct err *err);
/* Forks it. *ret_socket: commands and accepted connections. */
int porter_start(const struct porter_spec *spec, int *ret_socket, struct err *err);
/* The caller has made its user namespace: let the maps be written. */
int porter_maps(int socket, struct err *err);
/* An accepted client connection, -1 with errno EAGAIN if there is none, or another errno (the porter is gone). */
int porter_receive(int socket);
/* Makes config.jailer.socket; a socket that nobody listens on is replaced. ERR_CONFLICT: another jailer listens (found
 * after a second). */
int porter_listen(const char *path, int *ret_fd, struct err *err);
