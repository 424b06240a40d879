/*
 * store_audit_rows.c - what entries must say of runs and of their calls, read in one pass over the tables.
 *
 * A query for each entry costs more than everything else that a verifier does with it. So the rows are read once, in
 * the order of their ids, and of what an entry must say of each a sum is kept: 61 bits in a hash table. An entry whose
 * own sum is there fits its row. What is not found there is asked by a query (store_audit_expected), which names what
 * differs.
 *
 * The sum is a polynomial at a random point, modulo a prime. The point is known to nobody before the process ends, so
 * no row can be made to have the sum of another's: two different texts of n bytes have the same sum at n / 7 of 2^61
 * points or fewer.
 *
 * The same table says whether each row has its entries. Where every entry found its row, none found it twice, and no
 * row is left that should have been found, the rules of store_audit_check.c that ask this for each row are not applied.
 * Where anything does not fit they are, and name it.
 */
#include <sqlite3.h>
#include <string.h>

#include "lib/base/util.h"
#include "store_audit_row.h"
#include "store_audit_scan.h"

#define ROWS_ROOM_FIRST 1024
#define ROWS_BETWEEN    256 /* that are read between two reports of progress */

#define PRIME ((UINT64_C(1) << 61) - 1)
#define DIGIT 7 /* bytes */

/* Flags in the place of the sum's last bits. */
#define SLOT_TAKEN UINT64_C(1)
#define SLOT_DUE   UINT64_C(2) /* an entry must say this */
#define SLOT_FOUND UINT64_C(4) /* an entry says it */
#define SLOT_FLAGS UINT64_C(7)

struct store_audit_rows {
	uint64_t *slots; /* `room` of them, a power of two, at most half taken */
	size_t room, taken;
	int64_t due;       /* rows that no entry has named yet and that should be named */
	int64_t began;     /* when the log began; what is older may have no entries */
	bool odd;          /* something does not fit */
	uint64_t point[2]; /* its square, and it */
};

/* -------- the table ----------------------------------------------------------------------------------- */

/* The slot of the sum, or the free one where it would be. */
static uint64_t *place(const struct store_audit_rows *rows, uint64_t sum)
{
	size_t at = (sum / (SLOT_FLAGS + 1)) & (rows->room - 1);

	while ((rows->slots[at] & SLOT_TAKEN) && (rows->slots[at] & ~SLOT_FLAGS) != (sum & ~SLOT_FLAGS))
		at = (at + 1) & (rows->room - 1);
	return &rows->slots[at];
}

static void grow(struct store_audit_rows *rows, size_t room)
{
	uint64_t *old = rows->slots;
	const size_t had = rows->room;

	rows->room = room;
	rows->slots = xcalloc(room, sizeof(*rows->slots));
	for (size_t i = 0; i < had; i++)
		if (old[i] & SLOT_TAKEN)
			*place(rows, old[i]) = old[i];
	free(old);
}

static void keep(struct store_audit_rows *rows, uint64_t sum, bool due)
{
	if (2 * rows->taken >= rows->room)
		grow(rows, 2 * rows->room);
	uint64_t *slot = place(rows, sum);

	if (*slot & SLOT_TAKEN) {
		rows->odd = true;
		return;
	}
	*slot = sum | SLOT_TAKEN | (due ? SLOT_DUE : 0);
	rows->taken++;
	rows->due += due;
}

/* -------- what is said -------------------------------------------------------------------------------- */

struct part {
	const char *text;
	size_t length;
};
enum { PART_KIND, PART_OBJECT, PART_FACTS, PART_PRINCIPAL, PART_ACTOR, PART_DETAILS, PARTS };

/* One step of the polynomial, for two digits below 2^56. */
static uint64_t add_digits(const struct store_audit_rows *rows, uint64_t sum, uint64_t high, uint64_t low)
{
	const unsigned __int128 whole =
		(unsigned __int128)sum * rows->point[0] + (unsigned __int128)high * rows->point[1] + low;
	const uint64_t folded = (uint64_t)(whole & PRIME) + (uint64_t)(whole >> 61);

	return (folded & PRIME) + (folded >> 61); /* at most PRIME + 1 */
}

static uint64_t digit(const char *at)
{
	uint64_t bytes;

	memcpy(&bytes, at, sizeof(bytes));
	return bytes & ((UINT64_C(1) << (8 * DIGIT)) - 1);
}

