/* store_internal.h - instances, for the door of the store: who writes here, and the runs of those that are gone. */
#pragma once

#include "store.h"

int store_instance_begin(struct store *store, struct err *err);
void store_instance_end(struct store *store);
/* On the writing thread: interrupts a run of our own whose end could not be recorded. */
int store_abandoned_end(struct store *store, const char *id, struct err *err);
