/*
 * audit_prove.c - see audit_prove.h.
 *
 * The tree is computed from all entries that the checkpoint covers, and its root compared with the checkpoint's before
 * anything is written. A proof that was made in another way would be found out by its reader; this one is distinguished
 * from a broken log at once.
 */
#include "audit_prove.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/text.h"
#include "lib/base/util.h"

#define TILE_HEIGHT 8
#define TILE_WIDTH  256

#define OF_OBJECT 4096 /* entries of one object, at most: each is some files */
#define NAME_SIZE 64

struct covered {
	char *note; /* the checkpoint's text; NULL: there is none, and the tree is that of all entries */
	size_t note_length;
	uint64_t size;
	struct audit_hash root, *leaves;
	uint64_t count;
	struct buf *bundles;    /* entries as they are in tiles; NULL: not wanted */
	const char *object;     /* whose entries are wanted, too; NULL: nobody's */
	const int64_t *numbers; /* the entries of these numbers are, in their order */
	size_t n_numbers;
	struct wanted {
		uint64_t index;
		char *kind, *entry, *detail;
		uint8_t salt[SHA256_SIZE];
		bool salted;
	} *wanted;
	size_t n_wanted;
};

static void covered_clear(struct covered *covered)
{
	for (size_t i = 0; i < covered->n_wanted; i++) {
		free(covered->wanted[i].kind);
		free(covered->wanted[i].entry);
		free(covered->wanted[i].detail);
	}
	free(covered->wanted);
	free(covered->note);
	free(covered->leaves);
}
#define auto_covered __attribute__((cleanup(covered_clear)))

static bool is_wanted(const struct covered *covered, const struct store_audit_found *found)
{
	if (covered->object != NULL)
		return streq(found->object, covered->object);
	return covered->n_wanted < covered->n_numbers && found->n == covered->numbers[covered->n_wanted];
}

static void want(struct covered *covered, const struct store_audit_found *found)
{
	covered->wanted = xrealloc(covered->wanted, covered->n_wanted + 1, sizeof(*covered->wanted));
	struct wanted *wanted = &covered->wanted[covered->n_wanted];

	*wanted = (struct wanted){.index = covered->count,
				  .kind = xstrdup(found->kind),
				  .entry = xstrndup(found->entry, found->length),
				  .detail = xstrndup(found->detail, found->detail_length)};
	wanted->salted = found->salt != NULL;
	if (wanted->salted)
		memcpy(wanted->salt, found->salt, sizeof(wanted->salt));
	covered->n_wanted++;
}

static int take(void *arg, const struct store_audit_found *found, struct err *err)
{
	struct covered *covered = arg;

	if (covered->count >= covered->size) {
		if (is_wanted(covered, found))
			return err_set(err, ERR_UNAVAILABLE,
				       "entry %lld is not covered by the checkpoint of %llu entries: sign again "
				       "(sallyport checkpoint)",
				       (long long)found->n, (unsigned long long)covered->size);
		return 0;
	}
	if (is_wanted(covered, found)) {
		if (covered->object != NULL && covered->n_wanted == OF_OBJECT)
			return err_set(err, ERR_LIMIT, "%s has more than %d entries: prove --tiles takes all",
				       covered->object, OF_OBJECT);
		if (found->kind[strspn(found->kind, "abcdefghijklmnopqrstuvwxyz.")]) /* it becomes a file's name */
			return err_set(err, ERR_CORRUPT, "entry %lld has no kind of ours", (long long)found->n);
		want(covered, found);
	}
	if (covered->bundles != NULL) {
		const uint8_t length[2] = {(uint8_t)(found->length >> 8), (uint8_t)found->length};

		buf_add(&covered->bundles[covered->count / TILE_WIDTH], length, sizeof(length));
		buf_add(&covered->bundles[covered->count / TILE_WIDTH], found->entry, found->length);
	}
	audit_tree_leaf(found->entry, found->length, &covered->leaves[covered->count++]);
	return 0;
}

static int load_note(const char *path, struct covered *covered, struct err *err)
{
	struct audit_note note;

	if (path == NULL)
		return 0;
	int result = read_file_at(AT_FDCWD, path, AUDIT_NOTE_MAX, &covered->note, &covered->note_length, err);

	if (result == 0)
		result = audit_note_parse(covered->note, covered->note_length, &note, err);
	if (result < 0)
		return err_wrap(err, "%s", path);
	covered->size = note.checkpoint.size;
	covered->root = note.checkpoint.root;
	return 0;
}

