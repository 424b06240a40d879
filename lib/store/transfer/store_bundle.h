/*
 * store_bundle.h - recorded executions in one SQLite file, with all that is needed to run them again elsewhere.
 *
 * A bundle has the rows of executions, their files, tags and live sandboxes, and every content that they name. Three
 * commands write bundles, and each adds something of its own:
 *
 *     export          the entries of the audit log about these runs, with proofs (store_bundle_audit.h)
 *     export --move   besides, an owner: tokens, snippets, conversations, files as they are now, and which runs belong
 *                     to conversations that are there. Sessions, tasks and live sandboxes stay behind
 *     promote         cases: names, tags, and how an outcome is compared; such a bundle is a suite
 *
 * An export is written next to its place and renamed; a suite is changed in place, in one transaction. Environment
 * variables are in the file in clear, or by name only; of declared secrets only the names were ever stored.
 *
 * A bundle is untrusted: store_bundle_open checks all of it before anything is written. Its schema must be ours to the
 * letter (so no trigger, view or expression of another author ever runs), each content must have its hash, each name
 * must be one of a file below /data.
 */
#pragma once

#include "lib/store/store.h"

struct store_bundle;
void store_bundle_close(struct store_bundle *bundle); /* NULL is fine; a new file that was not finished is removed */

/* -------- out ----------------------------------------------------------------------------------------- */
/* ERR_INVALID: there is something that is not a regular file. */
int store_bundle_new(const char *path, struct store_bundle **ret, struct err *err);
/* From now on environment variables are added by name only, as {"NAME":false}, but for FILE_BASE_URL, which is ours. */
void store_bundle_leave_env(struct store_bundle *bundle);
/* An execution that is over, and the runs of its sandbox before it; adding an execution twice changes nothing. */
int store_bundle_add(struct store_bundle *bundle, struct store *store, const char *id, struct err *err);
/* Adds the contents and puts the file in its place. */
int store_bundle_finish(struct store_bundle *bundle, struct store *store, struct err *err);

/* -------- in ------------------------------------------------------------------------------------------ */
/* By its first bytes: a database of SQLite, and not a record of ours; false also where it cannot be read. */
bool store_bundle_is(const char *path);
/* ERR_INVALID: not a bundle, or not as it must be; ERR_UNAVAILABLE: of another version; ERR_CORRUPT: a hash is wrong.
 */
int store_bundle_open(const char *path, struct store_bundle **ret, struct err *err);
/* Nothing proved its rows: each run that is new gets STORE_TAG_UNVERIFIED, and the audit log says so. */
void store_bundle_unverified(struct store_bundle *bundle);
struct store_carried {
	int64_t executions, added;
	int64_t tags; /* that runs did not have */
	int64_t tokens, snippets, conversations, files; /* of an owner; snippets: versions of them */
	int64_t erased; /* runs that an erasure touched and that do not move: for the caller */
};
/* In one transaction; what is there already stays as it is, and gets generations and tags that it lacks. The owner of
 * the bundle, if it has one, moves in with tokens: ask store_bundle_owner first. ERR_CONFLICT: this owner has
 * conversations here. Counts are added to *ret. */
int store_bundle_import(struct store_bundle *bundle, struct store *store, struct store_carried *ret, struct err *err);

/* -------- an owner's move ----------------------------------------------------------------------------- */
/* The owner that the bundle moves; NULL: none. The bundle's. */
const char *store_bundle_owner(const struct store_bundle *bundle);
/* ERR_CONFLICT: the owner is not drained, or something is under way (store_drain.h). Otherwise nothing of the owner
 * changes until the drain ends. */
int store_bundle_owner_quiet(struct store *store, const char *owner, struct err *err);
/* Adds the owner, without runs: they come before, by store_bundle_add. */
int store_bundle_owner_add(struct store_bundle *bundle, struct store *store, const char *owner,
			   struct store_carried *ret, struct err *err);
/* Removes conversations and their files from this host; tokens and the record of runs stay. ERR_CONFLICT as above. */
int store_bundle_owner_leave(struct store *store, const char *owner, struct err *err);

/* -------- a suite ------------------------------------------------------------------------------------- */
/* For adding cases; the file is made where there is none. ERR_BUSY: another process is changing it; ERR_INVALID: it is
 * an export, whose proofs would not cover more runs; otherwise as store_bundle_open. */
int store_bundle_change(const char *path, struct store_bundle **ret, struct err *err);
struct store_bundle_case { /* NULL: a member of a case that is there stays, a new case gets the default */
	const char *id;        /* of the execution */
	const char *name;      /* default: the id */
	const char *tags;      /* JSON: an array of strings; default: empty */
	const char *compare;   /* as of replay's option; default: "default" */
	const char *normalise; /* likewise */
};
/* Adds the execution, too. Returns 1 for a new case, 0 for one that was there. */
int store_bundle_case_add(struct store_bundle *suite, struct store *store, const struct store_bundle_case *one,
			  struct err *err);
/* In the order of names. The strings end with the call of `each`; its result, unless 0, ends the walk. */
int store_bundle_cases(struct store_bundle *bundle, int (*each)(void *arg, const struct store_bundle_case *one),
		       void *arg, struct err *err);
