/*
 * progress.h - what a client hears of a run while it goes on: how much, and how often.
 */
#pragma once

#include <stdint.h>

#include "lib/base/buf.h"

#define MCP_PROGRESS_TEXT_MAX 4096   /* bytes of output in one progress message */
#define MCP_PROGRESS_PAUSE_US 300000 /* between two progress messages of a run */

struct job;
/* What a job printed on its two streams since `offset`, made safe; at most 2 * MCP_PROGRESS_TEXT_MAX bytes. A character
 * that is not whole yet waits for the next time. */
void progress_new_output(struct job *job, int64_t offset[2], struct buf *text);
