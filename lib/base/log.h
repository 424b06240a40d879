/*
 * log.h - one line per event on standard error: "2026-11-21T08:11:09.123456Z warn gateway event key=value …", or as
 * JSON: {"ts":"2026-11-21T08:11:09.123456Z","level":"warn","program":"gateway","event":"event","key":"value",…}.
 *
 * Values are quoted when they hold blanks and made printable (utf8.h): a guest cannot forge a line. Never log code,
 * output, environment values or tokens. Thread-safe (one write(2) a line).
 */
#pragma once

#include <stdbool.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

/* Program name for the lines and the least level that is written; call once at start. Default: info. */
void log_open(const char *program, enum log_level least);
/* As the configuration's group `log` says; a program that logs less than `level` by itself goes on doing so. Before
 * other threads are started. */
void log_configure(bool json, const char *level);
/* "debug", "info", "warn" or "error". */
bool log_level_valid(const char *level);
/* `event` is a constant word or two ("run done"); pairs of (const char *key, const char *value) follow, ended by NULL.
 */
void log_event(enum log_level level, const char *event, ...) __attribute__((sentinel));
