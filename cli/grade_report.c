/*
 * grade_report.c - how a package's submissions are shown, see grade.h. Members of the JSON lines: sallyport-grade(1).
 *
 * Each submission becomes one JSON object, which --json prints and --report keeps, and a line for people. What is
 * unexpected is decided in one place, grade_report_expected.
 */
#include "grade.h"

#include <math.h>
#include <string.h>

#include "lib/base/util.h"

enum grade_expected grade_report_expected(const struct grade_submission *submission)
{
	const struct grade_total *total = &submission->total;

	if (total->verdict == GRADE_SKIP)
		return GRADE_EXPECTED_NOTHING;
	if (*submission->unmet)
		return GRADE_EXPECTED_NO;
	if (!submission->expect.verdicts && !submission->expect.n_parts && !submission->expect.has_score)
		return GRADE_EXPECTED_NOTHING;
	return grade_expect_met(&submission->expect, total->verdict, total->score, total->full) ? GRADE_EXPECTED_YES
												: GRADE_EXPECTED_NO;
}

#define SCORE_DIGITS 9    /* behind the point */
#define SCORE_SAME   5e-10 /* scores that differ by less are printed alike */

/* A score as people write it: 20, not 20.0. */
static void add_score(struct json_object *object, double score)
{
	if (fabs(score - round(score)) < SCORE_SAME && fabs(score) < 1e15)
		json_add_int(object, "score", (int64_t)round(score));
	else
		json_add_rounded(object, "score", score, SCORE_DIGITS);
}

static struct json_object *expected_json(uint32_t verdicts)
{
	struct json_object *array = verdicts ? json_object_new_array() : NULL;

	for (int i = 0; i < GRADE_VERDICTS; i++)
		if (verdicts & GRADE_BIT(i))
			json_object_array_add(array, json_object_new_string(grade_verdict_text((enum grade_verdict)i)));
	return array;
}

static struct json_object *groups_json(const struct grade_total *total, bool scoring)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; scoring && i < total->n_groups; i++) {
		struct json_object *group = json_object_new_object();

		json_add_string(group, "name", total->groups[i].group->name);
		json_add_string(group, "verdict", grade_verdict_text(total->groups[i].verdict));
		add_score(group, total->groups[i].score);
		json_object_array_add(array, group);
	}
	return array;
}

static struct json_object *line_json(const struct grade_judge *judge, const struct grade_submission *submission)
{
	struct json_object *line = json_object_new_object();
	const struct grade_total *total = &submission->total;
	enum grade_expected expected = grade_report_expected(submission);

	json_add_string(line, "package", judge->package->name);
	json_add_string(line, "submission", submission->name);
	json_add_string(line, "language", *submission->language ? submission->language : NULL);
	json_add_string(line, "verdict", grade_verdict_text(total->verdict));
	add_score(line, total->score);
	json_add(line, "expected", expected_json(submission->expect.verdicts));
	json_add(line, "as_expected",
		 expected == GRADE_EXPECTED_NOTHING ? NULL : json_object_new_boolean(expected == GRADE_EXPECTED_YES));
	json_add_string(line, "case", total->first ? total->first->name : NULL);
	const char *message = *submission->unmet ? submission->unmet : total->message;

	json_add_bytes(line, "message", message, strlen(message));
	json_add_int(line, "cases_run", (int64_t)total->cases_run);
	json_add_int(line, "cases", (int64_t)judge->n_cases);
	json_add_int(line, "cpu_us", total->cpu_us);
	json_add_int(line, "wall_us", total->wall_us);
	json_add_int(line, "memory_kb", total->memory_bytes / 1024);
	json_add(line, "groups", groups_json(total, judge->package->scoring));
	return line;
}

/* "AC", "RTE or TLE"; "-" where nothing is expected. */
static void expected_text(const struct grade_submission *submission, struct buf *ret)
{
	for (int i = 0; i < GRADE_VERDICTS; i++)
		if (submission->expect.verdicts & GRADE_BIT(i))
			buf_printf(ret, "%s%s", ret->length > 0 ? " or " : "",
				   grade_verdict_text((enum grade_verdict)i));
	if (ret->length == 0)
		buf_putc(ret, '-');
	buf_putc(ret, '\0');
}

static void put_line(struct grading *grading, const struct grade_judge *judge,
		     const struct grade_submission *submission)
{
	const struct grade_total *total = &submission->total;
	auto_json struct json_object *line = line_json(judge, submission);
	auto_buf struct buf expected = {0};
	auto_free char *message = xasprintf("%s%s%.*s", total->first ? total->first->name : "",
					    total->first && *total->message ? ": " : "",
					    (int)strcspn(total->message, "\n"), total->message);

	buf_init(&expected, SIZE_MAX / 2);
	expected_text(submission, &expected);
	struct report_case one = {
		.group = judge->package->name,
		.name = submission->name,
		.label = grade_verdict_text(total->verdict),
		.expected = expected.data,
		.now = grade_verdict_text(total->verdict),
		.state = total->verdict == GRADE_SKIP                             ? REPORT_SKIP
			 : total->verdict == GRADE_JE                             ? REPORT_ERROR
			 : grade_report_expected(submission) == GRADE_EXPECTED_NO ? REPORT_FAIL
										  : REPORT_PASS,
		.message = *submission->unmet ? submission->unmet : message,
		.details = strchr(total->message, '\n') ? total->message : NULL,
		.wall_us = total->wall_us,
	};
	grade_put_line(grading, line, &one);
}

