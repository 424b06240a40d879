/*
 * store_search.c - see store_search.h.
 *
 * The index keeps no text (content='', detail=none), so an entry is removed by giving FTS5 the very text that it was
 * made from: head_of makes that text, both times out of the same bytes. Where they cannot be read any more (a content
 * whose file was altered or removed) the whole index is emptied and filled again: an entry that stays would keep what
 * was to be forgotten. FTS5 empties its tables in one step, 160 ms of processor for 100 MB of text. So their rows are
 * removed here, some in each transaction. In between the index is a damaged one, and nobody asks FTS5: through is 0,
 * STORE_SQL_MATCH is the empty phrase, and nothing is put in, taken out or merged.
 *
 * FTS5 merges segments on its own when a transaction ends, as many at once as it likes; the schema turns that off, and
 * it is done here, in steps. FTS5 bounds a step by the pages that it writes. Of entries that go nothing is written,
 * however many pages they are read from, so their number is bounded, too: behind DEBT bytes of them the index is merged
 * before the next are taken out.
 */
#include "store_search.h"

#include <string.h>
#include <unistd.h>

#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "lib/store/db/store_txn.h"
#include "lib/store/record/store_execution.h"
#include "store_blob.h"

#define MERGE_PAGES 16 /* of 4 KB; how many are read for them is bounded by DEBT */
#define DEBT	    (256 * 1024)
#define DEBT_EACH   256 /* an entry costs more than its bytes */
#define TRIGRAM	    3

/* FRESH to MERGING are values of searched.stale; EMPTYING is STALE with a debt that nothing else can make. */
enum state { FRESH, STALE, MERGING, EMPTYING };

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

/* What is indexed of a text: its beginning, up to the end of a character. Nobody can look for a NUL, at which the
 * tokenizer stops, or for bytes that are not UTF-8. */
static int head_of(struct store *store, struct query *q, int column, struct buf *ret, struct err *err)
{
	const char *sha256 = query_text(q, column + 1);
	size_t length = 0, step;
	const char *data = query_bytes(q, column, &length);
	int failed = 0;

	buf_reset(ret);
	if (data != NULL)
		buf_add(ret, data, MIN(length, (size_t)STORE_SEARCH_HEAD));
	else if (sha256[0] != '\0')
		failed = read_head(store, sha256, ret, err);
	ret->length = utf8_cut(ret->data, ret->length, STORE_SEARCH_HEAD);
	for (size_t i = 0; i < ret->length; i += step) {
		step = utf8_length(ret->data + i, ret->length - i);
		if (step == 0 || ret->data[i] == '\0') {
			ret->data[i] = ' ';
			step = 1;
		}
	}
	return failed;
}

struct piece {
	const char *data;
	size_t length;
};

/* The i-th of a head; it begins and ends between characters. */
static struct piece piece_of(const struct buf *head, size_t i)
{
	size_t from = i * STORE_SEARCH_PIECE;

	while (from < head->length && (head->data[from] & 0xc0) == 0x80)
		from++;
	const char *data = head->data + from;
	const size_t most = (i + 1) * STORE_SEARCH_PIECE + STORE_SEARCH_OVERLAP - from;

	return (struct piece){data, utf8_cut(data, head->length - from, most)};
}

/* The end of three characters; NULL: there are fewer. */
static const char *trigram_end(const char *at, const char *end)
{
	for (int i = 0; i < TRIGRAM && at != NULL; i++)
		at = at < end ? at + utf8_length(at, (size_t)(end - at)) : NULL;
	return at;
}

static void add_trigram(struct buf *query, const char *at, const char *stop)
{
	buf_putc(query, '"');
	for (; at < stop; at++) {
		if (*at == '"')
			buf_putc(query, '"');
		buf_putc(query, *at);
	}
	buf_putc(query, '"');
}

/* -------- entries ------------------------------------------------------------------------------------- */

/* What one transaction does: until its time is over, but at least one piece. */
struct pass {
	enum store_sql which; /* SQL_SEARCH_ADD or _REMOVE */
	enum store_search_text first;
	int64_t until_us, weight;
	bool more; /* pieces are left */
	bool lost; /* a text could not be read; verify reports it */
};

/* 1: the index has the piece. */
static int has_entry(struct store_txn *txn, int64_t place, const struct piece *piece, const char *stop, struct err *err)
{
	auto_buf struct buf first = {0};

	buf_init(&first, SIZE_MAX);
	add_trigram(&first, piece->data, stop);
	auto_query struct query q = query_begin(txn->conn, SQL_SEARCH_HAS);

	query_bind_chars(&q, ":first", first.data, first.length);
	query_bind_int(&q, ":place", place);
	return query_next(&q, err);
}

/* The index is asked because an earlier transaction may have come so far and no farther. */
static int entry(struct store_txn *txn, struct pass *pass, int64_t place, const struct piece *piece, struct err *err)
{
	const char *stop = trigram_end(piece->data, piece->data + piece->length);

	if (stop == NULL)
		return 0;
	const int found = has_entry(txn, place, piece, stop, err);

	if (found < 0 || (found > 0) == (pass->which == SQL_SEARCH_ADD))
		return MIN(found, 0);
	auto_query struct query q = query_begin(txn->conn, pass->which);

	query_bind_int(&q, ":place", place);
	query_bind_chars(&q, ":text", piece->data, piece->length);
	pass->weight += (int64_t)piece->length + DEBT_EACH;
	return query_run(&q, NULL, err);
}

