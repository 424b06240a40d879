/*
 * store_resource.h - what an owner may read, in pages: the files of all his conversations, and the outputs of his
 * executions.
 *
 * A page begins behind a position that the caller keeps (a key, not an offset): what is added or removed between two
 * pages neither repeats nor hides an entry that was there all the time.
 */
#pragma once

#include "lib/store/store.h"
#include "store_file.h"

/* What to list; each function says which members it reads. */
struct store_page {
	const char *owner;
	int64_t limit;            /* entries at most */
	const char *conversation; /* of the file that the page begins behind (""), or whose files are meant */
	const char *name;         /* … and its name, bytes */
	size_t name_length;
	const char *before;       /* an execution's id, or STORE_ID_ABOVE */
	const char *prefix;
};

struct store_owner_file {
	char conversation[STORE_CONVERSATION_MAX + 1];
	struct store_file file;
};
/* Files in the order of conversation and name, those behind (conversation, name). */
int store_owner_files(struct store *store, const struct store_page *page,
		      int (*each)(void *arg, const struct store_owner_file *file), void *arg, struct err *err);

/* Files as an operator sees them: of one owner and conversation, or of all (NULL), in the order of owner, conversation
 * and name. */
struct store_listed_file {
	char owner[STORE_OWNER_MAX + 1], conversation[STORE_CONVERSATION_MAX + 1];
	struct store_file file;
	char run[ID_SIZE]; /* that left it so; "": a client put it */
};
int store_files_list(struct store *store, const char *owner, const char *conversation,
		     int (*each)(void *arg, const struct store_listed_file *file), void *arg, struct err *err);
/* Of one conversation, by name, those behind page->name; page->limit -1: all. */
int store_conversation_files(struct store *store, int64_t conversation, const struct store_page *page,
			     int (*each)(void *arg, const struct store_file *file), void *arg, struct err *err);

struct store_owner_output {
	char id[ID_SIZE]; /* of the execution */
	char language[32], verdict[3];
	int64_t created_us, stdout_bytes, stderr_bytes;
};
/* Executions that ended and printed something, newest first, those before `before`. */
int store_owner_outputs(struct store *store, const struct store_page *page,
			int (*each)(void *arg, const struct store_owner_output *output), void *arg, struct err *err);

/* Names that begin with `prefix`, for completion: of conversations, of a conversation's files (those that are UTF-8).
 */
int store_complete_conversation(struct store *store, const struct store_page *page,
				int (*each)(void *arg, const char *name), void *arg, struct err *err);
int store_complete_file(struct store *store, const struct store_page *page, int (*each)(void *arg, const char *name),
			void *arg, struct err *err);

/* What a run has printed so far: running/ID.out ("out") or ID.err ("err"), which goes on growing. ERR_NOT_FOUND: it has
 * ended, or not begun. */
int store_running_read(struct store *store, const char *id, const char *suffix, int *ret_fd, struct err *err);
