/*
 * store_move.h - an owner, with all that is theirs, from one host to another.
 *
 * The file is a bundle (store_bundle.h) of all runs of the owner, environments included, and besides: tokens, snippets,
 * conversations, files as they are now, and which runs belong to conversations that are there. Sessions, tasks and live
 * sandboxes stay behind: clients open new ones. Where both hosts have the same secret.key, addresses of downloads stay
 * what they were.
 */
#pragma once

#include "lib/store/store.h"

struct store_moved {
	int64_t tokens, snippets, conversations, files, executions; /* snippets: versions of them */
	int64_t erased; /* pack: runs that an erasure touched; they stay behind */
};
/* Writes the file at `path`. ERR_CONFLICT: the owner is not drained, or something is under way (store_drain.h). */
int store_move_pack(struct store *store, const char *owner, const char *path, struct store_moved *ret, struct err *err);
/* In one transaction. ERR_CONFLICT: the owner has conversations here; and what store_bundle_open says. *ret_owner: the
 * caller's. */
int store_move_unpack(struct store *store, const char *path, char **ret_owner, struct store_moved *ret,
		      struct err *err);
/* Conversations and their files go from this host; tokens and the record of runs stay. ERR_CONFLICT as above. */
int store_move_leave(struct store *store, const char *owner, struct err *err);
