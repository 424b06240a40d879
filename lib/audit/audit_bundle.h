/*
 * audit_bundle.h - proofs for the entries that an export carries (store_bundle_audit.h), so that `sallyport verify` can
 * check it far from the record.
 */
#pragma once

#include "audit_tree.h"
#include "lib/store/transfer/store_bundle_audit.h"

/* Proves the bundle's entries against the tree of `database` as it is; with a checkpoint (a file), against the tree
 * that it signed. ERR_UNAVAILABLE: the checkpoint does not cover them yet; ERR_CORRUPT: the log is not its. */
int audit_bundle_prove(struct store_bundle *bundle, const char *database, const char *checkpoint, struct err *err);
