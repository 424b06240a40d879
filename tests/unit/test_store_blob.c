/* test_store_blob.c - the blob folder, partial output, and everything that expires. */
#include "lib/store/blob/store_blob.h"
#include "lib/store/db/store_txn.h"
#include "lib/store/record/store_execution.h"
#include "lib/store/record/store_session.h"
#include "lib/store/retention/store_expire.h"
#include "store_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>

#define HOUR_US (3600 * 1000000ll)
#define DAY_US  (24 * HOUR_US)
#define PUTTERS 8

static char *blob_file(const struct fixture *f, const char *sha256)
{
	char path[SHA256_HEX_SIZE + 1];

	store_blob_path(sha256, path);
	return xasprintf("%s/blobs/%s", f->data, path);
}

static bool kept(const struct fixture *f, const char *sha256)
{
	auto_free char *path = blob_file(f, sha256);

	return access(path, F_OK) == 0;
}

static void put_and_open(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	char sha256[SHA256_HEX_SIZE], wanted[SHA256_HEX_SIZE], bytes[8] = "", path[SHA256_HEX_SIZE + 1];
	auto_close int fd = -1;
	int64_t size;

	ok(store_blob_put(f->store, "a\0b", 3, sha256, &err));
	sha256_hex("a\0b", 3, wanted);
	assert_string_equal(sha256, wanted);
	store_blob_path(sha256, path);
	assert_int_equal(path[2], '/');
	ok(store_blob_open(f->store, sha256, &fd, &size, &err));
	assert_int_equal(size, 3);
	assert_int_equal(read(fd, bytes, sizeof(bytes)), 3);
	assert_memory_equal(bytes, "a\0b", 3);
	assert_int_equal(write(fd, "x", 1), -1);
	ok(store_blob_put(f->store, NULL, 0, sha256, &err)); /* nothing is a content, too */
	sha256_hex("", 0, wanted);
	assert_string_equal(sha256, wanted);
	assert_true(kept(f, sha256));
}

static void put_from_descriptor(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	char sha256[SHA256_HEX_SIZE] = "untouched", wanted[SHA256_HEX_SIZE];
	auto_free char *big = xcalloc(1, 300000);
	int64_t size = 0;

	memset(big + 100000, 'x', 100000);
	auto_close int fd = memfd_with("big", big, 300000);

	fails(store_blob_put_fd(f->store, fd, 299999, sha256, &size, &err), ERR_LIMIT);
	assert_string_equal(sha256, "untouched");
	assert_int_equal(lseek(fd, 1234, SEEK_SET), 1234); /* from the beginning all the same */
	ok(store_blob_put_fd(f->store, fd, 300000, sha256, &size, &err));
	sha256_hex(big, 300000, wanted);
	assert_string_equal(sha256, wanted);
	assert_int_equal(size, 300000);
	fails(store_blob_put_fd(f->store, -1, 1, sha256, &size, &err), ERR_SYSTEM);
}

static void put_twice_writes_once(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	char sha256[SHA256_HEX_SIZE];
	struct stat first, second;

	ok(store_blob_put(f->store, "same", 4, sha256, &err));
	auto_free char *path = blob_file(f, sha256);

	assert_int_equal(stat(path, &first), 0);
	ok(store_blob_put(f->store, "same", 4, sha256, &err));
	assert_int_equal(stat(path, &second), 0);
	assert_int_equal(first.st_ino, second.st_ino);
	assert_int_equal(truncate(path, 1), 0); /* damaged: put in place anew */
	ok(store_blob_put(f->store, "same", 4, sha256, &err));
	assert_int_equal(stat(path, &second), 0);
	assert_int_equal(second.st_size, 4);
	assert_int_not_equal(first.st_ino, second.st_ino);
}

static void *put_same(void *arg)
{
	struct err err = ERR_INIT;
	char sha256[SHA256_HEX_SIZE], text[16];
	long failures = 0;

	for (int i = 0; i < 50; i++) {
		int length = snprintf(text, sizeof(text), "%d", i);

		failures += store_blob_put(arg, text, (size_t)length, sha256, &err) != 0;
	}
	return (void *)failures;
}

static int count_file(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st;
	/* Only whole contents under their own names. */
	if (type == FTW_F && walk->level == 2 && st->st_size > 2)
		fail_msg("%s", path);
	return type == FTW_F && walk->level == 1 && !streq(path + walk->base, "lock");
}

static int count_content(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)path, (void)st;
	return type == FTW_F && walk->level == 2;
}

