/*
 * resources.h - what clients read by URI: providers as data; resources.c dispatches resources/… to them.
 *
 * One file per provider exports one const struct resource_provider, cgi/server_start.c lists them. A provider answers
 * for the URIs that begin with its scheme, and checks on every call that the caller (call->exchange->token.owner) may
 * see them. Providers are listed one after the other; the cursor that clients get is made and checked by resources.c
 * (an altered one is -32602), providers see only their own position in it.
 *
 * Every function returns 0 or a negative code with *err set; ERR_NOT_FOUND becomes -32002 (legacy) or -32602 (modern)
 * with data.uri, ERR_INVALID -32602.
 */
#pragma once

#include "mcp.h"

struct resource_provider {
	const char *scheme; /* "conv://" */
	/* Appends Resource objects from `position` on (NULL: from the beginning). What the next page begins with goes
	 * into `next`, which stays empty at the end. */
	int (*list)(struct mcp_call *call, const char *position, struct json_object *resources, struct buf *next,
		    struct err *err);
	/* Appends ResourceTemplate objects; NULL: none. */
	void (*templates)(struct mcp_call *call, struct json_object *templates);
	/* Appends at least one content object {uri, mimeType, text or blob}. */
	int (*read)(struct mcp_call *call, const char *uri, struct json_object *contents, struct err *err);
	/* May the caller be told when this one changes? NULL: there is nothing to tell. */
	int (*subscribe)(struct mcp_call *call, const char *uri, struct err *err);
	/* Appends strings: values that the template's variable `argument` may have and that begin with `value`.
	 * `context` holds the variables known so far (NULL: none). NULL: nothing to suggest. */
	int (*complete)(struct mcp_call *call, const char *uri_template, const struct mcp_completion *ask,
			struct json_object *values, struct err *err);
};

#define RESOURCE_CURSOR_MAX (16 * 1024) /* bytes of a cursor: file names are up to JAIL_NAME_MAX, percent-encoded */

/* The methods of both eras. */
int mcp_resources_list(struct mcp_call *call);
int mcp_resources_templates(struct mcp_call *call);
int mcp_resources_read(struct mcp_call *call);
int mcp_resources_subscribe(struct mcp_call *call);   /* legacy */
int mcp_resources_unsubscribe(struct mcp_call *call); /* legacy */
/* The provider that answers for a URI (or a template); NULL: none. */
const struct resource_provider *resource_provider_find(const struct server *server, const char *uri);
