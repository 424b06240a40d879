/* store_sql_tag.h - statements on the tags of executions; see store_sql.h. */
#pragma once

#include "store_column.h"

#define STORE_TAG_COLUMNS(FIRST, NEXT, OWN)                                                                            \
	FIRST(TAG_NAME, "tag", name)                                                                                   \
	NEXT(TAG_COUNT, "count(*)", count)
enum { STORE_TAG_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) TAG_COLUMNS };
#define STORE_SQL_TAG STORE_TAG_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

#define STORE_STATEMENTS_TAG(X)                                                                                        \
	X(TAG_ADD, WRITE, "INSERT OR IGNORE INTO execution_tag (execution, tag) VALUES (:id, :tag)")                   \
	X(TAG_REMOVE, WRITE, "DELETE FROM execution_tag WHERE execution = :id AND tag = :tag")                         \
	X(TAG_LIST, READ, "SELECT " STORE_SQL_TAG "FROM execution_tag GROUP BY tag ORDER BY tag")
