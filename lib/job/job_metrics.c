/* job_metrics.c - what /metrics shows of jobs (lib/base/metrics.h). */
#include "job_internal.h"

#include <ctype.h>

#include "lib/base/metrics.h"

void job_metrics_begin(void)
{
	for (int step = 0; step < JOB_OVER; step++) /* what is over is counted as a run */
		metrics_declare(METRICS_STEP, job_step_text(step));
	for (int state = 0; state < JAIL_STATES; state++)
		metrics_declare(METRICS_JAIL, jail_state_text((enum jail_state)state));
	for (int verdict = 0; verdict < JAIL_VERDICTS; verdict++)
		metrics_declare(METRICS_VERDICT, jail_verdict_text(verdict));
}

void job_metrics_runners(struct json_object *runners)
{
	for (size_t i = 0; i < json_object_array_length(runners); i++)
		metrics_declare(METRICS_LANGUAGE, json_get_string(json_object_array_get_idx(runners, i), "name"));
}

void job_metrics_start(const struct job *job)
{
	metrics_observe(METRIC_QUEUED, NULL, NULL, clock_monotonic_us() - job->turn.since_us);
}

static int64_t number(struct json_object *object, const char *key)
{
	return json_object_get_int64(json_get(object, key, json_type_int));
}

void job_metrics_row(const struct store_execution *row, enum jail_verdict verdict)
{
	metrics_add(METRIC_RUNS, row->language, jail_verdict_text(verdict), 1);
	if (*row->door)
		metrics_add(METRIC_DOOR_RUNS, row->door, jail_verdict_text(verdict), 1);
}

void job_metrics_end(const struct job *job)
{
	const struct jail_result *result = &job->run.result.jail;
	const char *language = job->asked.row.language;

	job_metrics_row(&job->asked.row, result->verdict);
	if (!job->run.started)
		return;
	metrics_observe(METRIC_RUN, language, NULL, result->run.wall_us);
	metrics_add(METRIC_CPU, language, NULL, result->run.cpu_us + result->compile.cpu_us);
	metrics_observe(METRIC_MEMORY, NULL, NULL, result->run.memory_peak_bytes);
	metrics_observe(METRIC_SETUP, result->warm ? "warm" : result->parked ? "parked" : "cold", NULL,
			result->setup_us);
	/* Names come from the kernel's numbers, by a table of the jailer: a program can choose among them, not make
	 * them. */
	for (size_t i = 0; result->denied && i < json_object_array_length(result->denied); i++) {
		const char *name = json_get_string(json_object_array_get_idx(result->denied, i), "name");

		if (name && islower((unsigned char)name[0])) /* else a number that no table has */
			metrics_declare(METRICS_CALL, name);
		metrics_add(METRIC_DENIED, name, NULL, 1);
	}
	if (result->network) {
		metrics_add(METRIC_EGRESS, NULL, NULL, number(result->network, "connections"));
		metrics_add(METRIC_EGRESS_BYTES, "in", NULL, number(result->network, "bytes_in"));
		metrics_add(METRIC_EGRESS_BYTES, "out", NULL, number(result->network, "bytes_out"));
	}
}
