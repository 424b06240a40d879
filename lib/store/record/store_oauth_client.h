/*
 * store_oauth_client.h - the programs that may ask our own authorization server for a person's approval (oauth.mode
 * builtin), by id: the address of a document, spd_… of one that registered itself, spm_… of one that the operator
 * entered.
 */
#pragma once

#include "store_token.h"

#define STORE_OAUTH_ID_MAX     512 /* bytes of a client's id */
#define STORE_OAUTH_NAME_MAX   200
#define STORE_OAUTH_DOCUMENT   "document"
#define STORE_OAUTH_REGISTERED "registered"
#define STORE_OAUTH_MANUAL     "manual"

struct store_oauth_client {
	char id[STORE_OAUTH_ID_MAX + 1];
	char kind[12];
	char name[STORE_OAUTH_NAME_MAX + 1]; /* what it calls itself */
	char *redirects;                     /* JSON array of texts; store_oauth_client_clear */
	char secret_hash[SHA256_HEX_SIZE];   /* "": it has no secret */
	bool refreshes;
	int64_t created_us, used_us, blocked_us; /* 0: never */
	int64_t fetched_us, fresh_us;            /* of a document */
};
void store_oauth_client_clear(struct store_oauth_client *client);
#define auto_oauth_client __attribute__((cleanup(store_oauth_client_clear)))

/* ERR_NOT_FOUND: there is none. */
int store_oauth_client_find(struct store *store, const char *id, struct store_oauth_client *ret, struct err *err);
/* A document that was fetched, for the first time or again. At most STORE_OAUTH_DOCUMENTS_MAX are kept. */
#define STORE_OAUTH_DOCUMENTS_MAX 1000
int store_oauth_client_put(struct store *store, const struct store_oauth_client *client, struct err *err);
/* By hand: the id is made here and, if `secret`, a secret, which is shown once. */
#define STORE_OAUTH_SECRET_SIZE 44
int store_oauth_client_add(struct store *store, struct store_oauth_client *client, bool secret,
			   char ret_secret[STORE_OAUTH_SECRET_SIZE], struct err *err);
/* One that registers itself: the id and created_us are filled in. The same again, before anybody used it, gets the same
 * id. Of more than `most` the oldest that nobody used goes; ERR_BUSY: all are in use. */
int store_oauth_client_register(struct store *store, struct store_oauth_client *client, int64_t most, struct err *err);
/* Callbacks return 0 to go on. */
int store_oauth_client_list(struct store *store, int (*each)(void *arg, const struct store_oauth_client *client),
			    void *arg, struct err *err);
/* It may ask nobody any more, and its grants end: a blocked one keeps its row, so that it does not come back.
 * ERR_NOT_FOUND. */
int store_oauth_client_end(struct store *store, const char *id, bool block, struct err *err);