/* With its length before it, so that no two lists of parts are one text. */
static uint64_t add_part(const struct store_audit_rows *rows, uint64_t sum, const struct part *part)
{
	const char *at = part->text;
	size_t left = part->length;
	char rest[2 * DIGIT + 1] = "";

	sum = add_digits(rows, sum, part->length, 0);
	for (; left > 2 * DIGIT; left -= 2 * DIGIT, at += 2 * DIGIT)
		sum = add_digits(rows, sum, digit(at), digit(at + DIGIT));
	memcpy(rest, at, left);
	return add_digits(rows, sum, digit(rest), digit(rest + DIGIT));
}

/* Above the flags, which are 0. */
static uint64_t sum_parts(const struct store_audit_rows *rows, const struct part parts[PARTS])
{
	uint64_t sum = 0;

	for (int i = 0; i < PARTS; i++)
		sum = add_part(rows, sum, &parts[i]);
	return sum % PRIME * (SLOT_FLAGS + 1);
}

static struct part part_of(const char *text)
{
	return (struct part){text, strlen(text)};
}

/* Takes the entry over. `erased`: its details are gone. */
static int keep_entry(struct store_audit_reader *reader, struct store_audit *entry, bool erased, bool due,
		      struct err *err)
{
	char principal[ID_SIZE];
	int result = store_audit_principal_of(reader, entry->owner, principal, err);

	store_audit_close_details(&entry->details);
	if (result == 0) {
		const struct part parts[PARTS] = {
			[PART_KIND] = part_of(store_audit_kind(entry->kind)),
			[PART_OBJECT] = part_of(entry->object),
			[PART_FACTS] = {entry->facts.data, entry->facts.length},
			[PART_PRINCIPAL] = part_of(principal),
			[PART_ACTOR] = part_of(entry->actor != NULL ? entry->actor : ""),
			[PART_DETAILS] = {entry->details.data, erased ? 0 : entry->details.length},
		};

		keep(reader->rows, sum_parts(reader->rows, parts), due);
	}
	store_audit_clear(entry);
	return result;
}

bool store_audit_rows_fit(struct store_audit_reader *reader, const struct store_audit_found *found,
			  const struct store_audit_parts *said)
{
	struct store_audit_rows *rows = reader->rows;
	const bool by_token = said->actor_length > 6 && memcmp(said->actor, "token:", 6) == 0;
	struct part parts[PARTS] = {
		[PART_KIND] = part_of(found->kind),
		[PART_OBJECT] = part_of(found->object),
		[PART_FACTS] = {said->facts, said->facts_length},
		[PART_PRINCIPAL] = {said->principal, said->principal_length},
		[PART_ACTOR] = {said->actor, by_token ? said->actor_length : 0},
		[PART_DETAILS] = {found->detail, found->salt != NULL ? found->detail_length : 0},
	};

	if (rows == NULL)
		return false;
	uint64_t *slot = place(rows, sum_parts(rows, parts));

	if (!(*slot & SLOT_TAKEN) && by_token) { /* a row that names no token may be anybody's */
		parts[PART_ACTOR].length = 0;
		slot = place(rows, sum_parts(rows, parts));
	}
	if (!(*slot & SLOT_TAKEN) || (*slot & SLOT_FOUND)) {
		rows->odd = true; /* what is said twice fits, and a rule names it */
		return (*slot & SLOT_TAKEN) != 0;
	}
	rows->due -= (*slot & SLOT_DUE) != 0;
	*slot |= SLOT_FOUND;
	return true;
}

bool store_audit_rows_odd(const struct store_audit_reader *reader)
{
	return reader->rows == NULL || reader->rows->odd || reader->rows->due > 0;
}

/* -------- the pass ------------------------------------------------------------------------------------ */

/* What entries of one kind say of runs. */
struct side {
	struct store_audit_reader *reader;
	enum store_audit_kind kind;
	struct query row, files; /* runs; which of them have files of this phase, both in the order of ids */
	int has_files;           /* the query stands on such a run; 0: no more */
};

static void sides_end(struct side (*sides)[2])
{
	for (int i = 0; i < 2; i++) {
		query_end(&(*sides)[i].row);
		query_end(&(*sides)[i].files);
	}
}
#define auto_sides __attribute__((cleanup(sides_end)))

static struct side side_begin(struct store_audit_reader *reader, enum store_audit_kind kind)
{
	const bool begin = kind == STORE_AUDIT_RUN_BEGIN;

	return (struct side){
		.reader = reader,
		.kind = kind,
		.row = query_begin(reader->conn, begin ? SQL_AUDIT_BEGIN_ROWS : SQL_AUDIT_END_ROWS),
		.files = query_begin(reader->conn, begin ? SQL_AUDIT_BEFORE_FILES : SQL_AUDIT_AFTER_FILES),
	};
}

