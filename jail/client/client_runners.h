/* client_runners.h - which of the runners of jail_client_runners is meant. */
#pragma once

#include "lib/base/json.h"

/* The one of that list with this name or alias, in upper or lower case, or for a file with this extension; the list's
 * own. NULL: none, or no list. */
struct json_object *jail_runner_named(struct json_object *runners, const char *name);
/* The name that a wrong one may have meant; NULL: none is near. */
const char *jail_runner_near(struct json_object *runners, const char *name);
struct json_object *jail_runner_for_file(struct json_object *runners, const char *path);
/* The list without its internal runners, which are not offered as languages; takes the list over. */
struct json_object *jail_runners_offered(struct json_object *runners);
/* What results that are kept depend on, as text: the list, and, where a private jailer asked no runner for its version,
 * what changes with the version: size and time of the interpreter, and the files that say which libraries there are. */
void jail_runners_versions(struct json_object *runners, struct buf *ret);
/* The same of one runner of the list. */
void jail_runner_version(struct json_object *runner, struct buf *ret);
