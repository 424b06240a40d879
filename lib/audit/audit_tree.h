/*
 * audit_tree.h - the Merkle tree of RFC 6962, section 2.1, over the entries of the log.
 *
 * Leaf: SHA-256(0x00 entry). Node: SHA-256(0x01 left right). Empty tree: SHA-256 of nothing. A growing tree is kept as
 * its complete subtrees from the right (one for each bit of its size); proofs are computed from all leaf hashes.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/store/db/crypto.h"

#define AUDIT_TREE_DEPTH 63

struct audit_hash {
	uint8_t bytes[SHA256_SIZE];
};
struct audit_tree {
	uint64_t size;
	struct audit_hash complete[AUDIT_TREE_DEPTH]; /* the subtree of 2^i leaves, where bit i of size is set */
};

void audit_tree_leaf(const void *entry, size_t length, struct audit_hash *ret);
void audit_tree_node(const struct audit_hash *left, const struct audit_hash *right, struct audit_hash *ret);
void audit_tree_add(struct audit_tree *tree, const struct audit_hash *leaf); /* begins zeroed */
void audit_tree_root(const struct audit_tree *tree, struct audit_hash *ret);

/* The root of leaves[0 .. size - 1]. */
void audit_tree_root_of(const struct audit_hash *leaves, uint64_t size, struct audit_hash *ret);
/* The hashes that prove leaf `index` in the tree of `size` leaves, or that the tree of `old` leaves is a beginning of
 * it; from the leaf upward. They return how many there are. 0 < old <= size. */
size_t audit_tree_inclusion(const struct audit_hash *leaves, uint64_t size, uint64_t index,
			    struct audit_hash ret[AUDIT_TREE_DEPTH]);
size_t audit_tree_consistency(const struct audit_hash *leaves, uint64_t size, uint64_t old,
			      struct audit_hash ret[AUDIT_TREE_DEPTH]);
/* The root that follows from a leaf and the hashes that prove it (RFC 9162, 2.1.3.2). -1: they are too few or too many
 * for a tree of this size. */
int audit_tree_root_from(const struct audit_hash *leaf, uint64_t index, uint64_t size, const struct audit_hash *proof,
			 size_t count, struct audit_hash *ret);
