/* run_missing.h - what a program lacked, in lines that say what there is instead: packages, network, limits. */
#pragma once

#include "run_streams.h"

/* Behind the sentence of a program that failed: lines of ours, some hundred bytes. */
void run_missing_add(struct server *server, const struct job_result *result, const struct run_shown *error,
		     struct buf *text);
