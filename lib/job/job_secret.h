/*
 * job_secret.h - the secrets of a run: from the request or from the operator's folder to the program, and out of all
 * that comes back.
 *
 * They reach the program as environment variables. Output, the sentence and the reports of the jailer, names and texts
 * of files pass a mask (lib/base/mask.h) before anything of them is stored, shown or sent. The program's raw output is
 * in anonymous files meanwhile, never on the disk: if the gateway dies, nothing of it is left. A file that is no text
 * cannot be masked: if a secret is in it, it is not kept. A live sandbox remembers the secrets of all its runs, because
 * a later run may print what an earlier one was given.
 *
 * The operator's folder (tools.secrets_dir): OWNER/NAME holds the value of the variable NAME of that owner's programs;
 * one newline at its end does not count. What a request names itself goes before it.
 */
#pragma once

#include <pthread.h>

#include "lib/base/bind.h"
#include "lib/base/err.h"
#include "lib/base/mask.h"

struct job_secrets {
	char **names, **values;
	size_t count;
};
/* A name that is there already keeps its place and gets the new value. */
void job_secrets_add(struct job_secrets *secrets, const char *name, const char *value);
const char *job_secrets_find(const struct job_secrets *secrets, const char *name); /* NULL: not there */
/* Checks the request's and adds those of the folder ("": none) that neither it nor `environment` names. */
int job_secrets_take(const char *folder, const char *owner, const struct bind_map *environment,
		     const struct bind_map *asked, struct job_secrets *ret, struct err *err);
int job_secrets_folder(const char *folder, const char *owner, struct job_secrets *secrets, struct err *err);
/* All values that `from` has and `to` has not. */
void job_secrets_join(struct job_secrets *to, const struct job_secrets *from);
struct mask *job_secrets_mask(const struct job_secrets *secrets); /* NULL: nothing to look for */
void job_secrets_clear(struct job_secrets *secrets);              /* wipes */

/* A program's two output streams, as they may be seen. */
struct job_veil {
	struct mask_stream stream;
	int raw, shown; /* shown: an anonymous file; raw belongs to somebody else */
	long long taken;
};
struct job_cover {
	struct mask *mask; /* NULL: the run has no secrets; owned */
	pthread_mutex_t lock;
	struct job_veil veils[2];
};
void job_cover_init(struct job_cover *cover);
/* cover->mask was set before; the two files are the caller's. */
int job_cover_put(struct job_cover *cover, int raw_stdout, int raw_stderr, struct err *err);
/* The same, and makes anonymous files for the raw output, which are the caller's. */
int job_cover_open(struct job_cover *cover, int *ret_stdout, int *ret_stderr, struct err *err);
/* The file that holds what may be seen of stream 1 or 2 by now. `end`: nothing comes any more. */
int job_cover_shown(struct job_cover *cover, int stream, bool end, struct err *err);
void job_cover_clear(struct job_cover *cover);

/* A file that a program made: *fd becomes an anonymous copy if it is a text with a secret in it. ERR_INVALID: it is no
 * text and has one. */
int job_mask_file(const struct mask *mask, int *fd, struct err *err);
struct job_change;
/* The name of a file that the run made: if a secret is in it, the file is not kept. `count`: of such files so far. */
void job_mask_name(const struct mask *mask, struct job_change *change, size_t *count);
struct jail_result;
void job_mask_result(const struct mask *mask, struct jail_result *result);
