/* test_metrics.c - counting from many threads, values that nobody declared, buckets, both formats. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <string.h>

#include "lib/base/metrics.h"
#include "lib/base/util.h"

#define THREADS 4
#define TIMES   10000

static char *printed(bool open_metrics)
{
	struct buf out;

	buf_init(&out, SIZE_MAX);
	metrics_print(&out, open_metrics);
	return buf_steal(&out, NULL);
}

/* A line of its own? */
static void shows(const char *line)
{
	auto_free char *text = printed(false), *whole = xasprintf("\n%s\n", line);

	if (!strstr(text, whole))
		fail_msg("there is no line %s", line);
}

static void *count(void *arg)
{
	for (int i = 0; i < TIMES; i++) {
		metrics_add(METRIC_REJECTED, "queue", NULL, 1);
		metrics_observe(METRIC_COMMIT, NULL, NULL, 150);
	}
	return arg;
}

static void threads(void **state)
{
	pthread_t all[THREADS];

	(void)state;
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&all[i], NULL, count, NULL), 0);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(all[i], NULL);
	shows("sallyport_rejections_total{limit=\"queue\"} 40000");
	shows("sallyport_store_commit_seconds_bucket{le=\"0.0001\"} 0");
	shows("sallyport_store_commit_seconds_bucket{le=\"0.0002\"} 40000");
	shows("sallyport_store_commit_seconds_bucket{le=\"+Inf\"} 40000");
	shows("sallyport_store_commit_seconds_sum 6.000000");
	shows("sallyport_store_commit_seconds_count 40000");
}

/* A bound belongs to its bucket; beyond the last one is +Inf. */
static void buckets(void **state)
{
	(void)state;
	metrics_observe(METRIC_MEMORY, NULL, NULL, 16777216);
	metrics_observe(METRIC_MEMORY, NULL, NULL, 16777217);
	metrics_observe(METRIC_MEMORY, NULL, NULL, INT64_C(1) << 40);
	shows("sallyport_run_memory_peak_bytes_bucket{le=\"16777216.0\"} 1");
	shows("sallyport_run_memory_peak_bytes_bucket{le=\"33554432.0\"} 2");
	shows("sallyport_run_memory_peak_bytes_bucket{le=\"2147483648.0\"} 2");
	shows("sallyport_run_memory_peak_bytes_bucket{le=\"+Inf\"} 3");
}

/* What is not declared has no label; a label that is full takes no more. */
static void labels(void **state)
{
	(void)state;
	metrics_add(METRIC_RUNS, "cobol", "OK", 1);
	metrics_declare(METRICS_VERDICT, "OK");
	metrics_declare(METRICS_LANGUAGE, "py\"th\\on\n");
	metrics_declare(METRICS_LANGUAGE, "py\"th\\on\n");
	metrics_add(METRIC_RUNS, "py\"th\\on\n", "OK", 2);
	shows("sallyport_runs_total{language=\"py\\\"th\\\\on \",verdict=\"OK\"} 2");
	shows("sallyport_runs_total{language=\"other\",verdict=\"other\"} 1");
	for (int i = 0; i < 100; i++) {
		auto_free char *name = xasprintf("language%d", i);

		metrics_declare(METRICS_LANGUAGE, name);
		metrics_add(METRIC_RUNS, name, "OK", 1);
	}
	shows("sallyport_runs_total{language=\"language30\",verdict=\"OK\"} 1");
	shows("sallyport_runs_total{language=\"other\",verdict=\"OK\"} 69");
}

/* Two labels of one name: a value that is not known has an empty second one. */
static void pairs(void **state)
{
	char asked[METRICS_PAIR], answer[METRICS_PAIR];

	(void)state;
	metrics_declare(METRICS_OPERATION, metrics_pair(asked, "tools/call", "run_code"));
	metrics_declare(METRICS_ANSWER, metrics_pair(answer, "", "2025-06-18"));
	metrics_observe(METRIC_OPERATION, asked, answer, 1000);
	metrics_observe(METRIC_OPERATION, "no/such,tool", answer, 1000);
	shows("mcp_server_operation_duration_seconds_count{mcp_method_name=\"tools/call\","
	      "gen_ai_tool_name=\"run_code\",error_type=\"\",mcp_protocol_version=\"2025-06-18\"} 1");
	shows("mcp_server_operation_duration_seconds_count{mcp_method_name=\"other\",gen_ai_tool_name=\"\","
	      "error_type=\"\",mcp_protocol_version=\"2025-06-18\"} 1");
}

static void formats(void **state)
{
	auto_free char *plain = printed(false), *open_metrics = printed(true);

	(void)state;
	assert_non_null(strstr(plain, "# TYPE sallyport_runs_total counter\n"));
	assert_null(strstr(plain, "# EOF"));
	assert_non_null(strstr(open_metrics, "# TYPE sallyport_runs counter\n"));
	assert_string_equal(open_metrics + strlen(open_metrics) - 6, "# EOF\n");
}

static void process(void **state)
{
	auto_free char *before = printed(false);

	(void)state;
	assert_non_null(strstr(before, "\nprocess_open_fds 0\n"));
	metrics_process();
	auto_free char *after = printed(false);

	assert_null(strstr(after, "\nprocess_open_fds 0\n"));
	assert_null(strstr(after, "\nprocess_resident_memory_bytes 0\n"));
	assert_null(strstr(after, "\nprocess_start_time_seconds 0\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads), cmocka_unit_test(buckets), cmocka_unit_test(labels), cmocka_unit_test(pairs),
		cmocka_unit_test(formats), cmocka_unit_test(process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