static void print_text(const struct grade_submission *submission)
{
	const struct grade_total *total = &submission->total;
	enum grade_expected expected = grade_report_expected(submission);
	enum cli_colour colour = expected == GRADE_EXPECTED_NO    ? CLI_RED
				 : expected == GRADE_EXPECTED_YES ? CLI_GREEN
								  : CLI_PLAIN;
	char time[CLI_TEXT_SIZE];

	cli_text_duration(total->cpu_us, time);
	printf("%s%-4s%s ", cli_colour_on(stdout, colour), grade_verdict_text(total->verdict), cli_colour_off(stdout));
	cli_print_safe(stdout, submission->name, strlen(submission->name));
	if (!isnan(total->score))
		printf("  %.12g points", total->score);
	if (total->cases_run)
		printf("  %s", time);
	if (expected == GRADE_EXPECTED_NO && !*submission->unmet) {
		fputs("  expected", stdout);
		for (int i = 0; i < GRADE_VERDICTS; i++)
			if (submission->expect.verdicts & GRADE_BIT(i))
				printf(" %s", grade_verdict_text((enum grade_verdict)i));
		if (submission->expect.has_score)
			printf(" %.12g to %.12g points", submission->expect.least, submission->expect.most);
		if (submission->expect.partial)
			fputs(" below the full score", stdout);
	}
	if (*submission->unmet) {
		fputs("  ", stdout);
		cli_print_safe(stdout, submission->unmet, strlen(submission->unmet));
	}
	if (total->first)
		printf("  %s", total->first->name);
	if (*total->message) {
		fputs(": ", stdout);
		cli_print_safe(stdout, total->message, strcspn(total->message, "\n"));
	}
	putchar('\n');
}

void grade_report_submission(struct grading *grading, const struct grade_judge *judge,
			     const struct grade_submission *submission, struct grade_summary *summary)
{
	enum grade_expected expected = grade_report_expected(submission);

	summary->submissions++;
	summary->as_expected += expected == GRADE_EXPECTED_YES;
	summary->unexpected += expected == GRADE_EXPECTED_NO;
	summary->skipped += submission->total.verdict == GRADE_SKIP;
	summary->judge_errors += submission->total.verdict == GRADE_JE;
	summary->cases_run += submission->total.cases_run;
	summary->compiled += submission->compiled;
	summary->from_cache += submission->from_cache;
	summary->verdicts[submission->total.verdict]++;
	put_line(grading, judge, submission);
	if (!grading->options->common.json)
		print_text(submission);
	fflush(stdout);
}

static void put_summary(struct grading *grading, const struct grade_judge *judge, const struct grade_summary *summary,
			double seconds)
{
	auto_json struct json_object *line = json_object_new_object();
	struct json_object *object = json_object_new_object(), *verdicts = json_object_new_object();

	json_add_string(object, "package", judge->package->name);
	json_add_int(object, "submissions", (int64_t)summary->submissions);
	json_add_int(object, "as_expected", (int64_t)summary->as_expected);
	json_add_int(object, "unexpected", (int64_t)summary->unexpected);
	json_add_int(object, "skipped", (int64_t)summary->skipped);
	json_add_int(object, "judge_errors", (int64_t)summary->judge_errors);
	for (int i = 0; i < GRADE_VERDICTS; i++)
		if (summary->verdicts[i])
			json_add_int(verdicts, grade_verdict_text((enum grade_verdict)i),
				     (int64_t)summary->verdicts[i]);
	json_add(object, "verdicts", verdicts);
	json_add_int(object, "cases_run", (int64_t)summary->cases_run);
	json_add_int(object, "compiled", (int64_t)summary->compiled);
	json_add_int(object, "from_cache", (int64_t)summary->from_cache);
	json_add_rounded(object, "time_limit_s", judge->time_limit, 6);
	json_add_rounded(object, "seconds", seconds, 2);
	if (summary->warnings)
		json_add(object, "warnings", json_object_get(summary->warnings));
	json_add(line, "summary", object);
	grade_put_summary(grading, line, seconds);
}

void grade_report_summary(struct grading *grading, const struct grade_judge *judge, const struct grade_summary *summary,
			  double seconds)
{
	put_summary(grading, judge, summary, seconds);
	if (grading->options->common.json)
		return;
	printf("%zu submissions: %zu as expected, %zu unexpected", summary->submissions, summary->as_expected,
	       summary->unexpected);
	if (summary->skipped)
		printf(", %zu skipped", summary->skipped);
	if (summary->judge_errors)
		printf(", %zu judge errors", summary->judge_errors);
	printf("; %zu cases in %.1f s, time limit %g s\n", summary->cases_run, seconds, judge->time_limit);
}
