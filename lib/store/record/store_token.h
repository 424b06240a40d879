/*
 * store_token.h - bearer tokens: the text is sp_<owner>_<secret>, and only SHA-256 of the text is stored.
 */
#pragma once

#include "lib/store/store.h"

#define STORE_TOKEN_TEXT 128
/* The name of an owner: 1 to STORE_OWNER_MAX characters a-z, 0-9 and '-', the first one not '-'. */
bool store_owner_valid(const char *owner);
#define STORE_OWNER_WANTED "1 to 32 characters a-z, 0-9 and '-' were expected, the first one not '-'"

enum store_scope {
	STORE_SCOPE_RUN = 1,
	STORE_SCOPE_FILES = 2,
	STORE_SCOPE_ADMIN = 4 /* everything */,
	STORE_SCOPE_NETWORK = 8
};
#define STORE_SCOPES_TEXT 32 /* "run files network admin" */
#define STORE_RESULTS_TEXT 12
#define STORE_SERVERS_TEXT 1025
#define STORE_ANSWER_LEAST 2  /* units of 1,000 bytes, as limits.answer_kb */
#define STORE_ANSWER_MOST  64 /* as much of each stream is at hand whatever the limit (JOB_ANSWER_LEAST) */
struct store_token {
	unsigned scopes; /* of enum store_scope; in store_token_add_scoped 0: run and files */
	char id[ID_SIZE];
	char owner[STORE_OWNER_MAX + 1];
	char name[64]; /* what the operator calls it */
	int64_t created_us, used_us, revoked_us, expires_us; /* 0: never */
	int64_t drained_us; /* nothing of the owner starts here since then (store_drain.h); 0: it does */
	char servers[STORE_SERVERS_TEXT]; /* upstream_policy_check; "": none */
	char results[STORE_RESULTS_TEXT]; /* config_results_valid; "": none */
	int64_t text_kb; /* text of an answer, from STORE_ANSWER_LEAST to STORE_ANSWER_MOST; 0: limits.answer_kb */
	bool granted; /* an authorization server gave it: its client can ask there for more scopes (store_grant.h) */
};
int store_token_add(struct store *store, const char *owner, const char *name, char ret_text[STORE_TOKEN_TEXT],
		    struct store_token *ret, struct err *err);
/* The same; owner, name, scopes, expires_us, servers, results and text_kb stand in *token, the rest is filled in. */
int store_token_add_scoped(struct store *store, struct store_token *token, char ret_text[STORE_TOKEN_TEXT],
			   struct err *err);
/* Names between commas or blanks, and back (with blanks); ERR_INVALID names what it does not know. */
int store_scopes_parse(const char *text, unsigned *ret, struct err *err);
void store_scopes_print(unsigned scopes, char ret[STORE_SCOPES_TEXT]);
/* Constant-time; ERR_DENIED for unknown ones, revoked ones and expired ones alike. */
int store_token_check(struct store *store, const char *text, struct store_token *ret, struct err *err);
int store_token_list(struct store *store, int (*each)(void *arg, const struct store_token *token), void *arg,
		     struct err *err);
/* By id or a prefix of it that is unique, also one that was revoked. */
int store_token_find(struct store *store, const char *id, struct store_token *ret, struct err *err);
/* By id or a prefix of it that is unique. */
int store_token_revoke(struct store *store, const char *id, struct store_token *ret, struct err *err);
