/* page_run_part.h - a part of a run as a download: code, stdin, stdout, stderr; file?phase=…&name=… */
#pragma once

#include "admin_page.h"
#include "lib/store/record/store_execution.h"

int page_run_part(struct admin_page *page, const struct store_execution *run, const char *part, struct err *err);
