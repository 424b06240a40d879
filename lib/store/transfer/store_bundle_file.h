/*
 * store_bundle_file.h - the file of a bundle; between the files store_bundle*.c.
 *
 * One schema for all bundles. Tables that a bundle does not need are empty.
 */
#pragma once

#include <sqlite3.h>

#include "lib/store/db/store_query.h"
#include "lib/store/db/store_sql_bundle.h"
#include "store_bundle.h"

struct store_txn;

#define STORE_BUNDLE_APPLICATION 0x53504255 /* "SPBU" */
#define STORE_BUNDLE_VERSION     9          /* no other version is read */
extern const char store_bundle_schema[];

/* A condition: the column is not a path below /data. */
#define STORE_BUNDLE_BAD_PATH(name)                                                                                    \
	"(length(" name ") > 4096 OR '/' || CAST(" name " AS TEXT) || '/' LIKE '%/../%' OR '/' || CAST(" name          \
	" AS TEXT) || '/' LIKE '%/./%' OR '/' || CAST(" name " AS TEXT) || '/' LIKE '%//%' OR instr(CAST(" name        \
	" AS BLOB), x'00') > 0)"
struct store_bundle {
	sqlite3 *db;
	char *path, *part; /* part: the new file until it is finished; NULL: none */
	char *owner;       /* who moves with it; NULL: nobody */
	bool leave_env, unverified;
};

/* -------- statements on the file ---------------------------------------------------------------------- */
void store_bundle_statement(sqlite3_stmt **statement);
#define auto_statement __attribute__((cleanup(store_bundle_statement)))
int store_bundle_failed(struct store_bundle *bundle, struct err *err);
/* `text`: for ?1, not copied; NULL where there is no such parameter. */
int store_bundle_prepare(struct store_bundle *bundle, const char *sql, const char *text, sqlite3_stmt **ret,
			 struct err *err);
/* 1: a row; 0: no (more) row, which is success of a statement that writes. */
int store_bundle_next(struct store_bundle *bundle, sqlite3_stmt *statement, struct err *err);
int store_bundle_number(struct store_bundle *bundle, const char *sql, int64_t *ret, struct err *err);

/* -------- out ----------------------------------------------------------------------------------------- */
/* The rows that a statement finds in the record go into a table of the file. */
struct store_bundle_rows {
	enum store_sql from; /* with one parameter: :id, or :owner */
	const char *insert;
};
/* Returns how many rows there were. */
int store_bundle_carry(struct store_bundle *bundle, struct store *store, const struct store_bundle_rows *rows,
		       const char *parameter, const char *value, struct err *err);

/* -------- in ------------------------------------------------------------------------------------------ */
/* Everything that store_bundle_open promises; sets bundle->owner. */
int store_bundle_check(struct store_bundle *bundle, struct err *err);
/* Each content, whose bytes must have its name; into the store, if there is one. */
int store_bundle_each_blob(struct store_bundle *bundle, struct store *store, struct err *err);
/* Binds the row that `row` is at to parameters of the names of its columns, but for the column `but` (NULL: none). */
void store_bundle_bind_row(struct query *to, sqlite3_stmt *row, const char *but);
/* The owner's rows behind those of runs, in their transaction; ERR_CONFLICT and *ret_refused as of
 * store_bundle_import. */
int store_bundle_owner_import(struct store_txn *txn, struct store_bundle *bundle, struct store_carried *ret,
			      bool *ret_refused, struct err *err);
