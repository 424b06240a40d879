/*
 * store_blob.h - contents, as files named by their SHA-256 below blobs/ in two levels: blobs/ab/cdef…; and the
 * files in which the output of a run grows. Output is packed where that pays (store_pack.h).
 */
#pragma once

#include "lib/store/store.h"

/* Read-only descriptor of a blob; ERR_NOT_FOUND, ERR_CORRUPT. */
int store_blob_open(struct store *store, const char *sha256, int *ret_fd, int64_t *ret_size, struct err *err);
/* Copies all of fd (from offset 0) or the bytes into the blob folder: written, synced, renamed; not referenced yet. */
int store_blob_put_fd(struct store *store, int fd, int64_t max, char ret_sha256[SHA256_HEX_SIZE], int64_t *ret_size,
		      struct err *err);
int store_blob_put(struct store *store, const void *data, size_t length, char ret_sha256[SHA256_HEX_SIZE],
		   struct err *err);
/* As store_blob_put_fd, for what only store_blob_open reads. */
int store_blob_put_output(struct store *store, int fd, char ret_sha256[SHA256_HEX_SIZE], int64_t *ret_size,
			  struct err *err);

/* Folder for partial output: running/ID.out, ID.err, and ID.calls (store_calls.h); opened read-write, made new. */
int store_running_open(struct store *store, const char *id, const char *suffix, int *ret_fd, struct err *err);
void store_running_remove(struct store *store, const char *id);
