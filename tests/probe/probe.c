/*
 * probe.c - a static program for the inside of a jail: `probe NAME` runs one probe, `probe NAME plant` what comes
 * before it in another jail, `probe --list` names them.
 *
 * Prints "held" and exits with 0, or a line for each thing that it could do and should not, and exits with 1.
 */
#include "probe.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int broken;

static void say(const char *format, va_list arguments, const char *more)
{
	printf("BROKEN: ");
	vprintf(format, arguments);
	printf("%s\n", more);
	broken++;
}

void refused(long result, const char *format, ...)
{
	va_list arguments;

	if (result == -1)
		return;
	va_start(arguments, format);
	say(format, arguments, " worked");
	va_end(arguments);
}

void refused_with(long result, int error, const char *format, ...)
{
	int got = errno;
	va_list arguments;
	char more[128];

	if (result == -1 && got == error)
		return;
	va_start(arguments, format);
	snprintf(more, sizeof(more), result == -1 ? " gave \"%s\"" : " worked", strerror(got));
	say(format, arguments, more);
	va_end(arguments);
}

void holds(bool condition, const char *format, ...)
{
	va_list arguments;

	if (condition)
		return;
	va_start(arguments, format);
	say(format, arguments, "");
	va_end(arguments);
}

static const struct probe *const groups[] = {probes_files,      probes_processes, probes_network, probes_kernel,
					     probes_privileges, probes_places,    probes_ends,    probes_limits,
					     probes_output,     probes_traces,    probes_outside, probes_tools};

static int run(const struct probe *probe)
{
	setvbuf(stdout, NULL, _IOLBF, 0); /* what was said before the end counts, whatever the end is */
	probe->run();
	if (!broken)
		printf("held\n");
	return broken ? 1 : 0;
}

/* Stays until it is ended. */
static _Noreturn int plant(const struct probe *probe)
{
	probe->plant();
	if (!broken)
		printf("planted\n");
	fflush(stdout);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	bool list = argc == 2 && strcmp(argv[1], "--list") == 0;

	for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++)
		for (const struct probe *probe = groups[g]; probe->name; probe++) {
			if (list)
				printf("%s | %s | %s\n", probe->name, probe->what, probe->terms ? probe->terms : "");
			else if (argc >= 2 && strcmp(argv[1], probe->name) == 0)
				return argc == 2 ? run(probe) : plant(probe);
		}
	if (!list)
		fprintf(stderr, "probe: no such probe\n");
	return list ? 0 : 2;
}
