/*
 * bridge_stub.h - a tool's JSON Schema as what a model reads: one line of Python or TypeScript, or a file of either.
 *
 *     schema                                     Python                       TypeScript
 *     string integer number boolean null         str int float bool None      string number number boolean null
 *     type: [...], nullable: true                union                        union
 *     enum, const                                Literal['a', 1]              "a" | 1
 *     array items; prefixItems                   list[T]; tuple[A, B]         T[]; [A, B]
 *     object with properties                     {'k': T, 'o'?: T}, in files a TypedDict      { k: T; o?: T }
 *     object; additionalProperties: S            dict[str, S or Any]          Record<string, S or unknown>
 *     anyOf, oneOf                               union without repeats        the same
 *     allOf                                      properties and required merged; else the first that has a type
 *     {}, true, unknown keywords only            Any                          unknown
 *
 * Members of anyOf, oneOf and allOf that only constrain (required, not, if …) are passed over; what stands next to the
 * keyword counts. $ref is followed within the tool's own schema only ("#", "#/…", "#anchor"); what refers to itself
 * becomes a named type. Nothing is ever fetched. Names that are no identifiers are changed as upstream_name.h says; a
 * property that cannot be a keyword is passed in a dict.
 *
 * A line is kept below BRIDGE_SIGNATURE_MAX by its size, not by depth: first with everything in place, then with inner
 * objects named and their definitions behind it, then with the names of their members alone.
 *
 * Names and descriptions are a stranger's text: control, zero-width and bidirectional characters are taken out, blanks
 * folded, comment ends broken.
 */
#pragma once

#include <stdbool.h>

#include "bridge_type.h"
#include "lib/base/buf.h"
#include "lib/upstream/upstream.h"

#define BRIDGE_SIGNATURE_MAX   1200
#define BRIDGE_DESCRIPTION_MAX 2000 /* of a tool, bytes */
#define BRIDGE_SUMMARY_MAX     160
#define BRIDGE_BRIEF_MAX       100

/* "issue_write(*, method: Literal['create'], owner: str, labels: list[str] = ...) -> Any"; the caller's. */
char *bridge_stub_signature(const struct upstream_tool *tool);
void bridge_stub_line(struct buf *out, const struct upstream_tool *tool, enum bridge_language language);
/* A tool's description, then a line for each parameter that has one; each line behind the margin. */
void bridge_stub_documented(struct buf *out, const struct upstream_tool *tool, const char *margin);
/* A whole server: a .pyi or .d.ts that parses. `decisions` NULL, or one a tool: "ask" is shown. */
void bridge_stub_file(struct buf *out, const struct upstream_list *list, const char *const *decisions,
		      enum bridge_language language);
/* Text of a stranger as one line of at most `max` bytes. */
void bridge_stub_text(struct buf *out, const char *text, size_t max);
/* Several tools of a server with one alias: each has only its exact name. */
bool bridge_stub_clashes(const struct upstream_list *list, size_t tool);
