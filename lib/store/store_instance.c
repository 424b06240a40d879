/*
 * store_instance.c - who writes here, and what becomes of the runs of those that are gone.
 *
 * An instance holds a lock on instances/ID.lock from before its row is written until its end; the kernel frees it
 * whatever that end is. So "its lock is free" means "it is gone", without asking for pids, and a live instance of
 * another process is never touched. The lock file is removed by its owner at an orderly end, else by the one who found
 * it free (who holds it meanwhile, so two never reap the same instance).
 *
 * What a dead instance left running becomes `interrupted`, with the output that had arrived in running/ID.out and
 * ID.err. Its tasks end after that, in the transaction that ends the instance.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/util.h"
#include "lib/base/version.h"
#include "lib/store/audit/store_audit_internal.h"
#include "lib/store/blob/store_blob.h"
#include "lib/store/blob/store_blob_internal.h"
#include "lib/store/db/store_schema.h"
#include "lib/store/db/store_txn.h"
#include "lib/store/record/store_calls.h"
#include "lib/store/record/store_execution.h"
#include "lib/store/record/store_record_internal.h"
#include "store_internal.h"

#define BOOT_ID           "/proc/sys/kernel/random/boot_id"
#define LOCK_NAME_SIZE    (ID_SIZE + 5)
#define RUNNING_ORPHAN_US (24 * 3600 * 1000000ll) /* partial output without a row: of a run that was never begun */

static const char *const kinds[] = {[STORE_SERVE] = "gateway", [STORE_WRITE] = "cli"};

static void lock_name(const char *id, char ret[LOCK_NAME_SIZE])
{
	snprintf(ret, LOCK_NAME_SIZE, "%s.lock", id);
}

/* Gateways only: a command leaves entries for what it does. */
static int audit_instance(struct store_txn *txn, enum store_audit_kind kind, const char *id, struct err *err)
{
	struct store_audit entry;

	if (txn->store->mode != STORE_SERVE)
		return 0;
	store_audit_init(&entry, kind, "instance", id);
	store_audit_word(&entry, "version", SALLYPORT_VERSION);
	store_audit_int(&entry, "schema", store_schema_newest);
	return store_txn_audit(txn, &entry, err);
}

static int begin_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct store *store = arg;
	auto_free char *boot = NULL;
	size_t length;

	if (read_file_at(AT_FDCWD, BOOT_ID, 64, &boot, &length, NULL) != 0)
		boot = xstrdup(""); /* for people only */
	boot[strcspn(boot, "\n")] = '\0';
	auto_query struct query q = query_begin(txn->conn, SQL_INSTANCE_ADD);

	query_bind_text(&q, ":id", store->instance);
	query_bind_text(&q, ":kind", kinds[store->mode]);
	query_bind_int(&q, ":pid", getpid());
	query_bind_text(&q, ":boot_id", boot);
	query_bind_int(&q, ":now", store_txn_now(txn));
	int failed = query_run(&q, NULL, err);

	if (failed == 0)
		failed = store_txn_audit_open(txn, err);
	return failed < 0 ? failed : audit_instance(txn, STORE_AUDIT_INSTANCE_START, store->instance, err);
}

