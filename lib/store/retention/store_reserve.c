/* store_reserve.c - see store_reserve.h. */
#include "store_reserve.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/util.h"
#include "lib/store/db/store_txn.h"
#include "lib/store/record/store_space.h"

#define TIMES_FREE  4
#define INODES_FREE 4

void store_reserve_release(const char *data_dir)
{
	auto_free char *path = xasprintf("%s/" STORE_RESERVE, data_dir);
	struct store_free left;

	if (store_free_space(data_dir, &left, NULL) < 0 ||
	    (left.bytes >= STORE_RESERVE_BYTES / 2 && left.inodes >= INODES_FREE))
		return;
	if (unlink(path) == 0)
		log_event(LOG_WARN, "the disk is full: the reserve was given up", "file", path, NULL);
}

void store_reserve_keep(struct store *store)
{
	struct store_free left;
	struct stat st;

	if (store_free_space(store->path, &left, NULL) < 0 || left.bytes < TIMES_FREE * STORE_RESERVE_BYTES ||
	    (fstatat(store->dir_fd, STORE_RESERVE, &st, 0) == 0 && st.st_size == STORE_RESERVE_BYTES))
		return;
	auto_close int fd = openat(store->dir_fd, STORE_RESERVE, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd >= 0 && (store_give(store, fd) < 0 || posix_fallocate(fd, 0, STORE_RESERVE_BYTES) != 0))
		unlinkat(store->dir_fd, STORE_RESERVE, 0);
}
