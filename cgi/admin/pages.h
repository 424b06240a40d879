/* pages.h - the views of the admin page, each a function that writes into the page. `rest`: behind the view's name. */
#pragma once

#include "admin_page.h"

int page_now(struct admin_page *page, const char *rest, struct err *err);
int page_runs(struct admin_page *page, const char *rest, struct err *err);
int page_run(struct admin_page *page, const char *rest, struct err *err);          /* ID, ID/stdout … */
int page_conversation(struct admin_page *page, const char *rest, struct err *err); /* ?owner=…&name=… */
int page_owners(struct admin_page *page, const char *rest, struct err *err);
int page_tokens(struct admin_page *page, const char *rest, struct err *err);
int page_servers(struct admin_page *page, const char *rest, struct err *err); /* or one: ALIAS */
int page_charts(struct admin_page *page, const char *rest, struct err *err);
int page_health(struct admin_page *page, const char *rest, struct err *err); /* doctor: with its findings */
int page_audit(struct admin_page *page, const char *rest, struct err *err);
