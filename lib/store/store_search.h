/*
 * store_search.h - the index by which texts are found in code and output: the table `search` (FTS5, trigrams), kept by
 * the sweep and never by a run.
 *
 * An entry of the index is one text: rowid is 4 × execution.recorded + enum store_search_text. Only the first
 * STORE_SEARCH_HEAD bytes of a text are in it. `searched.through` is the place up to which runs are in the index; what
 * was recorded later is searched without it, so an index that lags behind costs time and hides nothing.
 *
 * A content that is erased leaves the index in the same transaction. FTS5 then still has its trigrams in older segments
 * of its tables until these are merged: `searched.stale` says that they have to be, and store_search_purge does it.
 */
#pragma once

#include "lib/base/buf.h"
#include "store_execution.h"

#define STORE_SEARCH_HEAD     STORE_INLINE_MAX
#define STORE_SEARCH_TRIGRAMS 32 /* of a text that is looked for; the rows that have them are looked through */

enum store_search_text { STORE_SEARCH_CODE, STORE_SEARCH_STDOUT, STORE_SEARCH_STDERR, STORE_SEARCH_TEXTS };

/* Brings the index up to date, in transactions of few milliseconds. */
int store_search_fill(struct store *store, struct err *err);
/* Merges the index where erased words are left in it; the same. */
int store_search_purge(struct store *store, struct err *err);

/* Before the row loses its texts: takes them out of the index. `what`: "output" or "content". */
int store_txn_search_forget(struct store_txn *txn, const char *id, const char *what, struct err *err);

/* The query that finds candidates for a text; false: the index does not help (fewer than three characters, not UTF-8).
 */
bool store_search_query(const char *text, struct buf *ret);
/* Does the code (all of it), or the first STORE_SEARCH_HEAD bytes of an output, have the text? */
int store_search_has(struct store *store, const struct store_execution *execution, const char *text, bool output_too,
		     bool *ret, struct err *err);