static int load_tree(const char *database, struct covered *covered, struct err *err)
{
	struct store_audit_reader *reader;
	struct audit_hash root;
	int64_t entries = 0;
	int result = store_audit_reader_open(database, &reader, err);

	if (result < 0)
		return result;
	result = store_audit_count(reader, &entries, err);
	if (covered->note == NULL)
		covered->size = (uint64_t)entries;
	if (result == 0 && (uint64_t)entries < covered->size)
		result = err_set(err, ERR_CORRUPT, "the checkpoint covers %llu entries, and there are %lld",
				 (unsigned long long)covered->size, (long long)entries);
	if (result == 0) {
		covered->leaves = xcalloc((size_t)covered->size + 1, sizeof(*covered->leaves));
		result = store_audit_each(reader, INT64_MIN, take, covered, err);
	}
	store_audit_reader_close(reader);
	if (result < 0)
		return result;
	audit_tree_root_of(covered->leaves, covered->size, &root);
	if (covered->note == NULL)
		covered->root = root;
	if (memcmp(&root, &covered->root, sizeof(root)) != 0)
		return err_set(err, ERR_CORRUPT,
			       "the log is not the one of the checkpoint: sallyport verify names what was altered");
	return 0;
}

static int write_text(const char *folder, const char *name, const void *data, size_t length, struct err *err)
{
	auto_free char *path = xasprintf("%s/%s", folder, name);
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	return fd < 0 || write_all(fd, data, length) < 0 ? err_errno(err, "writing %s", path) : 0;
}

/* A part of a proof. What an earlier proof left would be taken for a part of this one. */
static int write_part(const char *folder, const char *name, const char *suffix, const void *data, size_t length,
		      struct err *err)
{
	auto_free char *path = xasprintf("%s/%s%s", folder, name, suffix);
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0 && errno == EEXIST)
		return err_set(err, ERR_CONFLICT, "%s is there already: write each proof to a folder of its own", path);
	return fd < 0 || write_all(fd, data, length) < 0 ? err_errno(err, "writing %s", path) : 0;
}

/* Of several entries of one kind (calls, views) the first is KIND, the others are KIND.2, KIND.3 … */
static void name_proof(const struct covered *covered, const struct wanted *wanted, char ret[NAME_SIZE])
{
	size_t nth = 1;

	for (const struct wanted *before = covered->wanted; before < wanted; before++)
		nth += streq(before->kind, wanted->kind);
	if (nth == 1)
		snprintf(ret, NAME_SIZE, "%s", wanted->kind);
	else
		snprintf(ret, NAME_SIZE, "%s.%zu", wanted->kind, nth);
}

static int write_proof(const struct covered *covered, const struct wanted *wanted, const char *folder, struct err *err)
{
	struct audit_hash hashes[AUDIT_TREE_DEPTH];
	char name[NAME_SIZE];
	char hex[SHA256_HEX_SIZE];
	auto_buf struct buf proof = {0};
	const size_t count = audit_tree_inclusion(covered->leaves, covered->size, wanted->index, hashes);

	buf_init(&proof, AUDIT_NOTE_MAX);
	buf_printf(&proof, "c2sp.org/tlog-proof@v1\nindex %llu\n", (unsigned long long)wanted->index);
	for (size_t i = 0; i < count; i++) {
		base64_encode(&proof, hashes[i].bytes, sizeof(hashes[i].bytes));
		buf_putc(&proof, '\n');
	}
	buf_putc(&proof, '\n');
	buf_add(&proof, covered->note, covered->note_length);
	name_proof(covered, wanted, name);
	int result = write_part(folder, name, ".entry", wanted->entry, strlen(wanted->entry), err);

	if (result == 0)
		result = write_part(folder, name, ".proof", proof.data, proof.length, err);
	if (result < 0 || !wanted->salted)
		return result;
	hex_encode(wanted->salt, sizeof(wanted->salt), hex);
	result = write_part(folder, name, ".detail", wanted->detail, strlen(wanted->detail), err);
	return result < 0 ? result : write_part(folder, name, ".salt", hex, strlen(hex), err);
}

static int make_folder(const char *path, struct err *err)
{
	return mkdir(path, 0755) < 0 && errno != EEXIST ? err_errno(err, "making %s", path) : 0;
}

int audit_prove(const char *database, const char *checkpoint, const char *execution, const char *folder,
		struct err *err)
{
	auto_free char *object = xasprintf("execution:%s", execution);
	auto_covered struct covered covered = {.object = object};
	int result = load_note(checkpoint, &covered, err);

	if (result == 0)
		result = load_tree(database, &covered, err);
	if (result == 0 && covered.n_wanted == 0)
		result = err_set(err, ERR_NOT_FOUND, "no entry names execution %s", execution);
	if (result == 0)
		result = make_folder(folder, err);
	for (size_t i = 0; result == 0 && i < covered.n_wanted; i++)
		result = write_proof(&covered, &covered.wanted[i], folder, err);
	return result < 0 ? result : (int)covered.n_wanted;
}

int audit_prove_entries(const char *database, const char *checkpoint, const struct audit_wanted *entries,
			struct audit_head *ret, struct err *err)
{
	auto_covered struct covered covered = {.numbers = entries->numbers, .n_numbers = entries->count};
	int result = load_note(checkpoint, &covered, err);

