/*
 * store_schema.h - schema.sql inside the program, and the numbers by which its databases are known: application_id, and
 * user_version, which is the version of the schema.
 */
#pragma once

#include "lib/base/err.h"

/* As the pragmas in schema.sql say; a unit test compares them. */
#define STORE_APPLICATION_ID 0x53505254
extern const int store_schema_newest; /* schema.sql's user_version */
extern const char store_schema[];
/* What a command says that finds an older version and must not migrate it. */
int store_schema_refuse(int version, struct err *err);
