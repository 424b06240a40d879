/* store_audit_scan.h - what the readers of the audit log share (store_audit_read.c, store_audit_check.c). */
#pragma once

#include <sqlite3.h>

#include "store_audit_read.h"
#include "store_query.h"

struct store_audit_reader {
	struct store_conn *conn; /* in a transaction, so that what was found stays true */
	char *owner;             /* whose principal was asked for last, or NULL */
	char principal[ID_SIZE];
};

/* A statement over whole tables, for one use. */
int store_audit_scan(struct store_audit_reader *reader, const char *sql, sqlite3_stmt **ret, struct err *err);
int store_audit_scan_next(struct store_audit_reader *reader, sqlite3_stmt *scan, struct err *err); /* 1: a row */
const char *store_audit_scan_text(sqlite3_stmt *scan, int column);                                 /* never NULL */
void store_audit_scan_end(sqlite3_stmt **scan);
#define auto_scan __attribute__((cleanup(store_audit_scan_end)))
