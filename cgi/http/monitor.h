/*
 * monitor.h - what operators' programs ask: /metrics (lib/base/metrics.h) and /readyz.
 *
 * Neither waits for the writer: an outage must be visible.
 */
#pragma once

#include "http.h"

/* Does the request carry metrics.token? Never, where none is configured. */
bool monitor_token(const struct http_exchange *exchange);

/* What /readyz asks: `each` gets one after the other; err->code is ERR_NONE where all is well. */
void monitor_checks(struct server *server, void (*each)(void *arg, const char *name, const struct err *err), void *arg);

/* Both answer as if they were not there where the configuration switches them off. */
void monitor_metrics(struct http_exchange *exchange, const char *method, const char *rest);
/* 200, or 503 when a check fails: {"ready":…,"checks":{"database":{"ok":…,"error":…},"jailer":…,"disk":…}}. */
void monitor_ready(struct http_exchange *exchange, const char *method, const char *rest);
