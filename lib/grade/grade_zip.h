/*
 * grade_zip.h - a problem package as a ZIP archive, unpacked into a folder of ours.
 *
 * The archive is not trusted: refused are names and links that lead out of the folder, special files, a name that is
 * there twice, what is encrypted, and more files or bytes than the limits below. Sizes are counted as they are written,
 * whatever the archive says of itself.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/err.h"

#define GRADE_ZIP_ENTRIES 65535 /* what an archive without the ZIP64 extension can hold */
#define GRADE_ZIP_BYTES   (2LL << 30)
#define GRADE_ZIP_DEPTH   32 /* folders below each other */

/* Is PATH a file that begins as archives do? */
bool grade_zip_is(const char *path);
/* Unpacks PATH below FOLDER, which is empty and only ours. *ret_package is the folder with problem.yaml (the
 * archive's top, called as the archive without ".zip", or the folder in it): the caller's. The files stay for the
 * caller to remove, after an error too. */
int grade_zip_unpack(const char *path, const char *folder, char **ret_package, struct err *err);
