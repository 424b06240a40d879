/*
 * store_migrate.h - a database of an older version becomes one of this version.
 *
 * The gateway does it when it starts (STORE_SERVE). A copy of the database is kept in the data folder, as
 * sallyport.db.version-N.TIME; all steps run in one transaction, so the next that opens the database finds it whole and
 * of one version, also when the process is killed in between. Adding a version: a row in store_schema_steps
 * (store_schema.c), and the same change in schema.sql.
 */
#pragma once

#include "store_schema.h"
#include "store_txn.h"

/* `conn` writes to the database. ERR_BUSY: another process is writing; ERR_SYSTEM: no room, or the disk fails. After a
 * failure the database is as it was. Where there is nothing to do: 0. ERR_UNAVAILABLE: no step upgrades its version. */
int store_migrate(struct store *store, struct store_conn *conn, const struct store_step *steps, struct err *err);
