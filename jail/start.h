/*
 * start.h - how a jailer starts: a list of steps, each of which needs those before it.
 *
 * Root builds the jails' roots before it enters its user namespace, while it may still read everything (a checkout
 * below a closed home); a user can mount only inside its namespace. From START_NAMESPACES on every mount is locked.
 *
 * Where a step fails the jailer does not start: start_clear gives back what the steps before it took. `--check`
 * (check.h) takes the same steps and says what came of each.
 */
#pragma once

#include "jail/relay/net.h"
#include "lib/base/notify.h"
#include "server.h"
#include "versions.h"

struct jailer_options {
	const char *config_path;
	int client_fds[JAIL_SHARED_MAX]; /* of a private one */
	size_t n_clients; /* 0: a service, or a check */
	bool check;
	bool all; /* private: finds all versions and libraries, as a service does */
	char *command_line; /* where `ps` reads it; jails write their label there */
	size_t command_line_size;
};

struct jailer {
	struct jailer_options options;
	struct config config;
	char *modules_dir;
	struct runners runners;
	struct root_mount root; /* of every runner that has none of its own */
	struct identity identity;
	struct cgroup *cgroup;
	int loop;
	int idmap;
	struct loop_watch idmap_watch, signal_watch;
	struct net net;
	struct cells cells;
	struct server server;
	struct versions versions;
	int answers_fd; /* until the versions have it */
	struct notify notify;
	bool stop;
};
#define JAILER_INIT                                                                                                    \
	((struct jailer){.identity = IDENTITY_INIT,                                                                    \
			 .idmap = -1,                                                                                  \
			 .answers_fd = -1,                                                                             \
			 .net = NET_INIT,                                                                              \
			 .notify = NOTIFY_NONE,                                                                        \
			 .root = {.path = ROOT_MOUNT_PATH}})

enum start_step {
	START_LIMITS, /* our own open files, core files, signals */
	START_CONFIG,
	START_RUNNERS,
	START_IDS, /* an instance and its host ids */
	START_CGROUP,
	START_RELAY,      /* egress, if the configuration allows any */
	START_IDMAP,      /* the helper that stays outside; a service's socket */
	START_ROOTS,      /* as root: the jails' roots */
	START_NAMESPACES, /* out of the host */
	START_USER_ROOTS, /* as a user: the same roots */
	START_LOOP,       /* events, signals, seccomp filters, clients */
	START_STEPS
};
const char *start_name(enum start_step step); /* "cgroup", for --check */
/* Does the step belong to this start? START_ROOTS and START_USER_ROOTS exclude each other. */
bool start_wanted(const struct jailer *jailer, enum start_step step);
int start_take(struct jailer *jailer, enum start_step step, struct err *err);
/* After a failure, or at the end: jails that are left die. */
void start_clear(struct jailer *jailer);
