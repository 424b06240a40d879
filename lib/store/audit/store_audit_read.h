/*
 * store_audit_read.h - the audit log as a verifier and a signer read it: from a data folder, or from a file that is a
 * copy of the database, without secret.key and without writing anything. Everything that one reader reads is of one
 * moment.
 */
#pragma once

#include <stdbool.h>

#include "store_audit.h"

struct store_audit_reader;
/* `path`: a data folder, or a database. ERR_NOT_FOUND, ERR_INVALID, ERR_CORRUPT; ERR_UNAVAILABLE: another version. */
int store_audit_reader_open(const char *path, struct store_audit_reader **ret, struct err *err);
void store_audit_reader_close(struct store_audit_reader *reader); /* NULL is fine */

/* A row of audit, as it is: `entry` has `length` bytes. Valid inside of the callback. */
struct store_audit_found {
	int64_t n, at_us;
	const char *kind, *object, *entry;
	size_t length;
	const uint8_t *salt; /* NULL: no details, or not of the right size */
	const char *detail;
	size_t detail_length;
};
/* In the order of n, from `from` on. `each` returns 0, or a negative code with err set, which ends it. */
int store_audit_each(struct store_audit_reader *reader, int64_t from,
		     int (*each)(void *arg, const struct store_audit_found *found, struct err *err), void *arg,
		     struct err *err);
int store_audit_count(struct store_audit_reader *reader, int64_t *ret, struct err *err);

/* The parts of an entry; they point into it. 0, or -1: not one of ours. */
struct store_audit_parts {
	const char *actor, *principal, *facts, *commitment;
	size_t actor_length, principal_length, facts_length, commitment_length;
};
int store_audit_split(const struct store_audit_found *found, struct store_audit_parts *ret);

struct store_audit_progress {
	int (*step)(void *arg, int64_t done, int64_t total); /* negative ends it */
	void *arg;
};
/* Reads all runs and their calls once, for the next function. Memory: 16 to 32 bytes an entry. */
int store_audit_rows_read(struct store_audit_reader *reader, const struct store_audit_progress *progress,
			  struct err *err);
/* Does the entry say what the row of its run or call says? false: not known, store_audit_expected says what differs. */
bool store_audit_rows_fit(struct store_audit_reader *reader, const struct store_audit_found *found,
			  const struct store_audit_parts *said);
/* Is there a row that entries of this kind describe (store_audit_expected)? */
bool store_audit_has_row(const char *kind);
/* What an entry of this kind must say by the rows that are there now: 1 and *ret (the caller's, with its details as
 * they are stored) and its principal; 0: there is no such row. Kinds: run.begin, run.end, call, token.add,
 * token.revoke. */
int store_audit_expected(struct store_audit_reader *reader, const struct store_audit_found *found,
			 struct store_audit *ret, char ret_actor[STORE_AUDIT_OBJECT_SIZE], char ret_principal[ID_SIZE],
			 struct err *err);
/* Is there an entry of this kind about the object, behind entry n? -1: whatever n. */
int store_audit_has(struct store_audit_reader *reader, const char *object, const char *kind, int64_t behind,
		    struct err *err);
/* Does an entry behind n say that the details of an entry of this kind about the object were erased? */
int store_audit_erased(struct store_audit_reader *reader, const char *object, const char *kind, int64_t behind,
		       struct err *err);
/* The id that stands for the owner in entries; "": there is none. */
int store_audit_principal_of(struct store_audit_reader *reader, const char *owner, char ret[ID_SIZE], struct err *err);
/* 1: something is there of what entry n (content.erase) says is gone: texts and files of a run, details. */
struct store_audit_gone {
	int64_t n;
	const char *object, *what;
};
int store_audit_left(struct store_audit_reader *reader, const struct store_audit_gone *gone, struct err *err);
/* HMAC of details, as an entry commits to them. */
void store_audit_commit_to(const uint8_t salt[SHA256_SIZE], const char *kind, const char *details, size_t length,
			   char ret[SHA256_HEX_SIZE]);

/* What rows say against the log: each finding is a sentence; `first` the entry that it is about, -1 none. */
typedef int (*store_audit_finding)(void *arg, int64_t n, const char *text);
/* Rows that no entry names, and rows that the log names and that are gone; *ret_checked rows. After the entries. */
int store_audit_check_rows(struct store_audit_reader *reader, store_audit_finding finding, void *arg,
			   int64_t *ret_checked, struct err *err);
/* Files of conversations as they are now, against what was put and what runs left. */
int store_audit_check_files(struct store_audit_reader *reader, store_audit_finding finding, void *arg,
			    int64_t *ret_checked, struct err *err);
/* Contents: the file of each blob that a row names is there and has its sum. */
struct store_audit_blobs {
	const char *folder; /* blobs/ */
	int (*progress)(void *arg, int64_t done, int64_t total);
	void *arg; /* of finding, too */
};
int store_audit_check_blobs(struct store_audit_reader *reader, const struct store_audit_blobs *blobs,
			    store_audit_finding finding, int64_t *ret_checked, struct err *err);
