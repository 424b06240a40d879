/*
 * run_shape.h - what the results of a run's tool calls look like, for tools whose servers do not say: keys and types of
 * the first result, one line a tool. Values are left out, and nothing of it is stored: keys may be data.
 */
#pragma once

#include "lib/base/buf.h"
#include "lib/store/record/store_tool.h"

#define RUN_SHAPE_MAX   300 /* bytes of one */
#define RUN_SHAPE_TOOLS 3   /* shown in one answer */

/* "github.list_issues returns [{number: int, title: str}]" and so on. */
void run_shape_add(const struct store_tools *tools, struct buf *text);
