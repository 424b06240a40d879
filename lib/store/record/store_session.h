/*
 * store_session.h - sessions of the legacy protocol: they survive a restart and are bound to an owner.
 */
#pragma once

#include "lib/store/store.h"

#define STORE_SAMPLING    1u
#define STORE_ELICITATION 2u
#define STORE_ROOTS       4u
#define STORE_APPS        8u /* it shows apps */
#define STORE_SESSIONS_MAX 512 /* of one owner: one more, and the one that was not used for longest is gone */
struct store_session {
	char id[ID_SIZE], token_id[ID_SIZE];
	char owner[STORE_OWNER_MAX + 1];
	char protocol[16], client_name[64], client_version[32];
	unsigned client_offers; /* STORE_SAMPLING … */
	int log_level;          /* -1: none was asked for; filled in by _add */
	int64_t created_us, seen_us, ended_us;
	int64_t idle_from_us;  /* by the clock of what expires (store_uptime.c): when it was used last */
	char removed[ID_SIZE]; /* the one that made room; "": none */
};
int store_session_add(struct store *store, struct store_session *session /* id, times and removed are filled in */,
		      struct err *err);
/* ERR_NOT_FOUND: unknown, ended, or another owner's. */
int store_session_find(struct store *store, const char *id, const char *owner, struct store_session *ret,
		       struct err *err);
int store_session_log_level(struct store *store, const char *id, int level, struct err *err);
int store_session_end(struct store *store, const char *id, const char *owner, struct err *err);
