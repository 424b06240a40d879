/*
 * snippets.h - programs that are kept by name (lib/store/record/store_snippet.h), as the tools use them.
 *
 * There is one place for them, the table. The operator's folder tools.snippets_dir is imported into it when a server is
 * opened: each file NAME.EXTENSION becomes the snippet NAME of everybody. Where its newest version is what the file
 * holds, nothing is written; else a new version is added. What is not a regular file (a link, too), holds more than
 * SNIPPET_FILE_MAX bytes, or is not text is left out with a warning in the log; hidden files are left out without one.
 * A snippet whose file is gone stays until `sallyport snippet remove`.
 */
#pragma once

#include "lib/store/record/store_snippet.h"
#include "tool_common.h"

#define SNIPPET_FILE_MAX (256 * 1024) /* bytes of a file */

/* Fails where the folder or the database cannot be read or written. No folder is configured: 0. */
int snippets_import(struct store *store, const struct config *config, struct err *err);

/* The language to run it in: an imported snippet has its file's extension there. In `runners` or `snippet`. */
const char *snippet_language(const struct store_snippet *snippet, struct json_object *runners);
/* The tools of the servers that it names, for job_request.tools (job_tools_release). */
int snippet_tools(const struct tool_call *call, const struct store_snippet *snippet, const char *language,
		  struct job_tools **ret, struct err *err);
/* The names that an owner sees and that begin with `prefix`, each once, are added to the array. */
int snippet_names(struct store *store, const char *owner, const char *prefix, struct json_object *ret, struct err *err);
