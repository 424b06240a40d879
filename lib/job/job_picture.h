/*
 * job_picture.h - pictures that programs made, looked at before a client's model gets them.
 *
 * A picture that does not decode, or is too large, makes services refuse the whole conversation from then on. The
 * bytes are hostile: no decoder runs in this process. A jail of its own (runner "picture", jail/guest/picture.py)
 * decodes all pictures of one answer and makes smaller copies; what it says is believed only within the bounds below.
 * Nothing of it is recorded.
 *
 * The engine keeps a few connections for it, which are made when they are needed. Each owner has one at a time, so that
 * slow pictures hold up the same owner's, and others' only where as many owners as there are connections have such
 * pictures. With a private jailer, which has one owner, that is one more private jailer; it starts with the first
 * picture.
 */
#pragma once

#include "job.h"

#define JOB_PICTURE_SIDE   2000              /* pixels of the longer side that is shown */
#define JOB_PICTURE_FILE   (32 * 1024 * 1024) /* bytes of a file that is looked at */
#define JOB_PICTURE_PLACES 8                 /* connections: owners whose pictures are looked at at once */
#define JOB_PICTURES_MAX   20                /* of one answer */
#define JOB_PICTURES_BYTES (48 * 1024 * 1024) /* all of their files */

enum job_picture_is {
	JOB_PICTURE_UNKNOWN, /* it could not be looked at */
	JOB_PICTURE_BROKEN,  /* it does not decode */
	JOB_PICTURE_LARGE,   /* no copy of it is small enough */
	JOB_PICTURE_WHOLE,   /* it can be shown as it is */
	JOB_PICTURE_SCALED   /* `data` can be shown in its place */
};
struct job_picture {
	const struct store_file *file;
	enum job_picture_is is;
	const char *media_type; /* of what is shown */
	int64_t width, height;  /* of the file */
	char *data;             /* the picture's own; NULL: none */
	size_t length;
};

/* Sets everything but `file`; waits while pictures of the same owner are looked at. At most JOB_PICTURES_MAX; `most`:
 * bytes of one that is shown. An error: none was looked at. */
int job_pictures_look(struct job_engine *engine, const char *owner, struct job_picture *pictures, size_t count,
		      size_t most, struct err *err);
void job_pictures_clear(struct job_picture *pictures, size_t count);
