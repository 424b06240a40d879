/*
 * workspace_guard.h - names in a workspace that programs of this machine run or obey (workspace_guard.list).
 *
 * A guest that writes `.vscode/tasks.json`, or a folder that git takes for a repository, would run commands outside of
 * any jail as soon as the user opens an editor or types `git status`. Such a change is not carried out: it is put next
 * to the name as NAME.sallyport. Names are compared as the most careless file system would take them: letter case,
 * trailing dots and blanks, a stream after a colon (NTFS), characters that HFS+ ignores.
 *
 * Sources: git's fsck and path.c (is_ntfs_dotgit, is_hfs_dotgit), gitrepository-layout(5), and the manuals of the
 * programs that the list names.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/config.h"

enum workspace_guard {
	WORKSPACE_FREE,    /* an ordinary name */
	WORKSPACE_HELD,    /* held back, whether it is new or not */
	WORKSPACE_HELD_NEW /* held back where the folder has no such file */
};
/* Of a path in the workspace. The configuration adds patterns (workspace.hold), and takes names out (workspace.allow,
 * --workspace-allow). `in_repository`: below a folder that has a file HEAD, where only what is allowed is free. */
enum workspace_guard workspace_guard(const struct config *config, const char *path, bool in_repository);
/* Is a name `.git` to some file system? */
bool workspace_guard_git(const char *name);
/* Is a name `plain` (ASCII, lower case) to some file system? */
bool workspace_guard_same(const char *name, const char *plain);
