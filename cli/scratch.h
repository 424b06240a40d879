/* scratch.h - a folder for the life of this process. */
#pragma once

#include "lib/base/err.h"

/* Below TMPDIR, readable by this user alone; removed when this process is gone, however it ended. Removes those that
 * processes of this user left which were killed together with what should have removed theirs. Before any thread is
 * started. The path is the caller's to free. */
int scratch_folder(char **ret, struct err *err);
