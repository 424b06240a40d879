/* upstream_name.c - see upstream_name.h. */
#include "upstream_name.h"

#include <ctype.h>
#include <string.h>

#include "lib/base/util.h"

/* Keywords of Python 3.11 (soft ones not) and of JavaScript in strict modules. */
static const char *const keywords[] = {
	"False",   "None",   "True",       "and",       "arguments", "as",       "assert",    "async",  "await",
	"break",   "case",   "catch",      "class",     "const",     "continue", "debugger",  "def",    "default",
	"del",     "delete", "do",         "elif",      "else",      "enum",     "eval",      "except", "export",
	"extends", "false",  "finally",    "for",       "from",      "function", "global",    "if",     "implements",
	"import",  "in",     "instanceof", "interface", "is",        "lambda",   "let",       "new",    "nonlocal",
	"not",     "null",   "or",         "package",   "pass",      "private",  "protected", "public", "raise",
	"return",  "static", "super",      "switch",    "this",      "throw",    "true",      "try",    "typeof",
	"var",     "void",   "while",      "with",      "yield",
};

/* Names in the module `tools`; `then` would make it look like a promise. */
static const char *const reserved[] = {
	"servers",    "list",   "search",    "describe", "read",         "call",    "sync",        "aio",
	"full",       "then",   "ToolError", "Denied",   "LimitReached", "Timeout", "Unavailable", "InvalidArguments",
	"ReplayMiss", "Result",
};

static bool contains(const char *const *words, size_t count, const char *word)
{
	for (size_t i = 0; i < count; i++)
		if (streq(words[i], word))
			return true;
	return false;
}

void upstream_name_alias(const char *name, char ret[UPSTREAM_ALIAS_SIZE])
{
	size_t length = 0;

	if (isdigit((unsigned char)name[0]) || name[0] == '\0')
		ret[length++] = '_';
	for (; *name != '\0' && length < UPSTREAM_NAME_MAX; name++) {
		bool plain = isalnum((unsigned char)*name) || *name == '_';

		/* A run of others is one blank. */
		if (plain || length == 0 || ret[length - 1] != '_')
			ret[length++] = plain ? *name : '_';
	}
	ret[length] = '\0';
	if (contains(keywords, ARRAY_SIZE(keywords), ret))
		memcpy(ret + length, "_", 2);
}

bool upstream_name_reserved(const char *alias)
{
	return contains(reserved, ARRAY_SIZE(reserved), alias);
}
