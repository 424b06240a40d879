/*
 * identity.h - whose ids the jailer and its guests have, and which instance of the jailer this is.
 *
 * An instance is a number K, held by an flock on a file K.lock; it means a slice of host ids and a directory of
 * cgroups. The jailer puts itself into an outer user namespace in which it is 0; a guest in slot S is id S of that
 * namespace (single-id: 0).
 *
 *   started by root    outer 0..65535 = host ids base + K * 65536 …          lock in /run/sallyport-jailer
 *   by a user          outer 0 = the user, 1..255 = a slice of its range in /etc/subuid (newuidmap, newgidmap)
 *   else               outer 0 = the user, nothing more: guests share the user's id on the host ("single-id", weaker)
 *
 * Range as root: 0x70000000 is what systemd's list of well-known ids leaves unused.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "lib/base/config.h"
#include "lib/base/err.h"

#define IDENTITY_BASE      0x70000000u
#define IDENTITY_COUNT     (1024 * 65536) /* ids in the built-in range: 1,024 instances */
#define IDENTITY_SLICE     65536          /* ids of one instance of root */
#define IDENTITY_SUB_SLICE 256            /* of one instance of a user */

enum identity_mode { IDENTITY_ROOT, IDENTITY_ROOTLESS, IDENTITY_SINGLE };

struct identity {
	enum identity_mode mode;
	int instance;
	bool found_dead; /* the jailer that had this instance before was killed */
	int lock_fd;
	int lock_dir;
	uid_t started_uid; /* on the host */
	gid_t started_gid;
	uid_t host_uid; /* what outer 0 is on the host */
	gid_t host_gid;
	uid_t sub_uid; /* IDENTITY_ROOTLESS: what outer 1 is */
	gid_t sub_gid;
	unsigned ids; /* in the outer namespace, 0 included */
};
#define IDENTITY_INIT ((struct identity){.lock_fd = -1, .lock_dir = -1})

const char *identity_mode_text(enum identity_mode mode);
/* Decides the mode and takes the first free instance. The lock lasts as long as the process. */
int identity_claim(const struct config *config, struct identity *ret, struct err *err);
void identity_clear(struct identity *identity); /* an orderly end */
/* Does no process hold the instance of that number? Then *ret_lock holds it until it is closed: what the instance left
 * may be removed. */
bool identity_abandoned(const struct identity *identity, int instance, int *ret_lock);

/* From the outside, by a process that is still what it was when the jailer started: writes the maps of `pid`'s new user
 * namespace. */
int identity_write_maps(const struct identity *identity, pid_t pid, struct err *err);
/* Inside the new user namespace, maps written: become its 0, without supplementary groups. */
int identity_become(const struct identity *identity, struct err *err);
