/* Command lines by table, seconds and points in time, tables and durations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "lib/base/util.h"

struct sample {
	struct cli_common common;
	struct cli_filter filter;
	bool quick;
	const char *name;
	struct bind_strings tags;
	int64_t jobs, timeout_us;
};

static const struct cli_option sample_options[] = {
	{.name = "quick", .letter = 'q', .type = CLI_FLAG, .offset = offsetof(struct sample, quick), .help = "quick"},
	{.name = "name",
	 .letter = 'n',
	 .type = CLI_STRING,
	 .offset = offsetof(struct sample, name),
	 .value = "NAME",
	 .help = "name"},
	{.name = "tag", .type = CLI_STRINGS, .offset = offsetof(struct sample, tags), .value = "TAG", .help = "tag"},
	{.name = "jobs",
	 .letter = 'j',
	 .type = CLI_INT,
	 .offset = offsetof(struct sample, jobs),
	 .min = 1,
	 .max = 64,
	 .value = "N",
	 .help = "N"},
	{.name = "timeout",
	 .type = CLI_SECONDS,
	 .offset = offsetof(struct sample, timeout_us),
	 .min = 1000,
	 .max = 10000000,
	 .value = "SECONDS",
	 .help = "time"},
	{0},
};
static const struct cli_group sample_groups[] = {
	{cli_filter_options, offsetof(struct sample, filter)}, {sample_options, 0}, {0}};
static const struct cli_command sample = {
	.name = "sample",
	.summary = "A sample",
	.arguments = "FILE",
	.groups = sample_groups,
	.size = sizeof(struct sample),
	.max_args = 2,
	.takes_rest = true,
};

#define WORDS_MAX 16

/* Parses the words of a line (separated by one blank, "_" is an empty one); 0 or the error, whose text is then in
 * `err`. */
static int parse(const struct cli_command *command, const char *line, struct sample *ret, char **copy, struct err *err)
{
	static char empty[] = "";
	static char *words[WORDS_MAX + 1];
	int n = 0;
	char *rest = *copy = xstrdup(line);

	for (char *word; (word = strsep(&rest, " ")) && n < WORDS_MAX;)
		words[n++] = streq(word, "_") ? empty : word;
	words[n] = NULL;
	*ret = (struct sample){0};
	*err = ERR_INIT;
	return cli_options_parse(command, n, words, ret, err);
}

static void test_parse(void **state)
{
	struct sample s;
	struct err err;
	auto_free char *copy = NULL;

	(void)state;
	static const char line[] =
		"sample a.py --jobs 4 -q --name=x --tag a --timeout 0.25 --tag=b=c b.py -- --quick -";

	assert_int_equal(parse(&sample, line, &s, &copy, &err), 0);
	assert_true(s.quick);
	assert_int_equal(s.jobs, 4);
	assert_int_equal(s.timeout_us, 250000);
	assert_string_equal(s.name, "x");
	assert_int_equal(s.tags.count, 2);
	assert_string_equal(s.tags.items[0], "a");
	assert_string_equal(s.tags.items[1], "b=c");
	assert_int_equal(s.common.n_args, 2);
	assert_string_equal(s.common.args[0], "a.py");
	assert_string_equal(s.common.args[1], "b.py");
	assert_int_equal(s.common.n_rest, 2);
	assert_string_equal(s.common.rest[0], "--quick");
	assert_string_equal(s.common.rest[1], "-");
	assert_null(s.common.rest[2]);
	cli_options_clear(&sample, &s);
	assert_null(s.tags.items);
}

static void test_letters_and_common(void **state)
{
	struct sample s;
	struct err err;
	auto_free char *copy = NULL, *second = NULL;

	(void)state;
	assert_int_equal(parse(&sample, "sample -j64 -nfoo --json --config c.json -", &s, &copy, &err), 0);
	assert_int_equal(s.jobs, 64);
	assert_string_equal(s.name, "foo");
	assert_true(s.common.json);
	assert_string_equal(s.common.config, "c.json");
	assert_string_equal(s.common.args[0], "-");
	assert_null(s.common.rest);
	assert_int_equal(parse(&sample, "sample --verdict TO -l python --since 2h", &s, &second, &err), 0);
	assert_int_equal(s.filter.verdicts.count, 1);
	assert_string_equal(s.filter.verdicts.items[0], "TO");
	assert_string_equal(s.filter.language, "python");
	assert_true(s.filter.since_us > 0);
	assert_false(cli_filter_empty(&s.filter));
	cli_options_clear(&sample, &s);
	assert_true(cli_filter_empty(&(struct cli_filter){0}));
}

