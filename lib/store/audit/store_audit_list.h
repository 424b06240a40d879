/*
 * store_audit_list.h - entries of the audit log for people: who did what, to what, when, from where, with which result.
 *
 * Each is a row of schema.sql's view audit_log. It resolves what an entry has as an id or a hash, until that is erased.
 */
#pragma once

#include "lib/store/store.h"

/* X(NAME, column): of the view, in this order. */
#define STORE_AUDIT_LINE(X)                                                                                            \
	X(KIND, kind)                                                                                                  \
	X(OWNER, owner)                                                                                                \
	X(ACTOR, actor)                                                                                                \
	X(TOKEN, token)                                                                                                \
	X(CONVERSATION, conversation)                                                                                  \
	X(FILE, file)                                                                                                  \
	X(RUN, run)                                                                                                    \
	X(OBJECT, object)                                                                                              \
	X(REQUEST, request_id)                                                                                         \
	X(ADDRESS, client_address)                                                                                     \
	X(CLIENT, client)                                                                                              \
	X(RESULT, result)                                                                                              \
	X(FACTS, facts)                                                                                                \
	X(DETAILS, details)
enum {
#define STORE_AUDIT_LINE_NAME(name, column) STORE_AUDIT_LINE_##name,
	STORE_AUDIT_LINE(STORE_AUDIT_LINE_NAME)
#undef STORE_AUDIT_LINE_NAME
		STORE_AUDIT_LINE_COLUMNS
};
extern const char *const store_audit_line_names[STORE_AUDIT_LINE_COLUMNS];

struct store_audit_line {
	int64_t n, at_us;
	const char *columns[STORE_AUDIT_LINE_COLUMNS]; /* NULL: there is none; valid inside of the callback */
};
/* Strings NULL: any. Kind, file, address and client are patterns (GLOB). */
struct store_audit_lines {
	const char *kind, *owner, *token /* its name or id */, *conversation, *file, *run /* the beginning of its id */,
		*request_id, *address, *client;
	int64_t since_us, until_us;      /* 0: open */
	int64_t after, before;           /* numbers of entries; before 0: open */
	int64_t limit;                   /* 0: all */
	bool newest_first;
	int64_t us; /* the question ends with ERR_LIMIT after so long; 0: never */
};
int store_audit_list(struct store *store, const struct store_audit_lines *which,
		     int (*each)(void *arg, const struct store_audit_line *line), void *arg, struct err *err);
/* The number of the next entry. */
int store_audit_next(struct store *store, int64_t *ret, struct err *err);
