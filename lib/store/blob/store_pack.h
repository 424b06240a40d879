/*
 * store_pack.h - contents that are kept compressed: the file of a content abcd… is then cd….gz, as gzip(1) writes it.
 *
 * Only what nobody but this program reads is packed: the output of runs, long texts of calls of tools. nginx sends the
 * files of conversations as they are. A content may be there in both forms: who needs the plain one puts it next to the
 * other, and it is the one that is read. What does not get smaller by a quarter stays as it is.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "lib/base/err.h"
#include "lib/store/db/crypto.h"

#define STORE_PACKED           ".gz"
#define STORE_BLOB_PATH_SIZE   (SHA256_HEX_SIZE + 1)
#define STORE_PACKED_PATH_SIZE (SHA256_HEX_SIZE + sizeof(STORE_PACKED))

/* "ab/cdef…": below blobs/, and below nginx's internal location. */
void store_blob_path(const char *sha256, char ret[STORE_BLOB_PATH_SIZE]);
/* "ab/cdef….gz" */
void store_packed_path(const char *sha256, char ret[STORE_PACKED_PATH_SIZE]);

/* All of `from` into `to`, from its beginning; *ret_pays: it is worth being kept. -1 and errno. */
int store_pack(int from, int to, bool *ret_pays);

/* In a folder of contents, whatever the form: as fstatat, with the size of the content, whether or not it is packed. */
int store_content_stat(int folder, const char *sha256, struct stat *ret);
/* Read-only descriptor at the beginning of the content's bytes; of a packed one an anonymous file. ERR_NOT_FOUND: there
 * is no file; ERR_CORRUPT: it is damaged. */
int store_content_open(int folder, const char *sha256, int *ret_fd, int64_t *ret_size, struct err *err);
