/*
 * monitor.h - what operators' programs ask: /metrics (lib/base/metrics.h) and /readyz.
 *
 * Neither waits for the writer: an outage must be visible.
 */
#pragma once

#include "exchange.h"

/* Does the request carry metrics.token? Never, where none is configured. */
bool monitor_token(const struct exchange *exchange);

/* Both answer as if they were not there where the configuration switches them off. */
void monitor_metrics(struct exchange *exchange, const char *method, const char *rest);
/* 200, or 503 when a check fails: {"ready":…,"checks":{"database":{"ok":…,"error":…},"jailer":…,"disk":…}}. */
void monitor_ready(struct exchange *exchange, const char *method, const char *rest);
