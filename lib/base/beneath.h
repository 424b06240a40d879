/*
 * beneath.h - opens files below a folder and nowhere else: for every path that somebody else may have written.
 */
#pragma once

#include <sys/types.h>

/* openat2: no symbolic links, no magic links, no other file system, nothing above `directory`; close-on-exec. -1 and
 * errno: ELOOP for a link, EXDEV for what leads out. */
int beneath_open(int directory, const char *path, int flags, mode_t mode);
