/*
 * audit_prove.h - the log for others: a proof for one run that shows nothing else, and the whole tree as static files.
 *
 * A proof is a folder with, for each entry of the run (run.begin, run.end, call, call.2 …):
 *
 *     run.end.entry    the bytes that were hashed
 *     run.end.proof    C2SP tlog-proof: index, hashes, checkpoint
 *     run.end.detail   the details, unless they were erased
 *     run.end.salt     in hexadecimal
 *
 * Tiles are those of C2SP tlog-tiles: checkpoint, tile/LEVEL/N, tile/entries/N.
 */
#pragma once

#include "audit_note.h"
#include "lib/store/audit/store_audit_read.h"

/* `execution`: an id. ERR_NOT_FOUND: no entry; ERR_UNAVAILABLE: the checkpoint does not cover it yet; ERR_CORRUPT: the
 * log is not the one of the checkpoint. Returns how many entries were proven. */
int audit_prove(const char *database, const char *checkpoint, const char *execution, const char *folder,
		struct err *err);
/* Entries by their numbers, which rise. `checkpoint` NULL: there is none, and the tree is that of all entries. The
 * head's note is the caller's. */
struct audit_proven { /* gone after the callback */
	int64_t n;
	const char *entry, *detail;
	const uint8_t *salt; /* NULL: no details */
	struct audit_hash hashes[AUDIT_TREE_DEPTH];
	size_t length;
};
struct audit_wanted {
	const int64_t *numbers;
	size_t count;
	void (*each)(void *arg, const struct audit_proven *proven);
	void *arg;
};
struct audit_head {
	uint64_t size;
	struct audit_hash root;
	char *note;
};
int audit_prove_entries(const char *database, const char *checkpoint, const struct audit_wanted *entries,
			struct audit_head *ret, struct err *err);
/* Returns 0 and the number of entries. */
int audit_tiles(const char *database, const char *checkpoint, const char *folder, int64_t *ret_entries,
		struct err *err);