	if (result == 0)
		result = load_tree(database, &covered, err);
	if (result == 0 && covered.n_wanted < covered.n_numbers)
		result = err_set(err, ERR_CORRUPT, "entry %lld is missing",
				 (long long)covered.numbers[covered.n_wanted]);
	if (result < 0)
		return result;
	for (size_t i = 0; i < covered.n_wanted; i++) {
		const struct wanted *wanted = &covered.wanted[i];
		struct audit_proven proven = {.n = (int64_t)wanted->index,
					      .entry = wanted->entry,
					      .detail = wanted->detail,
					      .salt = wanted->salted ? wanted->salt : NULL};

		proven.length = audit_tree_inclusion(covered.leaves, covered.size, wanted->index, proven.hashes);
		entries->each(entries->arg, &proven);
	}
	ret->size = covered.size;
	ret->root = covered.root;
	ret->note = steal(&covered.note);
	return 0;
}

/* -------- tiles --------------------------------------------------------------------------------------- */

struct tile {
	const char *level;
	uint64_t number;
	size_t width; /* hashes or entries in it */
	const void *data;
	size_t length;
};

/* "x001/x234/067", and ".p/WIDTH" behind a tile that is not full; its folders are made. */
static int write_tile(const char *folder, const struct tile *tile, struct err *err)
{
	const uint64_t number = tile->number;
	char digits[32], path[512];
	int result = 0;

	if (number < 1000)
		snprintf(digits, sizeof(digits), "%03llu", (unsigned long long)number);
	else if (number < 1000000)
		snprintf(digits, sizeof(digits), "x%03llu/%03llu", (unsigned long long)number / 1000,
			 (unsigned long long)number % 1000);
	else
		snprintf(digits, sizeof(digits), "x%03llu/x%03llu/%03llu", (unsigned long long)number / 1000000,
			 (unsigned long long)number / 1000 % 1000, (unsigned long long)number % 1000);
	if (tile->width == TILE_WIDTH)
		snprintf(path, sizeof(path), "tile/%s/%s", tile->level, digits);
	else
		snprintf(path, sizeof(path), "tile/%s/%s.p/%zu", tile->level, digits, tile->width);
	for (char *slash = strchr(path, '/'); result == 0 && slash != NULL; slash = strchr(slash + 1, '/')) {
		auto_free char *part = xasprintf("%s/%.*s", folder, (int)(slash - path), path);

		result = make_folder(part, err);
	}
	return result < 0 ? result : write_text(folder, path, tile->data, tile->length, err);
}

/* One level's tiles; *count becomes that of the next level, whose hashes take the place of these. */
static int write_level(const char *folder, int level, struct audit_hash *hashes, uint64_t *count, struct err *err)
{
	char name[16];
	uint64_t full = 0;

	snprintf(name, sizeof(name), "%d", level);
	for (uint64_t first = 0; first < *count; first += TILE_WIDTH) {
		const size_t width = (size_t)MIN(*count - first, (uint64_t)TILE_WIDTH);
		const struct tile tile = {name, first / TILE_WIDTH, width, &hashes[first], width * sizeof(*hashes)};
		int result = write_tile(folder, &tile, err);

		if (result < 0)
			return result;
		if (width == TILE_WIDTH) {
			struct audit_hash root;

			audit_tree_root_of(&hashes[first], TILE_WIDTH, &root);
			hashes[full++] = root; /* behind us already */
		}
	}
	*count = full;
	return 0;
}

int audit_tiles(const char *database, const char *checkpoint, const char *folder, int64_t *ret_entries, struct err *err)
{
	auto_covered struct covered covered = {0};
	int result = load_note(checkpoint, &covered, err);
	const size_t n_bundles = (size_t)(covered.size / TILE_WIDTH) + 1;

	if (result < 0)
		return result;
	covered.bundles = xcalloc(n_bundles, sizeof(*covered.bundles));
	for (size_t i = 0; i < n_bundles; i++)
		buf_init(&covered.bundles[i], SIZE_MAX / 2);
	result = load_tree(database, &covered, err);
	if (result == 0) {
		uint64_t count = covered.size;
		result = make_folder(folder, err);

		for (uint64_t i = 0; result == 0 && i * TILE_WIDTH < covered.size; i++) {
			const struct buf *bundle = &covered.bundles[i];
			const struct tile tile = {"entries", i,
						  (size_t)MIN(covered.size - i * TILE_WIDTH, (uint64_t)TILE_WIDTH),
						  bundle->data, bundle->length};

			result = write_tile(folder, &tile, err);
		}
		for (int level = 0; result == 0 && count > 0; level++)
			result = write_level(folder, level, covered.leaves, &count, err);
		result = result < 0 ? result
				    : write_text(folder, "checkpoint", covered.note, covered.note_length, err);
	}
	for (size_t i = 0; i < n_bundles; i++)
		buf_clear(&covered.bundles[i]);
	free(covered.bundles);
	*ret_entries = (int64_t)covered.size;
	return result;
}
