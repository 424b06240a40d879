/*
 * bridge_check.h - do the arguments of a call fit the tool's schema, as far as it is certain that its server would
 * refuse them?
 */
#pragma once

#include "lib/upstream/upstream.h"

/* ERR_INVALID names the member. */
int bridge_check(const struct upstream_tool *tool, struct json_object *arguments, struct err *err);
