/* store_schema.c - see store_schema.h; the Makefile makes the included text from schema.sql. */
#include "store_schema.h"

const char store_schema[] =
#include "schema_sql.inc"
	;