/* Brings the runs with files up to this one: 1: it has some. */
static int find_files(struct side *side, const char *id, struct err *err)
{
	int order = 1;

	while (side->has_files > 0 && (order = strcmp(query_text(&side->files, AUDIT_PHASE_EXECUTION), id)) < 0) {
		side->reader->rows->odd = true; /* of no run that is there */
		side->has_files = query_next(&side->files, err);
	}
	if (side->has_files < 0)
		return side->has_files;
	return side->has_files > 0 && order == 0;
}

static int read_run(struct side *side, struct err *err)
{
	struct store_audit_reader *reader = side->reader;
	struct query *row = &side->row;
	const bool begin = side->kind == STORE_AUDIT_RUN_BEGIN;
	const int64_t at = query_int(row, begin ? AUDIT_BEGIN_CREATED : AUDIT_END_FINISHED);
	const bool erased = !query_is_null(row, AUDIT_ROW_ERASED);
	char actor[STORE_AUDIT_ACTOR_SIZE];
	struct store_audit entry;
	int result = find_files(side, query_text(row, AUDIT_ROW_ID), err);

	if (result < 0 || (!begin && streq(query_text(row, AUDIT_END_STATE), "running")))
		return MIN(result, 0);
	if (result > 0) {
		side->has_files = query_next(&side->files, err);
		result = store_audit_from_run(reader->conn, row, side->kind, actor, &entry, err);
	} else {
		store_audit_from_run_alone(row, side->kind, actor, &entry);
	}
	if (result >= 0)
		return keep_entry(reader, &entry, erased, at >= reader->rows->began, err);
	store_audit_clear(&entry);
	return result;
}

/* Both kinds of one run, one after the other: its page is read once. */
static int read_both(struct side sides[2], struct err *err)
{
	int found = 1, result = 0;

	for (int i = 0; i < 2 && found > 0 && result == 0; i++) {
		found = query_next(&sides[i].row, err);
		if (found > 0)
			result = read_run(&sides[i], err);
	}
	return result < 0 ? result : found;
}

static int read_runs(struct store_audit_reader *reader, const struct store_audit_progress *progress, struct err *err)
{
	auto_sides struct side sides[2] = {side_begin(reader, STORE_AUDIT_RUN_BEGIN),
					   side_begin(reader, STORE_AUDIT_RUN_END)};
	int64_t done = 0, total = 0;
	int found = store_audit_scan_number(reader, "SELECT count(*) FROM execution", &total, err);

	/* Two entries a run, and room for as many again. */
	while (found == 0 && reader->rows->room / 4 < (size_t)total)
		grow(reader->rows, 2 * reader->rows->room);
	for (int i = 0; i < 2 && found >= 0; i++)
		found = sides[i].has_files = query_next(&sides[i].files, err);
	if (found < 0)
		return found;
	while ((found = read_both(sides, err)) > 0)
		if (++done % ROWS_BETWEEN == 0 && (found = progress->step(progress->arg, done, total)) < 0)
			break;
	for (int i = 0; i < 2; i++)
		reader->rows->odd |= sides[i].has_files > 0;
	return found;
}

int store_audit_rows_read(struct store_audit_reader *reader, const struct store_audit_progress *progress,
			  struct err *err)
{
	reader->rows = xcalloc(1, sizeof(*reader->rows));
	uint64_t *point = reader->rows->point;
	int found;

	random_bytes(&point[1], sizeof(point[1]));
	point[1] = point[1] % (PRIME - 2) + 2;
	point[0] = (uint64_t)((unsigned __int128)point[1] * point[1] % PRIME);
	grow(reader->rows, ROWS_ROOM_FIRST);
	int result = store_audit_scan_number(reader, "SELECT " STORE_AUDIT_BEGAN, &reader->rows->began, err);

	if (result == 0)
		result = read_runs(reader, progress, err);
	auto_query struct query row = query_begin(reader->conn, SQL_AUDIT_CALL_ROWS);

	while (result == 0 && (found = query_next(&row, err)) != 0) {
		struct store_audit entry;

		if (found < 0)
			return found;
		store_audit_from_call(&row, &entry);
		result = keep_entry(reader, &entry, false, true, err);
	}
	return result;
}

void store_audit_rows_free(struct store_audit_rows *rows)
{
	if (rows == NULL)
		return;
	free(rows->slots);
	free(rows);
}
