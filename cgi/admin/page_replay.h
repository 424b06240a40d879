/* page_replay.h - a run once more on its recorded inputs, and what came out otherwise; nothing is recorded. */
#pragma once

#include "admin_page.h"
#include "lib/store/record/store_execution.h"

/* May this run be replayed here? ERR_CONFLICT: no, and why. */
int page_replay_possible(struct admin_page *page, const struct store_execution *run, struct err *err);
/* Runs it, on this thread, and writes the comparison. ERR_BUSY: another one is under way. */
int page_replay(struct admin_page *page, const struct store_execution *run, struct err *err);
