/*
 * store_schema.h - schema.sql inside the program, and the numbers by which its databases are known: application_id, and
 * user_version, which is the version of the schema.
 */
#pragma once

#include <stdint.h>

#include "lib/base/err.h"

/* As the pragmas in schema.sql say; a unit test compares them. */
#define STORE_APPLICATION_ID 0x53505254
extern const int store_schema_newest; /* schema.sql's user_version */
extern const char store_schema[];
/* What is behind "CREATE VIEW name AS" in it, which must be there; the caller frees. */
char *store_schema_view(const char *name);

/* What turns a database of version `from` into one of `from` + 1; the row of store_schema_newest, the last, has no
 * statements. The first row is of the oldest version that is upgraded. A row is never changed once it was released. */
struct store_step {
	int from;
	const char *statements;
};
extern const struct store_step store_schema_steps[];

/* Why a database, or a backup, of this version is not opened, and what helps: the newer release, the program that wrote
 * it, or the gateway, which alone upgrades. */
int store_schema_refuse(int64_t version, struct err *err);
