/*
 * store_audit_row.h - what an entry says of a row: the same functions make the entry and, later, what a verifier
 * compares it with.
 *
 * A sum of columns is SHA-256 over each column's type (n, i, f, t, b), length (8 bytes, big-endian) and bytes; numbers
 * as 8 bytes.
 */
#pragma once

#include "lib/store/db/store_query.h"
#include "store_audit.h"

/* Members of details become the object that is stored. */
void store_audit_close_details(struct buf *details);

/* All columns from `first` on. */
void store_audit_sum_row(struct query *query, int first, char ret[SHA256_HEX_SIZE]);
/* The same over all rows of the query; *ret_count of them. */
int store_audit_sum_rows(struct query *query, char ret[SHA256_HEX_SIZE], int64_t *ret_count, struct err *err);

/* From a row of STORE_SQL_AUDIT_BEGIN or _END, which the query stands on: facts and details of the run's entry. `owner`
 * and `actor` point into the row; the actor of a run with a token is that, NULL means the process. */
#define STORE_AUDIT_ACTOR_SIZE STORE_AUDIT_OBJECT_SIZE
int store_audit_from_run(struct store_conn *conn, struct query *row, enum store_audit_kind kind,
			 char ret_actor[STORE_AUDIT_ACTOR_SIZE], struct store_audit *ret, struct err *err);
/* The same of a run without files, which is not asked for any. */
void store_audit_from_run_alone(struct query *row, enum store_audit_kind kind, char ret_actor[STORE_AUDIT_ACTOR_SIZE],
				struct store_audit *ret);
/* From a row of STORE_SQL_AUDIT_CALL. */
void store_audit_from_call(struct query *row, struct store_audit *ret);
/* From a row of token (STORE_SQL_AUDIT_TOKEN), file or conversation. */
void store_audit_from_token(struct query *row, enum store_audit_kind kind, struct store_audit *ret);
void store_audit_from_conversation(struct query *row, struct store_audit *ret);
void store_audit_from_file(struct query *row, struct store_audit *ret);
