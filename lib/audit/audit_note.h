/*
 * audit_note.h - checkpoints and their signatures: C2SP tlog-checkpoint and signed-note with Ed25519 keys.
 *
 *     sallyport.example.org/audit
 *     4712
 *     CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=
 *
 *     (em dash) sallyport.example.org/audit Az3grlgtzPIC…
 *
 * A signature is 4 bytes of key id and 64 of Ed25519 over the text up to the blank line. A verifier ignores signatures
 * by keys that it does not know, and refuses a note on which one by a known key is wrong.
 */
#pragma once

#include <stdbool.h>

#include "audit_tree.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/store/db/crypto_sign.h"

#define AUDIT_NAME_SIZE      128
#define AUDIT_SIGNATURES_MAX 32
#define AUDIT_NOTE_MAX       (64 * 1024)

struct audit_checkpoint {
	char origin[AUDIT_NAME_SIZE];
	uint64_t size;
	struct audit_hash root;
};
struct audit_signature {
	char name[AUDIT_NAME_SIZE];
	uint32_t id;
	uint8_t bytes[8 + SIGN_SIZE]; /* a cosignature has a time before it */
	size_t length;
};
struct audit_note {
	struct audit_checkpoint checkpoint;
	size_t signed_length; /* of the text that is signed */
	struct audit_signature signatures[AUDIT_SIGNATURES_MAX];
	size_t n_signatures;
};
struct audit_key {
	char name[AUDIT_NAME_SIZE];
	uint32_t id;
	bool witness; /* type 4: signs "cosignature/v1", a time and the note */
	uint8_t key[SIGN_KEY_SIZE];
};

/* A name has printable characters without blanks and without '+'. */
bool audit_name_valid(const char *name);
/* NAME+ID+KEY, as verifiers have it. ERR_INVALID. */
int audit_key_parse(const char *text, struct audit_key *ret, struct err *err);
void audit_key_print(const struct audit_key *key, struct buf *out);
void audit_key_from_seed(const char *name, const uint8_t seed[SIGN_SEED_SIZE], struct audit_key *ret);

/* The note with one signature. */
void audit_note_sign(const struct audit_checkpoint *checkpoint, const struct audit_key *key,
		     const uint8_t seed[SIGN_SEED_SIZE], struct buf *out);
/* The text of one note, to its end. ERR_INVALID. */
int audit_note_parse(const char *text, size_t length, struct audit_note *ret, struct err *err);
/* How many of the note's signatures are by this key; ERR_CORRUPT: one that names it is wrong. *ret_time (of a witness,
 * seconds) may be NULL. */
int audit_note_check(const char *text, const struct audit_note *note, const struct audit_key *key, int64_t *ret_time,
		     struct err *err);
/* Notes in a file, one behind the other with an empty line after each. `each` gets the text of one. */
int audit_notes_each(const char *text, size_t length,
		     int (*each)(void *arg, const char *text, size_t length, const struct audit_note *note,
				 struct err *err),
		     void *arg, struct err *err);
