/* grade.h - how `sallyport grade` shows what it found: between cmd_grade.c and grade_report.c. */
#pragma once

#include "cli.h"
#include "lib/grade/grade_judge.h"

/* What all submissions of a package came to. */
struct grade_summary {
	size_t submissions, as_expected, unexpected, skipped, judge_errors, cases_run, compiled, from_cache;
	size_t verdicts[GRADE_VERDICTS];
};

enum grade_expected { GRADE_EXPECTED_NOTHING, GRADE_EXPECTED_NO, GRADE_EXPECTED_YES };
enum grade_expected grade_report_expected(const struct grade_submission *submission);

/* Counts a submission and prints its line: JSON, or for people. */
void grade_report_submission(const struct grade_judge *judge, const struct grade_submission *submission, bool json,
			     struct grade_summary *summary);
void grade_report_summary(const struct grade_judge *judge, const struct grade_summary *summary, bool json,
			  double seconds);
