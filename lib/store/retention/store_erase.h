/*
 * store_erase.h - removes content and leaves the fact: that a run was, when, by whom, how large, how it ended.
 *
 * Of a run's output go: standard output and error, what else was reported, the files that it made. Of its content, all
 * that, and code, input, arguments, environment and the files before it. The audit log loses the details of the
 * entries about it, and gets an entry that says so (store_audit.h), so that it can still be verified. Contents in blobs
 * that nothing else names leave the disk with the next garbage collection (store_gc.h). A run in progress is left
 * alone.
 *
 * Rows go in transactions of few milliseconds, next to other writers. A process that is killed between two of them
 * leaves a run that is marked as erased and rows of files, which the next garbage collection removes.
 */
#pragma once

#include "lib/store/store.h"

enum store_erase_what { STORE_ERASE_OUTPUT, STORE_ERASE_CONTENT };

struct store_erase {
	enum store_erase_what what;
	const char *id;                   /* or the beginning of one; NULL: all, as for the next two */
	const char *owner, *conversation; /* a conversation is an owner's: not without owner */
	int64_t before_us;                /* runs that were asked for, and conversations last used, before then */
	int64_t limit;                    /* runs; 0: all */
	const char *why;                  /* for people: "retention.output_days", "request" */
	const char *ticket;               /* the operator's words, for the audit log; NULL: none */
	bool retention;                   /* by a rule, not by a person */
};
struct store_erased {
	int64_t executions, conversations, running; /* runs in progress, which stay */
	int64_t tokens;                             /* revoked */
};
/* Adds to *ret. */
int store_erase_runs(struct store *store, const struct store_erase *erase, struct store_erased *ret, struct err *err);
/* Runs; of an owner's content conversations with their files and their names, wherever these are; of all content of an
 * owner tasks, events, snippets and tags, too, and the owner's tokens are revoked. */
int store_forget(struct store *store, const struct store_erase *erase, struct store_erased *ret, struct err *err);
/* What store_forget would do. */
int store_forget_count(struct store *store, const struct store_erase *erase, struct store_erased *ret, struct err *err);
/* Goes on where a process was killed. */
int store_erase_resume(struct store *store, struct err *err);
/* By the rules of store_space.h: what is older than its time to live, and the oldest runs of owners above their cap. */
int store_retain(struct store *store, int64_t now_us, struct err *err);
