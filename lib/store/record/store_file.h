/*
 * store_file.h - conversations and their files.
 */
#pragma once

#include "lib/store/store.h"

#define STORE_CONVERSATION_MAX 128 /* bytes of a conversation's name */
#define STORE_MEDIA_TYPE_SIZE 80

struct store_conversation {
	int64_t row;
	char owner[STORE_OWNER_MAX + 1];
	char name[STORE_CONVERSATION_MAX + 1];
	char hash[SHA256_HEX_SIZE]; /* HMAC-SHA-256(secret.key, owner NUL name): the folder in download URLs */
	int64_t created_us, seen_us, bytes;
};
int store_conversation_find(struct store *store, const char *owner, const char *name, struct store_conversation *ret,
			    struct err *err);
int store_conversation_by_hash(struct store *store, const char *hash, struct store_conversation *ret, struct err *err);
/* Its hash without touching the database (for a conversation that may not exist yet). */
void store_conversation_hash(struct store *store, const char *owner, const char *name, char ret[SHA256_HEX_SIZE]);
/* HMAC-SHA-256 under a key that is made of secret.key for this alone: for texts that a client keeps for us. */
void store_sign(struct store *store, const void *data, size_t length, char ret[SHA256_HEX_SIZE]);
/* A text that a client keeps for us and cannot read or change: appended as base64url. It opens for the same purpose
 * alone; ERR_CORRUPT: it is none of ours. */
void store_seal(struct store *store, const char *purpose, const void *data, size_t length, struct buf *out);
int store_unseal(struct store *store, const char *purpose, const char *text, struct buf *out, struct err *err);

struct store_file {
	const char *name; /* path below /data: bytes, not necessarily UTF-8 */
	size_t name_length;
	char blob[SHA256_HEX_SIZE];
	char media_type[STORE_MEDIA_TYPE_SIZE]; /* store_media_type; "" in store_txn_file_put: found out from the blob
						 */
	uint32_t mode;
	int64_t size, mtime_us;
};
/* name and name_length of *ret are the caller's own. */
int store_file_find(struct store *store, int64_t conversation, const char *name, size_t length, struct store_file *ret,
		    struct err *err);

/* By magic bytes for PNG, JPEG, GIF and WebP (`head` is the beginning of the content, 16 bytes are enough), else by the
 * name's extension, else application/octet-stream. */
void store_media_type(const char *name, size_t length, const unsigned char *head, size_t head_length,
		      char ret[STORE_MEDIA_TYPE_SIZE]);

/* Verbs inside a transaction (the typed functions above use them too). This one finds or makes the conversation, and
 * touches it. */
int store_txn_conversation(struct store_txn *txn, const char *owner, const char *name, struct store_conversation *ret,
			   struct err *err);
/* Puts a file in place (blob already in the blob folder), replacing one of that name. ERR_LIMIT: beyond the owner's
 * byte cap. */
int store_txn_file_put(struct store_txn *txn, int64_t conversation, const struct store_file *file, struct err *err);
/* ERR_CONFLICT: the name is a folder's, or goes through a file as if it were a folder. */
int store_txn_file_place(struct store_txn *txn, int64_t conversation, const char *name, struct err *err);
/* All files of a conversation, by name. `each` may end it by a code that is not 0. */
int store_txn_files(struct store_txn *txn, int64_t conversation, int (*each)(void *arg, const struct store_file *file),
		    void *arg, struct err *err);
/* ERR_BUSY: a run is under way there. */
int store_txn_conversation_quiet(struct store_txn *txn, int64_t conversation, struct err *err);
int store_txn_file_delete(struct store_txn *txn, int64_t conversation, const char *name, size_t length,
			  struct err *err);
/* The file, or, where the name is a folder's, all below it: by one statement (store_undo.c says why). */
int store_txn_files_delete(struct store_txn *txn, int64_t conversation, const char *name, size_t length,
			   int64_t *ret_deleted, struct err *err);
