/*
 * store_space.h - what the record may take: of each owner, for how long, and of the disk.
 *
 * The bytes of an owner (table usage, kept by triggers) are compared with the cap in the transaction that adds to them,
 * so that two calls at once cannot pass it together. With `oldest` the owner's oldest runs give way (store_retain)
 * while the gateway serves; calls are refused only where that cannot keep up, at a quarter above the cap.
 */
#pragma once

#include "lib/store/store.h"

#define STORE_RUN_BYTES          1024 /* what a row counts for beyond its texts; schema.sql says the same */
#define STORE_CONVERSATION_BYTES 1024
#define STORE_FILE_BYTES         128
#define STORE_SNIPPET_BYTES      512

struct store_retention {
	int64_t owner_bytes;         /* 0: no cap */
	int64_t conversation_ttl_us; /* of idle conversations; this and the next two, 0: for ever */
	int64_t execution_ttl_us, output_ttl_us;
	bool oldest;                     /* the oldest runs give way; else the call is refused */
	int64_t free_bytes, free_inodes; /* of the disk: nothing begins below */
};

/* Free space of the data folder's file system; inodes: INT64_MAX where it has no such limit. */
struct store_free {
	int64_t bytes, inodes;
};
int store_free_space(const char *data_dir, struct store_free *ret, struct err *err);
/* ERR_UNAVAILABLE: less is free than must be, so nothing may begin. */
int store_space_check(struct store *store, struct err *err);

/* In a transaction: ERR_LIMIT where the owner has no room for `bytes` more and, unless the owner has it already, the
 * content `blob` (NULL: none) of `size` bytes. */
struct store_more {
	const char *owner, *blob;
	int64_t bytes, size;
};
int store_txn_room(struct store_txn *txn, const struct store_more *more, struct err *err);
