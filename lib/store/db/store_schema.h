/*
 * store_schema.h - schema.sql inside the program, and the numbers by which its databases are known: application_id, and
 * user_version, which is the version of the schema.
 */
#pragma once

/* As the pragmas in schema.sql say; a unit test compares them. */
#define STORE_APPLICATION_ID 0x53505254

extern const int store_schema_newest; /* that of schema.sql: one more than there are steps in store_migrate.c */
extern const char store_schema[];
