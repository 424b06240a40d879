/*
 * host_gauge.c - the gauge of host_gauge.h for tests that are no C programs (sp_gauged of tests/e2e/lib.bash, `gauged`
 * of tests/clients/stack.js): host_gauge JAILS. Says "measuring", waits for the end of its standard input, and fails,
 * with a word, if a meter rose further than so many jails may raise it, or stays above what it was.
 */
#include <stdio.h>
#include <stdlib.h>

#include "host_gauge.h"

#define MEMORY (INT64_C(256) << 20) /* of a jail that names no limit */

int main(int argc, char **argv)
{
	const int64_t jails = argc == 2 ? strtoll(argv[1], NULL, 10) : 0;
	struct gauge gauge;
	int64_t by;
	char unused;

	if (jails < 1 || gauge_start(&gauge)) {
		fprintf(stderr, "host_gauge: usage: host_gauge JAILS\n");
		return 2;
	}
	puts("measuring");
	fflush(stdout);
	while (read(STDIN_FILENO, &unused, 1) > 0)
		;
	gauge_stop(&gauge);
	const enum gauge_meter meter = gauge_wrong_of(&gauge, MEMORY, jails, &by);

	if (meter == GAUGE_METERS)
		return 0;
	printf("%s of the host rose by %lld\n", gauge_names[meter], (long long)by);
	return 1;
}
