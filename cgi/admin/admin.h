/*
 * admin.h - the admin page: what ran, what runs, who may; for people with a token of the scope `admin`.
 *
 * Served below /admin where admin.enabled is true. Pages are HTML made here (html.h), complete without scripts; the
 * script of assets/ reads the same pages again and replaces what has changed. Views are GET and change nothing; acts
 * are POST, each behind a page that asks (admin_act.h). Everything is read by readers of the store, in bounded time
 * (lib/store/record/store_view.h). Every reply has a policy that lets in no script but our own, no inline style, and no
 * other host.
 */
#pragma once

#include "cgi/http/http.h"

void admin_headers(struct reply *reply); /* what every reply below /admin has, refusals too */
void admin_handle(struct http_exchange *exchange, const char *method, const char *rest);
