/*
 * sessions.h - legacy sessions that were seen lately, so that a call costs no look-up and no write.
 *
 * The truth is the store's session table; this is a bounded cache in front of it (SESSIONS_CACHED slots, the newest one
 * of a slot wins). An entry is asked for again after SESSIONS_FRESH_US, which also moves the session's "seen" time in
 * the store, so that sessions in use never expire. Thread-safe.
 */
#pragma once

#include "lib/store/record/store_token.h"

#define SESSIONS_CACHED   1024
#define SESSIONS_FRESH_US (60 * 1000000LL)

struct session {
	char id[ID_SIZE];
	char owner[STORE_OWNER_MAX + 1];
	char protocol[16], client_name[64], client_version[32];
	unsigned offers; /* STORE_SAMPLING … */
	int log_level;   /* index in mcp_log_levels: less is not sent; -1: its client asked for none */
};

struct sessions;
struct sessions *sessions_new(struct store *store);
void sessions_free(struct sessions *sessions); /* NULL is fine */
/* What a client says of itself when it opens a session; NULL: nothing. */
struct session_client {
	const char *protocol; /* as negotiated, never NULL */
	const char *name, *version;
	unsigned offers;
};
/* Makes a session durable and fills in *ret. */
int sessions_add(struct sessions *sessions, const struct store_token *token, const struct session_client *client,
		 struct session *ret, struct err *err);
/* ERR_NOT_FOUND: unknown, ended, or another owner's. */
int sessions_find(struct sessions *sessions, const char *id, const char *owner, struct session *ret, struct err *err);
int sessions_set_log_level(struct sessions *sessions, const char *id, int level, struct err *err);
int sessions_end(struct sessions *sessions, const char *id, const char *owner, struct err *err);
