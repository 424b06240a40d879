/*
 * layers.h - the overlays that give a jail inodes of its own, kept from one jail to the next.
 *
 * What a root binds is covered, in each jail, by an overlay that has lower directories only: locks, leases and access
 * times of a guest then meet those of no other process. To make and unmount one costs 110 us, a tenth of a jail's
 * set-up, so the jailer keeps one set for each of the first slots of cells (cell_open.c) and init binds it; a slot
 * belongs to one jail at a time, and a jail's locks end with it. A set whose names are older than a second forgets them
 * when a jail begins, so that it sees what has been installed on the host since.
 *
 * All sets are made when the jailer starts, so that its mounts are the same ever after: what is there later is a leak
 * (tests/unit/host_eye.h). Each of them costs every jail 2 us, because a new mount namespace copies it; hence there are
 * sets for the usual root and for as many slots as jails that follow each other take in turn. Other jails mount their
 * own (init_setup.c).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "root_mount.h"

#define LAYERS_SLOTS     6
#define LAYERS_PATH_SIZE 64

struct layers {
	int64_t looked_us[LAYERS_SLOTS]; /* since when a slot's set keeps names */
};
/* In the jailer, after root_mount_finish and in its user namespace. `usual` is the root that sets are made of. */
int layers_init(struct layers *layers, const struct root_mount *usual, struct err *err);
/* The set of a slot, whose last jail is gone. */
int layers_renew(struct layers *layers, const struct root_mount *usual, size_t slot, struct err *err);
/* Directory that has no overlay; NULL: all have. */
const char *layers_missing(const struct root_mount *usual);
/* In init: where the overlay of usual->shown[i] is; there is none where the kernel cannot make one. */
void layers_path(char path[LAYERS_PATH_SIZE], size_t slot, size_t i);
/* mount(2) of an overlay of `directory`, which is below `root`, at `at`. Of errors, EINVAL says that it cannot be a
 * layer: something else is mounted below it, or its name means something to the kernel. */
int layers_mount(const char *root, const char *directory, const char *at);
