/*
 * sweep.h - the sweep of the record (store_gc.h), for `sallyport forget` and `sallyport gc`: with a progress bar, and
 * what it found for people and as JSON.
 */
#pragma once

#include "cli.h"
#include "lib/store/retention/store_gc.h"

int sweep_run(struct store *store, bool dry, bool vacuum, struct store_swept *ret, struct err *err);
void sweep_print(const struct store_swept *swept, bool dry);
void sweep_add_json(struct json_object *object, const struct store_swept *swept);
