/*
 * upstream_search.h - which tools do these words mean? Ranked by BM25 over name, server, description and arguments.
 */
#pragma once

#include "upstream.h"

#define UPSTREAM_SEARCH_MAX 50

struct upstream_found {
	const struct upstream_list *list;
	const struct upstream_tool *tool;
	double score;
};
/* The best first, at most `limit` (up to UPSTREAM_SEARCH_MAX) of them; *ret_matched: how many tools match at all. */
size_t upstream_search(struct upstream_list *const *lists, size_t n_lists, const char *query, size_t limit,
		       struct upstream_found *ret, size_t *ret_matched);
