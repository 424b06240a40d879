/*
 * revision.h - the protocol's revisions and what each has, in one table (revision.c).
 *
 * Everything else asks the revision that a request speaks (call->revision->links) and compares no names of revisions;
 * tests/lint/revisions.sh checks that. A new revision is a row.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum mcp_tasks_form {
	MCP_TASKS_NONE,
	MCP_TASKS_CORE,        /* the client asks for a task, polls and fetches it (mcp_tasks.h) */
	MCP_TASKS_BY_EXTENSION /* the client says that it knows tasks, the server decides */
};

struct mcp_revision {
	const char *name;
	bool modern;    /* each request names its revision, there are no sessions; else the legacy era */
	bool two_paths; /* has the older transport: GET /sse, POST /messages */
	bool assumed;   /* spoken by a legacy request that names no revision */
	bool batches;   /* an array of messages in one POST */
	bool resumable; /* streams have event ids, and GET takes them up */
	bool primed;    /* a resumable stream begins with an empty event; older clients fail at one */
	bool links;     /* results may hold resource links */
	bool logging;   /* log messages, which the modern era deprecates */
	enum mcp_tasks_form tasks;
};

/* Oldest first, ended by {0}. */
extern const struct mcp_revision mcp_revisions[];

/* NULL: there is no such revision; `name` may be NULL. */
const struct mcp_revision *mcp_revision_find(const char *name);
/* The revision of a session. The oldest if there is no such one: a database that a later release wrote may name what
 * this release does not know. */
const struct mcp_revision *mcp_revision_of(const char *name);
/* The newest one of an era. */
const struct mcp_revision *mcp_revision_newest(bool modern);
/* The one with this flag set: the first in the table. */
const struct mcp_revision *mcp_revision_two_paths(void);
const struct mcp_revision *mcp_revision_assumed(void);
/* Does a header MCP-Protocol-Version (NULL: absent) name a revision of the modern era, or a later one? */
bool mcp_revision_claims_modern(const char *name);
/* "A, B and C": all of them, for people. */
#define MCP_REVISIONS_TEXT 128
void mcp_revision_names(char ret[MCP_REVISIONS_TEXT]);
