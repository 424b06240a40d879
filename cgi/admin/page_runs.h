/* page_runs.h - the table of runs, for every view that lists some. */
#pragma once

#include "admin_page.h"
#include "lib/store/record/store_view.h"

/* What was shown last: where the next page begins, if there is one. */
struct page_runs_end {
	int64_t rows;
	char last[ID_SIZE];
};
/* *ret_end may be NULL. ERR_LIMIT: the search was ended; what it had found is there. */
int page_runs_table(struct admin_page *page, const struct store_view_filter *filter, struct page_runs_end *ret_end,
		    struct err *err);
