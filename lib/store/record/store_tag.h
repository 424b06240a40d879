/*
 * store_tag.h - names by which an operator finds runs again (filter "tag"). They are no part of what was recorded: no
 * verdict on the record covers them, and they can be taken away, but for one. Each change stands in the audit log.
 * Bundles carry them; an import adds those that a run lacks.
 */
#pragma once

#include "lib/store/store.h"

#define STORE_TAG_MAX   64   /* bytes */
/* What a run has that came in without proof (store_bundle_unverified): nobody gives it by hand, or takes it away. */
#define STORE_TAG_UNVERIFIED "unverified"
#define STORE_TAG_BATCH 1000 /* runs in one transaction */

bool store_tag_valid(const char *tag); /* letters, digits and . _ : / - */
/* Gives the tag to executions, or takes it away; *ret_changed: those that had it not, or had it. At most
 * STORE_TAG_BATCH ids, all of executions that are there. */
struct store_tagging {
	const char *tag;
	const char (*ids)[ID_SIZE];
	size_t count;
	bool remove;
};
int store_tag_put(struct store *store, const struct store_tagging *tagging, int64_t *ret_changed, struct err *err);
/* Every tag with its number of executions, by name; the texts are gone after the call. */
int store_tag_list(struct store *store, void (*each)(void *arg, const char *tag, int64_t executions), void *arg,
		   struct err *err);
