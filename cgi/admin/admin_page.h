/*
 * admin_page.h - one page of the admin page while it is made: what its views share.
 *
 * A view writes what stands in <main> into page->html, and the frame comes around it when the view has returned. A
 * view that fails leaves an error page instead. One that answers by itself (a download) sets `raw`.
 */
#pragma once

#include "admin_session.h"
#include "cgi/http/html.h"

#define ADMIN_VALUE_MAX 1024 /* bytes of a value in a query or a form */

struct admin_page {
	struct http_exchange *exchange;
	struct admin_visitor visitor;
	struct buf body;
	struct html html;
	char title[96];
	const char *section; /* the view's address behind /admin, for the navigation */
	int status;
	bool refresh; /* our script reads the page again: nobody looks at something new */
	bool raw;
	int64_t now_us;
};

/* A value of the request's query, decoded; false: it is not there, or too long. */
bool admin_page_query(const struct admin_page *page, const char *name, char *ret, size_t size);
/* The same of any text in the form of a query. */
bool admin_page_value(const char *text, const char *name, char *ret, size_t size);
/* The title of the tab and of the page. */
void admin_page_title(struct admin_page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Pieces that many views have. */
/* Begins a table: "Owner|Runs=n wide" are two columns, the second with these classes. `kind` is the table's class; "":
 * none. */
void admin_page_table(struct admin_page *page, const char *kind, const char *columns);
/* Ends it; without a row there was no beginning, and `empty` (NULL: nothing) is said instead. */
void admin_page_table_end(struct admin_page *page, int64_t rows, const char *empty);
/* A cell (classes `kind`) with a bar: so many of `whole` pixels. */
void admin_page_bar(struct admin_page *page, const char *kind, int64_t whole, int64_t used, bool full);
void admin_page_verdict(struct admin_page *page, const char *verdict); /* "": it runs */
const char *admin_page_verdict_text(const char *verdict);              /* what it means */
void admin_page_time(struct admin_page *page, int64_t us);             /* and how long ago; 0: a dash */
/* How long it has been going on; the script lets it go on. */
void admin_page_elapsed(struct admin_page *page, int64_t us);
/* "2026-11-27T14:00", as forms send it; a date alone, and a blank for the T, will do. "": 0. ERR_INVALID names `name`.
 */
int admin_page_moment(const char *name, const char *text, int64_t *ret_us, struct err *err);
void admin_page_option(struct admin_page *page, const char *value, const char *label, const char *chosen);
void admin_page_empty(struct admin_page *page, const char *text);
/* A figure with its name; `href` is the address behind /admin/ ("" : none). */
struct admin_figure {
	const char *name, *href, *note;
	struct html_value value;
	bool warn;
};
void admin_page_figure(struct admin_page *page, const struct admin_figure *figure);
/* A text of a guest, at most 64 KiB of it; `more` is the address behind /admin/ of the whole. */
void admin_page_text(struct admin_page *page, const char *data, size_t length, const char *more);
void admin_page_code(struct admin_page *page, const char *data, size_t length, const char *more); /* lines numbered */
/* The output of `sallyport ARGUMENT…`, for up to `ms` milliseconds. */
int admin_page_command(const struct admin_page *page, const char *const *arguments, int64_t ms, struct buf *ret,
		       struct err *err);
/* Writes into the audit log, soon, that this person looked at `type`:`id`. */
void admin_page_viewed(struct admin_page *page, const char *type, const char *id, const char *owner);

/* -------- admin_act.c --------------------------------------------------------------------------------- */

/* What one can do on the admin page: end a run, replay it, forget its content, revoke a token, make one, accept a
 * changed definition of a tool.
 *
 * Each act has an address, act/NAME/OBJECT. GET asks once and says what will happen; its form, sent by POST, does it.
 * The audit log has an entry with the person's token (`admin:ID`) before anything happens: no entry, no act. */

/* The page that asks. `rest`: "NAME/OBJECT". */
int admin_act_ask(struct admin_page *page, const char *rest, struct err *err);
/* Does it, and leaves a page that says so, or *ret_to: where to go, behind /admin/ (ADMIN_VALUE_MAX bytes). */
int admin_act_do(struct admin_page *page, const char *rest, const char *form, char ret_to[ADMIN_VALUE_MAX],
		 struct err *err);