static void test_refusals(void **state)
{
	static const struct {
		const char *line, *says;
	} cases[] = {
		{"sample --frob", "unknown option '--frob'"},
		{"sample --job 3", "unknown option '--job'"}, /* no abbreviations */
		{"sample -x", "unknown option '-x'"},
		{"sample --jobs", "wants a value (N)"},
		{"sample --jobs 0", "not a whole number from 1 to 64"},
		{"sample --jobs 65", "not a whole number from 1 to 64"},
		{"sample --jobs -1", "not a whole number from 1 to 64"},
		{"sample --jobs 9999999999999999999999", "not a whole number"},
		{"sample --quick=1", "takes no value"},
		{"sample -q1", "takes no value"},
		{"sample --name _", "must not be empty"},
		{"sample --verdict ok", "'ok' is not one of OK, RE"},
		{"sample --timeout 1e3", "not a number of seconds"},
		{"sample --timeout 0", "not a number of seconds"},
		{"sample --timeout 11", "not a number of seconds from 0.001 to 10"},
		{"sample --since someday", "--since: 'someday' is not a time"},
		{"sample a b c", "'c' is one argument too many"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		auto_free char *copy = NULL;
		struct sample s;
		struct err err;

		assert_int_equal(parse(&sample, cases[i].line, &s, &copy, &err), -ERR_INVALID);
		cli_options_clear(&sample, &s);
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s: %s", cases[i].line, err.text);
	}
}

static void test_arguments(void **state)
{
	struct cli_command strict = sample;
	struct sample s;
	struct err err;
	auto_free char *copy = NULL, *second = NULL, *third = NULL;

	(void)state;
	strict.min_args = strict.max_args = 1;
	strict.takes_rest = false;
	assert_int_equal(parse(&strict, "sample", &s, &copy, &err), -ERR_INVALID);
	assert_non_null(strstr(err.text, "sample wants FILE"));
	assert_int_equal(parse(&strict, "sample a -- b", &s, &second, &err), -ERR_INVALID);
	assert_non_null(strstr(err.text, "takes nothing behind '--'"));
	assert_int_equal(parse(&strict, "sample --help", &s, &third, &err), 0); /* --help needs no arguments */
}

static void test_seconds(void **state)
{
	static const struct {
		const char *text;
		int64_t us; /* -1: refused */
	} cases[] = {
		{"0", 0},          {"1", 1000000},       {"2.5", 2500000},
		{"0.000001", 1},   {"00.1", 100000},     {"86400", 86400000000},
		{"", -1},          {".5", -1},           {"5.", -1},
		{"-1", -1},        {"+1", -1},           {"1 ", -1},
		{"0x1", -1},       {"1,5", -1},          {"1e1", -1},
		{"0.0000001", -1}, {"86400.000001", -1}, {"99999999999999999999999999", -1},
		{"inf", -1},       {"nan", -1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int64_t us = -7;
		int result = cli_parse_seconds(cases[i].text, 0, 86400000000, &us, NULL);

		if (cases[i].us < 0 ? result != -ERR_INVALID || us != -7 : result != 0 || us != cases[i].us)
			fail_msg("'%s': %d, %lld", cases[i].text, result, (long long)us);
	}
}

static void test_times(void **state)
{
	const int64_t now = 1795248000000000; /* 2026-11-21T08:00:00Z */
	static const struct {
		const char *text;
		int64_t us; /* -1: refused */
	} cases[] = {
		{"90s", 1795247910000000},
		{"15m", 1795247100000000},
		{"2h", 1795240800000000},
		{"3d", 1794988800000000},
		{"1w", 1794643200000000},
		{"0s", 1795248000000000},
		{"2026-11-21T08:00:00Z", 1795248000000000},
		{"2026-11-21T08:00:00.25Z", 1795248000250000},
		{"2026-11-21 08:00Z", 1795248000000000},
		{"2026-11-21Z", 1795219200000000},
		{"2026-11-21", 1795215600000000},
		{"2026-11-21T08:00", 1795244400000000},
		{"2026-07-21 08:00", 1784613600000000},
		{"", -1},
		{"h", -1},
		{"-2h", -1},
		{"2.5h", -1},
		{"2y", -1},
		{"99999999999999d", -1},
		{"2026-13-01", -1},
		{"2026-02-30", -1},
		{"2026-11-21T25:00", -1},
		{"2026-11-21x", -1},
		{"21.11.2026", -1},
		{"2026-11-21T08:00:00.1234567Z", -1},
		{"today", 1795215600000000},
		{"yesterday", 1795129200000000},
		{"now", -1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int64_t us = -7;
		int result = cli_parse_time(cases[i].text, now, &us, NULL);

		if (cases[i].us < 0 ? result != -ERR_INVALID || us != -7 : result != 0 || us != cases[i].us)
			fail_msg("'%s': %d, %lld", cases[i].text, result, (long long)us);
	}
}

static void test_table(void **state)
{
	static const struct cli_column columns[] = {
		{"NAME", false, 0, 6, 0}, {"SIZE", true, 0, 0, 0}, {"TEXT", false, 0, 0, 0}};
	auto_table struct cli_table *table = cli_table_new(columns, ARRAY_SIZE(columns));
	char *text = NULL;
	size_t length = 0;
	FILE *out = tmpfile();

	(void)state;
	cli_table_cell(table, "größer", CLI_RED);
	cli_table_cell(table, "12", CLI_PLAIN);
	cli_table_cell(table, "a\033[31mb\nc", CLI_PLAIN);
	cli_table_print(table, out);
	cli_table_cell(table, "toolong", CLI_PLAIN);
	cli_table_cell(table, "12345", CLI_PLAIN);
	cli_table_cell(table, "\xff", CLI_PLAIN);
	cli_table_print(table, out);
	cli_table_print(table, out); /* nothing new, nothing printed */
	assert_int_equal(cli_table_rows(table), 2);
	rewind(out);
	assert_int_equal(read_fd(fileno(out), 4096, &text, &length, NULL), 0);
	fclose(out);
	assert_string_equal(text, "NAME    SIZE  TEXT\ngrößer    12  a\\x1b[31mb\\x0ac\ntoolo…  12345  \\xff\n");
	free(text);
}

static void test_units(void **state)
{
	char text[CLI_TEXT_SIZE];

	(void)state;
	cli_text_duration(999, text);
	assert_string_equal(text, "999 µs");
	cli_text_duration(999999, text);
	assert_string_equal(text, "999 ms");
	cli_text_duration(1500000, text);
	assert_string_equal(text, "1.50 s");
	cli_text_bytes(1023, text);
	assert_string_equal(text, "1023 B");
	cli_text_bytes(256LL * 1024 * 1024, text);
	assert_string_equal(text, "256.0 MiB");
	cli_text_bytes(INT64_MAX, text);
	assert_string_equal(text, "8388608.0 TiB");
	cli_text_time(0, text);
	assert_string_equal(text, "1970-01-01 01:00:00");
}

/* Every command can explain itself, and names what a script needs. */
static void test_usage(void **state)
{
	(void)state;
	for (size_t i = 0; cli_commands[i]; i++) {
		char *text = NULL;
		size_t length = 0;
		FILE *out = open_memstream(&text, &length);

		cli_usage(cli_commands[i], out);
		fclose(out);
		assert_non_null(strstr(text, "Example"));
		assert_non_null(strstr(text, "\nExit codes:\n  "));
		assert_non_null(strstr(text, "--json"));
		assert_ptr_equal(cli_command_find(cli_commands[i]->name), cli_commands[i]);
		free(text);
	}
	assert_null(cli_command_find("frob"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),    cmocka_unit_test(test_letters_and_common),
		cmocka_unit_test(test_refusals), cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_seconds),  cmocka_unit_test(test_times),
		cmocka_unit_test(test_table),    cmocka_unit_test(test_units),
		cmocka_unit_test(test_usage),
	};

	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3",
	       1); /* a zone with summer time, so that local times are seen to be local */
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
