/*
 * job_metrics.h - what /metrics shows of jobs (lib/base/metrics.h). Part of the engine.
 */
#pragma once

#include "job_internal.h"

void job_metrics_begin(void);
void job_metrics_runners(struct json_object *runners); /* languages have a label of their own from now on */
void job_metrics_start(const struct job *job);         /* its turn has come */
void job_metrics_end(const struct job *job);           /* it is recorded */
