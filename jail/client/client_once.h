/*
 * client_once.h - one program in one jail, from open to the last collected file. Fill the struct in, begin, end.
 *
 *     struct jail_once once = {.spec = …, .program = …, .files = files, .n_files = n, .capture = true};
 *     if (jail_once(client, &once, err) < 0) …       begin and end; the program's verdict is in once.result
 *     jail_once_clear(&once);
 *
 * A caller with events of its own calls jail_once_begin, polls jail_client_fd and calls jail_client_dispatch until
 * once.over, then jail_once_end. Two programs that talk to each other are two structs, both begun before the first is
 * ended, with pipes in their programs' descriptors; the caller closes its copies of the pipes after begin. A live
 * sandbox stays open after end: change `program` and `files` and begin again.
 *
 * The caller owns everything that it puts in, and may close descriptors and free strings when begin has returned. The
 * struct must not move between begin and clear: it is the argument of the jail's callbacks.
 */
#pragma once

#include "jail.h"

struct jail_once {
	struct jail_spec spec; /* of the first begin only */
	struct jail_program program;
	bool capture; /* begin sets program.stdout_fd and stderr_fd to empty anonymous files, clear closes them */
	const struct jail_file *removed; /* taken away from /data first (live sandboxes), by name */
	size_t n_removed;
	const struct jail_file *files;
	size_t n_files;
	const struct jail_file *code_files; /* for jail_fill_code */
	size_t n_code_files;
	/* If set, it opens file number `index` instead of files[index]; begin closes the descriptor. At most
	 * JAIL_BATCH_FILES are open at a time. */
	int (*open_file)(void *arg, size_t index, struct jail_file *ret, struct err *err);
	/* Every file of /data that changed, as jail_events.file; NULL: nothing is collected. */
	void (*file)(void *arg, const struct jail_change *change);
	void (*output)(void *arg, int64_t stdout_bytes, int64_t stderr_bytes); /* may be NULL */
	void *arg;

	/* What came of it. */
	struct jail *jail; /* for jail_cancel; NULL before begin */
	bool done;         /* the run ended, `result` holds */
	bool captured;     /* the anonymous files are there */
	bool over;         /* nothing more will come: collected, or failed */
	struct jail_result result;
	struct err failure; /* code ERR_NONE: none. A step other than the run failed, or was refused */
};

/* Only the jail, so that it is there when begin is called: with the spec as it is, everything else may be set later.
 * Where `over` is set by then, it failed. */
int jail_once_open(struct jail_client *client, struct jail_once *once, struct err *err);
/* Queues all of it: open (unless once->jail is open), remove, fill, run, collect. */
int jail_once_begin(struct jail_client *client, struct jail_once *once, struct err *err);
/* Waits until it is over. 0: the program ran, and what became of it is once->result, with any verdict. An error: it did
 * not, or the connection was lost on the way (then `done` says whether there is a result). */
int jail_once_end(struct jail_client *client, struct jail_once *once, struct err *err);
int jail_once(struct jail_client *client, struct jail_once *once, struct err *err);
/* What a captured stream (1 or 2) holds, at most `most` bytes; NUL-terminated. The caller's. */
int jail_once_output(const struct jail_once *once, int stream, size_t most, char **ret, size_t *ret_length,
		     struct err *err);
/* Closes the jail and what was captured, whether or not it is over. An all-zero struct that never began is fine. */
void jail_once_clear(struct jail_once *once);
#define auto_once __attribute__((cleanup(jail_once_clear)))
