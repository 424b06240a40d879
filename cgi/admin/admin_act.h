/*
 * admin_act.h - what one can do on the admin page: end a run, replay it, forget its content, revoke a token, make one,
 * accept a changed definition of a tool.
 *
 * Each act has an address, act/NAME/OBJECT. GET asks once and says what will happen; its form, sent by POST, does it.
 * The audit log has an entry with the person's token (`admin:ID`) before anything happens: no entry, no act.
 */
#pragma once

#include "admin_page.h"

/* The page that asks. `rest`: "NAME/OBJECT". */
int admin_act_ask(struct admin_page *page, const char *rest, struct err *err);
/* Does it, and leaves a page that says so, or *ret_to: where to go, behind /admin/ (ADMIN_VALUE_MAX bytes). */
int admin_act_do(struct admin_page *page, const char *rest, const char *form, char ret_to[ADMIN_VALUE_MAX],
		 struct err *err);
