/*
 * store_sql_runtime.h - statements on what programs run on.
 */
#pragma once

#define STORE_STATEMENTS_RUNTIME(X) \
	X(RUNTIME_IS, READ, "SELECT 1 FROM runtime WHERE hash = :hash") \
	X(RUNTIME_ADD, WRITE, \
	  "INSERT INTO runtime (hash, description, first_us) VALUES (:hash, :description, :now)") \
	X(RUNTIME_SET, WRITE, "UPDATE execution SET runtime = :hash WHERE id = :id") \
	X(RUNTIME_OF, READ, \
	  "SELECT description FROM execution JOIN runtime ON hash = execution.runtime WHERE execution.id = :id")
