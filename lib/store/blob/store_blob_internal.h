/*
 * store_blob_internal.h - what the folder of contents has for the other rooms of the store: contents that a transaction
 * names, and those that the garbage collection removes.
 */
#pragma once

#include "lib/store/db/store_txn.h"
#include "store_blob.h"

/* What a garbage collection of the folder found. */
struct store_blob_gc {
	int64_t limit_us; /* files that were touched since stay */
	bool dry;         /* remove nothing */
	int64_t removed, bytes, young, young_bytes; /* of files without a row */
	void (*progress)(void *arg, const char *step, int64_t done, int64_t total); /* NULL: nobody asks */
	void *arg;
};
int store_folder_open(struct store *store, const char *name, mode_t mode, int *ret_fd, struct err *err);
/* Is there a blob's file at all? */
int store_blob_any(struct store *store, bool *ret, struct err *err);
/* Inside a transaction, for a blob that a row is about to name: its file is there and has this size (-1: any), and so
 * has its row. */
int store_txn_blob(struct store_txn *txn, const char *sha256, int64_t size, struct err *err);
/* Was the file of a blob put in place or wanted again since `limit_us`? */
bool store_blob_fresh(struct store *store, const char *sha256, int64_t limit_us);
/* Removes files of blobs that have no row. */
int store_blob_collect(struct store *store, struct store_blob_gc *sweep, struct err *err);
