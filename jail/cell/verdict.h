/* verdict.h - how a run ended, as a verdict and one sentence in its result. The order of the causes: verdict.c. */
#pragma once

#include "cell_internal.h"

/* `status` NULL: init is dead, so the program's status is unknown. Counters and kills are in the result already. */
void verdict_decide(struct jail_result *result, const struct cell *cell, enum cell_stop stop, const int *status);
/* A refused system call, into the result of the run that is under way. */
void verdict_denied(struct cell *cell, int number);
void verdict_mention(struct jail_result *result); /* adds the refused system calls to the sentence */
/* The verdict XX: the sandbox failed at this step, with this errno. */
void verdict_sandbox(struct jail_result *result, const char *step, int error);
