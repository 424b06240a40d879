/*
 * audit_signer.h - who signs checkpoints, under another account than the gateway's, and remembers what it signed.
 *
 * Its folder (0700):
 *
 *     key               0600   the private key, "PRIVATE+KEY+NAME+ID+base64", unless it is elsewhere
 *     vkey                     the public key: give it to those who verify
 *     leaves                   32 bytes for each entry that was seen: what history must still be
 *     checkpoints.log          every checkpoint that was signed
 *     checkpoint               the newest one
 *     anchored                 which anchor got which checkpoint last (audit_anchor.h)
 *     cosigned.log             checkpoints with the signatures of witnesses (audit_witness.h)
 *
 * A signer never signs what does not continue what it signed. Order: leaves are on disk, then the checkpoint is signed
 * and put into the log, then it replaces the newest. A crash in between repeats a step and contradicts none.
 */
#pragma once

#include "audit_note.h"
#include "lib/store/audit/store_audit_read.h"

#define AUDIT_SIGNER_KEY        "key"
#define AUDIT_SIGNER_VKEY       "vkey"
#define AUDIT_SIGNER_LEAVES     "leaves"
#define AUDIT_SIGNER_LOG        "checkpoints.log"
#define AUDIT_SIGNER_CHECKPOINT "checkpoint"
#define AUDIT_SIGNER_COSIGNED   "cosigned.log"

/* Makes folder, key and vkey. ERR_CONFLICT: there is a key already. */
int audit_signer_init(const char *folder, const char *origin, struct buf *ret_vkey, struct err *err);

struct audit_signer {
	int dir_fd, leaves_fd; /* leaves_fd is locked: one signer at a time */
	const char *folder;
	struct audit_key key;
	uint8_t seed[SIGN_SEED_SIZE];
	int64_t n_leaves, n_signed;
	struct audit_tree tree;
};
/* `key_file` NULL: the one of the folder. ERR_NOT_FOUND: it was not made yet. */
int audit_signer_open(const char *folder, const char *key_file, struct audit_signer *ret, struct err *err);
void audit_signer_close(struct audit_signer *signer);
/* Compares the log with what was seen, and signs where it grew: 1 and the note; 0: nothing new. ERR_CORRUPT: history
 * was rewritten or went back; the text names the entry. */
int audit_signer_sign(struct audit_signer *signer, const char *database, struct buf *ret_note, struct err *err);
/* The hash of every entry that was seen, n_leaves of them; the caller frees it. */
int audit_signer_leaves(const struct audit_signer *signer, struct audit_hash **ret, struct err *err);
