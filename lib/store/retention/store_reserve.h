/*
 * store_reserve.h - a file of the data folder that only takes room, so that content can be erased on a full disk.
 *
 * An erasure writes before anything becomes free: its entry in the audit log, pages of the database, their log. The
 * reserve is given up first. It is made anew when the disk has room for it several times.
 */
#pragma once

#include "lib/store/store.h"

#define STORE_RESERVE       "reserve"
#define STORE_RESERVE_BYTES (8 << 20) /* SQLite folds its log into the database at half of it */

/* Before the record is opened for an erasure, and before each: gives the reserve up where less than half of it is free.
 */
void store_reserve_release(const char *data_dir);
/* Makes it where it is missing and four times as much is free; failing is no error. */
void store_reserve_keep(struct store *store);
