/*
 * store_undo.c - see store_undo.h.
 *
 * All files are removed by one statement and put by another one: with one for each file SQLite's journal of savepoints
 * holds the writer four times as long, and everybody's calls wait for the writer. Removals come first, so that a file
 * that takes the place of a folder meets no obstacle.
 */
#include "store_undo.h"

#include <sys/stat.h>

#include "lib/base/util.h"
#include "lib/store/blob/store_pack.h"
#include "lib/store/db/store_txn.h"
#include "store_record_internal.h"

static struct query begin(struct store_conn *conn, enum store_sql statement, const struct store_undo *state)
{
	struct query q = query_begin(conn, statement);

	query_bind_text(&q, ":id", state->execution);
	query_bind_int(&q, ":after", state->after);
	return q;
}

int store_undo_check(struct store *store, const struct store_undo *state, struct err *err)
{
	auto_reader struct store_reader reader = {0};
	int failed = store_reader_take(store, &reader, err), found;

	if (failed < 0)
		return failed;
	auto_query struct query q = begin(reader.conn, SQL_UNDO_FILES, state);

	while ((found = query_next(&q, err)) > 0) {
		struct store_file file;
		struct stat status;

		store_file_read(&q, &file);
		if (store_content_stat(store->blobs_fd, file.blob, &status) < 0)
			return err_set(err, ERR_NOT_FOUND, "blob %s is not in the blob folder", file.blob);
	}
	return found;
}

static int check_room(struct store_txn *txn, const char *owner, int64_t conversation, const struct store_undo *state,
		      struct err *err)
{
	auto_query struct query q = begin(txn->conn, SQL_UNDO_MORE, state);

	query_bind_int(&q, ":conversation", conversation);
	query_bind_text(&q, ":owner", owner);
	query_bind_int(&q, ":row", STORE_FILE_BYTES);
	int found = query_next(&q, err);

	if (found < 0)
		return found;
	const struct store_more more = {.owner = owner, .bytes = query_int(&q, 0)};

	return store_txn_room(txn, &more, err);
}

int store_txn_undo(struct store_txn *txn, const char *owner, int64_t conversation, const struct store_undo *state,
		    const struct store_undo_watch *watch, struct err *err)
{
	const struct {
		enum store_sql statement;
		void (*each)(void *arg, const struct store_file *file);
	} steps[] = {{SQL_UNDO_REMOVE, watch->removed}, {SQL_UNDO_PUT, watch->put}};
	auto_query struct query whole = query_begin(txn->conn, SQL_UNDO_WHOLE);

	query_bind_text(&whole, ":id", state->execution);
	int failed = query_next(&whole, err);

	if (failed <= 0) /* erased since its caller looked */
		return failed < 0 ? failed
				  : err_set(err, ERR_NOT_FOUND, "the files of run %s were removed meanwhile",
					    state->execution);
	failed = 0;
	if (txn->store->retention.owner_bytes > 0)
		failed = check_room(txn, owner, conversation, state, err);
	for (size_t i = 0; failed == 0 && i < ARRAY_SIZE(steps); i++) {
		auto_query struct query q = begin(txn->conn, steps[i].statement, state);

		query_bind_int(&q, ":conversation", conversation);
		while ((failed = query_next(&q, err)) > 0) {
			struct store_file file;

			store_file_read(&q, &file);
			steps[i].each(watch->arg, &file);
		}
	}
	return failed;
}
