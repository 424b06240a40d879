/*
 * metrics.h - what this process counts and measures; /metrics shows it, a command writes it into a file. The table is
 * metrics.def.
 *
 * Counting is a lookup of the label's value among a few strings and a relaxed atomic addition: no lock, no memory. A
 * label's values are those of the table and those that were declared at the start, out of tables of ours or of the
 * operator (routes, methods, runners); everything else counts as "other", so that no client makes a label. "other" is
 * shown once it was counted, the rest from the start on.
 *
 * Durations are observed in microseconds and shown in seconds. Thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "err.h"

enum metric {
#define METRIC(symbol, ...) METRIC_##symbol,
#include "metrics.def"
	METRICS
};
#define METRICS_SERVED METRIC_SIGNED /* those before it are the gateway's, the others commands' */
enum metrics_label {
#define METRICS_LABEL(symbol, ...) METRICS_##symbol,
#include "metrics.def"
	METRICS_LABELS
};

/* One more value of a label, of which a copy is kept; harmless when it is known. Beyond the label's room: "other". */
void metrics_declare(enum metrics_label label, const char *value);

/* A value of two labels that go together; names of ours, without a comma. */
#define METRICS_PAIR 128
const char *metrics_pair(char ret[METRICS_PAIR], const char *first, const char *second);

/* The values of the metric's labels; NULL: it has no such label. */
void metrics_add(enum metric metric, const char *first, const char *second, int64_t amount); /* counter or gauge */
void metrics_set(enum metric metric, const char *first, int64_t value);                      /* gauge */
void metrics_observe(enum metric metric, const char *first, const char *second, int64_t value); /* histogram */

/* What the kernel says of this process, for the next print. */
void metrics_process(void);
/* Those of the gateway: OpenMetrics 1.0, or Prometheus' text format 0.0.4, which differ in the names of counters'
 * families and in the last line. */
void metrics_print(struct buf *out, bool open_metrics);
/* Those of a command, in a file of Prometheus' text format for node_exporter's textfile collector: first what the file
 * says (none: nothing), so that it still says it when the command sets something else. */
#define METRICS_FILE_MAX (64 * 1024)
int metrics_read(const char *path, struct err *err);
int metrics_write(const char *path, struct err *err);
#define METRICS_TYPE_OPEN "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define METRICS_TYPE_TEXT "text/plain; version=0.0.4; charset=utf-8"
