/*
 * store_view.h - what the admin page lists: short rows of many runs, sums, owners, entries of the audit log.
 *
 * Everything is read with connections of readers, never by the writer, and within STORE_VIEW_US: a question that takes
 * longer ends with ERR_LIMIT, after the rows that were found by then. Ids are in the order of time, so a page begins
 * below the last id of the page before, and a time is a bound of ids.
 */
#pragma once

#include "store_failure.h"
#include "store_file.h"

#define STORE_VIEW_US       1000000 /* of one question */
#define STORE_VIEW_CODE     161     /* bytes of a program's beginning */
#define STORE_VIEW_PAGE_MAX 200     /* rows of one page */

struct store_view_run {
	char id[ID_SIZE], owner[STORE_OWNER_MAX + 1], conversation[STORE_CONVERSATION_MAX + 1];
	char language[32], verdict[3], message[256]; /* verdict "": it runs */
	int64_t created_us, wall_us, cpu_us, memory_bytes, code_bytes;
	bool network;
	char erased[8];
	char code[STORE_VIEW_CODE]; /* how it begins */
};
struct store_view_filter {
	const char *owner, *token, *conversation, *language, *text; /* NULL: any; so for the next two */
	const char *verdict;                                        /* "RE,ML": one of these */
	const char *tool, *request, *client, *file, *same;          /* as in struct store_filter */
	const char *before;                                         /* id: older ones */
	int64_t since_us, until_us;                                 /* 0: all */
	bool running;                                               /* only those that run */
	bool denied, secrets; /* only those that were denied something, that had some */
	/* of the last two no `before` */
	enum { STORE_VIEW_NEWEST, STORE_VIEW_SLOWEST, STORE_VIEW_LARGEST } order;
	int64_t limit;                                              /* at most STORE_VIEW_PAGE_MAX */
};
/* Newest first. */
int store_view_runs(struct store *store, const struct store_view_filter *filter,
		    void (*each)(void *arg, const struct store_view_run *run), void *arg, struct err *err);
/* The run of the same conversation before and after this one; "": none. */
struct store_view_next {
	char before[ID_SIZE], after[ID_SIZE];
};
int store_view_neighbours(struct store *store, const char *id, struct store_view_next *ret, struct err *err);

/* Runs since then, by verdict ("": they run). */
struct store_view_count {
	char verdict[3];
	int64_t runs, warm; /* warm: those whose jail was made ahead, its interpreter running */
};
int store_view_verdicts(struct store *store, int64_t since_us,
			void (*each)(void *arg, const struct store_view_count *count), void *arg, struct err *err);
/* Live sandboxes of this process that are open. */
int store_view_sandboxes(struct store *store, int64_t *ret, struct err *err);

/* How much there is, for figures that somebody asks for again and again. `backup_us`: when the last backup was made, 0:
 * never. */
struct store_view_sizes {
	int64_t blobs_bytes, audit_entries, backup_us;
};
int store_view_sizes(struct store *store, struct store_view_sizes *ret, struct err *err);
/* Bytes of the record by kind: code, input, output, files, calls, index. Looks at every run. */
int store_view_kinds(struct store *store, void (*each)(void *arg, const char *kind, int64_t bytes), void *arg,
		     struct err *err);
int store_view_tasks(struct store *store, void (*each)(void *arg, const char *state, int64_t count), void *arg,
		     struct err *err);

/* Each run since then, in no order: for sums and distributions. The callback is called often: it must be short. */
struct store_view_point {
	int64_t created_us, wall_us, cpu_us;
	char verdict[3], owner[STORE_OWNER_MAX + 1], language[32];
};
int store_view_points(struct store *store, int64_t since_us,
		      void (*each)(void *arg, const struct store_view_point *point), void *arg, struct err *err);
/* Each run since then that failed; texts are gone after the callback. */
struct store_view_failure {
	struct store_failure what;
	const char *id;
};
int store_view_failures(struct store *store, int64_t since_us,
			void (*each)(void *arg, const struct store_view_failure *failure), void *arg, struct err *err);
/* Code that several owners ran since then, the most frequent first. */
struct store_view_shared {
	const char *code, *owners, *id; /* its beginning, "ann,bob", the newest run; gone after the callback */
	int64_t runs;
};
int store_view_shared(struct store *store, int64_t since_us,
		      void (*each)(void *arg, const struct store_view_shared *shared), void *arg, struct err *err);
/* Names of owners, likewise, STORE_VIEW_PAGE_MAX of them. */
int store_view_names(struct store *store, void (*each)(void *arg, const char *owner), void *arg, struct err *err);
/* Languages of the last runs, in the order of the alphabet. */
int store_view_languages(struct store *store, void (*each)(void *arg, const char *language), void *arg,
			 struct err *err);
/* Owners, those who store most first, at most STORE_VIEW_PAGE_MAX; runs since then. */
struct store_view_owner {
	char owner[STORE_OWNER_MAX + 1];
	int64_t bytes, runs, cpu_us, conversations, tokens;
};
int store_view_owners(struct store *store, int64_t since_us,
		      void (*each)(void *arg, const struct store_view_owner *owner), void *arg, struct err *err);

/* Entries of the audit log, newest first. `object` NULL: any. */
struct store_view_entry {
	int64_t n, at_us;
	const char *kind, *object, *entry; /* gone after the callback */
};
struct store_view_log {
	const char *object, *kind; /* NULL: any */
	int64_t before;            /* n; 0: the newest */
	int64_t limit;
};
int store_view_entries(struct store *store, const struct store_view_log *log,
		       void (*each)(void *arg, const struct store_view_entry *entry), void *arg, struct err *err);