static void put_at_once(void **state)
{
	struct fixture *f = *state;
	pthread_t threads[PUTTERS];
	void *failures;
	auto_free char *blobs = xasprintf("%s/blobs", f->data);

	for (int i = 0; i < PUTTERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, put_same, f->store), 0);
	for (int i = 0; i < PUTTERS; i++) {
		pthread_join(threads[i], &failures);
		assert_null(failures);
	}
	assert_int_equal(nftw(blobs, count_file, 16, FTW_PHYS), 0); /* no temporary file was left */
}

static void bad_names(void **state)
{
	static const char *const names[] = {"", "abc", "../../secret.key",
					    "g000000000000000000000000000000000000000000000000000000000000000",
					    "ABCDEF0000000000000000000000000000000000000000000000000000000000"};
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	char unknown[SHA256_HEX_SIZE];
	int64_t size;
	int fd;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		fails(store_blob_open(f->store, names[i], &fd, &size, &err), ERR_NOT_FOUND);
	sha256_hex("unknown", 7, unknown);
	fails(store_blob_open(f->store, unknown, &fd, &size, &err), ERR_NOT_FOUND);
	fails(store_running_open(f->store, "../x", "out", &fd, &err), ERR_INTERNAL);
	fails(store_running_open(f->store, "01a1fd4c-5b94-7f6b-9ee6-a245b035fcd4", "key", &fd, &err), ERR_INTERNAL);
	store_running_remove(f->store, "../../secret.key");
	assert_true(access(f->data, F_OK) == 0);
}

static void damaged_blob(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_file file;
	struct store_conversation talk = put_file(f->store, "ann", "talk", "a", "hello");
	int64_t size;
	int fd;

	ok(store_file_find(f->store, talk.row, "a", 1, &file, &err));
	auto_free char *path = blob_file(f, file.blob);

	assert_int_equal(truncate(path, 3), 0);
	fails(store_blob_open(f->store, file.blob, &fd, &size, &err), ERR_CORRUPT);
	assert_int_equal(unlink(path), 0);
	fails(store_blob_open(f->store, file.blob, &fd, &size, &err), ERR_CORRUPT);
	assert_non_null(strstr(err.text, "backup"));
	assert_int_equal(symlink("/etc/passwd", path), 0); /* never followed */
	assert_true(store_blob_open(f->store, file.blob, &fd, &size, &err) < 0);
}

static void partial_output(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	char id[ID_SIZE];
	int fd, again;

	id_new(id);
	ok(store_running_open(f->store, id, "out", &fd, &err));
	fails(store_running_open(f->store, id, "out", &again, &err), ERR_SYSTEM); /* made new, never shared */
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
	auto_free char *path = xasprintf("%s/running/%s.out", f->data, id);

	assert_int_equal(access(path, F_OK), 0);
	store_running_remove(f->store, id);
	assert_int_equal(access(path, F_OK), -1);
	store_running_remove(f->store, id); /* harmless */
}

/* -------- what expires -------------------------------------------------------------------------------- */

/* The owners who are told, each with a blank behind. */
static void remember(void *lost, const char *owner)
{
	buf_printf(lost, "%s ", owner);
}

static void idle_conversations(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_execution past = sample("ann"), present = sample("ann"), found;
	struct store_conversation idle = put_file(f->store, "ann", "idle", "a", "idle content"), busy, gone;
	int64_t now = clock_now_us();
	auto_buf struct buf lost = {0};

	past.conversation_row = idle.row;
	begin(f->store, &past);
	finish(f->store, &past, NULL, 0);
	put_file(f->store, "ann", "unused", "b", "unused content");
	busy = put_file(f->store, "ann", "busy", "c", "busy content");
	present.conversation_row = busy.row;
	begin(f->store, &present); /* runs on */

	retain(f->store, 0, 0);
	f->store->served_us += 1000 * DAY_US;
	ok(store_expire(f->store, now + 1000 * DAY_US, NULL, NULL, &err)); /* no time to live: they stay */
	f->store->served_us -= 1000 * DAY_US;
	assert_answer(f, "SELECT count(*) FROM conversation", "3");
	retain(f->store, 0, 30 * DAY_US);
	f->store->served_us += 29 * DAY_US;
	ok(store_expire(f->store, now + 29 * DAY_US, NULL, NULL, &err));
	assert_answer(f, "SELECT count(*) FROM conversation", "3");
	buf_init(&lost, 64);
	f->store->served_us += 2 * DAY_US;
	ok(store_expire(f->store, now + 31 * DAY_US, remember, &lost, &err));
	assert_string_equal(lost.data, "ann ");
	assert_answer(f, "SELECT group_concat(name) FROM conversation", "busy");
	fails(store_conversation_find(f->store, "ann", "idle", &gone, &err), ERR_NOT_FOUND);
	ok(store_execution_find(f->store, past.id, &found, &err)); /* the run stays, with its name and its files */
	assert_string_equal(found.conversation, "idle");
	assert_int_equal(found.conversation_row, 0);
	store_execution_clear(&found);

	char used[SHA256_HEX_SIZE], unused[SHA256_HEX_SIZE];

	sha256_hex("idle content", 12, used);
	sha256_hex("unused content", 14, unused);
	assert_true(kept(f, used)); /* a replay needs it */
	assert_false(kept(f, unused));
	assert_answer(f, "SELECT count(*) FROM blob", "2");
	assert_sound(f);
}

