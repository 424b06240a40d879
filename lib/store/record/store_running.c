/* store_running.c - see store_running.h. An instance that lives holds a lock on its file (store_instance.c). */
#include "store_running.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "lib/store/db/store_txn.h"

#define ROW struct store_running
static const struct column columns[] = {STORE_RUNNING_COLUMNS(COLUMN_PLACE, COLUMN_PLACE, COLUMN_NONE)};
#undef ROW

/* Somebody holds its lock. Ours is taken for a moment at most. */
static bool is_alive(struct store *store, const char *instance)
{
	char name[ID_SIZE + 16];

	snprintf(name, sizeof(name), "instances/%s.lock", instance);
	auto_close int lock = openat(store->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return lock >= 0 && flock(lock, LOCK_SH | LOCK_NB) < 0;
}

int store_running_list(struct store *store, int (*each)(void *arg, const struct store_running *running), void *arg,
		       struct err *err)
{
	auto_read struct query q = store_read(store, SQL_RUNNING_LIST, err);
	int found;

	while ((found = query_next(&q, err)) > 0) {
		struct store_running running = {0};

		query_read(&q, columns, ARRAY_SIZE(columns), &running);
		running.alive = is_alive(store, running.instance);
		if (each(arg, &running) != 0)
			return 0;
	}
	return found;
}
