/*
 * store_pack.c - see store_pack.h. The end of a packed file says how long the content is (RFC 1952), modulo 4 GiB: no
 * stream of a run is that long.
 */
#include "store_pack.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "lib/base/util.h"

#define CHUNK       (8 * 1024) /* threads have small stacks */
#define LEVEL       1         /* of zlib's: output of programs shrinks to a fifth, at 100 MB/s */
#define GZIP_WINDOW (15 + 16) /* the largest window, gzip's header */
#define TRAILER     4         /* bytes of the length, least significant first */

void store_blob_path(const char *sha256, char ret[STORE_BLOB_PATH_SIZE])
{
	snprintf(ret, STORE_BLOB_PATH_SIZE, "%.2s/%s", sha256, sha256 + 2);
}

void store_packed_path(const char *sha256, char ret[STORE_PACKED_PATH_SIZE])
{
	snprintf(ret, STORE_PACKED_PATH_SIZE, "%.2s/%s" STORE_PACKED, sha256, sha256 + 2);
}

/* -------- packing ------------------------------------------------------------------------------------- */

/* Deflates what is in `stream`, to its end where there is no more. */
static int drain(z_stream *stream, bool last, int to)
{
	Bytef out[CHUNK];
	int result;

	do {
		stream->next_out = out;
		stream->avail_out = sizeof(out);
		result = deflate(stream, last ? Z_FINISH : Z_NO_FLUSH);
		if (result == Z_STREAM_ERROR || write_all(to, out, sizeof(out) - stream->avail_out) < 0)
			return -1;
	} while (stream->avail_out == 0);
	return 0;
}

int store_pack(int from, int to, bool *ret_pays)
{
	z_stream stream = {0};
	Bytef in[CHUNK];
	off_t at = 0;
	ssize_t got = -1;

	if (deflateInit2(&stream, LEVEL, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
		errno = ENOMEM;
		return -1;
	}
	do {
		got = pread(from, in, sizeof(in), at);
		if (got < 0)
			break;
		at += got;
		stream.next_in = in;
		stream.avail_in = (uInt)got;
		if (drain(&stream, got == 0, to) < 0)
			got = -1;
	} while (got > 0);
	*ret_pays = got == 0 && (uint64_t)stream.total_out * 4 <= (uint64_t)at * 3;
	deflateEnd(&stream);
	return got < 0 ? -1 : 0;
}

/* -------- reading ------------------------------------------------------------------------------------- */

static int packed_size(int fd, int64_t *ret)
{
	uint8_t bytes[TRAILER];
	off_t end = lseek(fd, 0, SEEK_END);

	if (end < TRAILER || pread(fd, bytes, sizeof(bytes), end - TRAILER) != TRAILER)
		return -1;
	*ret = 0;
	for (int i = TRAILER - 1; i >= 0; i--)
		*ret = *ret << 8 | bytes[i];
	return 0;
}

int store_content_stat(int folder, const char *sha256, struct stat *ret)
{
	char path[STORE_PACKED_PATH_SIZE];
	struct stat st;
	int64_t size;

	store_blob_path(sha256, path);
	if (fstatat(folder, path, ret, AT_SYMLINK_NOFOLLOW) == 0)
		return S_ISREG(ret->st_mode) ? 0 : -1;
	if (errno != ENOENT)
		return -1;
	store_packed_path(sha256, path);
	auto_close int fd = openat(folder, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0 || packed_size(fd, &size) < 0)
		return -1;
	*ret = st;
	ret->st_size = size;
	return 0;
}

/* 1: the end is reached, 0: go on; -1: damaged. */
static int inflate_step(z_stream *stream, int from, off_t *at, int to)
{
	Bytef in[CHUNK], out[CHUNK];
	ssize_t got = pread(from, in, sizeof(in), *at);
	int result = Z_OK;

	if (got <= 0)
		return -1;
	*at += got;
	stream->next_in = in;
	stream->avail_in = (uInt)got;
	do {
		stream->next_out = out;
		stream->avail_out = sizeof(out);
		result = inflate(stream, Z_NO_FLUSH);
		if ((result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) ||
		    write_all(to, out, sizeof(out) - stream->avail_out) < 0)
			return -1;
	} while (stream->avail_out == 0 && result != Z_STREAM_END);
	return result == Z_STREAM_END;
}

/* The bytes of a packed file, which must be as many as its end says: no file makes more than that. */
static int unpack(int from, int to)
{
	z_stream stream = {0};
	int64_t size;
	off_t at = 0;
	int step = 0;

	if (packed_size(from, &size) < 0 || inflateInit2(&stream, GZIP_WINDOW) != Z_OK)
		return -1;
	while (step == 0 && (int64_t)stream.total_out <= size)
		step = inflate_step(&stream, from, &at, to);
	bool whole = step == 1 && (int64_t)stream.total_out == size;

	inflateEnd(&stream);
	return whole && lseek(to, 0, SEEK_SET) == 0 ? 0 : -1;
}

static int open_packed(int folder, const char *sha256, int *ret_fd, struct err *err)
{
	char path[STORE_PACKED_PATH_SIZE], again[sizeof("/proc/self/fd/") + 16];

	store_packed_path(sha256, path);
	auto_close int from = openat(folder, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (from < 0 && errno == ENOENT)
		return err_set(err, ERR_NOT_FOUND, "the file of content %s is missing", sha256);
	auto_close int to = from < 0 ? -1 : memfd_create("content", MFD_CLOEXEC);

	if (to < 0)
		return err_errno(err, "opening content %s", sha256);
	if (unpack(from, to) < 0)
		return err_set(err, ERR_CORRUPT, "the file of content %s is damaged: restore blobs/%s from a backup",
			       sha256, path);
	/* Opened anew, so that nobody writes to it. */
	snprintf(again, sizeof(again), "/proc/self/fd/%d", to);
	*ret_fd = open(again, O_RDONLY | O_CLOEXEC);
	return *ret_fd < 0 ? err_errno(err, "opening content %s", sha256) : 0;
}

int store_content_open(int folder, const char *sha256, int *ret_fd, int64_t *ret_size, struct err *err)
{
	char path[STORE_BLOB_PATH_SIZE];
	struct stat st;
	int result = 0;

	store_blob_path(sha256, path);
	auto_close int fd = openat(folder, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		result = errno == ENOENT ? open_packed(folder, sha256, &fd, err)
					 : err_errno(err, "opening content %s", sha256);
	if (result == 0 && fstat(fd, &st) < 0)
		result = err_errno(err, "opening content %s", sha256);
	if (result == 0 && !S_ISREG(st.st_mode))
		result = err_set(err, ERR_CORRUPT, "content %s is not a regular file", sha256);
	if (result < 0)
		return result;
	*ret_size = st.st_size;
	*ret_fd = steal_fd(&fd);
	return 0;
}
