/*
 * bridge_files.h - what a run that names servers finds below /code: modules for Python and JavaScript, and the tree
 * that describes its tools.
 *
 *     tools/            the Python module; index.txt: a line a tool; stubs/SERVER.json .pyi: definitions and types
 *     mcp/              the Python module with the seed's names (mcp.runtime, mcp.servers.NAME)
 *     node_modules/tools/   the module for JavaScript and TypeScript; SERVER.mjs and SERVER.d.ts: a module a server
 *
 * The program mcp, for bash, C and Go, is in every jail (JAIL_PROGRAMS); here it comes onto PATH.
 */
#pragma once

#include "bridge.h"
#include "jail/client/jail.h"

struct bridge_files {
	struct jail_file *files;
	size_t count;
};
struct bridge_known {
	const char *name, *description;
};
struct bridge_files_spec {
	struct upstream_list *const *lists;
	size_t count;
	const char *const *decisions; /* as in struct bridge_spec */
	const char *runner;           /* decides which of the languages' files are made */
	const struct bridge_known *known;
	size_t n_known; /* every server that is configured */
};
int bridge_files_make(const struct bridge_files_spec *spec, struct bridge_files *ret, struct err *err);
void bridge_files_clear(struct bridge_files *files);
/* The environment of such a program: "NAME=value", NULL-terminated. */
extern const char *const bridge_environment[];
