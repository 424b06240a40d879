/*
 * audit_checkpoints.h - the checkpoints that a log is compared with: a signer's own, and those from elsewhere.
 * Signatures are checked as they are read.
 */
#pragma once

#include "audit_note.h"

struct audit_seen {
	uint64_t size;
	struct audit_hash root;
	bool outside;
	char from[96]; /* the file that it is in */
};
struct audit_checkpoints {
	struct audit_seen *items;
	size_t count;
	struct audit_key keys[AUDIT_SIGNATURES_MAX];
	int64_t signed_by[AUDIT_SIGNATURES_MAX]; /* checkpoints that have a good signature of the key */
	size_t n_keys;
	char **wrong; /* sentences about signatures */
	size_t n_wrong;
};
void audit_checkpoints_clear(struct audit_checkpoints *all);
int audit_checkpoints_key(struct audit_checkpoints *all, const char *text, struct err *err);
void audit_checkpoints_add(struct audit_checkpoints *all, const struct audit_seen *seen); /* unsigned */
/* Every checkpoint of a text, which is in `from`; of a file. */
int audit_checkpoints_text(struct audit_checkpoints *all, const char *text, size_t length, const char *from,
			   bool outside, struct err *err);
int audit_checkpoints_file(struct audit_checkpoints *all, const char *path, bool outside, struct err *err);
/* A signer's folder: its public key, its checkpoints and the leaves that it saw (the caller's). */
int audit_checkpoints_signer(struct audit_checkpoints *all, const char *folder, struct audit_hash **ret_leaves,
			     int64_t *ret_count, struct err *err);
void audit_checkpoints_sort(struct audit_checkpoints *all); /* by size */
