/* test_store_pack.c - output of runs in the blob folder: packed where that pays, read, damaged, removed. */
#include "lib/store/blob/store_blob.h"
#include "lib/store/db/store_txn.h"
#include "lib/store/record/store_execution.h"
#include "lib/store/retention/store_expire.h"
#include "store_fixture.h"

#include <fcntl.h>

#define DAY_US (24 * 3600 * 1000000ll)
#define OUTPUT_BYTES 300000

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

/* As a stream of a run is kept; the same bytes come back. */
static void put_output(struct fixture *f, const char *bytes, char ret_sha256[SHA256_HEX_SIZE])
{
	struct err err = ERR_INIT;
	auto_close int fd = memfd_with("output", bytes, OUTPUT_BYTES), back = -1;
	auto_free char *read_back = NULL;
	size_t length;
	int64_t size = 0;

	ok(store_blob_put_output(f->store, fd, ret_sha256, &size, &err));
	assert_int_equal(size, OUTPUT_BYTES);
	ok(store_blob_open(f->store, ret_sha256, &back, &size, &err));
	assert_int_equal(size, OUTPUT_BYTES);
	ok(read_fd(back, OUTPUT_BYTES, &read_back, &length, &err));
	assert_int_equal(length, OUTPUT_BYTES);
	assert_memory_equal(read_back, bytes, OUTPUT_BYTES);
	assert_int_equal(write(back, "x", 1), -1);
}

static char *packed_file(const struct fixture *f, const char *sha256)
{
	auto_free char *path = blob_file(f, sha256);

	return xasprintf("%s.gz", path);
}

static void output_is_packed_where_it_pays(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	char sha256[SHA256_HEX_SIZE], noise_sha256[SHA256_HEX_SIZE];
	auto_free char *bytes = xmalloc(OUTPUT_BYTES), *noise = xmalloc(OUTPUT_BYTES);
	struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	struct stat st;

	for (size_t i = 0; i < OUTPUT_BYTES; i++)
		bytes[i] = "a line of output\n"[i % 17];
	put_output(f, bytes, sha256);
	auto_free char *packed = packed_file(f, sha256);

	assert_false(kept(f, sha256));
	assert_int_equal(stat(packed, &st), 0);
	assert_true(st.st_size < OUTPUT_BYTES / 10);
	assert_int_equal(st.st_mode & 0777, 0640);
	assert_int_equal(utimensat(AT_FDCWD, packed, long_ago, 0), 0);
	put_output(f, bytes, sha256); /* not written again, wanted again */
	assert_int_equal(stat(packed, &st), 0);
	assert_true(st.st_mtim.tv_sec > 1000);

	random_bytes(noise, OUTPUT_BYTES);
	put_output(f, noise, noise_sha256);
	assert_true(kept(f, noise_sha256));

	/* As a file of a conversation, which nginx sends, it is there as it is, too. */
	ok(store_blob_put(f->store, bytes, OUTPUT_BYTES, sha256, &err));
	assert_true(kept(f, sha256));
	put_output(f, bytes, sha256);
	/* Nothing names them: both forms go. */
	auto_free char *plain = blob_file(f, sha256);

	assert_int_equal(utimensat(AT_FDCWD, packed, long_ago, 0), 0);
	assert_int_equal(utimensat(AT_FDCWD, plain, long_ago, 0), 0);
	ok(store_expire(f->store, clock_now_us(), NULL, NULL, &err));
	assert_int_equal(access(packed, F_OK), -1);
	assert_false(kept(f, sha256));
}

static void damaged_packed_blob(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_execution run = sample("ann");
	char *sha256 = run.stdout_text.blob;
	auto_free char *bytes = xcalloc(1, OUTPUT_BYTES);
	struct stat st;
	int64_t size;
	int fd;

	run.stdout_text = (struct store_text){.length = OUTPUT_BYTES};
	put_output(f, bytes, sha256);
	begin(f->store, &run);
	finish(f->store, &run, NULL, 0);
	auto_free char *path = packed_file(f, sha256);

	ok(store_expire(f->store, clock_now_us() + DAY_US, NULL, NULL, &err)); /* it is named: it stays */
	assert_int_equal(stat(path, &st), 0);
	auto_close int file = open(path, O_WRONLY | O_CLOEXEC);

	assert_int_equal(pwrite(file, "\xff\xff", 2, st.st_size - 6), 2); /* of the sum */
	fails(store_blob_open(f->store, sha256, &fd, &size, &err), ERR_CORRUPT);
	assert_non_null(strstr(err.text, "backup"));
	assert_int_equal(ftruncate(file, st.st_size / 2), 0);
	fails(store_blob_open(f->store, sha256, &fd, &size, &err), ERR_CORRUPT);
	assert_int_equal(ftruncate(file, 2), 0);
	fails(store_blob_open(f->store, sha256, &fd, &size, &err), ERR_CORRUPT);
	assert_int_equal(unlink(path), 0);
	fails(store_blob_open(f->store, sha256, &fd, &size, &err), ERR_CORRUPT);
	put_output(f, bytes, sha256); /* and is mended by the next one that has it */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(output_is_packed_where_it_pays, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged_packed_blob, setup, teardown),
	};

	return cmocka_run_group_tests_name("store_pack", tests, NULL, NULL);
}
