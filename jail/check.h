/*
 * check.h - `sallyport-jailer --check`: can jails be made here, by this user, with this configuration? Found out by
 * starting as a jailer does and running a program in each language, not by asking the kernel what it has.
 *
 * One JSON object a step, for standard output one a line:
 *
 *     {"step":"cgroup","ok":true,"weaker":false,"what":"version 2: memory, pids and cpu"}
 *     {"step":"jail","ok":false,"weaker":false,"what":"…","at":"mount /proc","errno":1,"remedy":"jail"}
 *
 * ok: nothing here stops a jailer. weaker: programs run with less isolation, or a part is not usable. remedy: a key,
 * for those that are not ok or weaker; what it means for a person is in cli/doctor_jailer.c. "runner" lines have
 * "runner" and "install" besides. at, errno: the step of the jail's own making that failed. A step that fails ends the
 * check; only without a cgroup it goes on with weaker limits, to see what else is missing.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/json.h"

struct jailer;
typedef void check_say(struct json_object *line); /* must not keep anything in a buffer: children are forked */

/* Gives back everything that the start took. true: every step was ok. */
bool check_host(struct jailer *jailer, check_say *say);
