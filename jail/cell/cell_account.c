/*
 * cell_account.c - what one phase of a run used, by difference: the counters of the jail's cgroup, and what init saw
 * when it reaped.
 */
#include "cell_internal.h"
#include "lib/base/util.h"

/* By difference to the end of the last phase, without what init itself used. The sum comes from the cgroup, which
 * misses nobody; how it is split comes from what was reaped, because v1 splits by ticks of 10 ms. */
static void account_cpu(struct cell *cell, struct jail_usage *usage, const struct cgroup_usage *now,
			const struct init_report *report)
{
	int64_t user = now->cpu_user_us - cell->base.cpu_user_us,
		system = now->cpu_system_us - cell->base.cpu_system_us;
	int64_t sum = user + system;

	if (report) {
		sum -= report->self_us - cell->init_cpu_us;
		cell->init_cpu_us = report->self_us;
	}
	/* In a live jail, what was reaped has also what it used in earlier runs, and lacks what is alive. */
	if (report && !cell->live.on) {
		sum = MAX(sum, report->user_us + report->system_us);
		user = report->user_us;
		system = report->system_us;
	}
	sum = MAX(sum, 0);
	user = MAX(user, 0);
	system = MAX(system, 0);
	usage->cpu_user_us = user + system > 0 ? (int64_t)((double)sum * (double)user / (double)(user + system)) : sum;
	usage->cpu_system_us = sum - usage->cpu_user_us;
	usage->cpu_us = sum;
}

void cell_run_account(struct cell *cell, const struct init_report *report)
{
	struct cell_run *run = &cell->run;
	struct jail_usage *usage = run->phase == PHASE_COMPILE ? &run->result.compile : &run->result.run;
	struct cgroup_usage now = cell->base;

	cgroup_read(cell->group, &now, NULL);
	account_cpu(cell, usage, &now, report);
	usage->memory_peak_bytes = now.memory_peak_bytes;
	usage->pids_peak = MAX(now.pids_peak - 1, 0);
	usage->wall_us = run->started_us ? clock_monotonic_us() - run->started_us : 0;
	if (report) {
		usage->wall_us = report->ended_us - report->started_us;
		usage->rss_peak_bytes = report->peak_bytes;
		if (!usage->memory_peak_bytes)
			usage->memory_peak_bytes = report->peak_bytes;
		usage->switches_voluntary = report->switches_voluntary;
		usage->switches_forced = report->switches_forced;
	}
	run->result.oom_killed = now.oom_kills > cell->base.oom_kills;
	usage->pids_hits = now.pids_hits - cell->base.pids_hits;
	run->result.pids_limit_hit = usage->pids_hits > 0;
	cell->base = now;
}
