/*
 * upstream_pin.h - has a server's tool changed since it was first seen? Trust on first use: what is new is noted, what
 * differs from the note stays "changed" until an operator accepts it (`sallyport upstream accept`).
 */
#pragma once

#include "lib/store/store.h"
#include "upstream.h"
#include "upstream_policy.h"

/* The state of each tool of the list, in its order; the caller's array. Notes those that are new, if `note`, and logs
 * those that changed. */
int upstream_pin_states(struct store *store, const struct upstream_list *list, bool note, enum upstream_pin **ret,
			struct err *err);
/* From now on these definitions are the known ones: of one tool, or (NULL) of all. */
int upstream_pin_accept(struct store *store, const struct upstream_list *list, const char *tool, struct err *err);
