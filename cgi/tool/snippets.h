/*
 * snippets.h - the programs that execute_code runs by name: files NAME.EXTENSION in the folder tools.snippets_dir.
 *
 * The folder is the operator's; it is read anew at each call, so a snippet is added by putting a file there. A name is
 * letters, digits,
 * "_",
 * "-" and "."; what is not a regular file (a link, too), has another name, or is too large does not exist.
 */
#pragma once

#include "lib/base/config.h"
#include "lib/base/err.h"

#define SNIPPET_NAME_MAX  64           /* bytes of the file's name, extension included */
#define SNIPPET_BYTES_MAX (256 * 1024) /* one snippet */
#define SNIPPETS_MAX      1000         /* files of the folder that are looked at */

struct snippet {
	char file[SNIPPET_NAME_MAX + 1]; /* "hello.py" */
	const char *extension;           /* ".py"; in `file` */
	char *text;
	size_t length;
};
/* By name, with or without the extension. ERR_NOT_FOUND names what there is; ERR_CONFLICT: several have this name. */
int snippet_read(const struct config *config, const char *name, struct snippet *ret, struct err *err);
void snippet_clear(struct snippet *snippet);
#define auto_snippet __attribute__((cleanup(snippet_clear)))
/* Names without the extension that begin with `prefix`, sorted, each once. `each` stops the listing by a negative code.
 */
int snippet_list(const struct config *config, const char *prefix, int (*each)(void *arg, const char *name), void *arg,
		 struct err *err);
