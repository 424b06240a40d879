/*
 * gc.h - the garbage collection of the record (store_gc.h), for `sallyport forget` and `sallyport gc`: with a progress
 * bar, and what it found for people and as JSON.
 */
#pragma once

#include "cli.h"
#include "lib/store/retention/store_gc.h"

/* cli_open_store for writing, on a full disk, too (store_reserve.h). */
int gc_open_store(const struct cli_common *common, struct config *ret_config, struct store **ret, struct err *err);
int gc_collect(struct store *store, bool dry, bool vacuum, struct store_collected *ret, struct err *err);
void gc_print(const struct store_collected *collected, bool dry);
void gc_add_json(struct json_object *object, const struct store_collected *collected);
