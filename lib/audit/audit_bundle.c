/*
 * audit_bundle.c - see audit_bundle.h.
 *
 * Many entries are proven against one tree, so all its nodes are computed once: level 0 has the leaves; each further
 * one the nodes over pairs, and where a level has an odd number its last node goes up as it is. That is the tree of
 * RFC 6962.
 */
#include "audit_bundle.h"

#include <fcntl.h>
#include <string.h>

#include "audit_note.h"
#include "lib/base/util.h"

struct levels {
	struct audit_hash *nodes[AUDIT_TREE_DEPTH + 1];
	uint64_t size, room; /* leaves */
};

static void levels_clear(struct levels *levels)
{
	for (size_t i = 0; i < ARRAY_SIZE(levels->nodes); i++)
		free(levels->nodes[i]);
}
#define auto_levels __attribute__((cleanup(levels_clear)))

static int add_leaf(void *arg, const struct store_audit_found *found, struct err *err)
{
	struct levels *levels = arg;

	if (found->n != (int64_t)levels->size)
		return err_set(err, ERR_CORRUPT, "the log has no entry %llu: sallyport verify says more",
			       (unsigned long long)levels->size);
	if (levels->size == levels->room) {
		levels->room = 2 * levels->room + 1024;
		levels->nodes[0] = xrealloc(levels->nodes[0], levels->room, sizeof(struct audit_hash));
	}
	audit_tree_leaf(found->entry, found->length, &levels->nodes[0][levels->size++]);
	return 0;
}

static int read_log(const char *database, struct levels *levels, struct err *err)
{
	struct store_audit_reader *reader;
	int result = store_audit_reader_open(database, &reader, err);

	if (result < 0)
		return result;
	result = store_audit_each(reader, 0, add_leaf, levels, err);
	store_audit_reader_close(reader);
	return result;
}

static size_t path(const struct levels *levels, uint64_t index, struct audit_hash ret[AUDIT_TREE_DEPTH])
{
	size_t count = 0;
	int level = 0;

	for (uint64_t n = levels->size; n > 1; n = (n + 1) / 2, index /= 2, level++)
		if ((index ^ 1) < n)
			ret[count++] = levels->nodes[level][index ^ 1];
	return count;
}

static int read_checkpoint(const char *file, char **ret, struct audit_checkpoint *ret_checkpoint, struct err *err)
{
	struct audit_note note;
	size_t length;
	int result = read_file_at(AT_FDCWD, file, AUDIT_NOTE_MAX, ret, &length, err);

	if (result == 0)
		result = audit_note_parse(*ret, length, &note, err);
	if (result < 0)
		return err_wrap(err, "%s", file);
	*ret_checkpoint = note.checkpoint;
	return 0;
}

static int prove_all(struct store_bundle *bundle, const struct levels *levels, struct err *err)
{
	auto_free int64_t *numbers = NULL;
	struct audit_hash proof[AUDIT_TREE_DEPTH];
	size_t count = 0;
	int result = store_bundle_audit_numbers(bundle, &numbers, &count, err);

	for (size_t i = 0; result == 0 && i < count; i++) {
		if (numbers[i] >= (int64_t)levels->size)
			return err_set(err, ERR_UNAVAILABLE,
				       "the checkpoint covers %llu entries, and entry %lld is to be proven: sign first "
				       "(sallyport checkpoint)",
				       (unsigned long long)levels->size, (long long)numbers[i]);
		const size_t hashes = path(levels, (uint64_t)numbers[i], proof);

		result = store_bundle_audit_prove(bundle, numbers[i], proof, hashes * sizeof(proof[0]), err);
	}
	return result;
}

int audit_bundle_prove(struct store_bundle *bundle, const char *database, const char *checkpoint, struct err *err)
{
	auto_levels struct levels levels = {0};
	auto_free char *note = NULL;
	struct audit_checkpoint signed_by = {0};
	struct audit_hash root;
	int result = checkpoint != NULL ? read_checkpoint(checkpoint, &note, &signed_by, err) : 0;

	if (result == 0)
		result = read_log(database, &levels, err);
	if (result == 0 && (levels.size == 0 || levels.size < signed_by.size))
		result = err_set(err, ERR_CORRUPT, "the log has %llu entries, fewer than the checkpoint covers",
				 (unsigned long long)levels.size);
	if (result < 0)
		return result;
	/* The root of the first `size` leaves; 0 < size. */
	uint64_t size = checkpoint != NULL && signed_by.size > 0 ? signed_by.size : levels.size;
	int level = 0;

	levels.size = size;
	for (uint64_t n = size; n > 1; n = (n + 1) / 2, level++) {
		const struct audit_hash *below = levels.nodes[level];
		struct audit_hash *nodes = xcalloc((n + 1) / 2, sizeof(*nodes));

		for (uint64_t i = 0; i < n / 2; i++)
			audit_tree_node(&below[2 * i], &below[2 * i + 1], &nodes[i]);
		if (n % 2 != 0)
			nodes[n / 2] = below[n - 1];
		levels.nodes[level + 1] = nodes;
	}
	root = levels.nodes[level][0];
	if (checkpoint != NULL && memcmp(&root, &signed_by.root, sizeof(root)) != 0)
		return err_set(err, ERR_CORRUPT, "%s is of another log than the one that is here", checkpoint);
	result = prove_all(bundle, &levels, err);
	return result < 0 ? result : store_bundle_audit_head(bundle, (int64_t)levels.size, root.bytes, note, err);
}
