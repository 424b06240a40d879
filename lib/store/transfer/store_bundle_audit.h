/*
 * store_bundle_audit.h - the audit log in a bundle (store_bundle.h): the entries about its runs, with their details, so
 * that somebody who has only the bundle can check it.
 *
 * Of the log a bundle has the first entry, and run.begin, run.end and call of each run; size and root of the tree that
 * they are proven against; for each entry the hashes of its proof; and the signed checkpoint, where there is one.
 */
#pragma once

#include <stdbool.h>

#include "lib/store/audit/store_audit_read.h"
#include "store_bundle.h"

/* -------- out: behind the last store_bundle_add ------------------------------------------------------- */
int store_bundle_audit_add(struct store_bundle *bundle, struct store *store, struct err *err);
/* The numbers of its entries; *ret is the caller's. */
int store_bundle_audit_numbers(struct store_bundle *bundle, int64_t **ret, size_t *ret_count, struct err *err);
int store_bundle_audit_prove(struct store_bundle *bundle, int64_t n, const void *proof, size_t length, struct err *err);
/* `checkpoint` NULL: none. */
int store_bundle_audit_head(struct store_bundle *bundle, int64_t size, const uint8_t root[SHA256_SIZE],
			    const char *checkpoint, struct err *err);

/* -------- in ------------------------------------------------------------------------------------------ */
struct store_bundle_log {
	int64_t size;
	uint8_t root[SHA256_SIZE];
	char *checkpoint, *damage; /* NULL: none. damage: a content is not what its name says, and which */
};
void store_bundle_log_clear(struct store_bundle_log *log);
/* A reader over the bundle's rows and entries. What the record has besides them (tokens, owners' ids, the columns that
 * stay on their machine) is not there. */
int store_bundle_audit_open(const char *path, struct store_audit_reader **ret, struct store_bundle_log *ret_log,
			    struct err *err);
/* The proof of an entry, at most `room` bytes; returns its length, 0: none. */
int store_bundle_audit_proof(struct store_audit_reader *reader, int64_t n, void *ret, size_t room, struct err *err);
