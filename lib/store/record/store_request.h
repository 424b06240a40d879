/*
 * store_request.h - idempotency keys: a call that is repeated with the same key gives the first result again.
 *
 * A key is claimed in the transaction that writes the call's own rows, so there is no moment at which one is there
 * without the other. The result is not kept twice: a claim names the execution, whose row has it. A claim counts for
 * STORE_REQUEST_TTL_US, and is free again before that when its execution ended without a verdict of its own (XX:
 * interrupted or the sandbox failed, CX: cancelled).
 */
#pragma once

#include "lib/store/store.h"

#define STORE_REQUEST_KEY_MAX 128                       /* bytes */
#define STORE_REQUEST_TTL_US  (24 * 3600 * 1000000ll)

struct store_request {
	const char *owner, *key;
	const char *hash;      /* SHA-256 of tool and arguments: the same key must mean the same call */
	const char *execution; /* NULL: an upload, which has none */
};
/* 0: the key is free. 1: this call was made; its execution's id is in ret ("" for an upload). ERR_CONFLICT: the key was
 * used for another call. ERR_BUSY: the first call is still running (in another process; in this one they run one after
 * the other). */
int store_txn_request_find(struct store_txn *txn, const struct store_request *request, char ret_execution[ID_SIZE],
			   struct err *err);
/* Claims a free key; the execution's row must be there. */
int store_txn_request_put(struct store_txn *txn, const struct store_request *request, struct err *err);
