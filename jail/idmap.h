/*
 * idmap.h - the helper process that stays outside the jailer's user namespace.
 *
 * Two things can only be done there: writing the maps of the jailer's user namespace, and seeing who a client is
 * (inside, SO_PEERCRED shows every host id that is not mapped as 65534). So the id-map helper is forked first, writes
 * the maps when it is asked to, drops everything, and then, in service mode, accepts connections, checks the peer's id,
 * and hands accepted ones to the jailer. It reads nothing that a client sends. It dies with the jailer.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "jail/base/identity.h"
#include "lib/base/config.h"
#include "lib/base/err.h"

#define IDMAP_USERS_MAX 64

struct idmap_spec {
	const struct identity *identity;
	int listen_fd; /* -1: private mode, the id-map helper ends after the maps; else it takes the descriptor over */
	uid_t users[IDMAP_USERS_MAX]; /* may connect, as root and the user who started us may */
	size_t n_users;
};
/* Host ids of config.jailer.allowed_users. */
int idmap_users(const struct config *config, struct idmap_spec *spec, struct err *err);
/* Forks it. *ret_socket: commands and accepted connections. */
int idmap_start(const struct idmap_spec *spec, int *ret_socket, struct err *err);
/* The caller has made its user namespace: let the maps be written. */
int idmap_maps(int socket, struct err *err);
/* An accepted client connection; -1 with errno EAGAIN: there is none, another errno: the id-map helper is gone. */
int idmap_receive(int socket);
/* Makes config.jailer.socket; a socket without a listener is replaced. ERR_CONFLICT: another jailer listens (found
 * after a second). */
int idmap_listen(const char *path, int *ret_fd, struct err *err);
