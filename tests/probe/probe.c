/*
 * probe.c - a static program for the inside of a jail: `probe NAME` runs one probe, `probe --list` names them.
 *
 * Prints "held" and exits with 0, or a line for each thing that it could do and should not, and exits with 1.
 */
#include "probe.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

static const struct probe *const groups[] = {probes_files, probes_processes, probes_network, probes_kernel, probes_privileges};

int main(int argc, char **argv)
{
	bool list = argc == 2 && strcmp(argv[1], "--list") == 0;

	for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++)
		for (const struct probe *probe = groups[g]; probe->name; probe++) {
			if (list)
				printf("%s\t%s\n", probe->name, probe->what);
			else if (argc == 2 && strcmp(argv[1], probe->name) == 0) {
				probe->run();
				if (!broken)
					printf("held\n");
				return broken ? 1 : 0;
			}
		}
	if (!list)
		fprintf(stderr, "probe: no such probe\n");
	return list ? 0 : 2;
}
