/*
 * upstream_revision.h - the protocol's revisions that the client of upstream servers speaks. (Those that the server
 * speaks have their table in cgi/mcp/revision.c.)
 */
#pragma once

#define UPSTREAM_MODERN     "2026-07-28"
#define UPSTREAM_LEGACY     "2025-11-25" /* that is asked for; taken are those below */
#define UPSTREAM_LEGACY_ALL UPSTREAM_LEGACY, "2025-06-18", "2025-03-26", "2024-11-05"
