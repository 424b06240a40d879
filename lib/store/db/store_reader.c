/* store_reader.c - see store_reader.h. */
#include "store_reader.h"

#include <unistd.h>

#include "lib/base/util.h"
#include "store_schema.h"
#include "store_txn.h"

int store_give(const struct store *store, int fd)
{
	if (geteuid() != 0 || store->uid == 0)
		return 0;
	return fchown(fd, store->uid, store->gid);
}

char *store_database_path(const struct store *store)
{
	return xasprintf("%s/%s", store->path, STORE_DATABASE);
}

int store_reader_take(struct store *store, struct store_reader *ret, struct err *err)
{
	struct store_conn *conn;
	int version;

	pthread_mutex_lock(&store->readers_lock);
	conn = store->readers;
	if (conn != NULL) {
		store->readers = conn->next;
		store->n_readers--;
	}
	pthread_mutex_unlock(&store->readers_lock);
	if (conn == NULL) {
		auto_free char *path = store_database_path(store);
		int failed = store_conn_open(path, STORE_CONN_READER, &conn, &version, err);

		if (failed < 0)
			return failed;
		if (version != store_schema_newest) {
			store_conn_close(conn);
			store_schema_refuse(version, err);
			return err_wrap(err, "%s", path);
		}
	}
	conn->store = store;
	*ret = (struct store_reader){store, conn};
	return 0;
}

void store_reader_return(struct store_reader *reader)
{
	struct store_conn *conn = reader->conn;
	struct store *store = reader->store;

	if (conn == NULL)
		return;
	if (conn->deadline_us)
		store_conn_limit(conn, 0);
	pthread_mutex_lock(&store->readers_lock);
	if (store->n_readers < STORE_READERS_IDLE) {
		conn->next = store->readers;
		store->readers = conn;
		store->n_readers++;
		conn = NULL;
	}
	pthread_mutex_unlock(&store->readers_lock);
	store_conn_close(conn);
	reader->conn = NULL;
}

struct query store_read(struct store *store, enum store_sql which, struct err *err)
{
	struct store_reader reader = {0};
	const int failed = store_reader_take(store, &reader, err);

	return failed < 0 ? (struct query){.which = which, .failed = failed} : query_begin(reader.conn, which);
}

void store_read_end(struct query *query)
{
	struct store_conn *conn = query->conn;

	if (conn == NULL)
		return;
	query_end(query);
	store_reader_return(&(struct store_reader){conn->store, conn});
}

int store_range(const char *prefix, struct store_range *ret, struct err *err)
{
	size_t length = strlen(prefix);

	if (length == 0 || length >= ID_SIZE)
		return err_set(err, ERR_INVALID, "an id or the beginning of one was expected");
	snprintf(ret->from, sizeof(ret->from), "%s", prefix);
	snprintf(ret->to, sizeof(ret->to), "%s" STORE_ID_ABOVE, prefix);
	return 0;
}
