/* store_schema.c - see store_schema.h; the Makefile makes the included text from schema.sql. */
#include "store_schema.h"

const char store_schema[] =
#include "schema_sql.inc"
	;

const int store_schema_newest = 25;

int store_schema_refuse(int version, struct err *err)
{
	if (version == 0)
		return err_set(err, ERR_NOT_FOUND, "the database is empty: the gateway fills it when it starts");
	return err_set(
		err, ERR_UNAVAILABLE,
		"the database is of version %d, and this program works with version %d: start the gateway of this release, which upgrades it and keeps a copy (if it is starting now, try again in a moment)",
		version, store_schema_newest);
}
