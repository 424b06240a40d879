/*
 * store_search.h - the index by which texts are found in code and output: the table `search` (FTS5, trigrams), kept by
 * the garbage collection and never by a run.
 *
 * An entry of the index is a piece of a text, so that none takes long: rowid is STORE_SEARCH_PLACES ×
 * execution.recorded + STORE_SEARCH_PIECES × enum store_search_text + the number of the piece. Pieces overlap by as
 * much as a query asks for. Only the first STORE_SEARCH_HEAD bytes of a text are in it. `searched.through` is the place
 * up to which runs are in the index; what was recorded later is searched without it, so an index that lags behind costs
 * time and hides nothing.
 *
 * A content leaves the index before it is erased, the last piece in the same transaction. A process that is killed in
 * between leaves a run that the index does not find by these pieces. FTS5 then still has their trigrams in older
 * segments of its tables until these are merged: `searched.stale` says that they have to be, and store_search_purge
 * does it. A content that cannot be read any more cannot be taken out by itself: store_search_purge removes the whole
 * index then, and the next store_search_fill makes it anew.
 */
#pragma once

#include "lib/base/buf.h"
#include "lib/store/record/store_execution.h"

#define STORE_SEARCH_HEAD     STORE_INLINE_MAX
#define STORE_SEARCH_TRIGRAMS 32 /* of a text that is looked for; the rows that have them are looked through */

#define STORE_SEARCH_PIECE    4096
#define STORE_SEARCH_OVERLAP  (4 * (STORE_SEARCH_TRIGRAMS + 2)) /* trigrams of characters of four bytes */
#define STORE_SEARCH_PIECES   (STORE_SEARCH_HEAD / STORE_SEARCH_PIECE)
#define STORE_SEARCH_PLACES   64 /* of a run; also in STORE_SQL_CANDIDATES */

enum store_search_text { STORE_SEARCH_CODE, STORE_SEARCH_STDOUT, STORE_SEARCH_STDERR, STORE_SEARCH_TEXTS };

/* Brings the index up to date, in transactions of few milliseconds. */
int store_search_fill(struct store *store, struct err *err);
/* Recorded runs that the index does not know yet. */
int store_search_backlog(struct store *store, int64_t *ret, struct err *err);
/* Merges the index where erased words are left in it; the same. */
int store_search_purge(struct store *store, struct err *err);
/* The same, if so much was taken out since the last time that merging would take long later. */
int store_search_relieve(struct store *store, struct err *err);

struct store_search_forget {
	const char *id, *what; /* "output" or "content" */
	int64_t until_us;      /* of the monotonic clock */
};
/* Before the row loses its texts: takes them out of the index. *ret_more: some are left, the next transaction has to go
 * on. */
int store_txn_search_forget(struct store_txn *txn, const struct store_search_forget *forget, bool *ret_more,
			    struct err *err);

/* The query that finds candidates for a text; false: the index does not help (fewer than three characters, not UTF-8).
 */
bool store_search_query(const char *text, struct buf *ret);
/* Does the code (all of it), or the first STORE_SEARCH_HEAD bytes of an output, have the text? */
int store_search_has(struct store *store, const struct store_execution *execution, const char *text, bool output_too,
		     bool *ret, struct err *err);

_Static_assert(STORE_SEARCH_TEXTS * STORE_SEARCH_PIECES <= STORE_SEARCH_PLACES, "pieces of a run have places");
