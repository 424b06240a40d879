/*
 * config_profile.c - what the member `profile` stands for: other defaults, for a host with another purpose. A member
 * that the file or the environment sets counts before them.
 */
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "util.h"

#define GRADER_JAILS      8 /* for each processor */
#define GRADER_JAILS_MAX  4096

#define LIMIT_PRESET(member, value) {"limits", #member, value}

/* A host of graders and trainers: many requests at once, which wait and are not refused; whole outputs; long tests. */
static const struct config_preset grader[] = {
	{"doors", "fusion", true},
	{"doors", "piston", true},
	{"jailer", "jails", CONFIG_PRESET_JAILS},
	LIMIT_PRESET(in_flight, 1024),
	LIMIT_PRESET(queue, 100000),
	LIMIT_PRESET(answer_kb, 1024),
	LIMIT_PRESET(wall_seconds_max, 1800),
	LIMIT_PRESET(data_mb, 256),
	{0},
};

const struct config_preset *config_profile(const char *name)
{
	return streq(name, "grader") ? grader : NULL;
}

int64_t config_preset_value(const struct config_preset *preset)
{
	if (preset->value != CONFIG_PRESET_JAILS)
		return preset->value;
	return MIN(GRADER_JAILS * MAX(sysconf(_SC_NPROCESSORS_ONLN), 1), GRADER_JAILS_MAX);
}