int store_instance_begin(struct store *store, struct err *err)
{
	char id[ID_SIZE], name[LOCK_NAME_SIZE];

	id_new(id);
	lock_name(id, name);
	store->instance_fd = openat(store->instances_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (store->instance_fd < 0 || store_give(store, store->instance_fd) < 0 ||
	    flock(store->instance_fd, LOCK_EX | LOCK_NB) < 0)
		return err_errno(err, "making %s/instances/%s", store->path, name);
	memcpy(store->instance, id, sizeof(id));
	int failed = store_commit(store, begin_work, store, err);

	if (failed < 0) {
		unlinkat(store->instances_fd, name, 0);
		store->instance[0] = '\0';
	}
	return failed;
}

/* The row of an instance is kept only if something names it. `arg` is its id. */
static int end_work(struct store_txn *txn, void *arg, struct err *err)
{
	static const enum store_sql steps[] = {SQL_INSTANCE_REMOVE, SQL_INSTANCE_END};
	int failed = store_txn_task_abandon(txn, arg, err);

	for (size_t i = 0; failed == 0 && i < ARRAY_SIZE(steps); i++) {
		auto_query struct query q = query_begin(txn->conn, steps[i]);

		query_bind_text(&q, ":id", arg);
		if (steps[i] == SQL_INSTANCE_END)
			query_bind_int(&q, ":now", store_txn_now(txn));
		failed = query_run(&q, NULL, err);
	}
	return failed < 0 || !streq(arg, txn->store->instance)
		       ? failed
		       : audit_instance(txn, STORE_AUDIT_INSTANCE_STOP, arg, err);
}

void store_instance_end(struct store *store)
{
	char name[LOCK_NAME_SIZE];
	struct err err = ERR_INIT;

	if (store->instance[0] == '\0')
		return;
	lock_name(store->instance, name);
	if (store_commit(store, end_work, store->instance, &err) == 0)
		unlinkat(store->instances_fd, name, 0);
	else /* the next start will find the lock free and do it */
		log_event(LOG_WARN, "instance not ended", "why", err.text, NULL);
}

/* One run that a dead instance left. */
struct interrupted {
	char id[ID_SIZE];
	const char *instance;
	char message[96];
	struct store_text out, err;
	struct store_tools tools; /* what it had called */
};

/* The files whose recording it had begun: they are in no conversation. */
static int drop_files(struct store_txn *txn, const char *id, struct err *err)
{
	static const enum store_sql steps[] = {SQL_ERASE_DOUBT_FILES, SQL_ERASE_FILES, SQL_ERASE_RECOUNT};
	int failed = 0;

	for (size_t i = 0; failed == 0 && i < ARRAY_SIZE(steps); i++) {
		auto_query struct query q = query_begin(txn->conn, steps[i]);

		query_bind_text(&q, ":id", id);
		if (steps[i] != SQL_ERASE_RECOUNT) {
			query_bind_text(&q, ":what", "output");
			query_bind_int(&q, ":limit", -1);
		}
		failed = query_run(&q, NULL, err);
	}
	return failed;
}

static int interrupt_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct interrupted *run = arg;
	auto_query struct query q = query_begin(txn->conn, SQL_EXECUTION_INTERRUPT);
	int failed = 0;

	if (run->out.blob[0] != '\0')
		failed = store_txn_blob(txn, run->out.blob, (int64_t)run->out.length, err);
	if (failed == 0 && run->err.blob[0] != '\0')
		failed = store_txn_blob(txn, run->err.blob, (int64_t)run->err.length, err);
	if (failed < 0)
		return failed;
	query_bind_text(&q, ":id", run->id);
	query_bind_text(&q, ":instance", run->instance);
	query_bind_int(&q, ":now", store_txn_now(txn));
	query_bind_text(&q, ":message", run->message);
	store_text_bind(&q, ":stdout", &run->out);
	store_text_bind(&q, ":stderr", &run->err);
	int64_t changes = 0;

	failed = query_run(&q, &changes, err);
	if (failed < 0 || changes == 0)
		return failed;
	failed = drop_files(txn, run->id, err);
	if (failed == 0)
		failed = store_txn_audit_end(txn, run->id, err);
	return failed < 0 ? failed : store_txn_tools_add(txn, run->id, &run->tools, err);
}