/* Conversations idle while gateways serve, all together; what the machine's clock says does not count. */
static void idle_while_served(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	const int64_t limit = 30 * DAY_US;

	put_file(f->store, "ann", "talk", "a", "x");
	put_file(f->store, "ann", "used", "a", "x");
	for (int i = 1; i <= 2; i++) {
		retain(f->store, 0, limit);
		ok(store_expire(f->store, clock_now_us() + 1000 * DAY_US, NULL, NULL, &err)); /* a clock far ahead */
		assert_answer(f, "SELECT count(*) FROM conversation", "2");
		f->store->served_us += 14 * DAY_US;
		reopen(f, STORE_SERVE);
		auto_free char *served = ask(f, "SELECT served_us / 86400000000 FROM uptime");

		assert_int_equal(served[0] == '1' ? 14 : 28, 14 * i);
	}
	/* A process beside the gateway uses one: it counts from what the gateway wrote last. */
	struct store *beside;

	ok(store_open(f->data, STORE_WRITE, &beside, &err));
	put_file(beside, "ann", "used", "b", "x");
	store_close(beside);
	retain(f->store, 0, limit);
	f->store->served_us += 3 * DAY_US;
	ok(store_expire(f->store, 0, NULL, NULL, &err)); /* and one far behind */
	assert_answer(f, "SELECT group_concat(name) FROM conversation", "used");
	assert_sound(f);
}

/* More than one transaction removes. */
static void many_conversations(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	auto_buf struct buf lost = {0};
	char name[20];

	for (int i = 0; i < 450; i++) {
		struct put_file put = {.owner = "ann", .conversation = name, .name = "a", .content = name};

		snprintf(name, sizeof(name), "talk-%d", i);
		put.file = (struct store_file){
			.name = "a", .name_length = 1, .size = (int64_t)strlen(name), .media_type = "text/plain"};
		ok(store_blob_put(f->store, name, strlen(name), put.file.blob, &err));
		ok(store_commit(f->store, put_file_work, &put, &err));
	}
	retain(f->store, 0, DAY_US);
	buf_init(&lost, 64);
	f->store->served_us += 2 * DAY_US;
	ok(store_expire(f->store, clock_now_us() + 2 * DAY_US, remember, &lost, &err));
	assert_string_equal(lost.data, "ann "); /* once */
	assert_answer(f,
		      "SELECT (SELECT count(*) FROM conversation) + (SELECT count(*) FROM file) + (SELECT count(*) "
		      "FROM blob)",
		      "0");
	auto_free char *blobs = xasprintf("%s/blobs", f->data);

	assert_int_equal(nftw(blobs, count_content, 16, FTW_PHYS), 0);
}

static void blobs_in_use_stay(void **state)
{
	static const char *const roles[] = {"code", "stdin", "stdout", "stderr"};
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_execution run = sample("ann");
	struct store_text *texts[] = {&run.code, &run.stdin_text, &run.stdout_text, &run.stderr_text};
	char loose[SHA256_HEX_SIZE];
	int64_t now = clock_now_us();

	for (size_t i = 0; i < ARRAY_SIZE(roles); i++) {
		*texts[i] = (struct store_text){NULL, strlen(roles[i]), ""};
		ok(store_blob_put(f->store, roles[i], strlen(roles[i]), texts[i]->blob, &err));
	}
	ok(store_blob_put(f->store, "loose", 5, loose, &err));
	begin(f->store, &run);
	finish(f->store, &run, NULL, 0);
	put_file(f->store, "ann", "talk", "a", "in a file");

	ok(store_expire(f->store, now + STORE_BLOB_GRACE_US - HOUR_US, NULL, NULL, &err));
	assert_true(kept(f, loose)); /* somebody may be about to name it */
	ok(store_expire(f->store, now + STORE_BLOB_GRACE_US + HOUR_US, NULL, NULL, &err));
	assert_false(kept(f, loose));
	for (size_t i = 0; i < ARRAY_SIZE(roles); i++)
		assert_true(kept(f, texts[i]->blob));
	assert_answer(f, "SELECT count(*) FROM blob", "5");
	assert_sound(f);
}

