/*
 * store_audit.h - the audit log: one entry for every act, written in the transaction of what it describes.
 *
 * An entry is a line of JSON whose bytes are stored and hashed (RFC 6962; lib/audit has the tree). It holds numbers,
 * ids and words from closed lists only. Content (code, names, texts, addresses) never enters it: an entry commits to
 * its details by HMAC-SHA-256 under a random salt. Details and salt are in a table of their own (audit_detail), so that
 * they can be erased while the tree stays whole.
 *
 *     struct store_audit entry;
 *
 *     store_audit_init(&entry, STORE_AUDIT_TOKEN_ADD, "token", token->id);
 *     entry.owner = token->owner;
 *     store_audit_word(&entry, "scopes", "run");              a fact: stays for ever
 *     store_audit_text(&entry, "name", token->name, length);  a detail: erasable
 *     result = store_txn_audit(txn, &entry, err);             gives the entry back, also on failure
 *
 * Where an entry cannot be written, the transaction fails with it: no entry, no act.
 */
#pragma once

#include "lib/base/buf.h"
#include "lib/store/store.h"

/* X(NAME, kind): the closed list of kinds. Object, facts and details of each: docs/audit.md. */
#define STORE_AUDIT_KINDS(X)                                                                                           \
	X(LOG_OPEN, "log.open")                                                                                        \
	X(INSTANCE_START, "instance.start")                                                                            \
	X(INSTANCE_STOP, "instance.stop")                                                                              \
	X(CONFIG, "config")                                                                                            \
	X(TOKEN_ADD, "token.add")                                                                                      \
	X(TOKEN_REVOKE, "token.revoke")                                                                                \
	X(RUN_BEGIN, "run.begin")                                                                                      \
	X(RUN_END, "run.end")                                                                                          \
	X(RUN_CANCEL, "run.cancel")                                                                                    \
	X(CALL, "call")                                                                                                \
	X(FILE_PUT, "file.put")                                                                                        \
	X(FILE_GET, "file.get")                                                                                        \
	X(FILE_DELETE, "file.delete")                                                                                  \
	X(FILE_RESTORE, "file.restore")                                                                                \
	X(FILE_WORKSPACE, "file.workspace")                                                                            \
	X(CONVERSATION_NEW, "conversation.new")                                                                        \
	X(CONVERSATION_EXPIRE, "conversation.expire")                                                                  \
	X(CONTENT_ERASE, "content.erase")                                                                              \
	X(SIGN_IN, "admin.login")                                                                                      \
	X(SIGN_OUT, "admin.logout")                                                                                    \
	X(SIGN_IN_FAILED, "admin.failed")                                                                              \
	X(ADMIN_ACT, "admin.act")                                                                                      \
	X(ADMIN_VIEW, "admin.view")                                                                                    \
	X(REPLAY, "replay")                                                                                            \
	X(BLESS, "bless")                                                                                              \
	X(EXPORT, "export")                                                                                            \
	X(IMPORT, "import")                                                                                            \
	X(BACKUP, "backup.made")                                                                                       \
	X(RESTORE, "restore")                                                                                          \
	X(LIMIT, "limit.hit")                                                                                          \
	X(DENIED, "auth.denied")
enum store_audit_kind {
#define STORE_AUDIT_NAME(name, kind) STORE_AUDIT_##name,
	STORE_AUDIT_KINDS(STORE_AUDIT_NAME)
#undef STORE_AUDIT_NAME
		STORE_AUDIT_N_KINDS
};
const char *store_audit_kind(enum store_audit_kind kind);

/* Who asked, as far as the gateway knows; empty: not known, or not kept. */
#define STORE_ADDRESS_SIZE 50 /* of IPv6, with the length of a network */
#define STORE_DOOR_SIZE    16
#define STORE_CALLER_SIZE  65
struct store_client {
	char request_id[33], address[STORE_ADDRESS_SIZE];
	char program[100]; /* "claude-code/2.1.0" */
	char door[STORE_DOOR_SIZE];     /* the API that it uses: "mcp" */
	char caller[STORE_CALLER_SIZE]; /* its own id of the request, the beginning; "": it has none */
};
/* By which token; NULL, "": none, so it was the process itself. `client` NULL: not known. */
struct store_caller {
	const char *token;
	const struct store_client *client;
};

#define STORE_AUDIT_SIZE        1024 /* an entry is shorter */
#define STORE_AUDIT_DETAILS_MAX (256 * 1024)
#define STORE_AUDIT_OBJECT_SIZE 80

struct store_audit {
	enum store_audit_kind kind;
	const char *actor; /* "token:ID", "admin:ID"; NULL: "cli:UID", or "system" in the gateway */
	const char *owner; /* stands in the entry as a random id (table principal); NULL: nobody's */
	char object[STORE_AUDIT_OBJECT_SIZE];
	struct buf facts, details;
	bool wrong; /* a fact had a character that may not enter an entry */
};
void store_audit_init(struct store_audit *entry, enum store_audit_kind kind, const char *type, const char *id);
void store_audit_clear(struct store_audit *entry);
/* Facts. A word has letters, digits, blanks and ._:+#/-, 64 characters at most. */
void store_audit_int(struct store_audit *entry, const char *name, int64_t value);
void store_audit_word(struct store_audit *entry, const char *name, const char *word);
/* Details: a text (any bytes), a sum, or the SHA-256 of a text. */
void store_audit_text(struct store_audit *entry, const char *name, const char *text, size_t length);
void store_audit_hex(struct store_audit *entry, const char *name, const char sum[SHA256_HEX_SIZE]);
void store_audit_sum(struct store_audit *entry, const char *name, const void *data, size_t length);
struct json_object;
void store_audit_json(struct store_audit *entry, const char *name, struct json_object *value);
/* Details, behind all others: what is known of the client. NULL: nothing. */
void store_audit_client(struct store_audit *entry, const struct store_client *client);

struct store_txn;
/* Appends the entry and gives it back, whatever comes of it. */
int store_txn_audit(struct store_txn *txn, struct store_audit *entry, struct err *err);
/* The same in a transaction of its own; returns after the commit. */
int store_audit_add(struct store *store, struct store_audit *entry, struct err *err);
/* The same without waiting, for what only reads: the entry is written soon after. Takes the entry over. */
void store_audit_later(struct store *store, struct store_audit *entry);
/* The object of a conversation: its address is a secret, so it stands there by a hash of it. */
void store_audit_place(const char *conversation_hash, char ret[SHA256_HEX_SIZE]);

/* Code that erases content calls this in the transaction that erases it: removes the details (and with them the salts)
 * of the entries of `kinds` about the object, then appends content.erase. `what`: "content" (all of a run), "output"
 * (what came of it), "row" (its row, too), "file"; `reason`: "request", "retention" or "admin". */
struct store_audit_erasure {
	const char *type, *id; /* "execution" and its id */
	const char *what, *reason;
	const char *actor; /* as above */
	const char *owner;
	const char *ticket; /* the operator's text, a detail; NULL: none */
};
int store_txn_audit_erase(struct store_txn *txn, const struct store_audit_erasure *erasure, struct err *err);
/* An audit entry for a file that a client has put. `caller` NULL: the process itself. */
int store_txn_audit_file(struct store_txn *txn, int64_t conversation, const char *name, size_t length,
			 const struct store_caller *caller, struct err *err);
