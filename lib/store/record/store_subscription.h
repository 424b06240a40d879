/*
 * store_subscription.h - the resources that a legacy session wants to be told about (resources/subscribe). They last as
 * long as the session: its client does not know that the gateway was started again.
 */
#pragma once

#include "lib/store/store.h"

#define STORE_SUBSCRIPTIONS_MAX 32 /* of one session */

/* Harmless where it is there already; ERR_LIMIT. */
int store_subscription_add(struct store *store, const char *session, const char *uri, struct err *err);
/* Harmless where it is not there. */
int store_subscription_remove(struct store *store, const char *session, const char *uri, struct err *err);
int store_subscription_list(struct store *store, const char *session, int (*each)(void *arg, const char *uri),
			    void *arg, struct err *err);
