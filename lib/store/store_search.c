/*
 * store_search.c - see store_search.h.
 *
 * The index keeps no text (content='', detail=none), so an entry is removed by giving FTS5 the very text that it was
 * made from: head_of makes that text, both times out of the same bytes. Where they cannot be read any more (a content
 * whose file was altered or removed) the whole index is emptied and filled again: an entry that stays would keep what
 * was to be forgotten.
 */
#include "store_search.h"

#include <string.h>
#include <unistd.h>

#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "store_blob.h"
#include "store_txn.h"

#define MERGE_PAGES 32 /* of 4 KB, in one transaction */
#define TRIGRAM     3

/* -------- texts --------------------------------------------------------------------------------------- */

static int read_head(struct store *store, const char *sha256, struct buf *ret, struct err *err)
{
	auto_free char *head = xmalloc(STORE_SEARCH_HEAD);
	auto_close int fd = -1;
	int64_t size;
	ssize_t got = 1;
	int failed = store_blob_open(store, sha256, &fd, &size, err);

	while (failed == 0 && got > 0 && ret->length < STORE_SEARCH_HEAD) {
		got = read(fd, head, STORE_SEARCH_HEAD - ret->length);
		if (got > 0)
			buf_add(ret, head, (size_t)got);
	}
	return failed == 0 && got < 0 ? err_errno(err, "reading blob %s", sha256) : failed;
}

/* What is indexed of a text: its beginning, up to the end of a character; the tokenizer stops at a NUL. */
static int head_of(struct store *store, struct query *q, int column, struct buf *ret, struct err *err)
{
	const char *sha256 = query_text(q, column + 1);
	size_t length = 0;
	const char *data = query_bytes(q, column, &length);
	int failed = 0;

	buf_reset(ret);
	if (data != NULL)
		buf_add(ret, data, MIN(length, (size_t)STORE_SEARCH_HEAD));
	else if (sha256[0] != '\0')
		failed = read_head(store, sha256, ret, err);
	ret->length = utf8_cut(ret->data, ret->length, STORE_SEARCH_HEAD);
	for (size_t i = 0; i < ret->length; i++)
		if (ret->data[i] == '\0')
			ret->data[i] = ' ';
	return failed;
}

static int entry(struct store_txn *txn, enum store_sql which, int64_t place, const struct buf *text, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, which);

	query_bind_int(&q, ":place", place);
	query_bind_chars(&q, ":text", text->data, text->length);
	return query_run(&q, NULL, err);
}

/* Puts the texts of a row (SEARCH_… columns) into the index, or takes them out; *ret_lost: one could not be read. */
static int entries(struct store_txn *txn, struct query *row, enum store_sql which, enum store_search_text first,
		   bool *ret_lost, struct err *err)
{
	auto_buf struct buf text = {0};
	struct err lost = ERR_INIT;

	*ret_lost = false;
	buf_init(&text, STORE_SEARCH_HEAD);
	for (int i = (int)first; i < STORE_SEARCH_TEXTS; i++) {
		int failed = 0;

		if (head_of(txn->store, row, SEARCH_TEXTS_BEGIN + 2 * i, &text, &lost) < 0)
			*ret_lost = true; /* verify reports it */
		else if (text.length >= TRIGRAM)
			failed = entry(txn, which, 4 * query_int(row, SEARCH_RECORDED) + i, &text, err);
		if (failed < 0)
			return failed;
	}
	return 0;
}

/* -------- filling ------------------------------------------------------------------------------------- */

static int move_on(struct store_txn *txn, int64_t through, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_SEARCH_MOVE_ON);

	query_bind_int(&q, ":through", through);
	return query_run(&q, NULL, err);
}

struct filling {
	bool more;
};

static int fill_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct filling *filling = arg;
	const int64_t until = clock_monotonic_us() + STORE_BUDGET_US;
	auto_query struct query row = query_begin(txn->conn, SQL_SEARCH_NEXT);
	int64_t through = 0;
	int failed = 0, found = 1;

	while (failed == 0 && clock_monotonic_us() < until && (found = query_next(&row, err)) > 0) {
		bool lost;

		through = query_int(&row, SEARCH_RECORDED);
		failed = entries(txn, &row, SQL_SEARCH_ADD, STORE_SEARCH_CODE, &lost, err);
	}
	filling->more = found > 0;
	if (failed < 0 || found < 0)
		return MIN(failed, found);
	return through > 0 ? move_on(txn, through, err) : 0;
}

int store_search_fill(struct store *store, struct err *err)
{
	struct filling filling = {.more = true};
	int failed = 0;

	while (failed == 0 && filling.more)
		failed = store_commit_gently(store, fill_work, &filling, err);
	return failed < 0 ? err_wrap(err, "filling the index of texts") : 0;
}

/* -------- forgetting ---------------------------------------------------------------------------------- */

static int run(struct store_txn *txn, enum store_sql which, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, which);

	return query_run(&q, NULL, err);
}

