/*
 * audit_altered.h - for tests of `verify`: which columns entries cover, and another value for each.
 */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "lib/base/util.h"

/* What no entry covers; docs/security.md has the list. */
static const char *const uncovered[] = {"token.used_us", "token.text_kb",
					"conversation.seen_us",
					"conversation.idle_from_us",
					"principal.created_us",
					"blob.created_us",
					"execution.conversation",
					"execution.bytes",
					"execution.erased_us",
					"execution.erased_why",
					"execution.erased_after",
					"execution.runtime",
					NULL};

static bool is_uncovered(const char *table, const char *column)
{
	auto_free char *name = xasprintf("%s.%s", table, column);

	for (size_t i = 0; uncovered[i]; i++)
		if (streq(uncovered[i], name))
			return true;
	return false;
}

/* Another value of the same kind: a number grows, a text is turned, nothing becomes something. */
static char *altered(const char *table, const char *column)
{
	if (streq(column, "n") || streq(column, "signal") || (streq(column, "id") && streq(table, "conversation")))
		return xasprintf("coalesce(%s, 0) + 1000", column);
	if (streq(column, "state") && streq(table, "tool_call"))
		return xstrdup("'failed'");
	if (streq(column, "state"))
		return xstrdup("'interrupted'");
	if (streq(column, "verdict"))
		return xstrdup("'CX'");
	if (streq(column, "cause") || streq(column, "phase"))
		return xasprintf("iif(%s = 'after', 'before', 'after')", column);
	if (streq(column, "change"))
		return xstrdup("iif(change IS NULL, 'created', iif(change = 'created', 'changed', 'created'))");
	if (streq(column, "args") || streq(column, "limits") || streq(column, "result"))
		return xasprintf("coalesce(%s, '{}') || ' '", column);
	if (streq(column, "instance") || streq(column, "token") || streq(column, "execution") || streq(column, "id"))
		return xstrdup("'01932c00-0000-7000-8000-000000000000'");
	if (streq(column, "hash") || streq(column, "sha256") || streq(column, "blob") || strstr(column, "_blob"))
		return xasprintf("substr(coalesce(%s, '%064d'), 2) || 'f'", column, 0);
	if (streq(column, "salt"))
		return xstrdup("zeroblob(32)");
	if (streq(column, "env"))
		return xstrdup("x'00'");
	return xasprintf(
		"iif(typeof(%s) IN ('integer', 'null') AND (SELECT type FROM pragma_table_info('%s') WHERE name = "
		"'%s') = 'INTEGER', 1 - coalesce(%s, 0), coalesce(%s, '') || 'x')",
		column, table, column, column, column);
}
