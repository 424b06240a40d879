/*
 * store_reader.h - a reading connection for a scope, out of the pool that the store keeps; and small things that every
 * room of the store needs: the database's path, the owner of what root makes, the bounds of an id's prefix.
 */
#pragma once

#include "lib/store/store.h"
#include "store_query.h"

#define STORE_DATABASE "sallyport.db"

struct store_reader {
	struct store *store;
	struct store_conn *conn; /* NULL where store_reader_take failed */
};
int store_reader_take(struct store *store, struct store_reader *ret, struct err *err);
void store_reader_return(struct store_reader *reader);
#define auto_reader __attribute__((cleanup(store_reader_return)))
/* A query on a connection of its own. Where there is none *err is set at once, and query_next returns that failure. */
struct query store_read(struct store *store, enum store_sql which, struct err *err);
void store_read_end(struct query *query);
#define auto_read __attribute__((cleanup(store_read_end)))

/* The caller frees. */
char *store_database_path(const struct store *store);
/* Gives what root made to the owner of the data folder. */
int store_give(const struct store *store, int fd);
/* The bounds of a prefix for :from and :to; ERR_INVALID for an empty or overlong one. */
struct store_range {
	char from[ID_SIZE], to[ID_SIZE + 1];
};
int store_range(const char *prefix, struct store_range *ret, struct err *err);
