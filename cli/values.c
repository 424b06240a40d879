/* values.c - seconds and points in time as people write them, and back. */
#include <ctype.h>
#include <string.h>

#include "cli.h"
#include "lib/base/util.h"

#define SECOND_US       1000000LL
#define FRACTION_DIGITS 6
#define SECONDS_MAX     (INT64_MAX / SECOND_US - 1)

/* "12.5" -> 12500000; *ret_end behind the last digit. */
static int seconds_scan(const char *text, int64_t *ret_us, const char **ret_end)
{
	int64_t whole = 0, fraction = 0, unit = SECOND_US;
	const char *p = text;

	for (; isdigit((unsigned char)*p); p++) {
		if (whole > SECONDS_MAX / 10 - 1)
			return -1;
		whole = whole * 10 + (*p - '0');
	}
	if (p == text)
		return -1;
	if (*p == '.') {
		const char *first = ++p;

		for (; isdigit((unsigned char)*p); p++) {
			if (p - first >= FRACTION_DIGITS)
				return -1;
			unit /= 10;
			fraction += (*p - '0') * unit;
		}
		if (p == first)
			return -1;
	}
	*ret_us = whole * SECOND_US + fraction;
	*ret_end = p;
	return 0;
}

int cli_parse_seconds(const char *text, int64_t min_us, int64_t max_us, int64_t *ret_us, struct err *err)
{
	const char *end = text;
	int64_t us = 0;

	if (seconds_scan(text, &us, &end) || *end || us < min_us || us > max_us)
		return err_set(err, ERR_INVALID, "'%s' is not a number of seconds from %g to %g, such as 2.5", text,
			       (double)min_us / 1e6, (double)max_us / 1e6);
	*ret_us = us;
	return 0;
}

static int64_t unit_us(char unit)
{
	switch (unit) {
	case 's':
		return SECOND_US;
	case 'm':
		return 60 * SECOND_US;
	case 'h':
		return 3600 * SECOND_US;
	case 'd':
		return 86400 * SECOND_US;
	case 'w':
		return 7 * 86400 * SECOND_US;
	default:
		return 0;
	}
}

/* "2h": how long ago. */
static int ago_parse(const char *text, int64_t now_us, int64_t *ret_us)
{
	size_t length = strlen(text);
	auto_free char *digits = NULL;
	uint64_t number;
	int64_t unit = length ? unit_us(text[length - 1]) : 0;

	if (!unit)
		return -1;
	digits = xstrndup(text, length - 1);
	if (parse_u64(digits, 0, (uint64_t)(now_us / unit), &number))
		return -1;
	*ret_us = now_us - (int64_t)number * unit;
	return 0;
}

static int calendar_parse(const char *text, int64_t *ret_us)
{
	static const char *const formats[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M",
					      "%Y-%m-%d %H:%M", "%Y-%m-%d"};

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		struct tm parts = {.tm_isdst = -1}, check;
		const char *end = strptime(text, formats[i], &parts);
		int64_t fraction_us = 0;

		if (!end)
			continue;
		if (*end == '.' && i < 2) {
			char with_zero[16];

			snprintf(with_zero, sizeof(with_zero), "0%.*s", (int)(1 + strspn(end + 1, "0123456789")), end);
			if (seconds_scan(with_zero, &fraction_us, &(const char *){NULL}))
				continue;
			end += strlen(with_zero) - 1;
		}
		check = parts;
		bool utc = streq(end, "Z");
		int64_t seconds = utc ? timegm(&check) : mktime(&check);

		/* mktime turns 30 February into 2 March: a date that moved was not a date */
		if ((*end && !utc) || seconds < 0 || check.tm_mday != parts.tm_mday || check.tm_mon != parts.tm_mon)
			continue;
		*ret_us = seconds * SECOND_US + fraction_us;
		return 0;
	}
	return -1;
}

/* "today", "yesterday": midnight of the local time. */
static int day_parse(const char *text, int64_t now_us, int64_t *ret_us)
{
	const bool yesterday = streq(text, "yesterday");
	const time_t now = (time_t)(now_us / SECOND_US);
	struct tm parts;

	if (!yesterday && !streq(text, "today"))
		return -1;
	localtime_r(&now, &parts);
	parts.tm_hour = parts.tm_min = parts.tm_sec = 0;
	parts.tm_mday -= yesterday;
	parts.tm_isdst = -1;
	*ret_us = mktime(&parts) * SECOND_US;
	return 0;
}

int cli_parse_time(const char *text, int64_t now_us, int64_t *ret_us, struct err *err)
{
	if (day_parse(text, now_us, ret_us) && ago_parse(text, now_us, ret_us) && calendar_parse(text, ret_us))
		return err_set(err, ERR_INVALID,
			       "'%s' is not a time: write 15m, 2h or 3d (ago), today, yesterday, 2026-11-21 or 2026-11-21T08:11",
			       text);
	return 0;
}

int cli_parse_expiry(const char *text, int64_t now_us, int64_t *ret_us, struct err *err)
{
	int64_t past_us;

	/* The same words as for the past, counted the other way. */
	if (ago_parse(text, now_us, &past_us) == 0)
		*ret_us = now_us + (now_us - past_us);
	else if (calendar_parse(text, ret_us))
		return err_set(err, ERR_INVALID,
			       "'%s' is not a time: write 12h, 90d or 4w (from now), 2027-03-01 or 2027-03-01T08:11",
			       text);
	if (*ret_us <= now_us)
		return err_set(err, ERR_INVALID, "'%s' is not in the future", text);
	return 0;
}

void cli_text_duration(int64_t us, char ret[CLI_TEXT_SIZE])
{
	if (us < 1000)
		snprintf(ret, CLI_TEXT_SIZE, "%lld µs", (long long)us);
	else if (us < SECOND_US)
		snprintf(ret, CLI_TEXT_SIZE, "%lld ms", (long long)(us / 1000));
	else
		snprintf(ret, CLI_TEXT_SIZE, "%.2f s", (double)us / 1e6);
}

void cli_text_bytes(int64_t bytes, char ret[CLI_TEXT_SIZE])
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double value = (double)bytes;
	size_t i = 0;

	for (; value >= 1024 && i + 1 < ARRAY_SIZE(units); i++)
		value /= 1024;
	snprintf(ret, CLI_TEXT_SIZE, i ? "%.1f %s" : "%.0f %s", value, units[i]);
}

void cli_text_time(int64_t us, char ret[CLI_TEXT_SIZE])
{
	time_t seconds = (time_t)(us / SECOND_US);
	struct tm parts;

	if (!localtime_r(&seconds, &parts) || !strftime(ret, CLI_TEXT_SIZE, "%Y-%m-%d %H:%M:%S", &parts))
		snprintf(ret, CLI_TEXT_SIZE, "%lld", (long long)seconds);
}
