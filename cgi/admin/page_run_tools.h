/* page_run_tools.h - what a run called of other servers, as a timeline and as a table. */
#pragma once

#include "admin_page.h"
#include "lib/store/record/store_execution.h"

int page_run_tools(struct admin_page *page, const struct store_execution *run, struct err *err);
