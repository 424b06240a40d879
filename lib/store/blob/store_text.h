/*
 * store_text.h - a text of a run (code, input, output): in its row, or as a content where it is larger.
 */
#pragma once

#include "lib/store/store.h"

#define STORE_INLINE_MAX (64 * 1024) /* bytes that are kept in the row */

struct store_text {
	char *data; /* NULL: in the blob */
	size_t length;
	char blob[SHA256_HEX_SIZE]; /* "": in the row */
};
/* The bytes of a text, wherever they are; the caller frees. ERR_CORRUPT: they do not have the sum of their name. */
int store_text_read(struct store *store, const struct store_text *text, char **ret, size_t *ret_length,
		    struct err *err);
/* All of fd: in *ret where it is small enough, else as a blob, which no row names yet. */
int store_text_keep(struct store *store, int fd, struct store_text *ret, struct err *err);
/* A text's blob gets its row. ERR_INTERNAL: a text that is too long for a row, without a blob. */
int store_txn_text(struct store_txn *txn, const struct store_text *text, const char *what, struct err *err);
/* The parameters COLUMN, COLUMN_blob and COLUMN_bytes; the text must outlive the query. */
struct query;
void store_text_bind(struct query *query, const char *column, const struct store_text *text);