/* A content that is put again after hours is as good as new: the garbage collector leaves it alone. */
static void put_again_counts_as_new(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	char sha256[SHA256_HEX_SIZE];
	struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};

	ok(store_blob_put(f->store, "old", 3, sha256, &err));
	auto_free char *path = blob_file(f, sha256);

	assert_int_equal(utimensat(AT_FDCWD, path, long_ago, 0), 0);
	ok(store_blob_put(f->store, "old", 3, sha256, &err));
	ok(store_expire(f->store, clock_now_us(), NULL, NULL, &err));
	assert_true(kept(f, sha256));
	assert_int_equal(utimensat(AT_FDCWD, path, long_ago, 0), 0);
	ok(store_expire(f->store, clock_now_us(), NULL, NULL, &err));
	assert_false(kept(f, sha256));
}

static void leftovers(void **state)
{
	static const char *const left[] = {"blobs/tmp-01a1fd4c", "running/01a1fd4c-5b94-7f6b-9ee6-a245b035fcd4.out"};
	static const char *const others[] = {"blobs/README", "running/README"};
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};

	for (size_t i = 0; i < ARRAY_SIZE(left); i++) {
		auto_free char *path = xasprintf("%s/%s", f->data, left[i]);
		auto_free char *other = xasprintf("%s/%s", f->data, others[i]);

		close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
		close(open(other, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
		ok(store_reap(f->store, &err));
		ok(store_expire(f->store, clock_now_us(), NULL, NULL, &err));
		assert_int_equal(access(path, F_OK), 0); /* young: somebody is writing it */
		assert_int_equal(utimensat(AT_FDCWD, path, long_ago, 0), 0);
		assert_int_equal(utimensat(AT_FDCWD, other, long_ago, 0), 0);
		ok(store_reap(f->store, &err));
		ok(store_expire(f->store, clock_now_us(), NULL, NULL, &err));
		assert_int_equal(access(path, F_OK), -1);
		assert_int_equal(access(other, F_OK), 0); /* not ours, not touched */
	}
}

static void sessions_expire(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_session ended = {.owner = "ann"}, idle = {.owner = "ann"}, found;
	int64_t now = clock_now_us();

	ok(store_session_add(f->store, &ended, &err));
	ok(store_session_add(f->store, &idle, &err));
	ok(store_session_end(f->store, ended.id, "ann", &err));
	ok(store_expire(f->store, now + 1000 * DAY_US, NULL, NULL, &err));
	assert_answer(f, "SELECT count(*) FROM session", "1");
	ok(store_session_find(f->store, idle.id, "ann", &found, &err));
	retain(f->store, 0, 30 * DAY_US);
	f->store->served_us += 31 * DAY_US;
	ok(store_expire(f->store, now, NULL, NULL, &err));
	assert_answer(f, "SELECT count(*) FROM session", "0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(put_and_open, setup, teardown),
		cmocka_unit_test_setup_teardown(put_from_descriptor, setup, teardown),
		cmocka_unit_test_setup_teardown(put_twice_writes_once, setup, teardown),
		cmocka_unit_test_setup_teardown(put_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(bad_names, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged_blob, setup, teardown),
		cmocka_unit_test_setup_teardown(partial_output, setup, teardown),
		cmocka_unit_test_setup_teardown(idle_conversations, setup, teardown),
		cmocka_unit_test_setup_teardown(idle_while_served, setup, teardown),
		cmocka_unit_test_setup_teardown(many_conversations, setup, teardown),
		cmocka_unit_test_setup_teardown(blobs_in_use_stay, setup, teardown),
		cmocka_unit_test_setup_teardown(put_again_counts_as_new, setup, teardown),
		cmocka_unit_test_setup_teardown(leftovers, setup, teardown),
		cmocka_unit_test_setup_teardown(sessions_expire, setup, teardown),
	};

	return cmocka_run_group_tests_name("store_blob", tests, NULL, NULL);
}
