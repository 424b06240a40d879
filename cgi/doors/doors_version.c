/* doors_version.c - see doors_version.h. */
#include "doors_version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/util.h"

#define VERSION_PARTS 3

void doors_version(struct json_object *runner, char ret[DOORS_VERSION_SIZE])
{
	const char *text = json_get_string(runner, "version"), *best = "0.0.0";
	size_t length = strlen(best);
	int dots_of_best = 0;

	for (const char *at = text ? text : ""; *at;) {
		size_t n = strspn(at, "0123456789.");
		int dots = 0;

		for (size_t i = 0; i < n; i++)
			dots += at[i] == '.';
		if (n > 0 && dots > dots_of_best && *at != '.' && (at == text || strchr(" v(", at[-1]))) {
			best = at;
			length = n;
			dots_of_best = dots;
		}
		at += MAX(n, 1);
	}
	while (length > 0 && best[length - 1] == '.')
		length--;
	snprintf(ret, DOORS_VERSION_SIZE, "%.*s", (int)MIN(length, DOORS_VERSION_SIZE - 1), best);
}

static size_t parts_of(const char *text, long ret[VERSION_PARTS])
{
	size_t count = 0;

	memset(ret, 0, VERSION_PARTS * sizeof(*ret));
	while (count < VERSION_PARTS && *text >= '0' && *text <= '9') {
		char *end;

		ret[count++] = strtol(text, &end, 10);
		text = *end == '.' ? end + 1 : end;
	}
	return count;
}

static int compare(const long a[VERSION_PARTS], const long b[VERSION_PARTS], size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

/* One comparator of a range as npm's semver has it: "*", "3", "3.x", "^3.10", "~3.11.0", ">=3", "<4". */
static bool comparator_fits(const char *comparator, const long version[VERSION_PARTS])
{
	const size_t n = strspn(comparator, "^~<>=v");
	const char *operator= comparator;
	long wanted[VERSION_PARTS];
	const size_t count = parts_of(comparator + n, wanted);

	if (count == 0) /* "*", "x", "latest" is none of them */
		return strspn(comparator + n, "*xX.") == strlen(comparator + n);
	if (*operator== '^')
		return compare(version, wanted, 1) == 0 && compare(version, wanted, VERSION_PARTS) >= 0;
	if (*operator== '~')
		return compare(version, wanted, MIN(count, 2)) == 0 && compare(version, wanted, VERSION_PARTS) >= 0;
	if (*operator== '>')
		return operator[1] == '=' ? compare(version, wanted, VERSION_PARTS) >= 0
					  : compare(version, wanted, count) > 0;
	if (*operator== '<')
		return operator[1] == '=' ? compare(version, wanted, count) <= 0
					  : compare(version, wanted, VERSION_PARTS) < 0;
	return compare(version, wanted, count) == 0;
}

bool doors_version_fits(const char *range, const char *version)
{
	long parts[VERSION_PARTS];
	bool all = true;

	parts_of(version, parts);
	for (const char *at = range; *at && all;) {
		const size_t blanks = strspn(at, " "), n = strcspn(at + blanks, " ");
		auto_free char *comparator = xstrndup(at + blanks, n);

		if (streq(comparator, "||")) /* this side fits */
			return true;
		all = n == 0 || comparator_fits(comparator, parts);
		at += blanks + n;
	}
	const char *other = strstr(range, "||");

	return all || (other && doors_version_fits(other + 2, version));
}
