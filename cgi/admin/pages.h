/*
 * pages.h - the views of the admin page, each a function that writes into the page (`rest`: behind the view's name),
 * and the parts that they are made of.
 */
#pragma once

#include "admin_page.h"
#include "lib/store/record/store_execution.h"
#include "lib/store/record/store_view.h"

int page_now(struct admin_page *page, const char *rest, struct err *err);
int page_runs(struct admin_page *page, const char *rest, struct err *err);
int page_run(struct admin_page *page, const char *rest, struct err *err);          /* ID, ID/stdout … */
int page_conversation(struct admin_page *page, const char *rest, struct err *err); /* ?owner=…&name=… */
int page_owners(struct admin_page *page, const char *rest, struct err *err);
int page_tokens(struct admin_page *page, const char *rest, struct err *err);
int page_servers(struct admin_page *page, const char *rest, struct err *err); /* or one: ALIAS */
int page_charts(struct admin_page *page, const char *rest, struct err *err);
int page_health(struct admin_page *page, const char *rest, struct err *err); /* doctor: with its findings */
int page_audit(struct admin_page *page, const char *rest, struct err *err); /* N, verify */

/* -------- the table of runs, for every view that lists some -------------------------------------------- */

/* What was shown last: where the next page begins, if there is one. */
struct page_runs_end {
	int64_t rows;
	char last[ID_SIZE];
};
/* *ret_end may be NULL. ERR_LIMIT: the search was ended; what it had found is there. */
int page_runs_table(struct admin_page *page, const struct store_view_filter *filter, struct page_runs_end *ret_end,
		    struct err *err);

/* -------- parts of a run's page ----------------------------------------------------------------------- */

/* The files: what it found, what it left, with pictures and differences of texts. */
int page_run_files(struct admin_page *page, const struct store_execution *run, struct err *err);
/* What it changed of files as a diff, at most so many bytes; nothing, if it changed none. */
int page_run_changes(struct admin_page *page, const struct store_execution *run, size_t most, struct err *err);
/* A unified diff, each line with the colour of its sign. */
void page_run_files_diff(struct html *html, const char *diff);
/* What it called of other servers, as a timeline and as a table. */
int page_run_tools(struct admin_page *page, const struct store_execution *run, struct err *err);
/* A part of it as a download: code, stdin, stdout, stderr; file?phase=…&name=… */
int page_run_part(struct admin_page *page, const struct store_execution *run, const char *part, struct err *err);

/* -------- a run once more, on its recorded inputs ----------------------------------------------------- */

/* May this run be replayed here? ERR_CONFLICT: no, and why. */
int page_replay_possible(struct admin_page *page, const struct store_execution *run, struct err *err);
/* Runs it, on this thread, and writes the comparison. ERR_BUSY: another one is under way. */
int page_replay(struct admin_page *page, const struct store_execution *run, struct err *err);
