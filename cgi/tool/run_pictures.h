/*
 * run_pictures.h - the pictures of an answer: each was decoded (lib/job/job_picture.h), has the caps below, and is
 * there once. What is not shown, or not as it is, is said in a line; its file stays what it is.
 */
#pragma once

#include "lib/job/job_picture.h"
#include "tool_common.h"

#define RUN_IMAGE_MAX    (512 * 1024)      /* one image inline, bytes */
#define RUN_IMAGES_MAX   (2 * 1024 * 1024) /* all images of a call … */
#define RUN_IMAGES_COUNT JOB_PICTURES_MAX  /* … and how many */

/* Is the file one that is looked at? */
bool run_pictures_has(const struct store_file *file);
/* Appends image blocks of the files to `content` and lines to `notes`. Returns how many are shown. */
size_t run_pictures_add(const struct tool_call *call, const struct store_file *const *files, size_t count,
			struct json_object *content, struct buf *notes);
