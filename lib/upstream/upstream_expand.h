/*
 * upstream_expand.h - ${NAME} in an entry of upstream.file.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/json.h"

/* What variables became, to be masked; strings are the list's. */
struct upstream_secrets {
	char **items;
	size_t count;
};
void upstream_expand_keep(struct upstream_secrets *secrets, const char *value); /* once each; short ones are not */
void upstream_expand_clear(struct upstream_secrets *secrets);

/* Replaces ${NAME}, ${NAME:-default} and ${env:NAME} in the strings of the members that may have them, in place.
 * ERR_INVALID names the member and the variable that is not set. `folder`: of files that hold values; "": none. */
int upstream_expand(struct json_object *entry, const char *folder, struct upstream_secrets *secrets, struct err *err);
