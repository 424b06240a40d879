/*
 * store_schema.h - schema.sql inside the program, and the two numbers by which its databases are known.
 */
#pragma once

/* As the pragmas in schema.sql say; a unit test compares them. */
#define STORE_APPLICATION_ID 0x53505254
#define STORE_VERSION        1

extern const char store_schema[];
