/*
 * store_migrate.h - a database of an older version becomes one of this version.
 *
 * The gateway does it when it starts (STORE_SERVE). A copy of the database is kept in the data folder first, as
 * sallyport.db.version-N.TIME; then all steps run in one transaction, so the next that opens the database finds it
 * whole and of one version, also when the process is killed in between. Adding a version: a row in the table of
 * store_migrate.c, and the same change in schema.sql.
 */
#pragma once

#include "store_txn.h"

/* `conn` writes to the database. ERR_BUSY: another process is writing; ERR_SYSTEM: no room, or the disk fails. After a
 * failure the database is as it was. Where another process was faster there is nothing left to do: 0. */
int store_migrate(struct store *store, struct store_conn *conn, struct err *err);
