/*
 * upstream_list.h - how a list of tools is made; who uses one reads upstream.h.
 */
#pragma once

#include "upstream.h"
#include "upstream_raw.h"

struct upstream_list *upstream_list_new(const struct upstream_server *server);
/* A tool that cannot be called is left out, with its reason. ERR_LIMIT, ERR_INVALID: the list as a whole is wrong. */
int upstream_list_add(struct upstream_list *list, struct raw definition, struct err *err);
/* It is complete. Texts may be NULL. */
void upstream_list_seal(struct upstream_list *list, const char *instructions, const char *version,
			const char *protocol);
