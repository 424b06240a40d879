/*
 * guest_file.h - the files of jail/guest that runner files name: drivers of live jails, what shows values, helpers. The
 * jailer has them embedded, so that a runner file can be copied alone.
 */
#pragma once

#include <stddef.h>

/* The text called `name`, of *ret_length bytes and with a NUL behind it; NULL: there is none. */
const char *guest_file(const char *name, size_t *ret_length);
