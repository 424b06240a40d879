/* revision.c - see revision.h. */
#include "revision.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/util.h"

const struct mcp_revision mcp_revisions[] = {
	{.name = "2024-11-05", .logging = true, .two_paths = true},
	{.name = "2025-03-26", .logging = true, .resumable = true, .batches = true, .assumed = true},
	{.name = "2025-06-18", .logging = true, .resumable = true, .links = true},
	{.name = "2025-11-25",
	 .logging = true,
	 .resumable = true,
	 .links = true,
	 .primed = true,
	 .tasks = MCP_TASKS_CORE},
	{.name = "2026-07-28", .modern = true, .links = true, .tasks = MCP_TASKS_BY_EXTENSION},
	{0},
};

const struct mcp_revision *mcp_revision_find(const char *name)
{
	for (const struct mcp_revision *revision = mcp_revisions; name && revision->name; revision++) {
		if (streq(revision->name, name))
			return revision;
	}
	return NULL;
}

const struct mcp_revision *mcp_revision_of(const char *name)
{
	const struct mcp_revision *revision = mcp_revision_find(name);

	return revision ? revision : mcp_revisions;
}

const struct mcp_revision *mcp_revision_newest(bool modern)
{
	const struct mcp_revision *newest = NULL;

	for (const struct mcp_revision *revision = mcp_revisions; revision->name; revision++) {
		if (revision->modern == modern)
			newest = revision;
	}
	return newest;
}

const struct mcp_revision *mcp_revision_two_paths(void)
{
	const struct mcp_revision *revision = mcp_revisions;

	while (!revision->two_paths)
		revision++;
	return revision;
}

const struct mcp_revision *mcp_revision_assumed(void)
{
	const struct mcp_revision *revision = mcp_revisions;

	while (!revision->assumed)
		revision++;
	return revision;
}

bool mcp_revision_claims_modern(const char *name)
{
	const struct mcp_revision *first = mcp_revisions;

	while (!first->modern)
		first++;
	return name && strcmp(name, first->name) >= 0;
}

void mcp_revision_names(char ret[MCP_REVISIONS_TEXT])
{
	size_t length = 0;

	for (const struct mcp_revision *revision = mcp_revisions; revision->name; revision++)
		length += (size_t)snprintf(ret + length, MCP_REVISIONS_TEXT - length, "%s%s",
					   revision == mcp_revisions ? "" : revision[1].name ? ", " : " and ",
					   revision->name);
}
