/*
 * tool_files.h - what the tools for a conversation's files share.
 *
 * Paths are below /data. Models write them as their programs do: "/data/a.csv", "/mnt/data/a.csv" and "./a.csv" mean
 * "a.csv".
 */
#pragma once

#include "lib/store/record/store_execution.h"
#include "tool_common.h"

#define TOOL_PATH_MEMBER(name_, struct_, member_, flags_, description_)                                                \
	BIND_MEMBER(struct_, member_, name_, BIND_STRING, .flags = flags_, .min = 1, .description = description_)

#define TOOL_EXECUTION_MEMBER(struct_, member_)                                                                        \
	BIND_MEMBER(struct_, member_, "executionId", BIND_STRING, .min = 1, .max = ID_SIZE - 1,                        \
		    .description = "Default: the last call.")

/* The path without what stands for /data; points into it. */
const char *tool_files_path(const char *path);
/* The same of a folder, without slashes at its end; "" is all of /data. The caller's. */
char *tool_files_folder(const char *path);
/* Of the caller's; ERR_INVALID names the argument. */
int tool_files_conversation(const struct tool_call *call, const char *name, struct store_conversation *ret,
			    struct err *err);
/* A run of the caller's conversation by its id; NULL: the last one. The caller clears it. */
int tool_files_execution(const struct tool_call *call, const char *conversation, const char *id,
			 struct store_execution *ret, struct err *err);
/* The details of a file: a row of tool_files_table; the caller's. */
extern const struct bind tool_files_table[];
struct json_object *tool_files_object(const struct tool_call *call, const struct store_conversation *conversation,
				      const struct store_file *file);
/* "name (text/plain, 12 bytes)", and where it is asked for, the address. */
void tool_files_describe(const struct tool_call *call, const struct store_conversation *conversation,
			 const struct store_file *file, bool address, struct buf *text);
