/*
 * store.c - opening and closing the record; theory of operation in store.h.
 *
 * The data folder:
 *
 *     sallyport.db (-wal, -shm)   0600   the database
 *     secret.key                  0600   32 random bytes: download addresses and sealed values hang on them
 *     reserve                     0600   room for erasures on a full disk (store_reserve.h)
 *     gateway.lock                0600   flock: the one gateway of this database; holds its pid for people
 *     instances/ID.lock           0700   flock: this instance lives
 *     running/ID.out, ID.err      0700   output of what runs now; ID.calls: what it has called
 *     blobs/ab/cdef…              0750   contents, files 0640: nginx sends them
 *
 * The folder itself is 0750 and belongs to the gateway's account. For nginx under another account, make the folder's
 * group one that it is in, and set its setgid bit (chmod 2750): blobs then inherit the group, and nginx gets at them
 * and at nothing else. A CLI run by root gives what it makes to the folder's owner, so that it never locks the gateway
 * out of its own data.
 *
 * The order of opening: folder, the gateway's lock, key, database, writer's thread, instance, and at last the marking
 * of what dead instances left. Each step undoes nothing that another process may hold.
 */
#include "store.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/util.h"
#include "lib/store/blob/store_blob_internal.h"
#include "lib/store/db/store_migrate.h"
#include "lib/store/db/store_schema.h"
#include "lib/store/db/store_txn.h"
#include "lib/store/retention/store_reserve.h"
#include "lib/store/retention/store_retention_internal.h"
#include "lib/store/transfer/store_backup.h"
#include "store_internal.h"

#define SECRET       "secret.key"
#define GATEWAY_LOCK "gateway.lock"
#define LOOKS        20 /* milliseconds that those may take who ask store_served */

/* A folder that is made is on disk, like all that is put into it. */
static int make_dir(const char *path)
{
	auto_free char *parent = xasprintf("%s/..", path);

	if (mkdir(path, 0750) < 0)
		return errno == EEXIST ? 0 : -1;
	auto_close int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -1 : fsync(fd);
}

/* errno of what could not be opened or made. Where another account owns it, or the folder, that is the cause. */
static int open_error(const struct store *store, const char *path, struct err *err)
{
	int number = errno;
	struct stat st;

	if (number == EACCES && (stat(path, &st) == 0 || fstat(store->dir_fd, &st) == 0) && st.st_uid != geteuid())
		return err_set(err, ERR_SYSTEM,
			       "opening %s: account %u owns it, and this is account %u: run this as the account that owns its folder",
			       path, st.st_uid, geteuid());
	errno = number;
	return err_errno(err, "opening %s", path);
}

static int open_dir(struct store *store, const char *data_dir, struct err *err)
{
	struct stat st;

	if (store->mode == STORE_SERVE && make_dir(data_dir) < 0)
		return errno == ENOENT
			       ? err_set(err, ERR_SYSTEM,
					"making the data folder %s: the folder above is missing; make it first, as the account that runs the gateway",
					data_dir)
			       : err_errno(err, "making the data folder %s", data_dir);
	store->dir_fd = open(data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store->dir_fd < 0 && errno == ENOENT)
		return err_set(err, ERR_NOT_FOUND, "there is no data folder %s: the gateway makes it when it starts",
			       data_dir);
	if (store->dir_fd < 0 || fstat(store->dir_fd, &st) < 0)
		return open_error(store, data_dir, err);
	store->path = realpath(data_dir, NULL);
	if (store->path == NULL)
		return err_errno(err, "finding the data folder %s", data_dir);
	store->uid = st.st_uid;
	store->gid = st.st_gid;
	return 0;
}

static int lock_gateway(struct store *store, struct err *err)
{
	auto_free char *path = xasprintf("%s/%s", store->path, GATEWAY_LOCK);
	char pid[24] = "";

	store->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (store->lock_fd < 0)
		return open_error(store, path, err);
	int locked = flock(store->lock_fd, LOCK_EX | LOCK_NB);

	/* One that looks (store_served) has it for an instant. */
	for (int i = 0; locked < 0 && errno == EWOULDBLOCK && i < LOOKS; i++) {
		poll(NULL, 0, 1);
		locked = flock(store->lock_fd, LOCK_EX | LOCK_NB);
	}
	if (locked < 0) {
		if (errno != EWOULDBLOCK)
			return err_errno(err, "locking %s", path);
		if (pread(store->lock_fd, pid, sizeof(pid) - 1, 0) < 0)
			pid[0] = '\0';
		return err_set(
			err, ERR_CONFLICT,
			"another gateway (process %s) serves %s: stop it, or give this one a data_dir of its own",
			pid[0] != '\0' ? pid : "unknown", store->path);
	}
	int length = snprintf(pid, sizeof(pid), "%d", (int)getpid());

	/* The pid is for the text above; a disk without room for it will be noticed soon enough. */
	if (store_give(store, store->lock_fd) < 0 || ftruncate(store->lock_fd, 0) < 0 ||
	    pwrite(store->lock_fd, pid, (size_t)length, 0) < 0)
		return 0;
	return 0;
}

