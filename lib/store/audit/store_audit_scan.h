/* store_audit_scan.h - what the readers of the audit log share (store_audit_read.c, _rows.c, _check.c). */
#pragma once

#include <sqlite3.h>

#include "lib/store/db/store_query.h"
#include "store_audit_read.h"

#define STORE_AUDIT_PRINCIPALS 64 /* that are remembered */

struct store_audit_rows;
struct store_audit_reader {
	struct store_conn *conn; /* in a transaction, so that what was found stays true */
	struct {
		char *owner; /* or NULL */
		char id[ID_SIZE];
	} principals[STORE_AUDIT_PRINCIPALS]; /* each in the place that its owner's name leads to */
	struct store_audit_rows *rows;        /* NULL: they were not read */
	bool erasures;                        /* an entry that was read says that content was erased */
	bool lone_details;                    /* there were details of no entry */
};

/* When the log began: rows that are older may have no entries. */
#define STORE_AUDIT_BEGAN "coalesce((SELECT at_us FROM audit WHERE n = 0), 0)"

/* A statement over whole tables, for one use. */
int store_audit_scan(struct store_audit_reader *reader, const char *sql, sqlite3_stmt **ret, struct err *err);
int store_audit_scan_next(struct store_audit_reader *reader, sqlite3_stmt *scan, struct err *err); /* 1: a row */
const char *store_audit_scan_text(sqlite3_stmt *scan, int column);                                 /* never NULL */
/* The first column of the first row, if there is one. */
int store_audit_scan_number(struct store_audit_reader *reader, const char *sql, int64_t *ret, struct err *err);
void store_audit_scan_end(sqlite3_stmt **scan);
#define auto_scan __attribute__((cleanup(store_audit_scan_end)))

/* Is there anything in rows and entries that does not fit, as far as both were read? */
bool store_audit_rows_odd(const struct store_audit_reader *reader);
void store_audit_rows_free(struct store_audit_rows *rows); /* NULL is fine */
