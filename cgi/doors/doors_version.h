/*
 * doors_version.h - versions of languages, and the ranges in which Piston's clients name them. Facts: node-semver.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/json.h"

#define DOORS_VERSION_SIZE 32

/* "3.11.2" out of a runner's "Python 3.11.2", "openjdk 17.0.13 2024-10-15", "gcc (Debian 12.2.0-14) 12.2.0". */
void doors_version(struct json_object *runner, char ret[DOORS_VERSION_SIZE]);
/* "*", "3", "3.x", "^3.10", "~3.11.0", ">=3 <4", several with "||" between them. */
bool doors_version_fits(const char *range, const char *version);