static int take_calls(struct store *store, const char *id, struct store_tools *ret, struct err *err)
{
	char name[ID_SIZE + 6];

	snprintf(name, sizeof(name), "%s.calls", id);
	auto_close int fd = openat(store->running_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return 0; /* it called nothing */
	return fd < 0 ? err_errno(err, "opening %s/running/%s", store->path, name) : store_calls_read(fd, ret, err);
}

static int take_partial(struct store *store, const char *id, const char *suffix, struct store_text *ret,
			struct err *err)
{
	char name[ID_SIZE + 4];

	snprintf(name, sizeof(name), "%s.%s", id, suffix);
	auto_close int fd = openat(store->running_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return 0; /* it had not come that far */
	if (fd < 0)
		return err_errno(err, "opening %s/running/%s", store->path, name);
	return store_text_keep(store, fd, ret, err);
}

/* By `commit`: store_commit, or store_writer_run on the writing thread. */
static int interrupt(struct store *store, struct interrupted *run,
		     int (*commit)(struct store *store, store_work work, void *arg, struct err *err), struct err *err)
{
	int failed = take_partial(store, run->id, "out", &run->out, err);

	if (failed == 0)
		failed = take_partial(store, run->id, "err", &run->err, err);
	if (failed == 0)
		failed = take_calls(store, run->id, &run->tools, err);
	if (failed == 0)
		failed = store_tools_keep(store, &run->tools, err);
	if (failed == 0)
		failed = commit(store, interrupt_work, run, err);
	free(run->out.data);
	free(run->err.data);
	store_tools_clear(&run->tools);
	if (failed == 0) {
		store_running_remove(store, run->id);
		log_event(LOG_WARN, "run interrupted", "id", run->id, "instance", run->instance, NULL);
	}
	return failed;
}

static int abandoned_task_work(struct store_txn *txn, void *arg, struct err *err)
{
	const struct interrupted *run = arg;
	auto_query struct query q = query_begin(txn->conn, SQL_TASK_ABANDON);

	query_bind_text(&q, ":execution", run->id);
	query_bind_text(&q, ":instance", run->instance);
	query_bind_text(&q, ":message", run->message);
	query_bind_int(&q, ":now", store_txn_now(txn));
	return query_run(&q, NULL, err);
}

int store_abandoned_end(struct store *store, const char *id, struct err *err)
{
	struct interrupted run = {.instance = store->instance,
				  .message = "the end of this run could not be recorded: the disk was full, or failed"};

	memcpy(run.id, id, sizeof(run.id));
	int failed = interrupt(store, &run, store_writer_run, err);

	return failed < 0 ? failed : store_writer_run(store, abandoned_task_work, &run, err);
}

static int reap_instance(struct store *store, const char *instance, const char *kind, struct err *err)
{
	char name[LOCK_NAME_SIZE];
	int failed = 0, found;

	lock_name(instance, name);
	auto_close int lock = openat(store->instances_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	if (lock < 0 && errno != ENOENT)
		return err_errno(err, "opening %s/instances/%s", store->path, name);
	if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? 0 : err_errno(err, "locking %s/instances/%s", store->path, name);
	auto_read struct query q = store_read(store, SQL_INSTANCE_RUNNING, err);

	query_bind_text(&q, ":id", instance);
	while (failed == 0 && (found = query_next(&q, err)) != 0) {
		if (found < 0)
			return found;
		struct interrupted run = {.instance = instance};

		query_copy(&q, 0, run.id, sizeof(run.id));
		snprintf(run.message, sizeof(run.message), "the %s ended before this run did",
			 streq(kind, "cli") ? "command" : "gateway");
		failed = interrupt(store, &run, store_commit, err);
	}
	if (failed == 0)
		failed = store_commit(store, end_work, unconst(instance), err);
	if (failed == 0)
		unlinkat(store->instances_fd, name, 0);
	return failed;
}

/* Partial output of a run that is recorded (the process was killed between commit and removal) or was never begun. */
static int collect_running(struct store *store, struct err *err)
{
	auto_reader struct store_reader reader = {0};
	int failed = store_reader_take(store, &reader, err);
	int fd = openat(store->running_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;
	struct stat st;

	if (dir == NULL) {
		close_pointer(&fd);
		return err_errno(err, "reading %s/running", store->path);
	}
	while (failed == 0 && (entry = readdir(dir)) != NULL) {
		char id[ID_SIZE];

		snprintf(id, sizeof(id), "%.*s", ID_SIZE - 1, entry->d_name);
		if (!id_valid(id))
			continue;
		auto_query struct query q = query_begin(reader.conn, SQL_EXECUTION_STATE);

		query_bind_text(&q, ":id", id);
		int found = query_next(&q, err);

		if (found < 0)
			failed = found;
		else if (found > 0 ? !streq(query_text(&q, 0), "running")
				   : fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
					     clock_now_us() - st.st_mtim.tv_sec * 1000000ll > RUNNING_ORPHAN_US)
			unlinkat(fd, entry->d_name, 0);
	}
	closedir(dir);
	return failed;
}

struct instance {
	char id[ID_SIZE], kind[16];
};
#define ROW struct instance
static const struct column columns[] = {STORE_INSTANCE_COLUMNS(COLUMN_PLACE, COLUMN_PLACE, COLUMN_NONE)};
#undef ROW

/* Its row may be that of a process which starts or ends just now; then nothing of it runs. */
static bool is_gone(const struct store *store, int folder, const char *instance)
{
	char name[LOCK_NAME_SIZE];

	lock_name(instance, name);
	auto_close int lock = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return lock < 0 ? errno == ENOENT && !streq(instance, store->instance) : flock(lock, LOCK_SH | LOCK_NB) == 0;
}

bool store_left_running(struct store *store)
{
	auto_reader struct store_reader reader = {0};
	auto_close int folder = openat(store->dir_fd, "instances", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct instance found;

	if (folder < 0 || store_reader_take(store, &reader, NULL) < 0)
		return false;
	auto_query struct query q = query_begin(reader.conn, SQL_INSTANCE_LIST);

	query_bind_text(&q, ":self", store->instance);
	while (query_next(&q, NULL) > 0) {
		query_read(&q, columns, ARRAY_SIZE(columns), &found);
		auto_query struct query runs = query_begin(reader.conn, SQL_INSTANCE_RUNNING);

		query_bind_text(&runs, ":id", found.id);
		if (query_next(&runs, NULL) > 0 && is_gone(store, folder, found.id))
			return true;
	}
	return false;
}

int store_reap(struct store *store, struct err *err)
{
	auto_read struct query q = store_read(store, SQL_INSTANCE_LIST, err);
	int failed = 0, found;

	query_bind_text(&q, ":self", store->instance);
	while (failed == 0 && (found = query_next(&q, err)) != 0) {
		if (found < 0)
			return found;
		struct instance gone;

		query_read(&q, columns, ARRAY_SIZE(columns), &gone);
		failed = reap_instance(store, gone.id, gone.kind, err);
	}
	return failed < 0 ? failed : collect_running(store, err);
}
