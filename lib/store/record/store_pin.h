/*
 * store_pin.h - definitions of upstream servers' tools as they were first seen or accepted.
 */
#pragma once

#include "lib/store/db/crypto.h"
#include "lib/store/store.h"

struct store_pin {
	const char *tool;
	const char *hash;
};
/* All of a server (the hash of its identity). `each` gets texts that are gone after it. */
int store_pin_list(struct store *store, const char *server, void (*each)(void *arg, const struct store_pin *pin),
		   void *arg, struct err *err);
/* Adds what is not there; `accept`: an operator's decision, which also replaces what is. */
int store_pin_put(struct store *store, const char *server, const struct store_pin *pins, size_t count, bool accept,
		  struct err *err);
