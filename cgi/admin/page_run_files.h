/* page_run_files.h - the files of a run: what it found, what it left, with pictures and differences of texts. */
#pragma once

#include "admin_page.h"
#include "lib/store/record/store_execution.h"

/* A unified diff, each line with the colour of its sign. */
void page_run_files_diff(struct html *html, const char *diff);
int page_run_files(struct admin_page *page, const struct store_execution *run, struct err *err);
