/*
 * job_edit.h - what clients change of a conversation's files besides the upload of one (job_upload): uploads of
 * several, removals, and going back to the files of an earlier run. Each is done whole or not at all, in order with the
 * conversation's jobs.
 *
 * The record knows every state that a run began with and what it changed (execution_file). So going back needs no
 * copies: it is a list of contents that are there. What was put since the last run and seen by none is in no state.
 */
#pragma once

#include "job.h"

#define JOB_REMOVE_MAX 256 /* names of one removal */

struct job_edited {
	int64_t put, removed; /* files */
	bool again; /* the idempotency key's first call did it: nothing was done now, and nothing counted */
	char hash[SHA256_HEX_SIZE]; /* the conversation's */
};
/* Puts who->files, all of them or none; their names may be paths. */
int job_edit_put(struct job_engine *engine, const struct job_request *who, struct job_edited *ret, struct err *err);
/* Removes files, or folders with everything below them. ERR_NOT_FOUND names the one that is not there (as `member` and
 * its number), and nothing is removed. */
struct job_names {
	const struct bind_text *items;
	size_t count;
	const char *member;
};
int job_edit_remove(struct job_engine *engine, const struct job_request *who, const struct job_names *names,
		    struct job_edited *ret, struct err *err);
/* Makes the conversation's files those before or after a run of it. ERR_NOT_FOUND: no such run of this owner and
 * conversation, or its files were erased; ERR_BUSY: it has not ended. */
struct job_state {
	const char *execution; /* id, whole */
	bool after;
};
int job_edit_restore(struct job_engine *engine, const struct job_request *who, const struct job_state *state,
		     struct job_edited *ret, struct err *err);
/* The same by a process without an engine, for an operator: of any owner's run, by a prefix of its id. ERR_BUSY: a
 * program of the conversation is running. */
int job_edit_restore_apart(struct store *store, const struct job_state *state, struct job_edited *ret, struct err *err);
/* Where `who` is in the workspace (workspace.h): brings the conversation up to date with the folder, before its files
 * are listed or read. While a turn of it is under way nothing is done. */
int job_edit_look(struct job_engine *engine, const struct job_request *who, struct err *err);
/* The last run of a conversation that has ended; ERR_NOT_FOUND. */
int job_edit_last(struct store *store, const char *owner, const char *conversation, char ret[ID_SIZE], struct err *err);