bool store_served(const char *data_dir)
{
	auto_free char *path = xasprintf("%s/%s", data_dir, GATEWAY_LOCK);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

/* Written whole next to its place and linked there: nobody ever sees half a key, and the first of two writers wins. */
static int make_key(struct store *store, struct err *err)
{
	uint8_t key[SHA256_SIZE];
	char path[64];
	auto_close int fd = openat(store->dir_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_errno(err, "making %s/%s", store->path, SECRET);
	random_bytes(key, sizeof(key));
	if (store_give(store, fd) < 0 || write_all(fd, key, sizeof(key)) < 0 || fsync(fd) < 0)
		return err_errno(err, "writing %s/%s", store->path, SECRET);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (linkat(AT_FDCWD, path, store->dir_fd, SECRET, AT_SYMLINK_FOLLOW) < 0 && errno != EEXIST)
		return err_errno(err, "writing %s/%s", store->path, SECRET);
	if (fsync(store->dir_fd) < 0)
		return err_errno(err, "syncing %s", store->path);
	return 0;
}

static int load_key(struct store *store, struct err *err)
{
	static const char env_purpose[] = "environment";
	bool database = faccessat(store->dir_fd, STORE_DATABASE, F_OK, 0) == 0;
	auto_free char *key = NULL;
	size_t length;

	if (faccessat(store->dir_fd, SECRET, F_OK, 0) < 0 && errno == ENOENT) {
		if (database)
			return err_set(err, ERR_CORRUPT,
				       "%s/%s is missing, and %s needs it: restore it from the backup", store->path,
				       SECRET, STORE_DATABASE);
		if (store->mode == STORE_SERVE && make_key(store, err) != 0)
			return -(int)err->code;
	}
	auto_free char *path = xasprintf("%s/%s", store->path, SECRET);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return open_error(store, path, err);
	if (read_fd(fd, SHA256_SIZE, &key, &length, err) != 0)
		return err_wrap(err, "%s", path);
	if (store->mode == STORE_SERVE && (st.st_mode & (S_IRWXG | S_IRWXO)))
		log_event(LOG_WARN, "other accounts may read or write the key", "file", path, "remedy", "chmod 600",
			  NULL);
	if (length != SHA256_SIZE)
		return err_set(err, ERR_CORRUPT, "%s/%s must hold %d bytes, not %zu: restore it from the backup",
			       store->path, SECRET, SHA256_SIZE, length);
	memcpy(store->secret, key, SHA256_SIZE);
	explicit_bzero(key, length);
	hmac_sha256(store->secret, SHA256_SIZE, env_purpose, sizeof(env_purpose) - 1, store->env_key);
	return 0;
}

/* An empty database next to contents is a loss and no first start: the garbage collector would remove them all. Nor is
 * a folder that a restore has not filled yet; nothing is made there, so that the restore can be repeated. */
static int check_first_start(struct store *store, const char *path, struct err *err)
{
	bool any = false;

	if (faccessat(store->dir_fd, STORE_RESTORE_MARK, F_OK, 0) == 0)
		return err_set(err, ERR_CORRUPT, "a restore to %s did not end: repeat sallyport restore", store->path);
	int result = store_blob_any(store, &any, err);

	if (result < 0 || !any)
		return result;
	return err_set(
		err, ERR_CORRUPT,
		"%s is empty or was missing, but %s/blobs has contents that it must name: restore it from a backup "
		"(to begin without them, move the folder blobs away)",
		path, store->path);
}

/* The file is made here and not by SQLite, which would leave its mode to the umask. */
static int make_database(struct store *store, const char *path, struct err *err)
{
	const bool missing = faccessat(store->dir_fd, STORE_DATABASE, F_OK, 0) < 0;
	int failed = missing ? check_first_start(store, path, err) : 0;

	if (failed < 0)
		return failed;
	auto_close int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	return fd < 0 || store_give(store, fd) < 0 || fsync(store->dir_fd) < 0 ? open_error(store, path, err) : 0;
}

static int open_writer(struct store *store, struct err *err)
{
	auto_free char *path = store_database_path(store);
	int version, failed = store->mode == STORE_SERVE ? make_database(store, path, err) : 0;

	if (failed == 0)
		failed = store_conn_open(path, STORE_CONN_WRITER, &store->writer, &version, err);
	if (failed < 0)
		return failed;
	if (version < store_schema_newest && store->mode != STORE_SERVE)
		failed = store_schema_refuse(version, err);
	else if (version == 0)
		failed = check_first_start(store, path, err);
	else if (store->mode == STORE_SERVE)
		failed = store_migrate(store, store->writer, store_schema_steps, err);
	if (failed == 0)
		failed = store_conn_prepare(store->writer, version == 0, err);
	if (failed == 0)
		failed = store_conn_check(store->writer, STORE_CONN_WRITER, err);
	return failed < 0 ? err_wrap(err, "%s", path) : 0;
}

static struct store *store_new(enum store_mode mode)
{
	struct store *store = xcalloc(1, sizeof(*store));

	store->mode = mode;
	store->dir_fd = store->blobs_fd = store->running_fd = store->instances_fd = store->lock_fd =
		store->instance_fd = -1;
	store->queue.end = &store->queue.first;
	store->idle.end = &store->idle.first;
	store->large.end = &store->large.first;
	pthread_mutex_init(&store->readers_lock, NULL);
	pthread_mutex_init(&store->retainer.lock, NULL);
	pthread_mutex_init(&store->refused.lock, NULL);
	pthread_cond_init(&store->retainer.wake, NULL);
	pthread_mutex_init(&store->queue_lock, NULL);
	pthread_cond_init(&store->queue_more, NULL);
	return store;
}

static int open_to_write(struct store *store, struct err *err)
{
	int failed = store_folder_open(store, "instances", 0700, &store->instances_fd, err);

	if (failed == 0)
		failed = open_writer(store, err);
	if (failed == 0 && store->mode == STORE_SERVE)
		unlinkat(store->dir_fd, STORE_RESTORE_MARK, 0); /* no restore may replace what is there */
	if (failed == 0)
		failed = store_writer_start(store, store_abandoned_end, err);
	if (failed == 0)
		failed = store_uptime_begin(store, err);
	if (failed == 0)
		failed = store_instance_begin(store, err);
	if (failed == 0)
		failed = store_reap(store, err);
	if (failed == 0 && store->mode == STORE_SERVE)
		store_reserve_keep(store);
	return failed;
}

static int open_steps(struct store *store, const char *data_dir, struct err *err)
{
	int failed = open_dir(store, data_dir, err);

	if (failed == 0 && store->mode == STORE_SERVE)
		failed = lock_gateway(store, err);
	if (failed == 0 && store->mode != STORE_SERVE && faccessat(store->dir_fd, STORE_DATABASE, F_OK, 0) < 0)
		failed = err_set(err, ERR_NOT_FOUND, "there is no database in %s: the gateway makes it when it starts",
				 store->path);
	if (failed == 0)
		failed = load_key(store, err);
	if (failed == 0)
		failed = store_folder_open(store, "blobs", 0750, &store->blobs_fd, err);
	if (failed == 0)
		failed = store_folder_open(store, "running", 0700, &store->running_fd, err);
	return failed == 0 && store->mode != STORE_READ ? open_to_write(store, err) : failed;
}

int store_open(const char *data_dir, enum store_mode mode, struct store **ret, struct err *err)
{
	auto_reader struct store_reader reader = {0};
	struct err ignored = ERR_INIT;
	struct store *store = store_new(mode);

	err = err != NULL ? err : &ignored;
	int failed = open_steps(store, data_dir, err);

	/* One reader is opened at once: what is wrong with it is known now and not at the first request. */
	if (failed == 0)
		failed = store_reader_take(store, &reader, err);
	if (failed == 0 && store_conn_check(reader.conn, STORE_CONN_READER, err) < 0)
		failed = err_wrap(err, "%s/" STORE_DATABASE, store->path);
	if (failed < 0) {
		store_reader_return(&reader);
		store_close(store);
		return err_wrap(err, "opening the record");
	}
	*ret = store;
	return 0;
}

void store_set_retention(struct store *store, const struct store_retention *retention)
{
	store->retention = *retention;
	store_retain_start(store);
}

void store_close(struct store *store)
{
	if (store == NULL)
		return;
	const int fds[] = {store->blobs_fd,    store->running_fd, store->instances_fd,
			   store->instance_fd, store->dir_fd,     store->lock_fd};

	store_retain_stop(store);
	if (store->writer_started) {
		store_refused_write(store);
		store_uptime_save(store, NULL); /* conversations live a little longer where it fails */
		store_instance_end(store);
		store_writer_stop(store);
	}
	while (store->readers != NULL) {
		struct store_conn *conn = store->readers;

		store->readers = conn->next;
		store_conn_close(conn);
	}
	/* The writer last: the last connection to go folds the log into the database, which a reader cannot. */
	store_conn_close(store->writer);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close_pointer(&fds[i]);
	explicit_bzero(store->secret, sizeof(store->secret));
	explicit_bzero(store->env_key, sizeof(store->env_key));
	pthread_mutex_destroy(&store->readers_lock);
	pthread_mutex_destroy(&store->retainer.lock);
	pthread_mutex_destroy(&store->refused.lock);
	pthread_cond_destroy(&store->retainer.wake);
	pthread_mutex_destroy(&store->queue_lock);
	pthread_cond_destroy(&store->queue_more);
	free(store->path);
	free(store);
}

int store_schema_version(const char *data_dir, int *ret, struct err *err)
{
	auto_free char *path = xasprintf("%s/%s", data_dir, STORE_DATABASE);
	struct store_conn *conn;
	int version, result;

	if (access(path, F_OK) < 0 && errno == ENOENT)
		return err_set(err, ERR_NOT_FOUND, "there is no database in %s: the gateway makes it when it starts",
			       data_dir);
	result = store_conn_open(path, STORE_CONN_READER, &conn, &version, err);
	if (result < 0)
		return result;
	store_conn_close(conn);
	*ret = version;
	return 0;
}
