/*
 * tools_cache.h - the printed array of tools/list: clients ask for it more often than for anything else, and it changes
 * only with the jailer's languages, the token's scopes and its wish for structured results. One text per set of scopes
 * and wish, and one more for the revision that has a place for task support, made when it is first asked for and thrown
 * away when the jailer comes or goes (job_engine_generation). Thread-safe.
 */
#pragma once

#include "tools.h"

struct tools_cache;
struct tools_cache *tools_cache_new(void);
void tools_cache_free(struct tools_cache *cache); /* NULL is fine */
/* The tools that the caller's token may call, as a printed value (json_new_printed); the caller's. */
struct json_object *tools_cache_list(struct mcp_call *call);
