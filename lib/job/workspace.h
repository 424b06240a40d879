/*
 * workspace.h - a folder of this machine whose files are those of one conversation (sallyport stdio --workspace).
 *
 * The folder is the truth. Before each turn of the conversation workspace_read makes the conversation's files those of
 * the folder; after a run or an edit workspace_write carries out there what changed. Both are called by one thread at a
 * time, in the order of turns.
 *
 * Only regular files and folders below it count. Links, devices, other file systems, `.git`, `.sallyportignore` and
 * what that names are left alone in both directions: programs neither see nor write them. Nothing is opened but
 * beneath the folder (beneath.h).
 *
 * A changed file is written to a temporary name in the same folder, synced, and put in place by rename. Other programs
 * write there, too. What they wrote since workspace_read stays: before a file is replaced or removed, its content is
 * compared with the content that was read, and once more when it is out of the way; where it differs it is put back,
 * and our version is put next to it as NAME.sallyport. What cannot be written (a full disk, a read-only folder) is kept
 * in the record and tried again before the next turn.
 */
#pragma once

#include "lib/base/config.h"
#include "lib/store/record/store_file.h"

#define WORKSPACE_IGNORE      ".sallyportignore"
#define WORKSPACE_IGNORE_MAX  (64 * 1024) /* bytes of that file */
#define WORKSPACE_RULES_MAX   1000        /* lines of it */
#define WORKSPACE_LINES_SHOWN 20          /* lines of a note */
#define WORKSPACE_NOTE_MAX    8192        /* bytes of it */

struct workspace;

/* Names the folder and its conversation in the configuration. ERR_INVALID: it is no folder, or a link, or the record is
 * below it. */
int workspace_choose(const char *path, const char *owner, struct config *config, struct err *err);
/* The folder that the configuration names. `place`: the conversation's hash. */
int workspace_open(const struct config *config, struct store *store, struct workspace **ret, struct err *err);
void workspace_close(struct workspace *workspace); /* NULL is fine */
const char *workspace_place(const struct workspace *workspace);

/* Names that were changed by workspace_read, for news. */
struct workspace_names {
	char **items;
	size_t count;
};
void workspace_names_clear(struct workspace_names *names);
/* The conversation's files become those of the folder. ERR_LIMIT: they are more than a program's /data holds;
 * ERR_INVALID, ERR_UNAVAILABLE: what is in the way, with the remedy. Then nothing was changed. */
int workspace_read(struct workspace *workspace, struct workspace_names *ret, struct err *err);

struct workspace_change {
	const char *name;
	const char *blob; /* "": it was removed */
	uint32_t mode;
	int64_t mtime_us, size;
};
/* Carries the changes out in the folder. Never fails: `note` gets a line about each that is not there as it is in the
 * record; empty: all are. */
void workspace_write(struct workspace *workspace, const struct workspace_change *changes, size_t count,
		     struct buf *note);