static int entries_of_text(struct store_txn *txn, struct pass *pass, int64_t place, const struct buf *head,
			   struct err *err)
{
	int failed = 0;

	for (size_t i = 0; failed == 0 && i * STORE_SEARCH_PIECE < head->length; i++) {
		const struct piece piece = piece_of(head, i);

		pass->more = pass->weight > 0 && clock_monotonic_us() >= pass->until_us;
		if (pass->more)
			return 0;
		failed = entry(txn, pass, place + (int64_t)i, &piece, err);
	}
	return failed;
}

/* Puts the texts of a row (SEARCH_… columns) into the index, or takes them out. */
static int entries(struct store_txn *txn, struct pass *pass, struct query *row, struct err *err)
{
	auto_buf struct buf head = {0};
	struct err lost = ERR_INIT;
	int failed = 0;

	pass->lost = false;
	buf_init(&head, STORE_SEARCH_HEAD);
	for (int i = (int)pass->first; failed == 0 && !pass->more && i < STORE_SEARCH_TEXTS; i++) {
		const int64_t place =
			STORE_SEARCH_PLACES * query_int(row, SEARCH_RECORDED) + STORE_SEARCH_PIECES * (int64_t)i;

		if (head_of(txn->store, row, SEARCH_TEXTS_BEGIN + 2 * i, &head, &lost) < 0)
			pass->lost = true;
		else
			failed = entries_of_text(txn, pass, place, &head, err);
	}
	return failed;
}

/* -------- state --------------------------------------------------------------------------------------- */

static int set_state(struct store_txn *txn, enum state state, int64_t debt, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_SEARCH_STATE);

	query_bind_int(&q, ":state", state == EMPTYING ? STALE : state);
	query_bind_int(&q, ":debt", state == EMPTYING ? STORE_SEARCH_ALL : debt);
	return query_run(&q, NULL, err);
}

/* STALE with a debt below this is FRESH. */
static int read_state(struct store_txn *txn, int64_t debt, enum state *ret_state, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_SEARCH_IS_STALE);
	int found = query_next(&q, err);

	*ret_state = found > 0 ? (enum state)query_int(&q, SEARCHED_STALE) : FRESH;
	if (*ret_state == STALE && query_int(&q, SEARCHED_DEBT) >= STORE_SEARCH_ALL)
		*ret_state = EMPTYING;
	else if (*ret_state == STALE && query_int(&q, SEARCHED_DEBT) < debt)
		*ret_state = FRESH;
	return MIN(found, 0);
}

static int move_on(struct store_txn *txn, int64_t through, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_SEARCH_MOVE_ON);

	query_bind_int(&q, ":through", through);
	return query_run(&q, NULL, err);
}

/* -------- emptying ------------------------------------------------------------------------------------ */

static int remove_some(struct store_txn *txn, enum store_sql which, int64_t *ret_gone, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, which);

	return query_run(&q, ret_gone, err);
}

/* The next pages of the index. Behind the last FTS5 itself begins anew, which is quick now. */
static int empty_on(struct store_txn *txn, bool *ret_more, struct err *err)
{
	const int64_t until = clock_monotonic_us() + STORE_BUDGET_US / 2; /* the commit takes as long once more */
	int64_t pages = 0, places = 0;
	int failed;

	do {
		failed = remove_some(txn, SQL_SEARCH_EMPTY_PLACES, &places, err);
		if (failed == 0)
			failed = remove_some(txn, SQL_SEARCH_EMPTY_PAGES, &pages, err);
		*ret_more = pages + places > 0;
	} while (failed == 0 && *ret_more && clock_monotonic_us() < until);
	if (failed == 0 && !*ret_more)
		failed = remove_some(txn, SQL_SEARCH_EMPTY, NULL, err);
	return failed < 0 || *ret_more ? failed : set_state(txn, FRESH, 0, err);
}

/* -------- merging ------------------------------------------------------------------------------------- */

static int merge(struct store_txn *txn, int64_t pages, bool *ret_moved, struct err *err)
{
	const int64_t before = store_conn_changes(txn->conn);
	auto_query struct query q = query_begin(txn->conn, SQL_SEARCH_MERGE);

	query_bind_int(&q, ":pages", pages);
	int failed = query_run(&q, NULL, err);

	*ret_moved = store_conn_changes(txn->conn) - before > 1; /* the statement itself counts as one */
	return failed;
}

/* *ret_more: there may be more to merge. */
static int merge_on(struct store_txn *txn, bool *ret_more, struct err *err)
{
	const int64_t until = clock_monotonic_us() + STORE_BUDGET_US / 2; /* the last step may be a long one */
	int failed;

	do {
		failed = merge(txn, MERGE_PAGES, ret_more, err);
	} while (failed == 0 && *ret_more && clock_monotonic_us() < until);
	return failed;
}

