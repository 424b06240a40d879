/* audit_tree.c - see audit_tree.h. Names of the recursive functions are those of RFC 6962: MTH, PATH, SUBPROOF. */
#include "audit_tree.h"

#include <string.h>

#include "lib/base/buf.h"

void audit_tree_leaf(const void *entry, size_t length, struct audit_hash *ret)
{
	char room[1024];
	auto_buf struct buf text = {0};

	if (length + 1 < sizeof(room)) {
		room[0] = 0;
		memcpy(room + 1, entry, length);
		sha256_bytes(room, length + 1, ret->bytes);
		return;
	}
	buf_init(&text, SIZE_MAX / 2);
	buf_putc(&text, 0);
	buf_add(&text, entry, length);
	sha256_bytes(text.data, text.length, ret->bytes);
}

void audit_tree_node(const struct audit_hash *left, const struct audit_hash *right, struct audit_hash *ret)
{
	uint8_t text[1 + 2 * SHA256_SIZE] = {1};

	memcpy(text + 1, left, SHA256_SIZE);
	memcpy(text + 1 + SHA256_SIZE, right, SHA256_SIZE);
	sha256_bytes(text, sizeof(text), ret->bytes);
}

void audit_tree_add(struct audit_tree *tree, const struct audit_hash *leaf)
{
	struct audit_hash hash = *leaf;
	int level = 0;

	for (; tree->size >> level & 1; level++)
		audit_tree_node(&tree->complete[level], &hash, &hash);
	tree->complete[level] = hash;
	tree->size++;
}

void audit_tree_root(const struct audit_tree *tree, struct audit_hash *ret)
{
	int first = 1;

	if (tree->size == 0)
		sha256_bytes("", 0, ret->bytes);
	for (int level = 0; level < AUDIT_TREE_DEPTH; level++) {
		if ((tree->size >> level & 1) == 0)
			continue;
		if (first)
			*ret = tree->complete[level];
		else
			audit_tree_node(&tree->complete[level], ret, ret);
		first = 0;
	}
}

void audit_tree_root_of(const struct audit_hash *leaves, uint64_t size, struct audit_hash *ret)
{
	struct audit_tree tree = {0};

	for (uint64_t i = 0; i < size; i++)
		audit_tree_add(&tree, &leaves[i]);
	audit_tree_root(&tree, ret);
}

/* The largest power of two below n; n > 1. */
static uint64_t split(uint64_t n)
{
	return 1ull << (63 - __builtin_clzll(n - 1));
}

size_t audit_tree_inclusion(const struct audit_hash *leaves, uint64_t size, uint64_t index,
			    struct audit_hash ret[AUDIT_TREE_DEPTH])
{
	size_t count;

	if (size <= 1)
		return 0;
	const uint64_t k = split(size);

	if (index < k) {
		count = audit_tree_inclusion(leaves, k, index, ret);
		audit_tree_root_of(leaves + k, size - k, &ret[count]);
	} else {
		count = audit_tree_inclusion(leaves + k, size - k, index - k, ret);
		audit_tree_root_of(leaves, k, &ret[count]);
	}
	return count + 1;
}

/* `whole`: the subtree is one of the old tree, whose root the verifier has. */
static size_t subproof(const struct audit_hash *leaves, uint64_t size, uint64_t old, int whole, struct audit_hash *ret)
{
	size_t count;

	if (old == size) {
		if (!whole)
			audit_tree_root_of(leaves, size, &ret[0]);
		return whole ? 0 : 1;
	}
	const uint64_t k = split(size);

	if (old <= k) {
		count = subproof(leaves, k, old, whole, ret);
		audit_tree_root_of(leaves + k, size - k, &ret[count]);
	} else {
		count = subproof(leaves + k, size - k, old - k, 0, ret);
		audit_tree_root_of(leaves, k, &ret[count]);
	}
	return count + 1;
}

size_t audit_tree_consistency(const struct audit_hash *leaves, uint64_t size, uint64_t old,
			      struct audit_hash ret[AUDIT_TREE_DEPTH])
{
	return subproof(leaves, size, old, 1, ret);
}

int audit_tree_root_from(const struct audit_hash *leaf, uint64_t index, uint64_t size, const struct audit_hash *proof,
			 size_t count, struct audit_hash *ret)
{
	uint64_t last = size - 1;

	if (index >= size)
		return -1;
	*ret = *leaf;
	for (size_t i = 0; i < count; i++) {
		if (last == 0)
			return -1;
		if ((index & 1) != 0 || index == last) {
			audit_tree_node(&proof[i], ret, ret);
			for (; (index & 1) == 0 && index != 0; last >>= 1)
				index >>= 1;
		} else {
			audit_tree_node(ret, &proof[i], ret);
		}
		index >>= 1;
		last >>= 1;
	}
	return last == 0 ? 0 : -1;
}