static int start_anew(struct store_txn *txn, struct err *err)
{
	int failed = run(txn, SQL_SEARCH_EMPTY, err);

	return failed < 0 ? failed : move_on(txn, 0, err);
}

enum { FRESH, STALE, MERGING }; /* searched.stale */

static int set_state(struct store_txn *txn, int state, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_SEARCH_STATE);

	query_bind_int(&q, ":state", state);
	return query_run(&q, NULL, err);
}

int store_txn_search_forget(struct store_txn *txn, const char *id, const char *what, struct err *err)
{
	auto_query struct query row = query_begin(txn->conn, SQL_SEARCH_ROW);

	const enum store_search_text first = streq(what, "output") ? STORE_SEARCH_STDOUT : STORE_SEARCH_CODE;
	bool lost = false;

	query_bind_text(&row, ":id", id);
	int found = query_next(&row, err);

	if (found <= 0) /* it runs, or the index has not come that far */
		return found;
	found = entries(txn, &row, SQL_SEARCH_REMOVE, first, &lost, err);
	if (found == 0 && lost)
		found = start_anew(txn, err);
	return found < 0 ? found : set_state(txn, STALE, err);
}

static int merge(struct store_txn *txn, int64_t pages, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_SEARCH_MERGE);

	query_bind_int(&q, ":pages", pages);
	return query_run(&q, NULL, err);
}

/* A negative number of pages begins to merge all of the index, further calls go on with it; one that changed nothing
 * found that it is done. */
static int purge_work(struct store_txn *txn, void *arg, struct err *err)
{
	bool *more = arg;
	auto_query struct query q = query_begin(txn->conn, SQL_SEARCH_IS_STALE);
	int found = query_next(&q, err);
	const int64_t state = found > 0 ? query_int(&q, 0) : FRESH;

	*more = state != FRESH;
	if (found < 0 || state == FRESH)
		return found < 0 ? found : 0;
	const int64_t before = store_conn_changes(txn->conn);
	int failed = merge(txn, state == STALE ? -MERGE_PAGES : MERGE_PAGES, err);

	if (failed < 0)
		return failed;
	if (state == STALE)
		return set_state(txn, MERGING, err);
	return store_conn_changes(txn->conn) - before < 2 ? set_state(txn, FRESH, err) : 0;
}

int store_search_purge(struct store *store, struct err *err)
{
	bool more = true;
	int failed = 0;

	while (failed == 0 && more)
		failed = store_commit_gently(store, purge_work, &more, err);
	return failed < 0 ? err_wrap(err, "merging the index of texts") : 0;
}

/* -------- looking ------------------------------------------------------------------------------------- */

bool store_search_query(const char *text, struct buf *ret)
{
	const size_t length = strlen(text);
	const char *at = text, *end = text + length;
	int trigrams = 0;

	if (!utf8_valid(text, length))
		return false;
	for (; at < end && trigrams < STORE_SEARCH_TRIGRAMS; at += utf8_length(at, (size_t)(end - at))) {
		const char *stop = at;

		for (int i = 0; i < TRIGRAM && stop != NULL; i++)
			stop = stop < end ? stop + utf8_length(stop, (size_t)(end - stop)) : NULL;
		if (stop == NULL)
			break;
		buf_puts(ret, trigrams++ > 0 ? " AND \"" : "\"");
		for (const char *c = at; c < stop; c++) {
			if (*c == '"')
				buf_putc(ret, '"');
			buf_putc(ret, *c);
		}
		buf_putc(ret, '"');
	}
	return trigrams > 0;
}

static bool has(const char *data, size_t length, const char *text)
{
	return data != NULL && memmem(data, length, text, strlen(text)) != NULL;
}

static int code_has(struct store *store, const struct store_text *code, const char *text, bool *ret, struct err *err)
{
	auto_free char *data = NULL;
	size_t length = 0;

	if (code->blob[0] == '\0') {
		*ret = has(code->data, code->length, text);
		return 0;
	}
	int failed = store_text_read(store, code, &data, &length, err);

	if (failed == 0)
		*ret = has(data, length, text);
	return failed;
}

static int output_has(struct store *store, const struct store_text *output, const char *text, bool *ret,
		      struct err *err)
{
	auto_buf struct buf head = {0};

	if (output->blob[0] == '\0') {
		*ret = has(output->data, output->length, text);
		return 0;
	}
	buf_init(&head, STORE_SEARCH_HEAD);
	int failed = read_head(store, output->blob, &head, err);

	if (failed == 0)
		*ret = has(head.data, head.length, text);
	return failed;
}

int store_search_has(struct store *store, const struct store_execution *execution, const char *text, bool output_too,
		     bool *ret, struct err *err)
{
	bool found = false;
	int failed = code_has(store, &execution->code, text, &found, err);

	if (failed == 0 && output_too && !found)
		failed = output_has(store, &execution->stdout_text, text, &found, err);
	if (failed == 0 && output_too && !found)
		failed = output_has(store, &execution->stderr_text, text, &found, err);
	*ret = found;
	return failed;
}
