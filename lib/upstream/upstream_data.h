/*
 * upstream_data.h - the /data of jailed servers that outlasts them ("data": "keep"): one folder for a server and owner.
 *
 * data_dir/upstream/SHA256(server)/SHA256(owner)/ holds one file for each content, named by a number, and `index`,
 * which says for each path below /data its mode, time, size and number. A server is started with what the index says;
 * when it has ended, its changes are written as new contents, and a new index takes the place of the old one: a reader
 * finds the state before or the state after, whatever happened in between. Contents that no index names are removed
 * then. Paths of the server are text in the index alone, never paths of the host.
 *
 * How large it may become is what the jail's /data may hold (limits.data_mb) and UPSTREAM_DATA_INODES.
 *
 * One process has the folder at a time (flock(2)). Nothing is synced: it survives processes, not a power cut; a content
 * that has another size than its index says is left out.
 */
#pragma once

#include "jail/client/jail.h"
#include "lib/base/err.h"

#define UPSTREAM_DATA_INODES 1024

struct upstream_data;
/* `owner` "": of all. ERR_BUSY: another one has it. */
int upstream_data_open(const char *data_dir, const char *server, const char *owner, struct upstream_data **ret,
		       struct err *err);
int upstream_data_fill(const struct upstream_data *data, struct jail *jail, struct err *err);
/* As of jail_events.file: takes the descriptor over. A failure is reported by commit. */
void upstream_data_change(struct upstream_data *data, const struct jail_change *change);
/* The changes so far become the state, all of them or none. */
int upstream_data_commit(struct upstream_data *data, struct err *err);
void upstream_data_close(struct upstream_data *data); /* NULL is fine; what was not committed is forgotten */

/* Removes what all servers keep for an owner. Those that a server uses at this moment stay, and are counted in
 * *ret_busy. */
int upstream_data_forget(const char *data_dir, const char *owner, int64_t *ret_removed, int64_t *ret_busy,
			 struct err *err);
