/*
 * upstream_name.h - names of servers and tools as identifiers, the same in every language that programs are written in.
 */
#pragma once

#include <stdbool.h>

#define UPSTREAM_NAME_MAX   128 /* bytes of a server's or tool's name */
#define UPSTREAM_ALIAS_SIZE (UPSTREAM_NAME_MAX + 3)

/* "my-tool" -> "my_tool", "3d" -> "_3d", "class" -> "class_": what is no identifier in Python and JavaScript is made
 * one, letter case stays. Longer names are cut. */
void upstream_name_alias(const char *name, char ret[UPSTREAM_ALIAS_SIZE]);
/* Is it a word of the guest's module `tools` itself (servers, call, search …)? Such an alias cannot be a server. */
bool upstream_name_reserved(const char *alias);