/* -------- filling ------------------------------------------------------------------------------------- */

static int fill_work(struct store_txn *txn, void *arg, struct err *err)
{
	bool *more = arg;
	struct pass pass = {.which = SQL_SEARCH_ADD, .until_us = clock_monotonic_us() + STORE_BUDGET_US};
	auto_query struct query row = query_begin(txn->conn, SQL_SEARCH_NEXT);
	int64_t through = 0;
	enum state state;
	int failed = read_state(txn, 0, &state, err), found = 1;

	if (failed == 0 && state == EMPTYING) { /* another process began to; it is filled afterwards */
		failed = empty_on(txn, more, err);
		*more = true;
		return failed;
	}
	while (failed == 0 && !pass.more && clock_monotonic_us() < pass.until_us &&
	       (found = query_next(&row, err)) > 0) {
		failed = entries(txn, &pass, &row, err);
		if (!pass.more)
			through = query_int(&row, SEARCH_RECORDED);
	}
	*more = found > 0;
	if (failed < 0 || found < 0)
		return MIN(failed, found);
	return through > 0 ? move_on(txn, through, err) : 0;
}

static int settle_work(struct store_txn *txn, void *arg, struct err *err)
{
	bool *more = arg;
	enum state state;
	int failed = read_state(txn, 0, &state, err);

	*more = false;
	return failed < 0 || state == EMPTYING ? failed : merge_on(txn, more, err);
}

/* Each transaction leaves a segment; they are merged on the way, so that a search looks into few. */
int store_search_fill(struct store *store, struct err *err)
{
	bool more = true, unsettled;
	int failed = 0;

	while (failed == 0 && more) {
		failed = store_commit_gently(store, fill_work, &more, err);
		do {
			if (failed == 0)
				failed = store_commit_gently(store, settle_work, &unsettled, err);
		} while (failed == 0 && unsettled);
	}
	return failed < 0 ? err_wrap(err, "filling the index of texts") : 0;
}

int store_search_backlog(struct store *store, int64_t *ret, struct err *err)
{
	auto_read struct query q = store_read(store, SQL_SEARCH_BACKLOG, err);
	int found = query_next(&q, err);

	if (found > 0)
		*ret = MAX(query_int(&q, 0), 0);
	return MIN(found, 0);
}

/* -------- forgetting ---------------------------------------------------------------------------------- */

int store_txn_search_forget(struct store_txn *txn, const struct store_search_forget *forget, bool *ret_more,
			    struct err *err)
{
	struct pass pass = {.which = SQL_SEARCH_REMOVE,
			    .first = streq(forget->what, "output") ? STORE_SEARCH_STDOUT : STORE_SEARCH_CODE,
			    .until_us = forget->until_us};
	enum state state;
	int found = read_state(txn, 0, &state, err);

	*ret_more = false;
	if (found < 0 || state == EMPTYING)
		return found;
	auto_query struct query row = query_begin(txn->conn, SQL_SEARCH_ROW);

	query_bind_text(&row, ":id", forget->id);
	found = query_next(&row, err);

	if (found <= 0) /* it runs */
		return found;
	found = entries(txn, &pass, &row, err);
	if (found == 0 && pass.lost) {
		found = move_on(txn, 0, err);
		return found < 0 ? found : set_state(txn, EMPTYING, 0, err);
	}
	*ret_more = pass.more;
	return found < 0 || pass.weight == 0 ? found : set_state(txn, STALE, pass.weight, err);
}

struct purging {
	int64_t debt; /* below this there is time */
	bool more;
};

/* A negative number of pages begins to merge all of the index, further calls go on with it; one that changed nothing
 * found that it is done. */
static int purge_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct purging *purging = arg;
	enum state state;
	bool moved;
	int failed = read_state(txn, purging->debt, &state, err);

	purging->more = failed == 0 && state != FRESH;
	if (!purging->more)
		return failed;
	if (state == EMPTYING)
		return empty_on(txn, &purging->more, err);
	if (state == STALE) {
		failed = merge(txn, -MERGE_PAGES, &moved, err);
		return failed < 0 ? failed : set_state(txn, MERGING, 0, err);
	}
	failed = merge_on(txn, &moved, err);
	return failed < 0 || moved ? failed : set_state(txn, FRESH, 0, err);
}

static int purge(struct store *store, int64_t debt, struct err *err)
{
	struct purging purging = {.debt = debt, .more = true};
	int failed = 0;

	while (failed == 0 && purging.more)
		failed = store_commit_gently(store, purge_work, &purging, err);
	return failed < 0 ? err_wrap(err, "merging the index of texts") : 0;
}

int store_search_purge(struct store *store, struct err *err)
{
	return purge(store, 0, err);
}

int store_search_relieve(struct store *store, struct err *err)
{
	return purge(store, DEBT, err);
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
		const char *stop = trigram_end(at, end);

		if (stop == NULL)
			break;
		if (trigrams++ > 0)
			buf_puts(ret, " AND ");
		add_trigram(ret, at, stop);
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
