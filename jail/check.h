/*
 * check.h - `sallyport-jailer --check`: can jails be made here, by this user, with this configuration? Found out by
 * starting as a jailer does and running a program in each language, not by asking the kernel what it has.
 *
 * One JSON object a step, for standard output one a line:
 *
 *     {"step":"cgroup","ok":true,"weaker":false,"what":"version 2: memory, pids and cpu"}
 *     {"step":"jail","ok":false,"weaker":false,"what":"…","at":"mount /proc","errno":1,"remedy":"jail"}
 *
 * ok: the jailer can start as far as this step is concerned. weaker: programs run with less isolation, or a part is not
 * usable. remedy: a key, for steps that are not ok or are weaker; cli/doctor_jailer.c has the sentence for it. "runner"
 * lines also have "runner" and "install". at, errno: the step of the jail's set-up that failed. A step that fails ends
 * the check; only without a cgroup the check continues with weaker limits, to see what else is missing.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/json.h"

struct jailer;
typedef void check_say(struct json_object *line); /* must flush what it prints: children are forked */

/* Gives back everything that the start took. true: every step was ok. */
bool check_host(struct jailer *jailer, check_say *say);
